//===- VerifySchedule.cpp - Closes the scheduled phase --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Proves that the schedule's order is right and makes progress, and that what
/// is started is waited for.
///
//===----------------------------------------------------------------------===//

#include "Overlap.h"
#include "mlir/IR/Remarks.h"
#include "parc/Pipeline/Transfers.h"
#include "parc/Transforms/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

static LogicalResult verify(ScheduleOp op) {
  const ScheduleRule *rule = findScheduleRule(op.getRule());
  if (!rule) {
    InFlightDiagnostic diag = emitError(op.getLoc());
    diag << "unknown schedule '" << op.getRule() << "', expected one of";
    for (StringRef name : scheduleRuleNames())
      diag << " " << name;
    return diag;
  }
  ScheduleProblem problem;
  problem.stages = op.getBounds().size() - 1;
  problem.microBatches = op.getMicroBatches();
  std::string error;
  std::optional<Schedule> schedule = buildSchedule(problem, *rule, error);
  if (!schedule)
    return emitError(op.getLoc()) << error;
  if (std::optional<std::string> fault = verifySchedule(*schedule, *rule))
    return emitError(op.getLoc()) << *fault;
  std::optional<PipelineProgram> program = deriveTransfers(*schedule, error);
  if (!program)
    return emitError(op.getLoc()) << error;
  if (std::optional<std::string> fault = checkProgress(*program))
    return emitError(op.getLoc()) << *fault;
  return success();
}

/// Says why each collective is there, where remarks are asked for
/// (`--remarks-filter=parc-comms`). This is the last phase that reasons are
/// whole in.
static void remarkCollectives(RoleOp role) {
  role.walk([&](Operation *op) {
    auto why = op->getAttrOfType<WhyAttr>("why");
    if (!why)
      return;
    auto options = remark::RemarkOpts::name("collective")
                       .category("parc-comms")
                       .subCategory(op->getName().stripDialect())
                       .function(role.getSymName());
    auto made = remark::analysis(op->getLoc(), options);
    made << remark::reason("{0}", why.getText().str());
    if (!why.getValue().empty())
      made << remark::metric("Value", why.getValue().str());
    if (why.getBytes())
      made << remark::metric("BytesSent", *why.getBytes());
    for (StringAttr origin : why.getBecause())
      made << remark::metric("Because", origin.getValue().str());
  });
}

namespace {
struct VerifySchedulePass
    : public parc::impl::VerifyScheduleBase<VerifySchedulePass> {
  void runOnOperation() override {
    for (ScheduleOp op : getOperation().getOps<ScheduleOp>())
      if (failed(verify(op)))
        return signalPassFailure();
    for (RoleOp role : getOperation().getOps<RoleOp>()) {
      if (failed(verifyStreams(role)))
        return signalPassFailure();
      remarkCollectives(role);
    }
  }
};
} // namespace
