//===- Schedule.h - Pipeline schedules --------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The problem that a pipeline schedule solves, the rules that say what comes
/// before what on a stage, and one list scheduler that turns any rule into
/// ordered actions with start times. A new schedule is a new rule.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_PIPELINE_SCHEDULE_H
#define PARC_PIPELINE_SCHEDULE_H

#include "parc/Pipeline/Rational.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::parc {

enum class ActionKind : uint8_t { Forward, Backward };

/// The forward or backward pass of one micro-batch on some stage.
struct Action {
  ActionKind kind = ActionKind::Forward;
  int64_t microBatch = 0;

  friend bool operator==(const Action &a, const Action &b) {
    return a.kind == b.kind && a.microBatch == b.microBatch;
  }
  friend bool operator!=(const Action &a, const Action &b) { return !(a == b); }
};

/// `F3`, `B0`.
std::string actionName(Action action);

/// What is to be scheduled. Each stage runs the forward and the backward of
/// each micro-batch once; forwards flow up the stages, backwards down.
struct ScheduleProblem {
  int64_t stages = 1;
  int64_t microBatches = 1;
  /// Slots that one forward or backward occupies, on every stage.
  int64_t forwardCost = 1;
  int64_t backwardCost = 2;
  /// Stages held by a rank; only 1 is accepted.
  int64_t chunks = 1;

  /// Bounds memory: actions are kept one by one while scheduling.
  static constexpr int64_t maxActions = int64_t(1) << 21;

  /// Empty when the problem makes sense, else the error.
  std::optional<std::string> check() const;
};

/// A schedule as one happens-before relation on each stage.
class ScheduleRule {
public:
  virtual ~ScheduleRule() = default;
  /// Name on the command line.
  virtual llvm::StringRef name() const = 0;
  /// Appends those actions that must have finished on `stage` before `action`
  /// may start there. Data dependencies need not be repeated.
  virtual void before(const ScheduleProblem &problem, int64_t stage,
                      Action action,
                      llvm::SmallVectorImpl<Action> &out) const = 0;
  /// Most micro-batches whose forward has run on `stage` and whose backward has
  /// not finished.
  virtual int64_t inFlightLimit(const ScheduleProblem &problem,
                                int64_t stage) const = 0;
};

/// The rule `gpipe` or `1f1b`; null for another name.
const ScheduleRule *findScheduleRule(llvm::StringRef name);
/// The names that findScheduleRule knows.
llvm::ArrayRef<llvm::StringRef> scheduleRuleNames();

/// An action at its place in time, in slots.
struct ScheduledAction {
  Action action;
  int64_t start = 0;
  int64_t finish = 0;
};

/// Ordered actions of every stage.
struct Schedule {
  ScheduleProblem problem;
  std::string rule;
  std::vector<std::vector<ScheduledAction>> stages;

  /// Slots from the first start to the last finish.
  int64_t makespan() const;
  /// Idle share of all stages' time. Under costs equal on all stages this is
  /// (p-1)/(m+p-1) for both rules (arXiv:1811.06965, arXiv:2104.04473).
  Rational bubble() const;
  /// Most micro-batches in flight at once on `stage`.
  int64_t peakInFlight(int64_t stage) const;
};

/// Runs the list scheduler: whenever a stage is free, the action that can start
/// first; among those a backward before a forward, then the lower micro-batch.
/// Deterministic; O(n log n) for n = stages * microBatches. Fails when the
/// problem's check() does or the rule contradicts itself.
std::optional<Schedule> buildSchedule(const ScheduleProblem &problem,
                                      const ScheduleRule &rule,
                                      std::string &error);

/// Empty when `schedule` solves its problem under `rule`: every stage runs each
/// forward and backward once, without overlap; data dependencies, the rule and
/// its in-flight limit hold. Else what is wrong, naming stage and action.
std::optional<std::string> verifySchedule(const Schedule &schedule,
                                          const ScheduleRule &rule);

/// For fewer micro-batches than stages, the warning's text with the idle share,
/// `60.0 % of the pipeline is idle`; else empty.
std::optional<std::string> idleWarning(int64_t stages, int64_t microBatches);

} // namespace mlir::parc

#endif // PARC_PIPELINE_SCHEDULE_H
