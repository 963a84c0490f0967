//===- VerifyStaged.cpp - Closes the staged phase -------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Checks that the programs of all stages fit together.
///
//===----------------------------------------------------------------------===//

#include "parc/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::parc {
#define GEN_PASS_DEF_VERIFYSTAGED
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

/// The role of each stage; null and an error where one has none or two.
static FailureOr<SmallVector<RoleOp>> rolesOfStages(ModuleOp module,
                                                    ScheduleOp schedule) {
  SmallVector<RoleOp> roles(schedule.getBounds().size() - 1);
  for (RoleOp role : module.getOps<RoleOp>())
    for (int64_t stage : role.getStages()) {
      if (stage < 0 || stage >= static_cast<int64_t>(roles.size()))
        return emitError(role.getLoc())
               << "role @" << role.getSymName() << " runs on stage " << stage
               << ", expected one of " << roles.size();
      if (roles[stage])
        return emitError(role.getLoc())
               << "stage " << stage << " has two roles";
      roles[stage] = role;
    }
  for (auto [stage, role] : llvm::enumerate(roles))
    if (!role)
      return emitError(schedule.getLoc())
             << "stage " << stage << " has no role";
  return roles;
}

/// What `from` sends in `region` is what `to` receives there.
static LogicalResult verifyBoundary(RoleOp from, RoleOp to, bool isForward) {
  Region &sending = isForward ? from.getForward() : from.getBackward();
  Region &receiving = isForward ? to.getForward() : to.getBackward();
  size_t sends = isForward ? from.getForwardSends() : from.getBackwardSends();
  SmallVector<Type> sent(sending.front().getTerminator()->getOperandTypes());
  SmallVector<Type> received(receiving.front().getArgumentTypes());
  received.erase(received.begin(), received.begin() + to.getInputs().size());
  sent.resize(sends);
  if (received.size() < sends ||
      ArrayRef(received).take_front(sends) != ArrayRef(sent))
    return emitError(from.getLoc())
           << "role @" << from.getSymName() << " sends " << sends << " values "
           << (isForward ? "forward" : "backward")
           << " that are not what role @" << to.getSymName() << " receives";
  return success();
}

/// No stage waits for another inside a micro-batch: other stages are elsewhere.
static LogicalResult verifyMicro(RoleOp role) {
  for (Region *region : {&role.getForward(), &role.getBackward()}) {
    WalkResult result = region->walk([&](AllReduceOp op) {
      for (auto axis : op.getAxes().getAsRange<StringAttr>())
        if (axis.getValue() == kStageAxis) {
          emitError(op.getLoc())
              << "reduces over the stage axis inside a micro-batch, where "
                 "stages run at different times";
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

static LogicalResult verifyUpdate(RoleOp role) {
  llvm::StringSet<> stored;
  role.getUpdate().walk([&](StoreOp op) { stored.insert(op.getParam()); });
  WalkResult result = role.getBackward().walk([&](AccumulateOp op) {
    if (stored.contains(op.getParam()))
      return WalkResult::advance();
    emitError(op.getLoc()) << "role @" << role.getSymName()
                           << " accumulates a gradient of @" << op.getParam()
                           << " that its update never uses";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

static LogicalResult verifyStages(ModuleOp module, ScheduleOp schedule) {
  FailureOr<SmallVector<RoleOp>> roles = rolesOfStages(module, schedule);
  if (failed(roles))
    return failure();
  for (size_t stage = 0; stage + 1 < roles->size(); ++stage)
    if (failed(verifyBoundary((*roles)[stage], (*roles)[stage + 1], true)) ||
        failed(verifyBoundary((*roles)[stage + 1], (*roles)[stage], false)))
      return failure();
  for (RoleOp role : module.getOps<RoleOp>())
    if (failed(verifyMicro(role)) || failed(verifyUpdate(role)))
      return failure();
  return success();
}

namespace {
struct VerifyStagedPass
    : public parc::impl::VerifyStagedBase<VerifyStagedPass> {
  void runOnOperation() override {
    for (ScheduleOp schedule : getOperation().getOps<ScheduleOp>())
      if (failed(verifyStages(getOperation(), schedule))) {
        emitRemark(schedule.getLoc(), "the staged phase does not hold after "
                                      "'parc-stage' or a pass run after it");
        return signalPassFailure();
      }
  }
};
} // namespace
