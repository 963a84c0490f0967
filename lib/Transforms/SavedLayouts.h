//===- SavedLayouts.h - How saved values lie -----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The layouts in which layers keep forward values for their backward.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TRANSFORMS_SAVEDLAYOUTS_H
#define PARC_LIB_TRANSFORMS_SAVEDLAYOUTS_H

#include "parc/Analysis/Layouts.h"

namespace mlir::parc {

/// Bytes that a rank sends to turn `from` into `to`; infinity where that would
/// join micro-batches, or is not to be done from a list's parts.
double turnBytes(RankedTensorType type, ShardingAttr from, ShardingAttr to,
                 const AxisSizes &axes);

/// Chooses anew, of a module in which all layouts are written down, those of
/// the values that stacks save for stacks in reverse. What it takes forward and
/// backward together decides:
/// - candidates are the layouts that either side has the value in, or passes
///   through on the way to one of them;
/// - none may take more memory than what is saved now;
/// - then the fewest bytes sent, to save it and to read it;
/// - then the least memory; then what is saved now.
void chooseSavedLayouts(ModuleOp module, const AxisSizes &axes);

} // namespace mlir::parc

#endif // PARC_LIB_TRANSFORMS_SAVEDLAYOUTS_H
