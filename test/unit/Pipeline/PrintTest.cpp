//===- PrintTest.cpp - Tests of schedule and group pictures ---------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Text and JSON pictures, their width, and what is elided.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/Print.h"

#include "gtest/gtest.h"

using namespace mlir::parc;

namespace {

Schedule build(llvm::StringRef rule, const ScheduleProblem &problem) {
  std::string error;
  return *buildSchedule(problem, *findScheduleRule(rule), error);
}

std::string picture(const Schedule &schedule) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printSchedule(schedule, os);
  return text;
}

RankGrid gridOf(llvm::StringRef text) {
  TextError error;
  return *RankGrid::get(*Mesh::parse(text, error), RankGrid::defaultOrder,
                        error);
}

std::string table(const RankGrid &grid, int64_t rank,
                  llvm::ArrayRef<llvm::SmallVector<size_t>> extra = {}) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printGroups(grid, os, rank, extra);
  return text;
}

TEST(Print, Schedule) {
  EXPECT_EQ(picture(build("1f1b", {3, 4, 1, 1, 1})),
            "schedule 1f1b, 3 stages, 4 micro-batches, a forward takes 1 slot, "
            "a backward 1\n"
            "stage 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3\n"
            "stage 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .\n"
            "stage 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .\n"
            "bubble 1/3 = 33.3 %, in flight 3 2 1\n");
  EXPECT_EQ(picture(build("gpipe", {2, 1, 2, 4, 1})),
            "schedule gpipe, 2 stages, 1 micro-batch, a forward takes 1 slot, "
            "a backward 2\n"
            "stage 0  F0 .  .  .  B0 B0\n"
            "stage 1  .  F0 B0 B0 .  .\n"
            "bubble 1/2 = 50.0 %, in flight 1 1\n");
  std::string text = picture(build("1f1b", {4, 16, 1, 2, 1}));
  EXPECT_NE(text.find("\nbubble 3/19 = 15.8 %, in flight 4 3 2 1\n"),
            std::string::npos);
}

TEST(Print, ScheduleStaysInHundredColumns) {
  for (auto [p, m] : {std::pair<int64_t, int64_t>{4, 16},
                      {16, 512},
                      {126, 16},
                      {11, 1000},
                      {2, 100000},
                      {1, 1}}) {
    std::string text = picture(build("1f1b", {p, m, 1, 2, 1}));
    llvm::SmallVector<llvm::StringRef> lines;
    llvm::StringRef(text).split(lines, '\n', -1, false);
    for (llvm::StringRef line : lines)
      EXPECT_LE(line.size(), 100u) << line.str();
    bool elided = text.find("slots elided)") != std::string::npos;
    EXPECT_EQ(elided, m > 1);
    EXPECT_EQ(int64_t(lines.size()), p + 2 + elided);
  }
}

TEST(Print, Groups) {
  EXPECT_EQ(table(gridOf("8x16x4"), 0),
            "mesh tp=8,pp=16,dp=4 = 512 ranks, order tp-dp-pp (fastest first)\n"
            "axes    size  groups  ranks with rank 0\n"
            "tp         8      64  0-7\n"
            "dp         4     128  0 8 16 24\n"
            "pp        16      32  0 32 ... 480\n");
  EXPECT_EQ(table(gridOf("2x1x3"), 5, {{0, 2}}),
            "mesh tp=2,pp=1,dp=3 = 6 ranks, order tp-dp-pp (fastest first)\n"
            "axes     size  groups  ranks with rank 5\n"
            "tp          2       3  4-5\n"
            "dp          3       2  1 3 5\n"
            "tp+dp       6       1  0-5\n");
  EXPECT_EQ(table(gridOf("1x1x1"), 0),
            "mesh tp=1,pp=1,dp=1 = 1 rank, order tp-dp-pp (fastest first)\n"
            "one rank, no groups\n");
}

TEST(Print, ScheduleJSON) {
  llvm::json::Value value = scheduleToJSON(build("gpipe", {2, 2, 1, 2, 1}));
  const llvm::json::Object &object = *value.getAsObject();
  EXPECT_EQ(object.getString("schedule"), "gpipe");
  EXPECT_EQ(object.getInteger("makespan"), 9);
  EXPECT_EQ(object.getObject("bubble")->getInteger("numerator"), 1);
  EXPECT_EQ(object.getObject("bubble")->getInteger("denominator"), 3);
  EXPECT_EQ((*object.getArray("in_flight"))[0].getAsInteger(), 2);
  const llvm::json::Object &second =
      *(*(*object.getArray("order"))[1].getAsArray())[1].getAsObject();
  EXPECT_EQ(second.getString("pass"), "F1");
  EXPECT_EQ(second.getInteger("start"), 2);
}

TEST(Print, GroupsJSON) {
  llvm::json::Value value = groupsToJSON(gridOf("8x16x4"), 33);
  const llvm::json::Object &object = *value.getAsObject();
  EXPECT_EQ(object.getInteger("ranks"), 512);
  EXPECT_EQ(object.getString("rank_order"), "tp-dp-pp");
  EXPECT_EQ(object.getObject("mesh")->getInteger("pp"), 16);
  EXPECT_EQ(object.getObject("coordinate")->getInteger("pp"), 1);
  EXPECT_EQ(object.getObject("coordinate")->getInteger("tp"), 1);
  const llvm::json::Object &pp = *(*object.getArray("groups"))[2].getAsObject();
  EXPECT_EQ((*pp.getArray("axes"))[0].getAsString(), "pp");
  EXPECT_EQ(pp.getInteger("first"), 1);
  EXPECT_EQ(pp.getInteger("groups"), 32);
  EXPECT_EQ(pp.getArray("members")->size(), 16u);
  EXPECT_EQ((*pp.getArray("members"))[15].getAsInteger(), 481);
}

} // namespace
