//===- ContextWork.h - Attention's work over context ranks ------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How evenly the ranks of a context group share attention's work: the visible
/// (query, key) pairs of each, counted from the layouts and the order of the
/// sequence in the sharded program.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_CONTEXTWORK_H
#define PARC_DRIVER_CONTEXTWORK_H

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace mlir::parc::driver {

/// Of the attention whose work is shared the least evenly.
struct ContextWork {
  /// As `--cp-kind` names it, told from the op's layout.
  std::string kind;
  /// Work of the rank that has most (for attention, pairs of a query and a key
  /// that it sees), over the mean of the ranks; 1 is even.
  double maxOverMean = 1;
  /// The sequence was folded, so that each rank has both ends of it.
  bool folded = false;
};

/// Adds up the work of ops that meet the whole sequence (`RingOpInterface`) in
/// a module of the sharded phase, of sequences whose positions run from 0. None
/// where nothing attends or cp has one rank.
std::optional<ContextWork> contextWork(ModuleOp module);

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_CONTEXTWORK_H
