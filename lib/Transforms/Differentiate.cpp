//===- Differentiate.cpp - Adds the backward computation ------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reverse-mode differentiation of a step on the logical program. Knows the
/// structure ops (load, stack); every other op builds its own gradient.
///
//===----------------------------------------------------------------------===//

#include "Remake.h"
#include "parc/Interfaces/Casts.h"
#include "parc/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::parc {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

namespace {

bool isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

Value splat(OpBuilder &builder, Location loc, Type type, double value) {
  auto tensor = cast<RankedTensorType>(type);
  auto element = builder.getFloatAttr(tensor.getElementType(), value);
  return arith::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(tensor, element));
}

/// Differentiates one step.
class Differentiator {
public:
  explicit Differentiator(StepOp step)
      : step(step), symbols(step->getParentOfType<ModuleOp>()) {}
  LogicalResult run();

private:
  /// Marks the values that depend on a parameter, in `block` and the stacks in
  /// it.
  void markActive(Block &block);
  bool markStack(StackOp stack);
  bool isActive(Value value) { return active.contains(value); }
  /// The element type of the slot that the gradient of `value` ends up in,
  /// where it is a parameter, be it moved or converted; else null.
  Type slotElement(Value value);
  /// The element type that the gradient of `value` is added up in.
  Type gradientElement(Value value);
  /// The type of the gradient of `value`, a tensor.
  Type gradientType(Value value);

  void addGradient(OpBuilder &builder, Value value, Value gradient);
  Value takeGradient(Value value);

  /// Builds the gradients of the ops of `block` at the builder's position.
  LogicalResult reverseBlock(Block &block, OpBuilder &builder);
  LogicalResult reverseOp(Operation *op, OpBuilder &builder);
  LogicalResult reverseStack(StackOp stack, OpBuilder &builder);

  StepOp step;
  SymbolTable symbols;
  DenseSet<Value> active;
  DenseMap<Value, Value> gradients;
};

//===----------------------------------------------------------------------===//
// Activity
//===----------------------------------------------------------------------===//

bool Differentiator::markStack(StackOp stack) {
  bool changed = false;
  auto mark = [&](Value value, bool on) {
    if (on && isFloatTensor(value.getType()))
      changed |= active.insert(value).second;
  };
  for (auto [operand, argument] :
       llvm::zip(stack.getCarry(), stack.getCarryArguments()))
    mark(argument, isActive(operand));
  markActive(*stack.getBlock());
  for (auto [index, value] : llvm::enumerate(stack.getYield().getValues())) {
    if (index < stack.getCarry().size())
      mark(stack.getCarryArguments()[index], isActive(value));
    if (isActive(value))
      changed |= active.insert(stack.getResult(index)).second;
  }
  return changed;
}

void Differentiator::markActive(Block &block) {
  for (Operation &op : block) {
    if (auto load = dyn_cast<LoadOp>(op)) {
      active.insert(load.getResult());
    } else if (auto stack = dyn_cast<StackOp>(op)) {
      // A carried value may become active by the body, so to a fixed point.
      while (markStack(stack))
        ;
    } else if (llvm::any_of(op.getOperands(),
                            [&](Value v) { return isActive(v); })) {
      for (Value result : op.getResults())
        if (isFloatTensor(result.getType()))
          active.insert(result);
    }
  }
}

//===----------------------------------------------------------------------===//
// Accumulation
//===----------------------------------------------------------------------===//

Type Differentiator::slotElement(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto load = dyn_cast_or_null<LoadOp>(op))
    return symbols.lookup<ParamOp>(load.getParam())
        .getSlotElementType(kGradientSlot);
  auto moved = dyn_cast_or_null<DifferentiableOpInterface>(op);
  if (!moved || !moved.onlyMoves())
    return {};
  // The elements of several parameters have one type where theirs is one.
  Type common;
  for (Value operand : op->getOperands()) {
    if (!isActive(operand))
      continue;
    Type element = slotElement(operand);
    if (!element || (common && common != element))
      return {};
    common = element;
  }
  return common;
}

Type Differentiator::gradientElement(Value value) {
  Type element = slotElement(value);
  return element ? element : getElementTypeOrSelf(value.getType());
}

Type Differentiator::gradientType(Value value) {
  return cast<RankedTensorType>(value.getType()).clone(gradientElement(value));
}

void Differentiator::addGradient(OpBuilder &builder, Value value,
                                 Value gradient) {
  // Each use of a parameter accumulates by itself: uses may end up on different
  // stages, and their sum is what the slot is for.
  gradient =
      withElements(builder, value.getLoc(), gradient, gradientElement(value));
  if (auto load = value.getDefiningOp<LoadOp>()) {
    AccumulateOp::create(builder, load.getLoc(), load.getParamAttr(), gradient,
                         builder.getStringAttr(kGradientSlot));
    return;
  }
  Value &slot = gradients[value];
  slot = slot ? arith::AddFOp::create(builder, value.getLoc(), slot, gradient)
                    .getResult()
              : gradient;
}

Value Differentiator::takeGradient(Value value) {
  auto it = gradients.find(value);
  return it == gradients.end() ? Value() : it->second;
}

//===----------------------------------------------------------------------===//
// Reversal
//===----------------------------------------------------------------------===//

LogicalResult Differentiator::reverseOp(Operation *op, OpBuilder &builder) {
  SmallVector<Value> resultGradients;
  for (Value result : op->getResults())
    resultGradients.push_back(takeGradient(result));
  if (llvm::none_of(resultGradients, [](Value v) { return !!v; }))
    return success();
  if (auto stack = dyn_cast<StackOp>(op))
    return reverseStack(stack, builder);
  SmallVector<Type> wanted;
  for (Value operand : op->getOperands())
    wanted.push_back(isActive(operand) ? gradientElement(operand) : Type());
  if (llvm::none_of(wanted, [](Type type) { return !!type; }))
    return success();
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  if (!differentiable)
    return emitError(op->getLoc())
           << "'" << op->getName()
           << "' has no gradient rule, and the loss depends on it; give the op "
              "DifferentiableOpInterface";
  SmallVector<Value> operandGradients;
  if (failed(differentiable.buildGradient(builder, resultGradients, wanted,
                                          operandGradients)))
    return failure();
  for (auto [operand, gradient] :
       llvm::zip(op->getOperands(), operandGradients))
    if (gradient && isActive(operand))
      addGradient(builder, operand, gradient);
  return success();
}

LogicalResult Differentiator::reverseBlock(Block &block, OpBuilder &builder) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (failed(reverseOp(op, builder)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

/// Active values from outside that the stack's body uses. Parameters are not
/// among them: their uses accumulate inside.
SetVector<Value> activeCaptures(StackOp stack, const DenseSet<Value> &active) {
  SetVector<Value> captures;
  stack.getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (active.contains(operand) && !operand.getDefiningOp<LoadOp>() &&
          !stack.getBody().isAncestor(operand.getParentRegion()))
        captures.insert(operand);
  });
  return captures;
}

/// True where `value` is cheaper to make again than to keep a layer.
bool isRemade(Value value) {
  Operation *op = value.getDefiningOp();
  return op && (isa<LoadOp>(op) || op->hasTrait<OpTrait::ConstantLike>() ||
                (isa<tensor::EmptyOp, linalg::FillOp>(op) &&
                 llvm::all_of(op->getOperands(), isRemade)));
}

/// Rebuilds `forward` with `saved` values of its body as per-layer results.
StackOp saveForBackward(StackOp forward, ArrayRef<Value> saved) {
  if (saved.empty())
    return forward;
  OpBuilder builder(forward);
  SmallVector<Type> types(forward.getResultTypes());
  SmallVector<Value> yielded(forward.getYield().getValues());
  for (Value value : saved) {
    types.push_back(LayersType::get(forward.getContext(), value.getType()));
    yielded.push_back(value);
  }
  auto wider = StackOp::create(
      builder, forward.getLoc(), types, forward.getLayersAttr(),
      forward.getBeginAttr(), forward.getEndAttr(), forward.getReverseAttr(),
      forward.getReductionsAttr(), forward.getCarry(), forward.getEach());
  wider.getBody().takeBody(forward.getBody());
  wider.getYield().getValuesMutable().assign(yielded);
  for (auto [from, to] : llvm::zip(forward.getResults(), wider.getResults()))
    from.replaceAllUsesWith(to);
  forward.erase();
  return wider;
}

/// Values of the forward body that the backward body uses, in order of use.
SetVector<Value> forwardUses(StackOp forward, StackOp backward) {
  SetVector<Value> uses;
  backward.getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (forward.getBody().isAncestor(operand.getParentRegion()))
        uses.insert(operand);
  });
  return uses;
}

LogicalResult Differentiator::reverseStack(StackOp stack, OpBuilder &builder) {
  Location loc = stack.getLoc();
  for (Value result : stack.getEachResults())
    if (takeGradient(result))
      return emitErrorAt(stack)
             << "has per-layer results that the loss depends on, which cannot "
                "be differentiated; carry or reduce them instead";

  // The gradient of each carried value runs downwards through the layers; that
  // of an invariant is summed over them.
  SetVector<Value> captures = activeCaptures(stack, active);
  SmallVector<Value> carried;
  SmallVector<Type> types;
  for (Value result : stack.getCarryResults()) {
    Value gradient = takeGradient(result);
    carried.push_back(gradient ? gradient
                               : splat(builder, loc, result.getType(), 0.0));
    types.push_back(result.getType());
  }
  for (Value capture : captures)
    types.push_back(gradientType(capture));
  auto backward = StackOp::create(
      builder, loc, types, stack.getLayersAttr(), stack.getBeginAttr(),
      stack.getEndAttr(),
      stack.getReverse() ? UnitAttr() : builder.getUnitAttr(),
      builder.getI64IntegerAttr(captures.size()), carried, ValueRange{});
  Block *block = builder.createBlock(&backward.getBody());
  block->addArgument(builder.getIndexType(), loc);
  OpBuilder body = OpBuilder::atBlockEnd(block);

  DenseMap<Value, Value> outer = std::move(gradients);
  gradients.clear();
  for (auto [index, value] : llvm::enumerate(stack.getCarryResults())) {
    Value argument = block->addArgument(value.getType(), loc);
    addGradient(body, stack.getYield().getValues()[index], argument);
  }
  for (auto [index, result] : llvm::enumerate(stack.getReducedResults()))
    if (auto it = outer.find(result); it != outer.end())
      addGradient(body,
                  stack.getYield().getValues()[stack.getCarry().size() + index],
                  it->second);
  if (failed(reverseBlock(*stack.getBlock(), body)))
    return failure();
  SmallVector<Value> yielded;
  for (Value argument : stack.getCarryArguments()) {
    Value gradient = takeGradient(argument);
    yielded.push_back(gradient ? gradient
                               : splat(body, loc, argument.getType(), 0.0));
  }
  for (Value capture : captures) {
    Value gradient = takeGradient(capture);
    yielded.push_back(gradient ? gradient
                               : splat(body, loc, gradientType(capture), 0.0));
  }
  YieldOp::create(body, loc, yielded);
  gradients = std::move(outer);

  // Connect the two bodies: what is cheap is made again, the rest is saved.
  IRMapping mapping;
  mapping.map(stack.getLayerIndex(), backward.getLayerIndex());
  SmallVector<Value> saved;
  OpBuilder start = OpBuilder::atBlockBegin(block);
  for (Value use : forwardUses(stack, backward)) {
    if (mapping.contains(use))
      continue;
    if (isRemade(use)) {
      remake(start, use, mapping);
      continue;
    }
    saved.push_back(use);
    mapping.map(use, block->addArgument(use.getType(), use.getLoc()));
  }
  backward.getBody().walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (Value mapped = mapping.lookupOrNull(operand.get()))
        operand.set(mapped);
  });
  SmallVector<Value> initial(stack.getCarry());
  SmallVector<bool> initialActive;
  for (Value value : initial)
    initialActive.push_back(isActive(value));
  StackOp forward = saveForBackward(stack, saved);
  if (!saved.empty())
    backward.getEachMutable().assign(
        forward.getEachResults().take_back(saved.size()));
  builder.setInsertionPointAfter(backward);
  for (auto [index, value] : llvm::enumerate(initial))
    if (initialActive[index])
      addGradient(builder, value, backward.getResult(index));
  for (auto [index, capture] : llvm::enumerate(captures))
    addGradient(builder, capture, backward.getReducedResults()[index]);
  return success();
}

LogicalResult Differentiator::run() {
  Block &micro = step.getMicro().front();
  markActive(micro);
  Operation *yield = micro.getTerminator();
  Value loss = yield->getOperand(0);
  auto type = dyn_cast<RankedTensorType>(loss.getType());
  if (!type || type.getRank() != 0 || !isFloatTensor(type))
    return emitErrorAt(step)
           << "expected a loss of rank 0, got " << loss.getType();
  if (!isActive(loss))
    return emitErrorAt(step) << "yields a loss that depends on no parameter";
  OpBuilder builder(yield);
  gradients[loss] = splat(builder, loss.getLoc(), type, 1.0);
  return reverseBlock(micro, builder);
}

struct DifferentiatePass
    : public parc::impl::DifferentiateBase<DifferentiatePass> {
  void runOnOperation() override {
    bool differentiated = false;
    getOperation().walk([&](AccumulateOp) { differentiated = true; });
    if (differentiated)
      return markAllAnalysesPreserved();
    for (StepOp step : getOperation().getOps<StepOp>())
      if (failed(Differentiator(step).run()))
        return signalPassFailure();
  }
};

} // namespace
