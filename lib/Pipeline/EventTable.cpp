//===- EventTable.cpp - Event lists of constant length --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds repeating periods in event lists, and the roles of stages.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/EventTable.h"

#include <algorithm>

using namespace llvm;

namespace mlir::parc {
namespace {

/// `event` with every micro-batch number moved by `shift`.
StageEvent advanced(StageEvent event, int64_t shift) {
  if (event.isCompute())
    event.action.microBatch += shift;
  for (TransferEnd &end : event.group)
    end.microBatch += shift;
  return event;
}

/// Whether `b` is `a` one iteration later.
bool follows(const StageEvent &a, const StageEvent &b) {
  if (a.group.size() != b.group.size())
    return false;
  if (a.isCompute())
    return a.action.kind == b.action.kind &&
           a.action.microBatch + 1 == b.action.microBatch;
  for (size_t i = 0; i < a.group.size(); ++i) {
    TransferEnd next = a.group[i];
    ++next.microBatch;
    if (!(next == b.group[i]))
      return false;
  }
  return true;
}

/// How often the first `period` events repeat, the first time included.
int64_t repeats(ArrayRef<StageEvent> events, size_t period) {
  size_t matched = 0;
  while (matched + period < events.size() &&
         follows(events[matched], events[matched + period]))
    ++matched;
  return 1 + matched / period;
}

} // namespace

int64_t StageTable::size() const {
  int64_t size = 0;
  for (const EventLoop &loop : loops)
    size += loop.body.size();
  return size;
}

StageTable compressEvents(ArrayRef<StageEvent> events, int64_t maxPeriod) {
  StageTable table;
  // Consecutive events outside any loop share one body that runs once.
  bool inLiteral = false;
  while (!events.empty()) {
    size_t bestPeriod = 1;
    int64_t bestRepeat = 1;
    for (size_t period = 1; period <= size_t(maxPeriod); ++period) {
      int64_t repeat = repeats(events, period);
      // The shortest period wins among equals.
      if (int64_t(period) * (repeat - 1) >
          int64_t(bestPeriod) * (bestRepeat - 1)) {
        bestPeriod = period;
        bestRepeat = repeat;
      }
    }
    ArrayRef<StageEvent> body = events.take_front(bestPeriod);
    if (bestRepeat > 1 || !inLiteral)
      table.loops.push_back({body.vec(), bestRepeat});
    else
      table.loops.back().body.push_back(body.front());
    inLiteral = bestRepeat == 1;
    events = events.drop_front(bestPeriod * bestRepeat);
  }
  return table;
}

std::vector<StageEvent> expandTable(const StageTable &table) {
  std::vector<StageEvent> events;
  for (const EventLoop &loop : table.loops)
    for (int64_t iteration = 0; iteration < loop.repeat; ++iteration)
      for (const StageEvent &event : loop.body)
        events.push_back(advanced(event, iteration));
  return events;
}

StringRef stageRoleName(StageRole role) {
  switch (role) {
  case StageRole::Only:
    return "only";
  case StageRole::First:
    return "first";
  case StageRole::Middle:
    return "middle";
  case StageRole::Last:
    return "last";
  }
  return "";
}

StageRole stageRole(int64_t stage, int64_t stages) {
  if (stages == 1)
    return StageRole::Only;
  if (stage == 0)
    return StageRole::First;
  return stage + 1 == stages ? StageRole::Last : StageRole::Middle;
}

SmallVector<RoleRange, 3> stageRoles(int64_t stages) {
  if (stages == 1)
    return {{StageRole::Only, 0, 1}};
  SmallVector<RoleRange, 3> roles{{StageRole::First, 0, 1}};
  if (stages > 2)
    roles.push_back({StageRole::Middle, 1, stages - 1});
  roles.push_back({StageRole::Last, stages - 1, stages});
  return roles;
}

} // namespace mlir::parc
