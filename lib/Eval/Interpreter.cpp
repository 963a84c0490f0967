//===- Interpreter.cpp - Runs fully decomposed programs -------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Plans of blocks, and the loop over their ops.
///
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include "Parc/Parc.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::eval;

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

template <class T> ModulePlan<T>::ModulePlan(ModuleOp module) {
  for (auto param : module.getOps<ParamOp>())
    params[param.getSymName()] = param.getLayers().has_value();
}

template <class T> ModulePlan<T>::~ModulePlan() = default;

template <class T>
std::optional<bool> ModulePlan<T>::hasLayers(StringRef symbol) const {
  auto found = params.find(symbol);
  return found == params.end() ? std::nullopt
                               : std::optional<bool>(found->second);
}

template <class T> static HandlerTable<T> makeTable() {
  HandlerTable<T> table;
  addArithHandlers(table);
  addTensorHandlers(table);
  addParcHandlers(table);
  addCollectiveHandlers(table);
  return table;
}

template <class T> static FailureOr<Handler<T>> findHandler(Operation *op) {
  static const HandlerTable<T> table = makeTable<T>();
  StringRef name = op->getName().getStringRef();
  auto found = table.find(name);
  if (found != table.end())
    return found->second;
  if (isa<linalg::LinalgOp>(op))
    return structuredHandler<T>();
  if (isElementwiseName(name))
    return elementwiseHandler<T>();
  return op->emitError() << "'" << name
                         << "' is an op that the evaluator does not know; "
                            "decompose it to arith, math, linalg and tensor "
                            "first";
}

/// Values that the evaluator can hold.
static LogicalResult checkTypes(Operation *op) {
  auto known = [](Type type) {
    if (auto layers = dyn_cast<LayersType>(type))
      type = layers.getElement();
    if (auto pending = dyn_cast<PendingType>(type))
      type = pending.getElement();
    Type element = type;
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      element = tensor.getElementType();
    return isa<FloatType>(element) || element.isIntOrIndex();
  };
  for (Type type :
       llvm::concat<const Type>(llvm::to_vector(op->getOperandTypes()),
                                llvm::to_vector(op->getResultTypes())))
    if (!known(type))
      return op->emitError()
             << "expected ranked tensors and scalars of numbers, got " << type
             << "; the evaluator holds no other value";
  return success();
}

/// Finds the last reader of each value of `block`, nested readers included.
template <class T> static void findLastUses(Block &block, BlockPlan<T> &plan) {
  llvm::DenseMap<Value, size_t> lastUse;
  llvm::SmallVector<Value> order;
  auto touch = [&](Value value, size_t index) {
    if (value.getParentBlock() != &block)
      return;
    if (lastUse.try_emplace(value, index).second)
      order.push_back(value);
    else
      lastUse[value] = index;
  };
  size_t index = 0;
  for (Operation &op : block) {
    for (Value result : op.getResults())
      touch(result, index);
    op.walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        touch(operand, index);
    });
    ++index;
  }
  for (Value value : order) {
    size_t last = lastUse[value];
    if (last < plan.ops.size())
      plan.ops[last].dying.push_back(value);
    else
      plan.dyingAtEnd.push_back(value);
  }
}

template <class T>
static LogicalResult makePlan(Block &block, BlockPlan<T> &plan) {
  if (block.empty() || !block.back().hasTrait<OpTrait::IsTerminator>())
    return emitError(block.getParentOp()->getLoc())
           << "expected a block that ends in a terminator";
  for (Operation &op : block.without_terminator()) {
    FailureOr<Handler<T>> handler = findHandler<T>(&op);
    if (failed(handler) || failed(checkTypes(&op)))
      return failure();
    plan.ops.emplace_back();
    plan.ops.back().op = &op;
    plan.ops.back().handler = *handler;
    if (handler->prepare && failed(handler->prepare(plan.ops.back())))
      return failure();
  }
  findLastUses(block, plan);
  return success();
}

template <class T> const BlockPlan<T> *ModulePlan<T>::get(Block &block) {
  std::lock_guard<std::mutex> guard(mutex);
  std::unique_ptr<BlockPlan<T>> &entry = plans[&block];
  if (entry)
    return entry.get();
  auto plan = std::make_unique<BlockPlan<T>>();
  if (failed(makePlan<T>(block, *plan)))
    return nullptr;
  entry = std::move(plan);
  return entry.get();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

template <class T>
Shape Interpreter<T>::integers(ArrayRef<OpFoldResult> mixed) {
  Shape result;
  for (OpFoldResult entry : mixed) {
    if (auto attr = dyn_cast<Attribute>(entry))
      result.push_back(cast<IntegerAttr>(attr).getInt());
    else
      result.push_back(integer(cast<Value>(entry)));
  }
  return result;
}

template <class T>
Tensor<T> Interpreter<T>::take(const OpPlan<T> &plan, OpOperand &operand) {
  Value value = operand.get();
  auto entry = environment.find(value);
  bool usedOnce = llvm::count(plan.op->getOperands(), value) == 1;
  if (usedOnce && llvm::is_contained(plan.dying, value))
    return std::move(entry->second.tensor);
  return entry->second.tensor;
}

template <class T>
LogicalResult Interpreter<T>::check(Operation *op, Type type,
                                    const RuntimeValue<T> &value,
                                    const Twine &what) {
  if (auto layers = dyn_cast<LayersType>(type)) {
    if (!value.layers)
      return op->emitError() << what << ": expected one value a layer";
    for (const Tensor<T> &element : value.layers->values)
      if (failed(check(op, layers.getElement(), element, what)))
        return failure();
    return success();
  }
  // What was started is done at once: ranks meet where they start.
  if (auto pending = dyn_cast<PendingType>(type))
    return check(op, pending.getElement(), value, what);
  ArrayRef<int64_t> expected;
  Type element = type;
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    expected = tensor.getShape();
    element = tensor.getElementType();
  }
  const Tensor<T> &tensor = value.tensor;
  if (!tensor.valid() || tensor.isInt() != element.isIntOrIndex())
    return op->emitError() << what << ": expected elements of type " << element
                           << ", got "
                           << (!tensor.valid()  ? "no value"
                               : tensor.isInt() ? "integers"
                                                : "floats");
  bool fits = tensor.rank() == int64_t(expected.size());
  for (size_t dim = 0; fits && dim < expected.size(); ++dim)
    fits = ShapedType::isDynamic(expected[dim]) ||
           expected[dim] == tensor.shape()[dim];
  if (!fits) {
    Shape wanted(expected.begin(), expected.end());
    return op->emitError() << what << ": expected shape " << shapeText(wanted)
                           << ", got " << shapeText(tensor.shape());
  }
  return success();
}

template <class T>
LogicalResult Interpreter<T>::set(Value result, RuntimeValue<T> value) {
  Operation *op = result.getDefiningOp();
  if (failed(check(op, result.getType(), value,
                   "result of '" + op->getName().getStringRef() + "'")))
    return failure();
  environment[result] = std::move(value);
  return success();
}

template <class T>
ParamKey Interpreter<T>::key(StringRef symbol, StringRef slot) const {
  bool layered = plan.hasLayers(symbol).value_or(false);
  return {symbol.str(), layered ? layer : 0, slot.str()};
}

template <class T> void Interpreter<T>::commitStores() {
  for (auto &[key, value] : pending)
    params.set(key, std::move(value));
  pending.clear();
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

template <class T>
FailureOr<typename Interpreter<T>::Values>
Interpreter<T>::run(Block &block, ArrayRef<RuntimeValue<T>> arguments) {
  const BlockPlan<T> *blockPlan = plan.get(block);
  if (!blockPlan)
    return failure();
  Operation *parent = block.getParentOp();
  if (arguments.size() != block.getNumArguments())
    return parent->emitError()
           << "expected " << block.getNumArguments()
           << " values for its arguments, got " << arguments.size();
  for (auto [argument, value] : llvm::zip(block.getArguments(), arguments)) {
    if (failed(check(parent, argument.getType(), value,
                     "argument " + Twine(argument.getArgNumber()) + " of '" +
                         parent->getName().getStringRef() + "'")))
      return failure();
    environment[argument] = value;
  }
  for (const OpPlan<T> &op : blockPlan->ops) {
    if (failed(op.handler.run(*this, op)))
      return failure();
    for (Value value : op.dying)
      environment.erase(value);
  }
  Values results;
  for (Value operand : block.getTerminator()->getOperands())
    results.push_back(environment[operand]);
  for (Value value : blockPlan->dyingAtEnd)
    environment.erase(value);
  return results;
}

#define PARC_INSTANTIATE(T)                                                    \
  template class mlir::parc::eval::ModulePlan<T>;                              \
  template class mlir::parc::eval::Interpreter<T>;
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
