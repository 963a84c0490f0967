//===- FlatLowering.h - Collectives on flat parts ------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A flat part is a piece of a local part's row-major elements. Going to and
/// from it is an ordinary collective on the elements as a list.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TRANSFORMS_FLATLOWERING_H
#define PARC_LIB_TRANSFORMS_FLATLOWERING_H

#include "ReshardLowering.h"

namespace mlir::parc {

/// The elements of this rank's flat part of `type` under `sharding`, as a value
/// of type index.
Value flatPartSize(OpBuilder &builder, Location loc, RankedTensorType type,
                   ShardingAttr sharding, const AxisSizes &axes);

/// As `lowerReshard`, for a change in which a flat layout takes part. Both
/// layouts split the dimensions alike; else an error is emitted.
FailureOr<Value> lowerFlatReshard(OpBuilder &builder, ReshardOp op, Value local,
                                  const AxisSizes &axes);

} // namespace mlir::parc

#endif // PARC_LIB_TRANSFORMS_FLATLOWERING_H
