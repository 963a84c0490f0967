//===- ScheduleTest.cpp - Tests of pipeline schedules ---------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Both rules against published numbers and over all small sizes, the
/// scheduler with rules of the test's own, and the verifier's bite.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/Schedule.h"

#include "gtest/gtest.h"

using namespace mlir::parc;

namespace {

Schedule build(llvm::StringRef name, const ScheduleProblem &problem) {
  const ScheduleRule *rule = findScheduleRule(name);
  std::string error;
  std::optional<Schedule> schedule = buildSchedule(problem, *rule, error);
  EXPECT_TRUE(schedule.has_value()) << error;
  EXPECT_EQ(verifySchedule(*schedule, *rule), std::nullopt);
  return *schedule;
}

std::string orderOf(const Schedule &schedule, int64_t stage) {
  std::string text;
  for (const ScheduledAction &entry : schedule.stages[stage])
    text += (text.empty() ? "" : " ") + actionName(entry.action);
  return text;
}

int64_t peak(const Schedule &schedule) {
  int64_t most = 0;
  for (int64_t stage = 0; stage < schedule.problem.stages; ++stage)
    most = std::max(most, schedule.peakInFlight(stage));
  return most;
}

/// Order lists of torch.distributed.pipelining replayed with a forward of 1
/// slot, a backward of 2 and free transfers.
TEST(Schedule, EqualsTorch) {
  struct Case {
    const char *rule;
    int64_t p, m, makespan;
    double bubble;
    int64_t peak;
  };
  const Case cases[] = {
      {"gpipe", 4, 8, 33, 0.2727, 8},    {"gpipe", 4, 16, 57, 0.1579, 16},
      {"gpipe", 8, 16, 69, 0.3043, 16},  {"gpipe", 8, 32, 117, 0.1795, 32},
      {"gpipe", 8, 64, 213, 0.0986, 64}, {"1f1b", 4, 8, 33, 0.2727, 4},
      {"1f1b", 4, 16, 57, 0.1579, 4},    {"1f1b", 8, 16, 69, 0.3043, 8},
      {"1f1b", 8, 32, 117, 0.1795, 8},   {"1f1b", 8, 64, 213, 0.0986, 8},
  };
  for (const Case &row : cases) {
    Schedule schedule = build(row.rule, {row.p, row.m, 1, 2, 1});
    EXPECT_EQ(schedule.makespan(), row.makespan);
    EXPECT_NEAR(schedule.bubble().toDouble(), row.bubble, 5e-5);
    EXPECT_EQ(peak(schedule), row.peak);
  }
}

TEST(Schedule, BubbleAndPeaksOfAllSmallSizes) {
  for (int64_t p = 1; p <= 16; ++p)
    for (int64_t m = 1; m <= 32; ++m)
      for (auto [f, b] : {std::pair<int64_t, int64_t>{1, 2}, {1, 1}, {3, 7}}) {
        Schedule oneFOneB = build("1f1b", {p, m, f, b, 1});
        Schedule gpipe = build("gpipe", {p, m, f, b, 1});
        for (const Schedule *schedule : {&oneFOneB, &gpipe}) {
          EXPECT_EQ(schedule->makespan(), (m + p - 1) * (f + b));
          EXPECT_EQ(schedule->bubble(), Rational(p - 1, m + p - 1));
        }
        for (int64_t stage = 0; stage < p; ++stage) {
          EXPECT_EQ(oneFOneB.peakInFlight(stage), std::min(m, p - stage));
          EXPECT_EQ(gpipe.peakInFlight(stage), m);
        }
      }
}

TEST(Schedule, Orders) {
  Schedule oneFOneB = build("1f1b", {3, 4, 1, 1, 1});
  EXPECT_EQ(orderOf(oneFOneB, 0), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(orderOf(oneFOneB, 1), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(orderOf(oneFOneB, 2), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(orderOf(build("gpipe", {3, 2, 1, 1, 1}), 1), "F0 F1 B0 B1");
  EXPECT_EQ(orderOf(build("1f1b", {4, 2, 1, 2, 1}), 0), "F0 F1 B0 B1");
  EXPECT_EQ(build("1f1b", {4, 16, 1, 2, 1}).bubble().str(), "3/19");
  EXPECT_EQ(build("1f1b", {4, 16, 1, 2, 1}).bubble().percent(), "15.8 %");
  EXPECT_EQ(build("1f1b", {16, 512, 1, 2, 1}).bubble().str(), "15/527");
}

TEST(Schedule, NamesOfRules) {
  for (llvm::StringRef name : scheduleRuleNames())
    EXPECT_EQ(findScheduleRule(name)->name(), name);
  EXPECT_EQ(findScheduleRule("1F1B"), nullptr);
}

TEST(Schedule, ProblemErrors) {
  EXPECT_EQ(*ScheduleProblem({0, 1, 1, 1, 1}).check(),
            "expected at least one pipeline stage, got 0");
  EXPECT_EQ(*ScheduleProblem({2, 0, 1, 1, 1}).check(),
            "expected at least one micro-batch, got 0");
  EXPECT_EQ(*ScheduleProblem({2, 2, 1, 1, 2}).check(),
            "expected one chunk a stage, got 2");
  EXPECT_TRUE(ScheduleProblem({2, 2, 0, 1, 1}).check());
  EXPECT_TRUE(ScheduleProblem({2, 2, 1, -1, 1}).check());
  EXPECT_TRUE(ScheduleProblem({INT64_MAX, INT64_MAX, 1, 1, 1}).check());
  EXPECT_TRUE(ScheduleProblem({16, 1 << 17, 1, 1, 1}).check());
  EXPECT_FALSE(ScheduleProblem({16, 1 << 15, 1, 1, 1}).check());
  std::string error;
  EXPECT_FALSE(
      buildSchedule({0, 1, 1, 1, 1}, *findScheduleRule("gpipe"), error));
  EXPECT_EQ(error, "expected at least one pipeline stage, got 0");
}

/// A rule with the happens-before relation given as a function.
class TestRule final : public ScheduleRule {
public:
  using Before = void (*)(const ScheduleProblem &, Action,
                          llvm::SmallVectorImpl<Action> &);
  explicit TestRule(Before relation) : relation(relation) {}
  llvm::StringRef name() const override { return "test"; }
  void before(const ScheduleProblem &problem, int64_t, Action action,
              llvm::SmallVectorImpl<Action> &out) const override {
    relation(problem, action, out);
  }
  int64_t inFlightLimit(const ScheduleProblem &problem,
                        int64_t) const override {
    return problem.microBatches;
  }

private:
  Before relation;
};

TEST(Schedule, FreeRuleIsGreedyAndLegal) {
  TestRule rule(
      [](const ScheduleProblem &, Action, llvm::SmallVectorImpl<Action> &) {});
  std::string error;
  std::optional<Schedule> schedule =
      buildSchedule({3, 5, 1, 2, 1}, rule, error);
  ASSERT_TRUE(schedule);
  EXPECT_EQ(verifySchedule(*schedule, rule), std::nullopt);
  // The last stage prefers a backward that is ready to the next forward.
  EXPECT_EQ(orderOf(*schedule, 2), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
}

TEST(Schedule, ContradictoryRulesFail) {
  std::string error;
  TestRule circle([](const ScheduleProblem &, Action action,
                     llvm::SmallVectorImpl<Action> &out) {
    if (action.kind == ActionKind::Forward)
      out.push_back({ActionKind::Backward, action.microBatch});
  });
  EXPECT_FALSE(buildSchedule({2, 2, 1, 1, 1}, circle, error));
  EXPECT_EQ(error, "schedule rule 'test' orders passes in a circle with their "
                   "data dependencies");
  TestRule outside([](const ScheduleProblem &problem, Action,
                      llvm::SmallVectorImpl<Action> &out) {
    out.push_back({ActionKind::Forward, problem.microBatches});
  });
  EXPECT_FALSE(buildSchedule({2, 2, 1, 1, 1}, outside, error));
  EXPECT_EQ(error,
            "schedule rule 'test' names a micro-batch that does not exist");
}

TEST(Schedule, VerifierBites) {
  const ScheduleRule &rule = *findScheduleRule("1f1b");
  Schedule good = build("1f1b", {3, 4, 1, 2, 1});
  auto wrong = [&](void (*change)(Schedule &)) {
    Schedule bad = good;
    change(bad);
    return verifySchedule(bad, rule).value_or("accepted");
  };
  EXPECT_EQ(wrong([](Schedule &s) { s.stages[1].pop_back(); }),
            "expected 8 passes on stage 1, got 7");
  EXPECT_EQ(wrong([](Schedule &s) { s.stages.pop_back(); }),
            "expected 3 stages, got 2");
  EXPECT_EQ(wrong([](Schedule &s) { s.stages[1][1].action.microBatch = 0; }),
            "F0 on stage 1 runs twice");
  EXPECT_EQ(wrong([](Schedule &s) { s.stages[1][1].action.microBatch = 4; }),
            "F4 on stage 1 is outside the micro-batches");
  EXPECT_EQ(wrong([](Schedule &s) { s.stages[0][0].finish = 2; }),
            "F0 on stage 0 does not take its cost");
  EXPECT_EQ(wrong([](Schedule &s) {
              s.stages[2][0].start--;
              s.stages[2][0].finish--;
            }),
            "F0 on stage 2 starts before F0 on stage 1 has finished");
  EXPECT_EQ(wrong([](Schedule &s) {
              std::swap(s.stages[0][0].action, s.stages[0][1].action);
            }),
            "F1 on stage 0 starts before F0 on stage 0 has finished");
  // A GPipe order breaks 1F1B's limit.
  Schedule gpipe = build("gpipe", {3, 4, 1, 2, 1});
  EXPECT_TRUE(verifySchedule(gpipe, rule));
}

TEST(Schedule, IdleWarning) {
  EXPECT_EQ(*idleWarning(4, 2),
            "2 micro-batches on pp=4 stages: 60.0 % of the pipeline is idle "
            "(3/5)");
  EXPECT_EQ(*idleWarning(16, 1),
            "1 micro-batch on pp=16 stages: 93.8 % of the pipeline is idle "
            "(15/16)");
  EXPECT_EQ(idleWarning(4, 4), std::nullopt);
  EXPECT_EQ(idleWarning(1, 1), std::nullopt);
}

TEST(Rational, ReducesAndPrints) {
  EXPECT_EQ(Rational(6, -4).str(), "-3/2");
  EXPECT_EQ(Rational(0, 7).str(), "0");
  EXPECT_EQ(Rational(1, 3).percent(), "33.3 %");
  EXPECT_EQ(Rational(2, 3).percent(), "66.7 %");
  EXPECT_EQ(Rational(1, 2000).percent(), "0.1 %");
  EXPECT_EQ(Rational(1, 2001).percent(), "0.0 %");
  EXPECT_EQ(Rational(INT64_MAX / 2, INT64_MAX).percent(), "50.0 %");
}

} // namespace
