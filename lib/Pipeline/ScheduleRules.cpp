//===- ScheduleRules.cpp - GPipe and 1F1B ---------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The schedules that parc knows, each as what must come before what on a
/// stage. Both orders are total, so the scheduler has no choice left.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/Schedule.h"

#include <algorithm>

using namespace llvm;

namespace mlir::parc {
namespace {

/// Micro-batches pass in order, in both directions.
void afterPrevious(Action action, SmallVectorImpl<Action> &out) {
  if (action.microBatch > 0)
    out.push_back({action.kind, action.microBatch - 1});
}

/// All forwards, then all backwards (arXiv:1811.06965).
class GPipeRule final : public ScheduleRule {
public:
  StringRef name() const override { return "gpipe"; }

  void before(const ScheduleProblem &problem, int64_t /*stage*/, Action action,
              SmallVectorImpl<Action> &out) const override {
    afterPrevious(action, out);
    if (action.kind == ActionKind::Backward)
      out.push_back({ActionKind::Forward, problem.microBatches - 1});
  }

  int64_t inFlightLimit(const ScheduleProblem &problem,
                        int64_t /*stage*/) const override {
    return problem.microBatches;
  }
};

/// One forward, one backward (PipeDream-Flush, arXiv:2104.04473): a stage runs
/// as many forwards ahead as there are stages from it to the end, then one
/// backward before each further forward.
class OneFOneBRule final : public ScheduleRule {
public:
  StringRef name() const override { return "1f1b"; }

  void before(const ScheduleProblem &problem, int64_t stage, Action action,
              SmallVectorImpl<Action> &out) const override {
    afterPrevious(action, out);
    int64_t ahead = problem.stages - stage;
    if (action.kind == ActionKind::Forward) {
      if (action.microBatch >= ahead)
        out.push_back({ActionKind::Backward, action.microBatch - ahead});
      return;
    }
    int64_t forward = action.microBatch + ahead - 1;
    out.push_back(
        {ActionKind::Forward, std::min(forward, problem.microBatches - 1)});
  }

  int64_t inFlightLimit(const ScheduleProblem &problem,
                        int64_t stage) const override {
    return std::min(problem.microBatches, problem.stages - stage);
  }
};

} // namespace

const ScheduleRule *findScheduleRule(StringRef name) {
  static const GPipeRule gpipe;
  static const OneFOneBRule oneFOneB;
  for (const ScheduleRule *rule :
       {static_cast<const ScheduleRule *>(&gpipe),
        static_cast<const ScheduleRule *>(&oneFOneB)})
    if (rule->name() == name)
      return rule;
  return nullptr;
}

ArrayRef<StringRef> scheduleRuleNames() {
  static constexpr StringRef names[] = {"gpipe", "1f1b"};
  return names;
}

} // namespace mlir::parc
