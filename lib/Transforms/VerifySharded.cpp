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
        return WalkResult(failure(failed(verifyHasLayouts(op)) ||
                                  failed(verifyOpLayout(op, axes))));
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
