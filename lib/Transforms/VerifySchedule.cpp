//===- VerifySchedule.cpp - Closes the scheduled phase --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Proves that the schedule's order is right and makes progress.
///
//===----------------------------------------------------------------------===//

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

namespace {
struct VerifySchedulePass
    : public parc::impl::VerifyScheduleBase<VerifySchedulePass> {
  void runOnOperation() override {
    for (ScheduleOp op : getOperation().getOps<ScheduleOp>())
      if (failed(verify(op)))
        return signalPassFailure();
  }
};
} // namespace
