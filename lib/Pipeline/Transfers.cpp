//===- Transfers.cpp - What stages send each other, and when --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Derives event lists by running the schedule with unbuffered rendezvous. A
/// stage stands in the gap before a pass with its open ends posted: the output
/// of the pass behind it and the input of the pass ahead. A pair whose ends are
/// both posted completes, which makes the witness. When nothing moves, a sender
/// waits for a receiver that stands in an earlier gap; the receive is then
/// posted there, early.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/Transfers.h"

#include <algorithm>
#include <deque>
#include <tuple>

using namespace llvm;

namespace mlir::parc {
namespace {

class Rendezvous {
public:
  explicit Rendezvous(const Schedule &schedule)
      : schedule(schedule), stages(schedule.problem.stages),
        microBatches(schedule.problem.microBatches),
        transfers(2 * stages * microBatches), gaps(stages) {
    program.stages = stages;
    program.microBatches = microBatches;
    program.events.resize(stages);
  }

  /// False when the schedule can not be run.
  bool run() {
    for (int64_t stage = 0; stage < stages; ++stage)
      enterGap(stage);
    do {
      while (!movable.empty()) {
        int64_t stage = movable.front();
        movable.pop_front();
        advance(stage);
      }
    } while (receiveEarly());
    return std::all_of(gaps.begin(), gaps.end(),
                       [](const Gap &gap) { return gap.done; });
  }

  PipelineProgram program;

private:
  /// State of a transfer, named by its sender.
  struct State {
    bool sendPosted = false;
    bool receivePosted = false;
    int64_t order = -1;
  };
  /// Where a stage stands: before pass `next` of its list.
  struct Gap {
    size_t next = 0;
    int64_t open = 0;
    bool done = false;
    SmallVector<TransferEnd> ends;
  };

  /// The stage that `action`'s output goes to (`step` 1) or its input comes
  /// from (`step` -1); -1 at the ends of the pipeline.
  int64_t neighbour(int64_t stage, Action action, int64_t step) const {
    int64_t other =
        action.kind == ActionKind::Forward ? stage + step : stage - step;
    return other >= 0 && other < stages ? other : -1;
  }

  State &state(int64_t sender, TransferDirection direction,
               int64_t microBatch) {
    return transfers[(sender * 2 + int64_t(direction)) * microBatches +
                     microBatch];
  }
  State &state(int64_t stage, const TransferEnd &end) {
    return state(end.isSend ? stage : end.peer, end.direction, end.microBatch);
  }

  /// Posts one end on `stage` and completes the transfer when the other end is
  /// posted too.
  void post(int64_t stage, const TransferEnd &end) {
    State &transfer = state(stage, end);
    gaps[stage].ends.push_back(end);
    ++gaps[stage].open;
    (end.isSend ? transfer.sendPosted : transfer.receivePosted) = true;
    if (!transfer.sendPosted || !transfer.receivePosted)
      return;
    transfer.order = program.witness.size();
    int64_t from = end.isSend ? stage : end.peer;
    int64_t to = end.isSend ? end.peer : stage;
    program.witness.push_back({end.direction, end.microBatch, from, to});
    for (int64_t side : {from, to})
      if (--gaps[side].open == 0)
        movable.push_back(side);
  }

  void enterGap(int64_t stage) {
    Gap &gap = gaps[stage];
    const auto &actions = schedule.stages[stage];
    // Held open while posting, so that the stage is queued once.
    gap.open = 1;
    gap.ends.clear();
    auto end = [&](Action action, bool isSend, int64_t peer) {
      return TransferEnd{isSend, TransferDirection(action.kind),
                         int32_t(action.microBatch), int32_t(peer)};
    };
    if (gap.next > 0) {
      Action made = actions[gap.next - 1].action;
      if (int64_t peer = neighbour(stage, made, 1); peer >= 0)
        post(stage, end(made, true, peer));
    }
    if (gap.next < actions.size()) {
      Action ahead = actions[gap.next].action;
      int64_t peer = neighbour(stage, ahead, -1);
      if (peer >= 0 && !state(stage, end(ahead, false, peer)).receivePosted)
        post(stage, end(ahead, false, peer));
    }
    if (--gap.open == 0)
      movable.push_back(stage);
  }

  /// Leaves the gap: writes its group, runs the pass, enters the next gap.
  void advance(int64_t stage) {
    Gap &gap = gaps[stage];
    // A receive may have been added since the stage was queued.
    if (gap.done || gap.open != 0)
      return;
    // Both sides sort alike, so ends of one peer and direction match in order.
    llvm::sort(gap.ends, [&](const TransferEnd &a, const TransferEnd &b) {
      return std::make_tuple(a.peer, a.direction, state(stage, a).order) <
             std::make_tuple(b.peer, b.direction, state(stage, b).order);
    });
    auto &events = program.events[stage];
    if (!gap.ends.empty())
      events.push_back({{}, {gap.ends.begin(), gap.ends.end()}});
    const auto &actions = schedule.stages[stage];
    if (gap.next == actions.size()) {
      gap.done = true;
      return;
    }
    events.push_back(StageEvent::compute(actions[gap.next].action));
    ++gap.next;
    enterGap(stage);
  }

  /// Nothing moves. The pass that starts first among those to come has its
  /// inputs, so its stage waits for receivers in earlier gaps only.
  bool receiveEarly() {
    int64_t first = -1;
    auto startOf = [&](int64_t stage) {
      const auto &actions = schedule.stages[stage];
      size_t next = gaps[stage].next;
      return next < actions.size() ? actions[next].start : INT64_MAX;
    };
    for (int64_t stage = 0; stage < stages; ++stage)
      if (!gaps[stage].done && (first < 0 || startOf(stage) < startOf(first)))
        first = stage;
    if (first < 0)
      return false;
    bool moved = false;
    SmallVector<TransferEnd> ends = gaps[first].ends;
    for (const TransferEnd &end : ends) {
      if (!end.isSend || state(first, end).receivePosted || gaps[end.peer].done)
        continue;
      post(end.peer, {false, end.direction, end.microBatch, int32_t(first)});
      moved = true;
    }
    return moved;
  }

  const Schedule &schedule;
  int64_t stages, microBatches;
  std::vector<State> transfers;
  std::vector<Gap> gaps;
  std::deque<int64_t> movable;
};

} // namespace

ReceiveBuffers PipelineProgram::receiveBuffers(int64_t stage) const {
  int64_t held[2] = {0, 0}, peak[2] = {0, 0};
  for (const StageEvent &event : events[stage]) {
    if (event.isCompute()) {
      // The first and the last stage make their own input.
      int64_t &now = held[int64_t(event.action.kind)];
      now = std::max<int64_t>(0, now - 1);
      continue;
    }
    for (const TransferEnd &end : event.group) {
      if (end.isSend)
        continue;
      int64_t direction = int64_t(end.direction);
      peak[direction] = std::max(peak[direction], ++held[direction]);
    }
  }
  return {peak[0], peak[1]};
}

std::optional<PipelineProgram> deriveTransfers(const Schedule &schedule,
                                               std::string &error) {
  Rendezvous rendezvous(schedule);
  if (rendezvous.run())
    return std::move(rendezvous.program);
  error = "schedule '" + schedule.rule +
          "' can hang: a pass waits for a value that is made after it";
  return std::nullopt;
}

} // namespace mlir::parc
