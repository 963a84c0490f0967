//===- Overlap.h - Parts of parc-overlap ------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the files of parc-overlap share.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TRANSFORMS_OVERLAP_H
#define PARC_LIB_TRANSFORMS_OVERLAP_H

#include "Buckets.h"
#include "Parc/Parc.h"
#include "Remake.h"
#include "parc/Analysis/Layouts.h"

namespace mlir::parc {

/// One role under the pass.
struct OverlapRole {
  OverlapRole(RoleOp role, const AxisSizes &sizes);

  RoleOp role;
  const AxisSizes &sizes;
  /// Axes that split the step's batch: its inputs, or what the step adds up of
  /// them.
  SmallVector<StringAttr> dataAxes;
  /// What gradients are summed on; null until something is.
  StringAttr gradientStream;

  /// True where more than one rank takes part.
  bool moves(Operation *collective) const;
  bool isOverData(Operation *collective) const;
  /// Sets the gradient stream where there is none: that of the data axes, or
  /// of `axes` where the step's inputs are whole.
  StringAttr requireGradientStream(ArrayAttr axes);
};

/// The name of the stream of axes: `tp`, `dp_cp`; parts of an axis have its
/// name.
StringAttr streamOf(MLIRContext *context, ArrayRef<StringAttr> axes);
StringAttr streamOf(Operation *collective);

/// True where `value` can be made again anywhere: of loads, views and sizes.
bool canRemake(Value value);

/// An empty start at `builder`, closed by an empty yield.
StartOp createStart(OpBuilder &builder, Location loc, StringAttr stream);

/// Scatters of gradients that are only accumulated: the stream accumulates.
void accumulateOnStream(OverlapRole &role);
/// Gathers of a layer's parameters: those of the next layer start.
void gatherAhead(OverlapRole &role);
/// New values that an update gathers: the stream stores them, and the update
/// waits for it at its end.
void storeOnStream(OverlapRole &role);
/// What a backward pass computes for a gradient alone waits for the next start
/// with nothing to do beside it.
void workBesideStarts(OverlapRole &role);
/// Sums of gradients leave the update.
void moveReductions(OverlapRole &role);
/// The update waits for the gradient stream before it reads what that stores.
void waitForGradients(OverlapRole &role);

/// Checks starts and waits of a role.
LogicalResult verifyStreams(RoleOp role);

} // namespace mlir::parc

#endif // PARC_LIB_TRANSFORMS_OVERLAP_H
