//===- ReshardSearch.h - The cheapest way between layouts ----*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A change of layout as a shortest path. States are layouts, moves are
/// collectives and cuts, the length of a move is the time of its bytes on the
/// links that it uses, plus a latency. Axes are numbers here; ReshardPlanner.h
/// speaks of shardings.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_ANALYSIS_RESHARDSEARCH_H
#define PARC_ANALYSIS_RESHARDSEARCH_H

#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <tuple>

namespace mlir::parc {

/// What links cost. Bytes are those that a rank sends with ring algorithms:
/// all-reduce 2(n-1)/n N, reduce-scatter and all-gather (n-1)/n N of the whole
/// of N bytes, all-to-all (n-1)/n of the part. In a group of n ranks with s of
/// them in each node, (s-1)/s N of a ring's bytes stay in the node and the
/// rest, (1/s - 1/n) N, cross; an all-to-all keeps (s-1)/n of the part inside.
/// So a collective over two axes is never dearer than one over each.
struct ReshardCosts {
  /// Ranks that share the fast link; neighbours by number.
  int64_t nodeSize = 8;
  /// Bytes a nanosecond and rank on the fast link: measured ring bandwidth in
  /// a node of H100s, about 370 GB/s.
  int64_t fastBytesPerNs = 370;
  /// How much slower the network is: a 400 Gb/s adapter a rank gives about 46
  /// GB/s.
  int64_t slowdown = 8;
  /// Nanoseconds before a collective moves anything, in a node and between
  /// nodes: planning figures of 10 and 20 microseconds.
  int64_t latencyInNodeNs = 10000;
  int64_t latencyAcrossNs = 20000;
};

/// An axis of a reshard's mesh.
struct ReshardAxis {
  int64_t size = 1;
  /// How many neighbours along the axis share a node; divides `size`.
  int64_t inNode = 1;
  /// True for the axis of micro-batches, over which nothing can be sent.
  bool inTime = false;
};

/// The number of members along an axis of `size` that share a node, where the
/// numbers of neighbours differ by `stride`: the largest divisor of `size` that
/// fits.
int64_t membersInNode(int64_t size, int64_t stride, int64_t nodeSize);

/// Axes by number, major to minor.
using ReshardAxes = llvm::SmallVector<uint8_t, 4>;

/// For each dimension the axes that split it and the grain (1 where none do),
/// and the axes over which the value is still to be reduced, ascending.
struct ReshardLayout {
  llvm::SmallVector<ReshardAxes, 4> dims;
  llvm::SmallVector<int64_t, 4> grains;
  ReshardAxes partial;
};

/// A reshard within the limits below; grains divide the shape.
struct ReshardProblem {
  llvm::SmallVector<int64_t, 4> shape;
  int64_t elementBytes = 4;
  llvm::SmallVector<ReshardAxis, 4> axes;
  ReshardLayout from, to;
  /// False where both are partial, of different reductions.
  bool sameKind = true;
};

/// What a state's key can hold: axes and dimensions, and both together.
inline constexpr unsigned kMaxReshardAxes = 12, kMaxReshardRank = 8,
                          kMaxReshardSum = 16;

enum class ReshardMove {
  AllReduce,     ///< `axes` are partial and become replicated.
  ReduceScatter, ///< Partial `axes` become the minor-most of `dim`.
  AllGather,     ///< The minor-most of `dim` become replicated.
  AllToAll,      ///< The minor-most of `dim` become those of `toDim`.
  Slice,         ///< Replicated `axes` become the minor-most of `dim`.
  Own            ///< Replicated `axes` become the target's partial ones.
};

/// One move, with all that its collective has to be told.
struct ReshardStep {
  ReshardMove move = ReshardMove::Slice;
  ReshardAxes axes;
  unsigned dim = 0, toDim = 0;
  /// The axes that split `dim` and `toDim` above `axes`.
  ReshardAxes outer, toOuter;
  int64_t grain = 1, toGrain = 1;
};

/// A length. `time` is in bytes of the fast link, `transfer` is `time` without
/// latencies, both times the number of the mesh's ranks, so that they are exact
/// integers.
struct ReshardLength {
  uint64_t time = 0, transfer = 0;
  unsigned steps = 0;
  friend bool operator<(const ReshardLength &a, const ReshardLength &b) {
    return std::tie(a.time, a.transfer, a.steps) <
           std::tie(b.time, b.transfer, b.steps);
  }
};

struct ReshardPath {
  llvm::SmallVector<ReshardStep, 2> steps;
  ReshardLength length;
  /// Bytes that a rank sends; of the largest part where parts differ.
  double bytesSent = 0;
  /// The most bytes that a step's input and output take together; without
  /// steps those of the value.
  uint64_t peakBytes = 0;
  /// True where the search gave up, and this is the best path on which axes
  /// only go to where they are wanted, or `gatherThenSlice`.
  bool capped = false;
};

/// Reduces what is to be reduced, gathers every dimension down to the axes
/// that it keeps, then cuts: what is always possible where no micro-batches
/// have to be joined.
ReshardPath gatherThenSlice(const ReshardProblem &problem,
                            const ReshardCosts &costs);

/// The shortest path, the same one every time. Its peak is at most the larger
/// of: twice the larger of the value's parts before and after, and the peak of
/// `gatherThenSlice`. A path that keeps the first limit is preferred to a
/// shorter one that does not, as long as it does not transfer more than
/// `gatherThenSlice` does, nor wait for more than six network latencies
/// besides. In time never worse than `gatherThenSlice` otherwise. `maxStates`:
/// states to look at before giving up.
ReshardPath searchReshard(const ReshardProblem &problem,
                          const ReshardCosts &costs, size_t maxStates = 4000);

/// How many of the axes of dimension `dim` both layouts split it by alike,
/// with the same bounds: a reshard need not join these.
unsigned commonReshardPrefix(const ReshardProblem &problem, unsigned dim);

/// The nanoseconds that `length` stands for.
double reshardNanoseconds(const ReshardProblem &problem,
                          const ReshardCosts &costs,
                          const ReshardLength &length);

} // namespace mlir::parc

#endif // PARC_ANALYSIS_RESHARDSEARCH_H
