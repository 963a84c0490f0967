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

#include <memory>
#include <string>
#include <vector>

namespace mlir::parc {

/// Costs of reshards that have been asked for.
struct ReshardMemory;

/// Sizes of the axes of a module's mesh, micro-batches included.
class AxisSizes {
public:
  /// Without a mesh op every axis has size 1.
  AxisSizes(ModuleOp module, int64_t microBatches);

  /// Of an axis that `splitAxis` split, the size that it had.
  int64_t of(StringRef axis) const;
  int64_t product(ArrayRef<StringAttr> axes) const;
  /// By how much the numbers of neighbours along the axis differ.
  int64_t strideOf(StringRef axis) const;
  /// True for an axis of the mesh, and for `mb`.
  bool has(StringRef axis) const;
  /// The axes of the refined mesh that `axis` was split into, major to minor:
  /// `tp.0`, `tp.1` for `tp`; the axis itself where it was not split. None
  /// where all of them have size 1.
  SmallVector<StringAttr, 2> partsOf(StringRef axis,
                                     MLIRContext *context) const;
  /// The axes' names in the mesh's order, then `mb`.
  ArrayRef<std::string> names() const { return order; }
  /// What reshardBytes remembers; copies share it.
  ReshardMemory &reshards() const { return *memory; }

private:
  llvm::StringMap<int64_t> sizes, strides;
  SmallVector<std::string> order;
  std::shared_ptr<ReshardMemory> memory;
};

/// Axes as a user knows them: the parts of a split axis
/// as that axis where all are there (`dp.0`, `dp.1` as "dp"). Some alone are
/// named by the ranks they join: the minor ones as "dp (groups of 2)", the
/// major ones as "dp (across groups of 2)".
std::vector<std::string> readableAxes(ArrayRef<StringAttr> axes,
                                      const AxisSizes &sizes);
std::string axesText(ArrayRef<StringAttr> axes, const AxisSizes &sizes,
                     StringRef separator = "+");

/// The axis that `axis` is a part of: `dp` of `dp.1`; itself where it is whole.
StringRef wholeAxis(StringRef axis);

/// How a value lies, in words: "dimension 1 split over tp, a partial sum over
/// dp"; "whole" where nothing is.
std::string layoutText(ShardingAttr sharding, const AxisSizes &sizes);

/// Elements of the largest part of `type` under `sharding`.
int64_t largestPart(RankedTensorType type, ShardingAttr sharding,
                    const AxisSizes &axes);

/// True where all parts of a dimension of `size` have the same extent.
bool isEven(int64_t size, DimShardingAttr dim, const AxisSizes &axes);

/// The type of one rank's part of `type` under `sharding`: dynamic where the
/// parts are not equal. The result has no encoding.
RankedTensorType localType(RankedTensorType type, ShardingAttr sharding,
                           const AxisSizes &axes);

/// Bytes of an element of `type`.
int64_t elementBytes(RankedTensorType type);

/// Bytes of the largest part of `type` under `sharding`.
double partBytes(RankedTensorType type, ShardingAttr sharding,
                 const AxisSizes &axes);

/// Bytes that a rank sends to turn `from` into `to` on the path that the
/// reshard search finds, with micro-batches taken for an axis like any other.
/// Grains are taken for the target's.
double reshardBytes(RankedTensorType type, ShardingAttr from, ShardingAttr to,
                    const AxisSizes &axes);

/// A readable name for what `op` computes: its location's name, else the
/// parameter it reads, else the op's name.
std::string describe(Operation *op);

} // namespace mlir::parc

#endif // PARC_ANALYSIS_LAYOUTS_H
