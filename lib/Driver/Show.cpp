//===- Show.cpp - parc show -----------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `parc show`.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Compilation.h"
#include "parc/Pipeline/Print.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

static void printJSON(Session &session, const llvm::json::Value &value) {
  session.out << llvm::formatv("{0:2}\n", value);
}

/// Reads --rank or --stage, below `limit`; `code` is set after an error.
static std::optional<int64_t> readIndex(Session &session, StringRef flag,
                                        int64_t limit, int &code) {
  const Word *word = session.line.flag(flag);
  if (!word)
    return std::nullopt;
  int64_t value = 0;
  if (!StringRef(word->text).getAsInteger(10, value) && value >= 0 &&
      value < limit)
    return value;
  session.reporter.error(word->place,
                         "expected a " + flag + " from 0 to " +
                             Twine(limit - 1) + ", got '" +
                             printable(word->text) + "'",
                         flag);
  code = kUsage;
  return std::nullopt;
}

/// Flags that a topic has no use for are errors, not ignored.
static bool checkFlags(Session &session) {
  StringRef topic = session.line.topic;
  auto refuse = [&](StringRef flag) {
    session.reporter.error(
        session.line.flag(flag)->place,
        "'parc show " + topic + "' takes no '--" + flag + "'", "usage");
    return false;
  };
  if (session.line.has("rank") && topic != "groups" && topic != "comms")
    return refuse("rank");
  if (session.line.has("stage") && topic != "comms")
    return refuse("stage");
  return true;
}

static int showSchedule(Session &session, const Declaration &declaration) {
  ScheduleProblem problem;
  problem.stages = declaration.size("pp");
  problem.microBatches = declaration.microBatches.value;
  std::string error;
  std::optional<Schedule> schedule = buildSchedule(
      problem, *findScheduleRule(declaration.schedule.value), error);
  if (!schedule) {
    session.reporter.error(Place(), error, "schedule");
    return kWrong;
  }
  if (session.json)
    printJSON(session, scheduleToJSON(*schedule));
  else
    printSchedule(*schedule, session.out);
  return kDone;
}

static int showGroups(Session &session, const Declaration &declaration) {
  RankGrid grid = declaration.grid();
  int code = kDone;
  std::optional<int64_t> rank =
      readIndex(session, "rank", grid.devices(), code);
  if (code != kDone)
    return code;
  if (session.json)
    printJSON(session, groupsToJSON(grid, rank.value_or(0)));
  else
    printGroups(grid, session.out, rank.value_or(0));
  return kDone;
}

static int showComms(Session &session, Compilation &compilation) {
  const Declaration &declaration = compilation.declaration;
  int code = kDone;
  std::optional<int64_t> stage =
      readIndex(session, "stage", declaration.size("pp"), code);
  RankGrid grid = declaration.grid();
  std::optional<int64_t> rank =
      readIndex(session, "rank", grid.devices(), code);
  if (code != kDone)
    return code;
  if (rank && !stage) {
    stage = 0;
    if (std::optional<size_t> pp = declaration.mesh.value.indexOf("pp"))
      stage = grid.coordinate(*rank)[*pp];
  }
  CommReport report =
      collectComms(compilation.module(), compilation.layouts,
                   declaration.batch.value, declaration.microBatches.value);
  if (session.json)
    printJSON(session, commsToJSON(report, stage));
  else
    printComms(report, stage, session.out);
  return kDone;
}

int mlir::parc::driver::runShow(Session &session) {
  if (!checkFlags(session))
    return kUsage;
  Compilation compilation;
  int code = prepare(session, compilation, /*forDevices=*/true);
  if (code != kDone)
    return code;
  StringRef topic = session.line.topic;
  const Declaration &declaration = compilation.declaration;
  if (topic == "config") {
    if (session.json)
      printJSON(session, declarationToJSON(declaration));
    else
      printDeclaration(declaration, session.out);
    return kDone;
  }
  if (topic == "schedule")
    return showSchedule(session, declaration);
  if (topic == "groups")
    return showGroups(session, declaration);
  code = lower(session, compilation,
               topic == "layouts" ? Phase::Sharded : Phase::Scheduled);
  if (code != kDone)
    return code;
  if (topic == "comms")
    return showComms(session, compilation);
  if (session.json)
    printJSON(session, layoutsToJSON(compilation.layouts));
  else
    printLayouts(compilation.layouts, session.out);
  return kDone;
}
