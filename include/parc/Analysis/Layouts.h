//===- Layouts.h - Sizes and costs of layouts ----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What passes ask about a layout on a mesh: how many parts, whether they are
/// equal, the local type, and what a change of layout costs.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_ANALYSIS_LAYOUTS_H
#define PARC_ANALYSIS_LAYOUTS_H

#include "Parc/Parc.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::parc {

/// Sizes of the axes of a module's mesh, micro-batches included.
class AxisSizes {
public:
  /// Without a mesh op every axis has size 1.
  AxisSizes(ModuleOp module, int64_t microBatches);

  /// Of an axis that `splitAxis` split, the size that it had.
  int64_t of(StringRef axis) const;
  int64_t product(ArrayRef<StringAttr> axes) const;
  /// True for an axis of the mesh, and for `mb`.
  bool has(StringRef axis) const;
  /// The axes' names in the mesh's order, then `mb`.
  ArrayRef<std::string> names() const { return order; }

private:
  llvm::StringMap<int64_t> sizes;
  SmallVector<std::string> order;
};

/// Replaces `axis` of `mesh` by its major part `AXIS.0` and its minor part
/// `AXIS.1`, of `inner` neighbours; ranks keep their numbers. `inner` divides
/// the axis; where it is 1 or all of it nothing changes.
void splitAxis(MeshOp mesh, StringRef axis, int64_t inner);

/// The axes of a mesh that `axis` is or was split into, major to minor.
SmallVector<StringRef, 2> partsOfAxis(MeshOp mesh, StringRef axis);

/// True where all parts of a dimension of `size` have the same extent.
bool isEven(int64_t size, DimShardingAttr dim, const AxisSizes &axes);

/// The type of one rank's part of `type` under `sharding`: dynamic where the
/// parts are not equal. The result has no encoding.
RankedTensorType localType(RankedTensorType type, ShardingAttr sharding,
                           const AxisSizes &axes);

/// Bytes of the largest part of `type` under `sharding`.
double partBytes(RankedTensorType type, ShardingAttr sharding,
                 const AxisSizes &axes);

/// Bytes that a rank sends (ring algorithms) to turn `from` into `to`:
/// all-reduce 2(n-1)/n N, reduce-scatter, all-gather (n-1)/n N, all-to-all
/// (n-1)/n of the part, slices nothing (COSTS of the field: ring collectives).
double reshardBytes(RankedTensorType type, ShardingAttr from, ShardingAttr to,
                    const AxisSizes &axes);

/// A readable name for what `op` computes: its location's name, else the
/// parameter it reads, else the op's name.
std::string describe(Operation *op);

} // namespace mlir::parc

#endif // PARC_ANALYSIS_LAYOUTS_H
