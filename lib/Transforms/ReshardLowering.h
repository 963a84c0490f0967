//===- ReshardLowering.h - From a reshard to collectives -----*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The sequence of collectives that turns one layout of a value into another.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TRANSFORMS_RESHARDLOWERING_H
#define PARC_LIB_TRANSFORMS_RESHARDLOWERING_H

#include "parc/Analysis/ReshardPlanner.h"

namespace mlir::parc {

/// Builds, on the local value `local` of `op`'s input, the collectives that
/// make `op`'s result: the path that `planner` finds. `used` are the local
/// values of the numbers of rows that `op` has, if any. Emits an error where a
/// value that is split over micro-batches would be needed whole.
FailureOr<Value> lowerReshard(OpBuilder &builder, ReshardOp op, Value local,
                              ValueRange used, const AxisSizes &axes,
                              ReshardPlanner &planner);

} // namespace mlir::parc

#endif // PARC_LIB_TRANSFORMS_RESHARDLOWERING_H
