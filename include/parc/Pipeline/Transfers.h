//===- Transfers.h - What stages send each other, and when ------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Turns a schedule into one flat event list a stage: passes, and groups of
/// sends and receives posted together. Sends are unbuffered rendezvous, so the
/// lists come with a witness that nothing can hang: one global order of all
/// transfers that every stage's order follows. A separate checker reads only
/// the lists and the witness.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_PIPELINE_TRANSFERS_H
#define PARC_PIPELINE_TRANSFERS_H

#include "parc/Pipeline/Schedule.h"

namespace mlir::parc {

/// Forward carries activations to the next stage, backward carries gradients to
/// the previous one.
enum class TransferDirection : uint8_t { Forward, Backward };

/// One end of a transfer as a stage posts it.
struct TransferEnd {
  bool isSend = false;
  TransferDirection direction = TransferDirection::Forward;
  int32_t microBatch = 0;
  int32_t peer = 0;

  friend bool operator==(const TransferEnd &a, const TransferEnd &b) {
    return a.isSend == b.isSend && a.direction == b.direction &&
           a.microBatch == b.microBatch && a.peer == b.peer;
  }
};

/// One entry of a stage's program: a pass, or, when `group` is not empty, ends
/// that are posted together and waited for together. Within a group, ends with
/// the same peer and direction match in their order.
struct StageEvent {
  Action action;
  llvm::SmallVector<TransferEnd, 2> group;

  static StageEvent compute(Action action) { return {action, {}}; }
  bool isCompute() const { return group.empty(); }

  friend bool operator==(const StageEvent &a, const StageEvent &b) {
    return a.group == b.group && (!a.isCompute() || a.action == b.action);
  }
};

/// A whole transfer.
struct Transfer {
  TransferDirection direction = TransferDirection::Forward;
  int64_t microBatch = 0;
  int64_t from = 0;
  int64_t to = 0;

  friend bool operator==(const Transfer &a, const Transfer &b) {
    return a.direction == b.direction && a.microBatch == b.microBatch &&
           a.from == b.from && a.to == b.to;
  }
};

/// Received values that a stage holds at once before the pass that reads them.
struct ReceiveBuffers {
  int64_t forward = 0;
  int64_t backward = 0;
};

/// The programs of all stages, with the witness.
struct PipelineProgram {
  int64_t stages = 1;
  int64_t microBatches = 1;
  std::vector<std::vector<StageEvent>> events;
  std::vector<Transfer> witness;

  /// Counted from the event list of `stage`.
  ReceiveBuffers receiveBuffers(int64_t stage) const;
};

/// Derives the event lists. A value is sent right after the pass that makes it;
/// it is received right before the pass that reads it, and earlier only where
/// that late receive would hang. For GPipe and 1F1B nothing is received early,
/// so one buffer a direction suffices. Fails when `schedule` itself breaks a
/// data dependency.
std::optional<PipelineProgram> deriveTransfers(const Schedule &schedule,
                                               std::string &error);

/// The separate checker, linear in the number of events: each activation and
/// gradient crosses each boundary once, both ends agree, each stage's groups
/// follow the witness, ends of one peer and direction match in order, each pass
/// runs once, after its inputs arrived and before its output is sent, and no
/// stage holds more received values than `limit` a direction. Empty when all
/// holds, else what does not.
std::optional<std::string> checkProgress(const PipelineProgram &program,
                                         int64_t limit = 1);

} // namespace mlir::parc

#endif // PARC_PIPELINE_TRANSFERS_H
