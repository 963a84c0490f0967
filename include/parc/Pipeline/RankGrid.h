//===- RankGrid.h - Places of ranks and their groups ------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The map between ranks and coordinates of a mesh, given a rank order, and
/// the group of ranks that share all coordinates but those of a set of axes.
/// A group is kept as a first rank with (size, stride) pairs: its cost does not
/// depend on the number of ranks.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_PIPELINE_RANKGRID_H
#define PARC_PIPELINE_RANKGRID_H

#include "parc/Pipeline/Mesh.h"

namespace mlir::parc {

/// The ranks first + sum(k_j * stride_j) for 0 <= k_j < size_j, in ascending
/// order when counted with the first dimension fastest.
struct RankGroup {
  struct Dim {
    int64_t size;
    int64_t stride;
    friend bool operator==(const Dim &a, const Dim &b) {
      return a.size == b.size && a.stride == b.stride;
    }
  };
  int64_t first = 0;
  /// By ascending stride; adjacent dimensions that run on are joined.
  llvm::SmallVector<Dim, 4> dims;

  int64_t size() const;
  /// Member `index`, 0 <= index < size(); ascending in `index`.
  int64_t member(int64_t index) const;
  llvm::SmallVector<int64_t> members() const;
  /// `0-7`, `0 8 16 24`, `0 32 ... 480`, `0-7 32-39 ... 480-487`: at most four
  /// runs, the rest elided.
  std::string str() const;
};

/// A mesh together with the order in which its axes number the ranks.
class RankGrid {
public:
  /// Megatron's and torchtitan's order, fastest axis first.
  static constexpr llvm::StringLiteral defaultOrder = "tp-cp-dp-pp";

  /// Places the mesh by `order`, axis names joined by `-`, fastest first. Each
  /// axis of the mesh must be named once; axes of `Mesh::commandLineAxes()`
  /// that the mesh does not have may be named too. The error's offset points
  /// into `order`.
  static std::optional<RankGrid> get(const Mesh &mesh, llvm::StringRef order,
                                     TextError &error);
  /// The order of a mesh declared in the IR: its last axis is the fastest.
  static RankGrid rowMajor(const Mesh &mesh);

  const Mesh &mesh() const { return gridMesh; }
  int64_t devices() const { return gridMesh.devices(); }
  /// Indices into `mesh().axes()`, fastest first.
  llvm::ArrayRef<size_t> order() const { return fastestFirst; }
  /// The order's axis names joined by `-`.
  std::string orderText() const;
  /// Distance in ranks of neighbours along each axis, by axis of the mesh.
  llvm::ArrayRef<int64_t> strides() const { return axisStrides; }

  /// Coordinate of `rank`, 0 <= rank < devices(), by axis of the mesh.
  llvm::SmallVector<int64_t, 4> coordinate(int64_t rank) const;
  /// Rank at `coordinate`, by axis of the mesh.
  int64_t rank(llvm::ArrayRef<int64_t> coordinate) const;

  /// The ranks that agree with `rank` on every axis outside the set `axes`
  /// (indices into `mesh().axes()`; order and repetition do not matter).
  RankGroup group(int64_t rank, llvm::ArrayRef<size_t> axes) const;
  /// Position of `rank` in `group(rank, axes).members()`.
  int64_t indexInGroup(int64_t rank, llvm::ArrayRef<size_t> axes) const;
  /// Number of different groups over the set `axes`.
  int64_t numGroups(llvm::ArrayRef<size_t> axes) const;

private:
  RankGrid(const Mesh &mesh, llvm::ArrayRef<size_t> fastestFirst);

  Mesh gridMesh;
  llvm::SmallVector<size_t, 4> fastestFirst;
  llvm::SmallVector<int64_t, 4> axisStrides;
};

} // namespace mlir::parc

#endif // PARC_PIPELINE_RANKGRID_H
