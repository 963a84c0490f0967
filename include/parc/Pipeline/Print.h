//===- Print.h - Pictures of schedules and groups ---------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What `parc show schedule` and `parc show groups` print, as ASCII text of at
/// most 100 columns and as JSON.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_PIPELINE_PRINT_H
#define PARC_PIPELINE_PRINT_H

#include "parc/Pipeline/RankGrid.h"
#include "parc/Pipeline/Schedule.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::parc {

/// One row a stage, one column a slot (the greatest common divisor of the two
/// costs), idle slots as dots; a pass longer than a slot fills several. Slots
/// that do not fit are elided in the middle, with a note. Ends with
/// `bubble 3/19 = 15.8 %, in flight 4 3 2 1`.
void printSchedule(const Schedule &schedule, llvm::raw_ostream &os);

/// The table of groups, one row an axis larger than one in rank order, then one
/// row for each extra set of axes (indices into the mesh's axes); members are
/// those of the group of `rank`, 0 <= rank < devices. Cost flat in the ranks.
void printGroups(const RankGrid &grid, llvm::raw_ostream &os, int64_t rank = 0,
                 llvm::ArrayRef<llvm::SmallVector<size_t>> extraSets = {});

/// Problem, makespan, bubble, in-flight peaks, and each stage's passes with
/// their start slots.
llvm::json::Value scheduleToJSON(const Schedule &schedule);

/// Mesh, rank order, the coordinate of `rank` and its groups as printGroups
/// lists them, each with its members and its (size, stride) form.
llvm::json::Value
groupsToJSON(const RankGrid &grid, int64_t rank = 0,
             llvm::ArrayRef<llvm::SmallVector<size_t>> extraSets = {});

} // namespace mlir::parc

#endif // PARC_PIPELINE_PRINT_H
