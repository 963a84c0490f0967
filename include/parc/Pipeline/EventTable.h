//===- EventTable.h - Event lists of constant length ------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes a stage's event list as a few loops whose bodies advance by one
/// micro-batch an iteration, so that emitted tables do not grow with the number
/// of micro-batches: prologue, repeating period, epilogue. A sequence of loops
/// rather than one, because GPipe has a forward period and a backward one.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_PIPELINE_EVENTTABLE_H
#define PARC_PIPELINE_EVENTTABLE_H

#include "parc/Pipeline/Transfers.h"

namespace mlir::parc {

/// `body` run `repeat` times; in iteration t every micro-batch number in it,
/// of passes and of transfers, is the written one plus t.
struct EventLoop {
  std::vector<StageEvent> body;
  int64_t repeat = 1;
};

/// A stage's program as loops run one after the other.
struct StageTable {
  std::vector<EventLoop> loops;

  /// Written events, the size of an emitted table.
  int64_t size() const;
};

/// Finds the loops greedily; bodies of at most `maxPeriod` events.
StageTable compressEvents(llvm::ArrayRef<StageEvent> events,
                          int64_t maxPeriod = 16);
/// Gives back exactly what was compressed.
std::vector<StageEvent> expandTable(const StageTable &table);

/// Where a stage stands; stages of one role run the same code.
enum class StageRole : uint8_t { Only, First, Middle, Last };

/// `only`, `first`, `middle`, `last`.
llvm::StringRef stageRoleName(StageRole role);
/// The role of `stage` among `stages`.
StageRole stageRole(int64_t stage, int64_t stages);

/// The stages [begin, end) that share a role.
struct RoleRange {
  StageRole role;
  int64_t begin;
  int64_t end;
};
/// The distinct roles in stage order; at most three, whatever `stages`.
llvm::SmallVector<RoleRange, 3> stageRoles(int64_t stages);

} // namespace mlir::parc

#endif // PARC_PIPELINE_EVENTTABLE_H
