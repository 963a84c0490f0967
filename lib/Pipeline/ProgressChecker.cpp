//===- ProgressChecker.cpp - Proof that a pipeline can not hang -----------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The checker of event lists against their witness. It shares no code with the
/// derivation and looks at each event once.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/Transfers.h"

#include "llvm/ADT/Twine.h"

#include <algorithm>

using namespace llvm;

namespace mlir::parc {
namespace {

using Result = std::optional<std::string>;

std::string transferName(const Transfer &transfer) {
  return (Twine(transfer.direction == TransferDirection::Forward ? "F" : "B") +
          Twine(transfer.microBatch) + " from stage " + Twine(transfer.from) +
          " to " + Twine(transfer.to))
      .str();
}

class Checker {
public:
  Checker(const PipelineProgram &program, int64_t limit)
      : program(program), limit(limit), stages(program.stages),
        microBatches(program.microBatches) {}

  Result run() {
    if (stages < 1 || microBatches < 1 ||
        int64_t(program.events.size()) != stages)
      return std::string("event lists and stages differ in number");
    if (Result wrong = readWitness())
      return wrong;
    for (int64_t stage = 0; stage < stages; ++stage)
      if (Result wrong = checkStage(stage))
        return "stage " + std::to_string(stage) + ": " + *wrong;
    return std::nullopt;
  }

private:
  size_t index(TransferDirection direction, int64_t microBatch,
               int64_t from) const {
    return (from * 2 + int64_t(direction)) * microBatches + microBatch;
  }

  bool exists(const Transfer &transfer) const {
    bool forward = transfer.direction == TransferDirection::Forward;
    return transfer.microBatch >= 0 && transfer.microBatch < microBatches &&
           std::min(transfer.from, transfer.to) >= 0 &&
           std::max(transfer.from, transfer.to) < stages &&
           transfer.to == transfer.from + (forward ? 1 : -1);
  }

  /// Each crossing of each boundary stands in the witness exactly once.
  Result readWitness() {
    place.assign(stages * 2 * microBatches, -1);
    for (size_t i = 0; i < program.witness.size(); ++i) {
      const Transfer &transfer = program.witness[i];
      if (!exists(transfer))
        return transferName(transfer) + " is no transfer of this pipeline";
      int64_t &slot =
          place[index(transfer.direction, transfer.microBatch, transfer.from)];
      if (slot >= 0)
        return transferName(transfer) + " is in the witness twice";
      slot = i;
    }
    if (int64_t(program.witness.size()) != 2 * (stages - 1) * microBatches)
      return std::string("the witness lacks transfers");
    return std::nullopt;
  }

  /// What a stage has done so far.
  struct StageState {
    std::vector<bool> ran[2], arrived[2], sent[2];
    int64_t passes = 0;
    int64_t ends = 0;
    int64_t held[2] = {0, 0};
    /// Latest place in the witness of all groups before.
    int64_t reached = -1;
  };

  Result checkStage(int64_t stage) {
    StageState state;
    for (auto *sets : {state.ran, state.arrived, state.sent})
      for (int kind : {0, 1})
        sets[kind].assign(microBatches, false);
    for (const StageEvent &event : program.events[stage])
      if (Result wrong = event.isCompute()
                             ? checkPass(stage, event.action, state)
                             : checkGroup(stage, event.group, state))
        return wrong;
    if (state.passes != 2 * microBatches)
      return std::string("passes are missing");
    int64_t neighbours = (stage > 0) + (stage + 1 < stages);
    // Each boundary is crossed once a direction: one send and one receive.
    if (state.ends != 2 * neighbours * microBatches)
      return std::string("transfers are missing");
    return std::nullopt;
  }

  Result checkPass(int64_t stage, Action action, StageState &state) {
    std::string name = actionName(action);
    if (action.microBatch < 0 || action.microBatch >= microBatches)
      return name + " is outside the micro-batches";
    int kind = int(action.kind);
    bool forward = action.kind == ActionKind::Forward;
    if (state.ran[kind][action.microBatch])
      return name + " runs twice";
    if (!forward && !state.ran[0][action.microBatch])
      return name + " runs before its forward";
    bool makesInput = forward ? stage == 0 : stage + 1 == stages;
    if (!makesInput) {
      if (!state.arrived[kind][action.microBatch])
        return name + " runs before its input arrived";
      --state.held[kind];
    }
    state.ran[kind][action.microBatch] = true;
    ++state.passes;
    return std::nullopt;
  }

  Result checkGroup(int64_t stage, ArrayRef<TransferEnd> group,
                    StageState &state) {
    int64_t reached = state.reached;
    for (size_t i = 0; i < group.size(); ++i) {
      const TransferEnd &end = group[i];
      int64_t from = end.isSend ? stage : end.peer;
      int64_t to = end.isSend ? end.peer : stage;
      Transfer transfer{end.direction, end.microBatch, from, to};
      if (!exists(transfer))
        return transferName(transfer) + " is no transfer of this pipeline";
      int64_t at = place[index(end.direction, end.microBatch, from)];
      if (at <= state.reached)
        return transferName(transfer) + " breaks the order of the witness";
      reached = std::max(reached, at);
      for (const TransferEnd &earlier : group.take_front(i))
        if (earlier.peer == end.peer && earlier.direction == end.direction &&
            place[index(earlier.direction, earlier.microBatch,
                        earlier.isSend ? stage : earlier.peer)] >= at)
          return transferName(transfer) + " breaks the order in its group";
      if (Result wrong = checkEnd(end, transfer, state))
        return wrong;
    }
    state.reached = reached;
    return std::nullopt;
  }

  Result checkEnd(const TransferEnd &end, const Transfer &transfer,
                  StageState &state) {
    int kind = int(end.direction);
    ++state.ends;
    auto &seen = end.isSend ? state.sent[kind] : state.arrived[kind];
    if (seen[end.microBatch])
      return transferName(transfer) + " is posted twice";
    seen[end.microBatch] = true;
    if (end.isSend) {
      if (!state.ran[kind][end.microBatch])
        return transferName(transfer) + " is sent before it is made";
      return std::nullopt;
    }
    if (++state.held[kind] > limit)
      return transferName(transfer) + " needs more than " +
             std::to_string(limit) + " receive buffers";
    return std::nullopt;
  }

  const PipelineProgram &program;
  int64_t limit, stages, microBatches;
  /// Place of each transfer in the witness.
  std::vector<int64_t> place;
};

} // namespace

std::optional<std::string> checkProgress(const PipelineProgram &program,
                                         int64_t limit) {
  return Checker(program, limit).run();
}

} // namespace mlir::parc
