//===- InterpParc.cpp - Parameters, stacks, coordinates -------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The ops of the parc dialect that need no other rank.
///
//===----------------------------------------------------------------------===//

#include "Plan.h"
#include "RankSetup.h"

#include "Parc/Parc.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::eval;

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// The slot's tensor; a slot that nothing was put into yet is zero.
template <class T>
static FailureOr<Tensor<T>> loadSlot(Interpreter<T> &interpreter, Operation *op,
                                     StringRef symbol, StringRef slot) {
  if (const Tensor<T> *held =
          interpreter.params.find(interpreter.key(symbol, slot)))
    return *held;
  const Tensor<T> *value =
      interpreter.params.find(interpreter.key(symbol, "value"));
  if (!value || slot == kMasterSlot) {
    op->emitOpError()
        << "needs " << (value ? "the master of " : "") << "parameter @"
        << symbol << " of layer " << interpreter.key(symbol, slot).layer
        << ", which has no value here; give it one before the step";
    return failure();
  }
  // Of a value that is held whole a slot may hold a piece.
  auto param = op->getParentOfType<ModuleOp>().lookupSymbol<ParamOp>(symbol);
  ShardingAttr sharding = param ? param.getSlotSharding(slot) : ShardingAttr();
  bool isPiece = sharding && sharding.isFlat() &&
                 sharding != param.getSlotSharding(kValueSlot);
  if (isPiece)
    return Tensor<T>::zeros(
        {flatPart(sharding, value->size(), interpreter.rank).size}, false);
  return Tensor<T>::zeros(value->shape(), false);
}

template <class T>
static LogicalResult runLoad(Interpreter<T> &interpreter,
                             const OpPlan<T> &plan) {
  auto op = cast<LoadOp>(plan.op);
  FailureOr<Tensor<T>> value =
      loadSlot(interpreter, op, op.getParam(), op.getSlot());
  if (failed(value))
    return failure();
  return interpreter.set(op.getResult(), *value);
}

template <class T>
static LogicalResult runStore(Interpreter<T> &interpreter,
                              const OpPlan<T> &plan) {
  auto op = cast<StoreOp>(plan.op);
  ParamKey key = interpreter.key(op.getParam(), op.getSlot());
  // What a stream stores is there when the stream is waited for.
  if (op->template getParentOfType<StartOp>())
    interpreter.params.set(key, interpreter.tensor(op.getInput()));
  else
    interpreter.store(std::move(key), interpreter.tensor(op.getInput()));
  return success();
}

template <class T>
static LogicalResult runAccumulate(Interpreter<T> &interpreter,
                                   const OpPlan<T> &plan) {
  auto op = cast<AccumulateOp>(plan.op);
  const Tensor<T> &term = interpreter.tensor(op.getInput());
  ParamKey key = interpreter.key(op.getParam(), op.getSlot());
  if (Tensor<T> *sum = interpreter.params.find(key)) {
    if (sum->shape() != term.shape())
      return op.emitOpError()
             << "adds shape " << shapeText(term.shape())
             << " to a slot of shape " << shapeText(sum->shape());
    addInto(*sum, term);
    return success();
  }
  // The first term decides the shape: it must be that of the slot.
  FailureOr<Tensor<T>> zero =
      loadSlot(interpreter, op, op.getParam(), op.getSlot());
  if (failed(zero))
    return failure();
  if (zero->shape() != term.shape())
    return op.emitOpError()
           << "adds shape " << shapeText(term.shape()) << " to parameter @"
           << op.getParam() << " of shape " << shapeText(zero->shape());
  interpreter.params.set(key, term);
  return success();
}

template <class T>
static LogicalResult runObserve(Interpreter<T> &interpreter,
                                const OpPlan<T> &plan) {
  auto op = cast<ObserveOp>(plan.op);
  std::string name = op.getName().str();
  if (op->template getParentOfType<StackOp>())
    name += "." + std::to_string(interpreter.layer);
  interpreter.observe({name, interpreter.tensor(op.getInput()), op});
  return success();
}

/// Layouts do not change what a value is: parc.constraint, and parc.reshard as
/// long as types are global.
template <class T>
static LogicalResult runIdentity(Interpreter<T> &interpreter,
                                 const OpPlan<T> &plan) {
  return interpreter.set(plan.op->getResult(0),
                         interpreter.tensor(plan.op->getOperand(0)));
}

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

namespace {

/// One run of a stack.
template <class T> class StackRun {
public:
  StackRun(Interpreter<T> &interpreter, StackOp op)
      : interpreter(interpreter), op(op), numCarried(op.getCarry().size()),
        numReduced(op.getReductions()) {}

  LogicalResult run() {
    std::tie(begin, end) = interpreter.rank.ownLayers(
        op.getLayers(), int64_t(op.getBegin()), int64_t(op.getEnd()));
    for (Value carry : op.getCarry())
      carried.push_back(interpreter.value(carry));
    each.resize(op.getEachResults().size());
    for (LayerValues<T> &values : each) {
      values.begin = begin;
      values.values.resize(end - begin);
    }
    int64_t outer = interpreter.layer;
    std::optional<int64_t> outerNext = interpreter.nextLayer;
    if (begin < end && failed(startFirst()))
      return failure();
    for (int64_t step = 0; step < end - begin; ++step) {
      interpreter.nextLayer = std::nullopt;
      if (step + 1 < end - begin)
        interpreter.nextLayer = layerAt(step + 1);
      if (failed(runLayer(layerAt(step))))
        return failure();
    }
    interpreter.layer = outer;
    interpreter.nextLayer = outerNext;
    return setResults();
  }

private:
  int64_t layerAt(int64_t step) {
    return op.getReverse() ? end - 1 - step : begin + step;
  }

  /// What runs ahead of its layer begins before the first one.
  LogicalResult startFirst() {
    interpreter.layer = layerAt(0);
    for (auto start : op.getBlock()->getOps<StartOp>()) {
      if (!start.getAhead())
        continue;
      auto values = interpreter.run(*start.getBlock(), {});
      if (failed(values))
        return failure();
      interpreter.ahead[start] = std::move(*values);
    }
    return success();
  }

  LogicalResult runLayer(int64_t layer) {
    interpreter.layer = layer;
    llvm::SmallVector<RuntimeValue<T>> arguments;
    arguments.push_back(Tensor<T>::integer(layer));
    for (RuntimeValue<T> &value : carried)
      arguments.push_back(std::move(value));
    for (Value operand : op.getEach()) {
      const LayerValues<T> &values = *interpreter.value(operand).layers;
      int64_t index = layer - values.begin;
      if (index < 0 || index >= int64_t(values.values.size()))
        return op.emitOpError()
               << "needs layer " << layer << " of a value that has layers "
               << values.begin << " to "
               << values.begin + int64_t(values.values.size());
      arguments.push_back(values.values[index]);
    }
    auto results = interpreter.run(*op.getBlock(), arguments);
    if (failed(results))
      return failure();
    for (size_t index = 0; index < numCarried; ++index)
      carried[index] = std::move((*results)[index]);
    for (size_t index = 0; index < numReduced; ++index)
      if (failed(reduce(index, (*results)[numCarried + index].tensor)))
        return failure();
    for (size_t index = 0; index < each.size(); ++index)
      each[index].values[layer - begin] =
          std::move((*results)[numCarried + numReduced + index].tensor);
    return success();
  }

  LogicalResult reduce(size_t index, const Tensor<T> &term) {
    if (reduced.size() <= index) {
      reduced.push_back(term);
      return success();
    }
    if (reduced[index].shape() != term.shape())
      return op.emitOpError()
             << "sums shape " << shapeText(term.shape()) << " and shape "
             << shapeText(reduced[index].shape());
    addInto(reduced[index], term);
    return success();
  }

  /// A sum over no layers is zero, of a shape that only the type can tell.
  LogicalResult reduceNothing() {
    for (Value result : op.getReducedResults()) {
      auto type = cast<RankedTensorType>(result.getType());
      if (!type.hasStaticShape())
        return op.emitOpError()
               << "sums no layers into " << type << ", whose shape is unknown";
      if (failed(checkSizes(op, type.getShape())))
        return failure();
      reduced.push_back(Tensor<T>::zeros(type.getShape(),
                                         type.getElementType().isIntOrIndex()));
    }
    return success();
  }

  LogicalResult setResults() {
    if (begin == end && failed(reduceNothing()))
      return failure();
    for (auto [result, value] : llvm::zip(op.getCarryResults(), carried))
      if (failed(interpreter.set(result, value)))
        return failure();
    for (auto [result, value] : llvm::zip(op.getReducedResults(), reduced))
      if (failed(interpreter.set(result, value)))
        return failure();
    for (auto [result, values] : llvm::zip(op.getEachResults(), each))
      if (failed(interpreter.set(result, std::make_shared<const LayerValues<T>>(
                                             std::move(values)))))
        return failure();
    return success();
  }

  Interpreter<T> &interpreter;
  StackOp op;
  size_t numCarried, numReduced;
  int64_t begin = 0, end = 0;
  llvm::SmallVector<RuntimeValue<T>> carried;
  llvm::SmallVector<Tensor<T>> reduced;
  std::vector<LayerValues<T>> each;
};

} // namespace

template <class T>
static LogicalResult runStack(Interpreter<T> &interpreter,
                              const OpPlan<T> &plan) {
  return StackRun<T>(interpreter, cast<StackOp>(plan.op)).run();
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

template <class T>
static LogicalResult setAll(Interpreter<T> &interpreter, ResultRange results,
                            typename Interpreter<T>::Values values) {
  for (auto [result, value] : llvm::zip(results, values))
    if (failed(interpreter.set(result, value)))
      return failure();
  return success();
}

/// One thread a rank meets the others where it starts, in the order of starts,
/// so a wrong order is a deadlock here as well.
template <class T>
static LogicalResult runStart(Interpreter<T> &interpreter,
                              const OpPlan<T> &plan) {
  auto op = cast<StartOp>(plan.op);
  if (!op.getAhead()) {
    auto values = interpreter.run(*op.getBlock(), {});
    if (failed(values))
      return failure();
    return setAll<T>(interpreter, op.getResults(), std::move(*values));
  }
  auto mine = std::move(interpreter.ahead[op]);
  if (interpreter.nextLayer) {
    int64_t layer = interpreter.layer;
    interpreter.layer = *interpreter.nextLayer;
    auto values = interpreter.run(*op.getBlock(), {});
    if (failed(values))
      return failure();
    interpreter.ahead[op] = std::move(*values);
    interpreter.layer = layer;
  }
  return setAll<T>(interpreter, op.getResults(), std::move(mine));
}

template <class T>
static LogicalResult runWait(Interpreter<T> &interpreter,
                             const OpPlan<T> &plan) {
  auto op = cast<WaitOp>(plan.op);
  typename Interpreter<T>::Values values;
  for (Value pending : op.getPending())
    values.push_back(interpreter.value(pending));
  return setAll<T>(interpreter, op.getResults(), std::move(values));
}

template <class T>
static LogicalResult runLastMicro(Interpreter<T> &interpreter,
                                  const OpPlan<T> &plan) {
  auto op = cast<LastMicroOp>(plan.op);
  if (!interpreter.isLastMicro)
    return success();
  return success(succeeded(interpreter.run(op.getBody().front(), {})));
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

template <class T, class Op>
static LogicalResult runPart(Interpreter<T> &interpreter,
                             const OpPlan<T> &plan) {
  auto op = cast<Op>(plan.op);
  int64_t extent = op.getExtent(), grain = op.getGrain();
  if (grain < 1 || extent < 0 || extent % grain)
    return op.emitOpError() << "expected an extent that is a multiple of its "
                               "grain, got "
                            << extent << " and " << grain;
  Part part = partOf(extent, grain, interpreter.rank.linear(op.getAxes()));
  return interpreter.set(op.getResult(),
                         Tensor<T>::integer(std::is_same_v<Op, PartStartOp>
                                                ? part.start
                                                : part.size));
}

template <class T>
static LogicalResult runOwn(Interpreter<T> &interpreter,
                            const OpPlan<T> &plan) {
  auto op = cast<OwnOp>(plan.op);
  const Tensor<T> &input = interpreter.tensor(op.getInput());
  bool first = interpreter.rank.linear(op.getAxes()).coordinate == 0;
  return interpreter.set(
      op.getResult(),
      first ? input : Tensor<T>::zeros(input.shape(), input.isInt()));
}

/// The number that the model's checkpoint gives layer `layer` of a stack: that
/// of any parameter of its body.
static int64_t modelLayer(StackOp stack, int64_t layer) {
  ModuleOp module = stack->getParentOfType<ModuleOp>();
  for (LoadOp load : stack.getBlock()->getOps<LoadOp>())
    if (auto param = module.lookupSymbol<ParamOp>(load.getParam());
        param && param.getLayers())
      return layer * int64_t(param.getLayerStride()) +
             int64_t(param.getLayerBase());
  return layer;
}

/// Which expert, layer and rank, and the way out.
template <class T>
static LogicalResult runCheckLoad(Interpreter<T> &interpreter,
                                  const OpPlan<T> &plan) {
  auto op = cast<CheckLoadOp>(plan.op);
  const Tensor<T> &counts = interpreter.tensor(op.getCounts());
  int64_t limit = interpreter.integer(op.getLimit());
  for (int64_t expert = 0; expert < counts.size(); ++expert) {
    int64_t count = counts.ints()[expert];
    if (count <= limit)
      continue;
    InFlightDiagnostic diag = op.emitError() << "expert " << expert;
    if (auto stack = op->template getParentOfType<StackOp>())
      diag << " of layer " << modelLayer(stack, interpreter.layer);
    return diag << " on rank " << interpreter.rank.number << " got " << count
                << " tokens, its queue holds " << limit
                << "; raise moe_buffer_factor";
  }
  return interpreter.set(op.getResult(), counts);
}

template <class T>
void mlir::parc::eval::addParcHandlers(HandlerTable<T> &table) {
  table["parc.load"] = {runLoad<T>};
  table["parc.store"] = {runStore<T>};
  table["parc.accumulate"] = {runAccumulate<T>};
  table["parc.observe"] = {runObserve<T>};
  table["parc.constraint"] = {runIdentity<T>};
  table["parc.reshard"] = {runIdentity<T>};
  table["parc.stack"] = {runStack<T>};
  table["parc.start"] = {runStart<T>};
  table["parc.wait"] = {runWait<T>};
  table["parc.last_micro"] = {runLastMicro<T>};
  table["parc.part_start"] = {runPart<T, PartStartOp>};
  table["parc.part_size"] = {runPart<T, PartSizeOp>};
  table["parc.own"] = {runOwn<T>};
  table["parc.check_load"] = {runCheckLoad<T>};
}

#define PARC_INSTANTIATE(T)                                                    \
  template void mlir::parc::eval::addParcHandlers(HandlerTable<T> &);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
