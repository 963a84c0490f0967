//===- VerifyLocal.cpp - Closes the local phase ---------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Checks that nothing global is left in the program of one rank.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/Layouts.h"
#include "parc/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::parc {
#define GEN_PASS_DEF_VERIFYLOCAL
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

static LogicalResult verifyTypes(Operation *op) {
  for (Type type : op->getResultTypes())
    if (getSharding(type))
      return emitError(op->getLoc())
             << "'" << op->getName() << "' expected a local type, got " << type;
  if (isa<ReshardOp, ConstraintOp>(op))
    return emitError(op->getLoc())
           << "'" << op->getName() << "' has no meaning in a local program";
  return success();
}

/// The axes that ranks communicate over are axes of devices.
static LogicalResult verifyAxes(Operation *op, const AxisSizes &axes) {
  if (!isCollective(op))
    return success();
  llvm::StringSet<> seen;
  for (auto axis :
       op->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>()) {
    if (axis.getValue() == kMicroBatchAxis)
      return emitError(op->getLoc())
             << "'" << op->getName()
             << "' communicates over micro-batches, which follow each other in "
                "time";
    if (!axes.has(axis.getValue()))
      return emitError(op->getLoc())
             << "'" << op->getName() << "' communicates over axis '"
             << axis.getValue() << "', which the mesh does not have";
    if (!seen.insert(axis.getValue()).second)
      return emitError(op->getLoc()) << "'" << op->getName() << "' names axis '"
                                     << axis.getValue() << "' twice";
  }
  return success();
}

static LogicalResult verifyParam(Operation *op, StringRef name, StringRef slot,
                                 Type type, const AxisSizes &axes) {
  auto param = op->getParentOfType<ModuleOp>().lookupSymbol<ParamOp>(name);
  RankedTensorType expected =
      localType(param.getSlotType(slot), param.getSlotSharding(slot), axes);
  if (type == expected)
    return success();
  return emitError(op->getLoc()) << "expected parameter @" << name << " as "
                                 << expected << ", got " << type;
}

static LogicalResult verifyOp(Operation *op, const AxisSizes &axes) {
  if (failed(verifyTypes(op)) || failed(verifyAxes(op, axes)))
    return failure();
  if (auto load = dyn_cast<LoadOp>(op))
    return verifyParam(op, load.getParam(), load.getSlot(), load.getType(),
                       axes);
  if (auto store = dyn_cast<StoreOp>(op))
    return verifyParam(op, store.getParam(), store.getSlot(),
                       store.getInput().getType(), axes);
  if (auto accumulate = dyn_cast<AccumulateOp>(op))
    return verifyParam(op, accumulate.getParam(), accumulate.getSlot(),
                       accumulate.getInput().getType(), axes);
  return success();
}

namespace {
struct VerifyLocalPass : public parc::impl::VerifyLocalBase<VerifyLocalPass> {
  using VerifyLocalBase::VerifyLocalBase;
  void runOnOperation() override {
    AxisSizes axes(getOperation(), microBatches);
    for (StepOp step : getOperation().getOps<StepOp>()) {
      WalkResult result = step.walk(
          [&](Operation *op) { return WalkResult(verifyOp(op, axes)); });
      if (!result.wasInterrupted())
        continue;
      emitRemark(step.getLoc(), "the local phase does not hold after "
                                "'parc-local' or a pass run after it");
      return signalPassFailure();
    }
  }
};
} // namespace
