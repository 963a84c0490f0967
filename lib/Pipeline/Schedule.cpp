//===- Schedule.cpp - Checks and measures of schedules --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The check of a scheduling problem, the verifier of its solution, and the
/// numbers that a solution is judged by. Knows neither rules nor the scheduler.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/Schedule.h"

#include <algorithm>

using namespace llvm;

namespace mlir::parc {
namespace {

/// Start and finish of every action, by stage, kind and micro-batch.
class TimeTable {
public:
  explicit TimeTable(const ScheduleProblem &problem)
      : microBatches(problem.microBatches),
        times(problem.stages * 2 * problem.microBatches) {}

  ScheduledAction &at(int64_t stage, Action action) {
    return times[(stage * 2 + int64_t(action.kind)) * microBatches +
                 action.microBatch];
  }

private:
  int64_t microBatches;
  std::vector<ScheduledAction> times;
};

std::string place(int64_t stage, Action action) {
  return actionName(action) + " on stage " + std::to_string(stage);
}

/// Fills `times` and checks that `stage` runs everything once, one at a time.
std::optional<std::string> checkStage(const Schedule &schedule, int64_t stage,
                                      TimeTable &times) {
  const ScheduleProblem &problem = schedule.problem;
  const auto &actions = schedule.stages[stage];
  int64_t expected = 2 * problem.microBatches;
  if (int64_t(actions.size()) != expected)
    return "expected " + std::to_string(expected) + " passes on stage " +
           std::to_string(stage) + ", got " + std::to_string(actions.size());
  int64_t free = 0;
  for (const ScheduledAction &entry : actions) {
    Action action = entry.action;
    std::string where = place(stage, action);
    if (action.microBatch < 0 || action.microBatch >= problem.microBatches)
      return where + " is outside the micro-batches";
    int64_t cost = action.kind == ActionKind::Forward ? problem.forwardCost
                                                      : problem.backwardCost;
    if (entry.finish - entry.start != cost)
      return where + " does not take its cost";
    if (entry.start < free)
      return where + " starts before the pass ahead of it has finished";
    free = entry.finish;
    ScheduledAction &slot = times.at(stage, action);
    if (slot.finish != 0)
      return where + " runs twice";
    slot = entry;
  }
  return std::nullopt;
}

/// Checks what `entry` has to wait for: data, then the rule.
std::optional<std::string> checkOrder(const Schedule &schedule,
                                      const ScheduleRule &rule, int64_t stage,
                                      const ScheduledAction &entry,
                                      TimeTable &times) {
  Action action = entry.action;
  auto late = [&](int64_t other, Action needed) -> std::optional<std::string> {
    if (times.at(other, needed).finish <= entry.start)
      return std::nullopt;
    return place(stage, action) + " starts before " + place(other, needed) +
           " has finished";
  };
  bool forward = action.kind == ActionKind::Forward;
  int64_t source = forward ? stage - 1 : stage + 1;
  if (source >= 0 && source < schedule.problem.stages)
    if (auto wrong = late(source, action))
      return wrong;
  if (!forward)
    if (auto wrong = late(stage, {ActionKind::Forward, action.microBatch}))
      return wrong;
  SmallVector<Action> before;
  rule.before(schedule.problem, stage, action, before);
  for (Action needed : before)
    if (auto wrong = late(stage, needed))
      return wrong;
  return std::nullopt;
}

} // namespace

std::string actionName(Action action) {
  return (action.kind == ActionKind::Forward ? "F" : "B") +
         std::to_string(action.microBatch);
}

std::optional<std::string> ScheduleProblem::check() const {
  auto expected = [](const char *what, int64_t got) {
    return std::string("expected ") + what + ", got " + std::to_string(got);
  };
  if (stages < 1)
    return expected("at least one pipeline stage", stages);
  if (microBatches < 1)
    return expected("at least one micro-batch", microBatches);
  if (chunks != 1)
    return expected("one chunk a stage", chunks);
  constexpr int64_t maxCost = int64_t(1) << 30;
  if (forwardCost < 1 || forwardCost > maxCost)
    return expected("a forward cost from 1 to 2^30 slots", forwardCost);
  if (backwardCost < 1 || backwardCost > maxCost)
    return expected("a backward cost from 1 to 2^30 slots", backwardCost);
  if (microBatches > maxActions / 2 / stages)
    return "expected at most " + std::to_string(maxActions) +
           " passes in a step, got 2 * pp=" + std::to_string(stages) + " * " +
           std::to_string(microBatches) +
           " micro-batches; use fewer micro-batches";
  return std::nullopt;
}

int64_t Schedule::makespan() const {
  int64_t last = 0;
  for (const auto &actions : stages)
    if (!actions.empty())
      last = std::max(last, actions.back().finish);
  return last;
}

Rational Schedule::bubble() const {
  int64_t busy =
      problem.microBatches * (problem.forwardCost + problem.backwardCost);
  int64_t span = makespan();
  // Every stage works equally long, so one stage's share is everyone's.
  return span == 0 ? Rational() : Rational(span - busy, span);
}

int64_t Schedule::peakInFlight(int64_t stage) const {
  int64_t now = 0, peak = 0;
  for (const ScheduledAction &entry : stages[stage]) {
    now += entry.action.kind == ActionKind::Forward ? 1 : -1;
    peak = std::max(peak, now);
  }
  return peak;
}

std::optional<std::string> verifySchedule(const Schedule &schedule,
                                          const ScheduleRule &rule) {
  const ScheduleProblem &problem = schedule.problem;
  if (std::optional<std::string> wrong = problem.check())
    return wrong;
  if (int64_t(schedule.stages.size()) != problem.stages)
    return "expected " + std::to_string(problem.stages) + " stages, got " +
           std::to_string(schedule.stages.size());
  TimeTable times(problem);
  for (int64_t stage = 0; stage < problem.stages; ++stage)
    if (auto wrong = checkStage(schedule, stage, times))
      return wrong;
  for (int64_t stage = 0; stage < problem.stages; ++stage) {
    for (const ScheduledAction &entry : schedule.stages[stage])
      if (auto wrong = checkOrder(schedule, rule, stage, entry, times))
        return wrong;
    int64_t limit = rule.inFlightLimit(problem, stage);
    if (int64_t peak = schedule.peakInFlight(stage); peak > limit)
      return "stage " + std::to_string(stage) + " holds " +
             std::to_string(peak) + " micro-batches, expected at most " +
             std::to_string(limit);
  }
  return std::nullopt;
}

std::optional<std::string> idleWarning(int64_t stages, int64_t microBatches) {
  if (stages <= microBatches || microBatches < 1)
    return std::nullopt;
  Rational idle(stages - 1, microBatches + stages - 1);
  return std::to_string(microBatches) +
         (microBatches == 1 ? " micro-batch" : " micro-batches") +
         " on pp=" + std::to_string(stages) + " stages: " + idle.percent() +
         " of the pipeline is idle (" + idle.str() + ")";
}

} // namespace mlir::parc
