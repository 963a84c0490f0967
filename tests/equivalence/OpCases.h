//===- OpCases.h - Every way to pin the dimensions of an op ----*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the factors that an op tells of itself to cases: each factor on one
/// axis and on two, each pair of factors on two axes, and two factors that both
/// want one axis.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TESTS_EQUIVALENCE_OPCASES_H
#define PARC_TESTS_EQUIVALENCE_OPCASES_H

#include "Harness.h"

namespace mlir::parc::equiv {

/// A dimension of an operand or result of an op.
struct Use {
  unsigned value, dim;
};

/// One thing that can be split in an op, and where it shows.
struct Splittable {
  /// The factor's number; of an op without factors, the number of the use.
  unsigned factor;
  SmallVector<Use> uses;
};

/// An op of a prepared module that is to be tested.
struct Target {
  unsigned index;
  /// The op's name; with its operands' ranks, its body and attributes `key`.
  std::string name, key;
  /// False where the op is decomposed before propagation.
  bool hasFactors;
  SmallVector<Splittable> splits;
};

/// The ops of a prepared module that have something to split, each kind once.
std::vector<Target> targetsOf(ModuleOp module);

/// A case: factors of a target on the axes of a mesh.
struct Case {
  Axes mesh;
  SmallVector<Pin> pins;
  /// Factors, and the axes that they are pinned to.
  SmallVector<std::pair<unsigned, SmallVector<std::string>>> split;
  /// True where two factors want one axis, so that one of them loses it.
  bool contested = false;

  std::string text() const;
};

/// The cases of `target`: with or without those of two factors.
std::vector<Case> casesOf(Operation *op, const Target &target, bool pairs);

/// True where `op`, after sharding, runs with the factors of `tested` split as
/// they are pinned.
bool runsSplit(Operation *op, const Case &tested);

} // namespace mlir::parc::equiv

#endif // PARC_TESTS_EQUIVALENCE_OPCASES_H
