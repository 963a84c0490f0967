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

/// Transfers made before `op` and behind `before` are told what they move: an
/// operand that is passed on, or what has its form, as its gradient has.
static void tellReasons(RingOpInterface op, Operation *before) {
  auto reasons = op->getAttrOfType<ArrayAttr>(kRingReasonsAttr);
  if (!reasons)
    return;
  SmallVector<ShiftOp> shifts;
  Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
  for (Operation *made = first; made != op; made = made->getNextNode())
    made->walk([&](ShiftOp shift) { shifts.push_back(shift); });
  SmallVector<std::pair<Type, WhyAttr>> passed;
  DenseMap<Value, WhyAttr> known;
  for (auto [operand, reason] : llvm::zip(op->getOperands(), reasons))
    if (auto why = dyn_cast<WhyAttr>(reason))
      known[operand] = why;
  for (ShiftOp shift : shifts)
    if (WhyAttr why = known.lookup(shift.getInput())) {
      known[shift.getResult()] = why;
      passed.push_back({shift.getType(), why});
    }
  for (ShiftOp shift : shifts) {
    WhyAttr why = known.lookup(shift.getResult());
    for (auto &[type, other] : passed)
      if (!why && type == shift.getType())
        why = other;
    if (why)
      shift.setWhyAttr(WhyAttr::get(
          op->getContext(), shift.getWhy(), why.getValue(), why.getType(),
          why.getFrom(), why.getTo(), std::nullopt, why.getBecause()));
  }
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
      Operation *before = op->getPrevNode();
      FailureOr<SmallVector<Value>> values =
          op.expandRing(builder, membersOf(axes, op.getRingAxes()), contract);
      if (failed(values))
        return signalPassFailure();
      tellReasons(op, before);
      op->replaceAllUsesWith(*values);
      op->erase();
    }
  }
};
} // namespace
