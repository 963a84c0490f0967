//===- Run.h - Runs a case in exact arithmetic -----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Takes a case through the driver as `parc run` does, runs all ranks and the
/// unpartitioned program modulo 2^61-1, and compares everything: loss, norm,
/// logits, gradients, parameters, moments, and replicas with each other.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TESTS_EQUIVALENCE_FUZZ_RUN_H
#define PARC_TESTS_EQUIVALENCE_FUZZ_RUN_H

#include "Case.h"

#include <map>

namespace mlir::parc::fuzz {

struct Outcome {
  enum class Kind {
    Equal,
    /// The declaration or the compiler says why it cannot be.
    Refused,
    /// Other numbers, or a failure that no user should see.
    Wrong
  };
  Kind kind = Kind::Wrong;
  std::string text;
  /// How far it came: a smaller case is wrong in the same way if it comes as
  /// far.
  int step = 0;
};

/// Runs a case; `folder` is its own, and exists.
Outcome run(const Case &given, const std::string &folder);

/// How often each op is laid out over each axis: ops -> axis or `partial AXIS`
/// -> count.
using Placements = std::map<std::string, std::map<std::string, unsigned>>;

/// Adds the layouts of a case that is not refused.
void addPlacements(const Case &given, const std::string &folder,
                   Placements &placements);

/// The simplest case that goes wrong in the same way, on the way from `wrong`.
Case shrink(Case wrong, const std::string &folder);

} // namespace mlir::parc::fuzz

#endif // PARC_TESTS_EQUIVALENCE_FUZZ_RUN_H
