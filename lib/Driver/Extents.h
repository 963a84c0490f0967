//===- Extents.h - Largest extents of local values --------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Largest extents of values whose local size differs between ranks.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_DRIVER_EXTENTS_H
#define PARC_LIB_DRIVER_EXTENTS_H

#include "parc/Analysis/Layouts.h"
#include "parc/Driver/Layouts.h"

#include "Parc/Parc.h"
#include "mlir/IR/Operation.h"

namespace mlir::parc::driver {

/// Finds how large a dynamic dimension of a local value can be, by following
/// it to where its size comes from: a part of a dimension, a parameter, the
/// batch, or another value that shares the dimension.
class Extents {
public:
  Extents(ModuleOp module, const LayoutReport &layouts, int64_t batch,
          int64_t microBatches)
      : module(module), layouts(layouts), axes(module, microBatches),
        batch(batch) {}

  const AxisSizes &sizes() const { return axes; }
  /// Elements of the largest part of `value`; nothing where it is not known.
  std::optional<int64_t> elements(Value value);
  /// The largest extent of dimension `dim`.
  std::optional<int64_t> extent(Value value, unsigned dim, unsigned depth = 0);
  /// The largest part of a dimension of `size` in units of `grain` over `axes`.
  int64_t largestPart(int64_t size, int64_t grain, ArrayAttr over) const;

private:
  std::optional<int64_t> index(Value value, unsigned depth);
  std::optional<int64_t> ofArgument(BlockArgument argument, unsigned dim,
                                    unsigned depth);
  /// Sequences of the largest micro-batch of a replica.
  int64_t mostSequences(MLIRContext *context) const;
  std::optional<int64_t> ofRoleArgument(RoleOp role, BlockArgument argument,
                                        unsigned dim, unsigned depth);
  std::optional<int64_t> ofResult(OpResult result, unsigned dim,
                                  unsigned depth);
  std::optional<int64_t> ofMove(Operation *op, unsigned dim, unsigned depth);
  std::optional<int64_t> byFactors(OpResult result, unsigned dim,
                                   unsigned depth);
  /// The largest part of a tensor under `sharding`, before it is flattened.
  int64_t localElements(RankedTensorType type, ShardingAttr sharding) const;
  std::optional<int64_t> sent(Region &region, unsigned index, unsigned dim,
                              unsigned depth);

  ModuleOp module;
  const LayoutReport &layouts;
  AxisSizes axes;
  int64_t batch;
  llvm::DenseMap<std::pair<Value, unsigned>, std::optional<int64_t>> known;
};

} // namespace mlir::parc::driver

#endif // PARC_LIB_DRIVER_EXTENTS_H
