//===- ContextChoice.h - How attention meets a split sequence -*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Rings, and the choice among the ways to run ops that need a split sequence
/// whole.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_ANALYSIS_CONTEXTCHOICE_H
#define PARC_LIB_ANALYSIS_CONTEXTCHOICE_H

#include "TensorSearch.h"
#include "parc/Analysis/Strategy.h"

namespace mlir::parc {

/// What the ways to run ops are judged by.
struct ContextProblem {
  const ClassGraph &graph;
  const Propagation &propagation;
  /// Classes of the sequences, and of all dimensions of the step's inputs.
  ArrayRef<DimClass> sequences, data;
  /// The axes that split the sequences.
  const Axes &context;
  const AxisSizes &axes;
};

/// A way, and a line that says why it was taken.
struct ContextChoice {
  ContextKind kind;
  std::string why;
};

/// The way that moves the fewest bytes, of those that all ops allow. A ring
/// moves what gathering does, but a part at a time, while the part before is
/// computed with: of equals it is taken.
ContextChoice chooseContext(const ContextProblem &problem);

/// Puts an op that needs a sequence whole on a ring over `context`. Fails with
/// an error where it has no such form.
LogicalResult putOnRing(const ClassedOp &op, Propagation &propagation,
                        ArrayRef<DimClass> sequences, const Axes &context);

} // namespace mlir::parc

#endif // PARC_LIB_ANALYSIS_CONTEXTCHOICE_H
