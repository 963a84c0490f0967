//===- VerifySharded.cpp - Closes the sharded phase -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Checks the layouts written on types against every op's factors.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/OpLayout.h"
#include "parc/Transforms/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_VERIFYSHARDED
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

/// Every tensor of a step has a layout in this phase.
static LogicalResult verifyHasLayouts(Operation *op) {
  for (auto [index, type] : llvm::enumerate(op->getResultTypes()))
    if (isa<RankedTensorType>(type) && !getSharding(type))
      return emitError(op->getLoc())
             << "'" << op->getName() << "' expected a layout on result "
             << index << ", got " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Places in sets
//===----------------------------------------------------------------------===//

/// The layout of the one dimension that is a set; null where there is none.
static DimShardingAttr setLayout(Operation *op) {
  auto shardable = dyn_cast<ShardableOpInterface>(op);
  FailureOr<OpFactors> factors = failure();
  if (shardable)
    factors = shardable.getFactors();
  if (failed(factors))
    return {};
  DimShardingAttr found;
  auto visit = [&](ValueRange values, ArrayRef<ValueFactors> all) {
    for (auto [value, dims] : llvm::zip(values, all))
      if (ShardingAttr sharding = getSharding(value.getType()))
        for (auto [dim, split] : llvm::zip(dims, sharding.getDims()))
          if (dim.cut == DimCut::Set)
            found = split;
  };
  visit(op->getOperands(), factors->operands);
  visit(op->getResults(), factors->results);
  return found;
}

/// The op whose result `value` is: where a backward stack reads what a forward
/// one saved, the op in the latter. Null where that cannot be told.
static Operation *origin(Value value) {
  while (value) {
    if (auto result = dyn_cast<OpResult>(value)) {
      auto stack = dyn_cast<StackOp>(result.getOwner());
      if (!stack)
        return result.getOwner();
      value = stack.getBlock()->getTerminator()->getOperand(
          result.getResultNumber());
      continue;
    }
    auto argument = cast<BlockArgument>(value);
    auto stack = dyn_cast<StackOp>(argument.getOwner()->getParentOp());
    if (!stack)
      return nullptr;
    // The layer's number, what is carried, what each layer has.
    unsigned first = 1 + stack.getCarry().size();
    if (argument.getArgNumber() < first)
      return nullptr;
    value = stack.getEach()[argument.getArgNumber() - first];
  }
  return nullptr;
}

static std::string printed(DimShardingAttr split) {
  std::string text = "{";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(split.getAxes(), os,
                        [&](StringAttr axis) { os << axis.getValue(); });
  return text + "}";
}

/// A part of a set holds what the same part of its factors put there. Places in
/// it (integers) mean nothing to an op that has it cut otherwise.
static LogicalResult verifyPlaces(Operation *op) {
  DimShardingAttr own = setLayout(op);
  if (!own)
    return success();
  Operation *maker = nullptr;
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.getType());
        type && isa<IntegerType>(type.getElementType()))
      maker = origin(operand);
  bool moved = false;
  while (auto reshard = dyn_cast_or_null<ReshardOp>(maker)) {
    moved = true;
    maker = origin(reshard.getInput());
  }
  DimShardingAttr other = maker ? setLayout(maker) : DimShardingAttr();
  if (!other || (!moved && own.getAxes() == other.getAxes()))
    return success();
  InFlightDiagnostic diag =
      emitError(op->getLoc())
      << "'" << op->getName() << "' reads places that '" << maker->getName()
      << "' gave where the set is split over " << printed(other)
      << ", but has it split over " << printed(own)
      << "; remove the constraint that moves them";
  diag.attachNote(maker->getLoc()) << "the places are made here";
  return failure();
}

/// A narrow sum is added up in a wide type.
static LogicalResult verifyAccumulation(Operation *op) {
  if (!sumsNarrow(op))
    return success();
  auto type = op->getAttrOfType<TypeAttr>(kAccumulateAttr);
  auto wide = type ? dyn_cast<FloatType>(type.getValue()) : FloatType();
  if (wide && wide.getWidth() >= 32)
    return success();
  InFlightDiagnostic diag =
      emitError(op->getLoc())
      << "'" << op->getName() << "' sums in "
      << getElementTypeOrSelf(op->getResultTypes().front()) << ", expected '"
      << kAccumulateAttr << "' of f32 or wider, got ";
  if (type)
    return diag << type;
  return diag << "none; 'parc-accumulate-types' sets it";
}

namespace {
struct VerifyShardedPass
    : public parc::impl::VerifyShardedBase<VerifyShardedPass> {
  using VerifyShardedBase::VerifyShardedBase;
  void runOnOperation() override {
    AxisSizes axes(getOperation(), microBatches);
    for (StepOp step : getOperation().getOps<StepOp>()) {
      WalkResult result = step.walk([&](Operation *op) {
        // The bodies of structured ops work on elements.
        if (op == step.getOperation() ||
            op->getParentOfType<linalg::LinalgOp>())
          return WalkResult::advance();
        return WalkResult(failure(
            failed(verifyHasLayouts(op)) || failed(verifyAccumulation(op)) ||
            failed(verifyOpLayout(op, axes)) || failed(verifyPlaces(op))));
      });
      if (!result.wasInterrupted())
        continue;
      emitRemark(step.getLoc(), "the sharded phase does not hold after "
                                "'parc-shard' or a pass run after it");
      return signalPassFailure();
    }
  }
};
} // namespace
