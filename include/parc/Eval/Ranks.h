//===- Ranks.h - Runs the program of all ranks ------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs a staged module, each rank a thread on the host runtime, and puts the
/// ranks' parts together again.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_EVAL_RANKS_H
#define PARC_EVAL_RANKS_H

#include "parc/Eval/Step.h"

namespace mlir::parc::eval {

/// What a step of all ranks gives.
template <class T> struct RanksResult {
  /// By the names in the roles' `results`; those of rank 0.
  std::map<std::string, Tensor<T>> results;
  /// All slots in full size.
  ParamStore<T> params;
  /// In full size, by Observation's name.
  std::map<std::string, Tensor<T>> observed;
  /// The most micro-batches whose forward has run and whose backward has not,
  /// by rank.
  std::vector<int64_t> peakInFlight;
  /// The replica check: where ranks that hold the same part of a parameter, a
  /// result or an observed value do not agree bit for bit, or parts leave a
  /// hole in the whole. Empty when all is well. One line each, such as
  /// `parameter @q[0].grad: rank 2 differs from rank 0, first at index 1x3`.
  std::vector<std::string> replicaDifferences;
};

/// Runs one step of a module with `parc.mesh`, `parc.param`s of local type with
/// their sharding, `parc.role`s and a `parc.schedule`. `full` has every
/// parameter in full size; each rank gets its parts of those that its role uses
/// in its layers. A role's `input_shardings` (an array of `#parc.sharding`, one
/// an input) say which part of each full-size input a rank and micro-batch
/// take; without it they take all. An observed value is put together by the
/// `sharding` attribute of its `parc.observe`; without one it is whole on every
/// rank. Fails after a located error.
template <class T>
FailureOr<RanksResult<T>> runRanks(ModuleOp module, const ParamStore<T> &full,
                                   const StepInputs<T> &inputs);

} // namespace mlir::parc::eval

#endif // PARC_EVAL_RANKS_H
