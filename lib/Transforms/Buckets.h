//===- Buckets.h - Collectives of an update, together --------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The gradients of one layer, or those of the parameters outside layers, are
/// reduced together, and their values gathered together.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TRANSFORMS_BUCKETS_H
#define PARC_LIB_TRANSFORMS_BUCKETS_H

#include "Parc/Parc.h"

namespace mlir::parc {

/// What collectives must share to be one group: kind, reduction, axes, element
/// type.
Attribute bucketKey(Operation *collective);

/// Reorders the blocks of the update region of a local step, so that
/// collectives of one kind, over the same axes and of one element type, none of
/// which needs another's result, are neighbours, and gives them an attribute
/// `bucket` with one number. Scalars stay as they are. Every rank runs the same
/// order.
void bucketUpdate(StepOp step);

/// In the layers of the micro region: values that are stored in parts are
/// gathered together at the layer's beginning, and gradients that are
/// accumulated in parts are scattered together at its end.
void bucketLayers(StepOp step);

} // namespace mlir::parc

#endif // PARC_LIB_TRANSFORMS_BUCKETS_H
