//===- TransfersTest.cpp - Tests of transfers and event tables ------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every derived program against the checker and against a rendezvous machine
/// that knows no witness; mutants of programs; tables that expand to the same.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/EventTable.h"

#include "llvm/ADT/STLExtras.h"

#include "gtest/gtest.h"

#include <map>
#include <random>
#include <set>

using namespace mlir::parc;

namespace {

PipelineProgram derive(llvm::StringRef rule, int64_t p, int64_t m,
                       int64_t f = 1, int64_t b = 2) {
  std::string error;
  Schedule schedule =
      *buildSchedule({p, m, f, b, 1}, *findScheduleRule(rule), error);
  std::optional<PipelineProgram> program = deriveTransfers(schedule, error);
  EXPECT_TRUE(program.has_value()) << error;
  return *program;
}

std::string text(const StageEvent &event) {
  if (event.isCompute())
    return actionName(event.action);
  std::string result;
  for (const TransferEnd &end : event.group)
    result += std::string(result.empty() ? "{" : " ") +
              (end.isSend ? "send " : "recv ") +
              (end.direction == TransferDirection::Forward ? "F" : "B") +
              std::to_string(end.microBatch) + (end.isSend ? ">" : "<") +
              std::to_string(end.peer);
  return result + "}";
}

std::string text(llvm::ArrayRef<StageEvent> events) {
  std::string result;
  for (const StageEvent &event : events)
    result += (result.empty() ? "" : " ") + text(event);
  return result;
}

/// NCCL's semantics without buffers: a stage posts a whole group, stays until
/// each end has met its counterpart at the head of the same channel, then goes
/// on. Rendezvous are confluent, so one order of stages decides. Returns
/// whether all stages finish.
bool finishes(const std::vector<std::vector<StageEvent>> &events) {
  using Channel = std::tuple<int64_t, int64_t, TransferDirection>;
  size_t stages = events.size();
  std::vector<size_t> next(stages, 0);
  std::vector<llvm::SmallVector<TransferEnd>> open(stages);
  auto enter = [&](size_t stage) {
    while (next[stage] < events[stage].size() &&
           events[stage][next[stage]].isCompute())
      ++next[stage];
    if (next[stage] < events[stage].size())
      open[stage].assign(events[stage][next[stage]].group.begin(),
                         events[stage][next[stage]].group.end());
  };
  for (size_t stage = 0; stage < stages; ++stage)
    enter(stage);
  for (bool moved = true; moved;) {
    moved = false;
    std::map<Channel, std::pair<size_t, size_t>> receives;
    for (size_t stage = 0; stage < stages; ++stage)
      for (size_t i = 0; i < open[stage].size(); ++i)
        if (TransferEnd end = open[stage][i]; !end.isSend)
          receives.insert({{end.peer, stage, end.direction}, {stage, i}});
    for (size_t stage = 0; stage < stages && !moved; ++stage) {
      std::set<Channel> seen;
      for (size_t i = 0; i < open[stage].size() && !moved; ++i) {
        TransferEnd end = open[stage][i];
        Channel channel{stage, end.peer, end.direction};
        if (!end.isSend || !seen.insert(channel).second)
          continue;
        auto it = receives.find(channel);
        if (it == receives.end())
          continue;
        auto [peer, index] = it->second;
        // A mismatch at the head of a channel would deliver a wrong value.
        if (open[peer][index].microBatch != end.microBatch)
          return false;
        open[peer].erase(open[peer].begin() + index);
        open[stage].erase(open[stage].begin() + i);
        moved = true;
      }
    }
    for (size_t stage = 0; stage < stages; ++stage)
      if (open[stage].empty() && next[stage] < events[stage].size()) {
        ++next[stage];
        enter(stage);
        moved = true;
      }
  }
  for (size_t stage = 0; stage < stages; ++stage)
    if (next[stage] < events[stage].size())
      return false;
  return true;
}

TEST(Transfers, KnownPrograms) {
  PipelineProgram program = derive("1f1b", 3, 3);
  EXPECT_EQ(text(program.events[0]),
            "F0 {send F0>1} F1 {send F1>1} F2 {send F2>1 recv B0<1} B0 "
            "{recv B1<1} B1 {recv B2<1} B2");
  EXPECT_EQ(text(program.events[1]),
            "{recv F0<0} F0 {recv F1<0 send F0>2} F1 {send F1>2 recv B0<2} B0 "
            "{recv F2<0 send B0>0} F2 {send F2>2 recv B1<2} B1 "
            "{send B1>0 recv B2<2} B2 {send B2>0}");
  EXPECT_EQ(text(program.events[2]),
            "{recv F0<1} F0 B0 {recv F1<1 send B0>1} F1 B1 "
            "{recv F2<1 send B1>1} F2 B2 {send B2>1}");
  EXPECT_EQ(text(derive("gpipe", 2, 2).events[0]),
            "F0 {send F0>1} F1 {send F1>1 recv B0<1} B0 {recv B1<1} B1");
  EXPECT_EQ(text(derive("1f1b", 1, 2).events[0]), "F0 B0 F1 B1");
}

TEST(Transfers, AllSmallSizesCannotHang) {
  for (const char *rule : {"gpipe", "1f1b"})
    for (int64_t p = 1; p <= 16; ++p)
      for (int64_t m = 1; m <= 32; ++m) {
        PipelineProgram program = derive(rule, p, m);
        EXPECT_EQ(checkProgress(program), std::nullopt)
            << rule << p << " " << m;
        EXPECT_EQ(int64_t(program.witness.size()), 2 * (p - 1) * m);
        if (p <= 8 && m <= 12) {
          EXPECT_TRUE(finishes(program.events)) << rule << p << " " << m;
        }
        for (int64_t stage = 0; stage < p; ++stage) {
          EXPECT_EQ(program.receiveBuffers(stage).forward, stage > 0);
          EXPECT_EQ(program.receiveBuffers(stage).backward, stage + 1 < p);
        }
      }
}

TEST(Transfers, LargeSizes) {
  for (const char *rule : {"gpipe", "1f1b"})
    for (auto [p, m] : {std::pair<int64_t, int64_t>{32, 128},
                        {126, 16},
                        {16, 512},
                        {2, 4096}})
      EXPECT_EQ(checkProgress(derive(rule, p, m)), std::nullopt);
}

TEST(Transfers, CostsDoNotChangePrograms) {
  PipelineProgram a = derive("1f1b", 5, 9, 1, 2),
                  b = derive("1f1b", 5, 9, 7, 3);
  EXPECT_TRUE(a.events == b.events);
}

TEST(Transfers, OpposingSendsShareAGroup) {
  // In the steady state both neighbours of a boundary exchange in one group.
  PipelineProgram program = derive("1f1b", 4, 16);
  for (int64_t stage = 0; stage + 1 < 4; ++stage) {
    int exchanges[2] = {0, 0};
    for (int side : {0, 1})
      for (const StageEvent &event : program.events[stage + side]) {
        bool sends = false, receives = false;
        for (const TransferEnd &end : event.group)
          if (end.peer == stage + 1 - side)
            (end.isSend ? sends : receives) = true;
        exchanges[side] += sends && receives;
      }
    EXPECT_EQ(exchanges[0], exchanges[1]);
    EXPECT_GE(exchanges[0], 16 - 4 + 1);
  }
}

/// Forwards of the second stage in reverse: hangs unless received early.
Schedule reversedSecondStage(int64_t m) {
  std::string error;
  Schedule schedule =
      *buildSchedule({2, m, 1, 1, 1}, *findScheduleRule("gpipe"), error);
  for (int64_t i = 0; i < m; ++i) {
    schedule.stages[1][i].action.microBatch = m - 1 - i;
    schedule.stages[1][i].start = schedule.stages[1][i].finish = 2 * m;
  }
  return schedule;
}

TEST(Transfers, ReceivesEarlyWhereItMust) {
  std::string error;
  std::optional<PipelineProgram> program =
      deriveTransfers(reversedSecondStage(4), error);
  ASSERT_TRUE(program) << error;
  EXPECT_EQ(text(program->events[1]).substr(0, 53),
            "{recv F0<0 recv F1<0 recv F2<0 recv F3<0} F3 F2 F1 F0");
  EXPECT_EQ(program->receiveBuffers(1).forward, 4);
  EXPECT_EQ(checkProgress(*program, 4), std::nullopt);
  EXPECT_EQ(*checkProgress(*program, 3),
            "stage 1: F3 from stage 0 to 1 needs more than 3 receive buffers");
  EXPECT_TRUE(finishes(program->events));
}

TEST(Transfers, ImpossibleScheduleFails) {
  std::string error;
  Schedule schedule =
      *buildSchedule({2, 2, 1, 1, 1}, *findScheduleRule("gpipe"), error);
  std::swap(schedule.stages[0][0].action, schedule.stages[0][2].action);
  EXPECT_FALSE(deriveTransfers(schedule, error));
  EXPECT_EQ(error, "schedule 'gpipe' can hang: a pass waits for a value that "
                   "is made after it");
}

TEST(ProgressChecker, NamesWhatIsWrong) {
  PipelineProgram good = derive("1f1b", 3, 3);
  auto wrong = [&](void (*change)(PipelineProgram &)) {
    PipelineProgram bad = good;
    change(bad);
    return checkProgress(bad).value_or("accepted");
  };
  EXPECT_EQ(wrong([](PipelineProgram &p) { p.witness.pop_back(); }),
            "the witness lacks transfers");
  EXPECT_EQ(wrong([](PipelineProgram &p) { p.witness[1] = p.witness[0]; }),
            "F0 from stage 0 to 1 is in the witness twice");
  EXPECT_EQ(wrong([](PipelineProgram &p) { p.witness[0].to = 2; }),
            "F0 from stage 0 to 2 is no transfer of this pipeline");
  EXPECT_EQ(wrong([](PipelineProgram &p) {
              std::reverse(p.witness.begin(), p.witness.end());
            }),
            "stage 0: F1 from stage 0 to 1 breaks the order of the witness");
  EXPECT_EQ(wrong([](PipelineProgram &p) {
              std::swap(p.events[0][0], p.events[0][1]);
            }),
            "stage 0: F0 from stage 0 to 1 is sent before it is made");
  EXPECT_EQ(wrong([](PipelineProgram &p) {
              std::swap(p.events[2][0], p.events[2][1]);
            }),
            "stage 2: F0 runs before its input arrived");
  EXPECT_EQ(wrong([](PipelineProgram &p) {
              p.events[1].erase(p.events[1].end() - 1);
            }),
            "stage 1: transfers are missing");
  EXPECT_EQ(wrong([](PipelineProgram &p) {
              p.events[0].erase(p.events[0].end() - 1);
            }),
            "stage 0: passes are missing");
}

/// Order mutants that the rendezvous machine calls unsafe must be refused.
TEST(ProgressChecker, KillsUnsafeMutants) {
  std::mt19937 random(11);
  int unsafe = 0;
  for (int round = 0; round < 3000; ++round) {
    PipelineProgram program = derive(round % 2 ? "gpipe" : "1f1b",
                                     2 + random() % 3, 1 + random() % 5);
    auto &events = program.events[random() % program.stages];
    size_t at = random() % events.size();
    switch (random() % 4) {
    case 0:
      std::swap(events[at], events[random() % events.size()]);
      break;
    case 1:
      events.erase(events.begin() + at);
      break;
    case 2:
      if (!events[at].isCompute())
        events[at].group.front().microBatch += 1;
      break;
    case 3:
      // A group torn in two.
      if (events[at].group.size() > 1) {
        StageEvent rest{{}, {events[at].group.back()}};
        events[at].group.pop_back();
        events.insert(events.begin() + at, rest);
      }
      break;
    }
    if (finishes(program.events))
      continue;
    ++unsafe;
    EXPECT_TRUE(checkProgress(program).has_value());
  }
  EXPECT_GT(unsafe, 500);
}

TEST(EventTable, ExpandsToTheSame) {
  for (const char *rule : {"gpipe", "1f1b"})
    for (int64_t p = 1; p <= 8; ++p)
      for (int64_t m = 1; m <= 64; ++m) {
        PipelineProgram program = derive(rule, p, m);
        for (const auto &events : program.events)
          EXPECT_TRUE(expandTable(compressEvents(events)) == events)
              << rule << " p=" << p << " m=" << m;
      }
}

/// A loop's body without its numbers.
std::string shape(const EventLoop &loop) {
  std::string result = text(loop.body);
  llvm::erase_if(result, [](char c) { return c >= '0' && c <= '9'; });
  return result;
}

TEST(EventTable, SizeDoesNotGrowWithMicroBatches) {
  for (const char *rule : {"gpipe", "1f1b"})
    for (int64_t p : {1, 2, 3, 5, 8, 16}) {
      PipelineProgram small = derive(rule, p, 2 * p + 2);
      PipelineProgram large = derive(rule, p, 20 * p + 7);
      for (int64_t stage = 0; stage < p; ++stage) {
        StageTable a = compressEvents(small.events[stage]);
        StageTable b = compressEvents(large.events[stage]);
        EXPECT_EQ(a.size(), b.size()) << rule << p << " stage " << stage;
        EXPECT_EQ(a.loops.size(), b.loops.size());
        EXPECT_LE(b.size(), 16) << rule << p << " stage " << stage;
        for (size_t i = 0; i < std::min(a.loops.size(), b.loops.size()); ++i)
          EXPECT_EQ(shape(a.loops[i]), shape(b.loops[i]));
      }
    }
}

/// What is emitted is what is proved: programs rebuilt from the tables.
TEST(EventTable, TablesOfAllSizesCannotHang) {
  for (const char *rule : {"gpipe", "1f1b"})
    for (int64_t p = 1; p <= 32; ++p)
      for (int64_t m = 1; m <= 128; m += m < 40 ? 1 : 11) {
        PipelineProgram program = derive(rule, p, m);
        for (auto &events : program.events)
          events = expandTable(compressEvents(events));
        EXPECT_EQ(checkProgress(program), std::nullopt)
            << rule << " p=" << p << " m=" << m;
      }
}

TEST(EventTable, FindsThePeriod) {
  StageTable table = compressEvents(derive("1f1b", 4, 64).events[3]);
  int64_t repeats = 0;
  for (const EventLoop &loop : table.loops)
    repeats = std::max(repeats, loop.repeat);
  EXPECT_GE(repeats, 60);
  EXPECT_TRUE(expandTable(compressEvents({})).empty());
}

TEST(StageRole, DistinctRoles) {
  auto names = [](int64_t stages) {
    std::string text;
    for (const RoleRange &role : stageRoles(stages)) {
      text += stageRoleName(role.role).str() + " " +
              std::to_string(role.begin) + "-" + std::to_string(role.end) + ";";
      for (int64_t stage = role.begin; stage < role.end; ++stage)
        EXPECT_EQ(stageRole(stage, stages), role.role);
    }
    return text;
  };
  EXPECT_EQ(names(1), "only 0-1;");
  EXPECT_EQ(names(2), "first 0-1;last 1-2;");
  EXPECT_EQ(names(16), "first 0-1;middle 1-15;last 15-16;");
}

} // namespace
