//===- TensorSearch.h - Where to split a layer ----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Searches of the strategy that look at the work and bytes of ops.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_ANALYSIS_TENSORSEARCH_H
#define PARC_LIB_ANALYSIS_TENSORSEARCH_H

#include "parc/Analysis/ClassGraph.h"

namespace mlir::parc {

/// Splits, over `split`, the classes that divide the most work of ops that read
/// a parameter, for the fewest bytes reduced; see applyStrategy.
void placeTensor(ModuleOp module, Propagation &propagation, ClassGraph &graph,
                 const Axes &split, const AxisSizes &axes);

/// The axes that propagation gives each factor of an op.
SmallVector<Axes> factorAxesOf(const ClassedOp &classed,
                               const Propagation &propagation,
                               const AxisSizes &axes);

/// How often a step's region runs an op: by the layers of the stacks it is in.
double runsOf(Operation *op);

/// True for an op that needs one of `sequences` whole and has a dimension that
/// is not of the classes `data` (the inputs' dimensions).
bool needsWhole(const ClassedOp &op, ArrayRef<DimClass> sequences,
                ArrayRef<DimClass> data);

/// The axes of an op's factors where its sequences are whole and another
/// dimension is split over `context` as well; nothing where none has the units.
std::optional<SmallVector<Axes>>
headsForSequence(const ClassedOp &op, const Propagation &propagation,
                 ArrayRef<DimClass> sequences, ArrayRef<DimClass> data,
                 const Axes &context, const AxisSizes &axes);

/// Pins an op that needs one of `sequences` whole to run with another of its
/// dimensions split over `context` as well: the one that has units for it, and
/// is not of the classes `data` (the inputs' dimensions).
/// Fails with an error where none has.
LogicalResult exchangeHeadsOf(const ClassedOp &op, Propagation &propagation,
                              ArrayRef<DimClass> sequences,
                              ArrayRef<DimClass> data, const Axes &context,
                              const AxisSizes &axes);

} // namespace mlir::parc

#endif // PARC_LIB_ANALYSIS_TENSORSEARCH_H
