//===- Ring.cpp - Ops on rings as transfers -------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Replaces local ops on rings by what they build.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/Layouts.h"
#include "parc/Transforms/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_RING
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

/// Ranks of a ring over `names`.
static int64_t membersOf(const AxisSizes &axes, ArrayAttr names) {
  int64_t members = 1;
  for (auto axis : names.getAsRange<StringAttr>())
    members *= axes.of(axis.getValue());
  return members;
}

namespace {
struct RingPass : public parc::impl::RingBase<RingPass> {
  using RingBase::RingBase;
  void runOnOperation() override {
    AxisSizes axes(getOperation(), microBatches);
    SmallVector<RingOpInterface> ops;
    getOperation().walk([&](RingOpInterface op) {
      if (op.getRingAxes())
        ops.push_back(op);
    });
    for (RingOpInterface op : ops) {
      OpBuilder builder(op);
      FailureOr<SmallVector<Value>> values =
          op.expandRing(builder, membersOf(axes, op.getRingAxes()), contract);
      if (failed(values))
        return signalPassFailure();
      op->replaceAllUsesWith(*values);
      op->erase();
    }
  }
};
} // namespace
