//===- ZeroPlan.h - Where optimizer state lies ----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ZeRO (arXiv:1910.02054): ranks that would hold the same optimizer state,
/// gradient or value of a parameter hold equal parts of it instead.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_ANALYSIS_ZEROPLAN_H
#define PARC_ANALYSIS_ZEROPLAN_H

#include "parc/Analysis/Propagation.h"

namespace mlir::parc {

/// What is split: nothing (0), the optimizer's state (1), gradients too (2),
/// values too (3).
struct ZeroOptions {
  int64_t stage = 0;
  /// Where not empty: split over these axes only. Over the others each group
  /// holds its own copy, and sums are reduced across them.
  SmallVector<std::string> only;
};

/// The axes over which a parameter is used on different data: those that split
/// an input of a step, but time, stages, and those that split the parameter
/// itself. So for an expert's parameters they are what expert parallelism
/// leaves of the data-parallel axes. In the mesh's order.
SmallVector<StringAttr, 2> dataAxes(ModuleOp module, ParamOp param,
                                    const Propagation &propagation,
                                    const AxisSizes &axes);

/// Sets `slot_shardings` of every parameter that a step accumulates a gradient
/// for, from its `sharding`. Where values are to be split, one that has fewer
/// elements than ranks keeps its own whole, with a warning.
void planZero(ModuleOp module, const Propagation &propagation,
              const AxisSizes &axes, const ZeroOptions &options);

} // namespace mlir::parc

#endif // PARC_ANALYSIS_ZEROPLAN_H
