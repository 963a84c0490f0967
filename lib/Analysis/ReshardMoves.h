//===- ReshardMoves.h - Layouts as states, moves between them -*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The graph that the reshard search walks.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_ANALYSIS_RESHARDMOVES_H
#define PARC_LIB_ANALYSIS_RESHARDMOVES_H

#include "parc/Analysis/ReshardSearch.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <array>

namespace mlir::parc {

/// A list of axes in one word, major to minor: four bits an axis, its number
/// plus one, the minor-most in the lowest bits.
using AxisWord = uint64_t;

/// The axes of a set, ascending.
AxisWord axisWord(uint32_t mask);
AxisWord axisWord(llvm::ArrayRef<uint8_t> axes);

/// A layout on the way.
struct ReshardState {
  std::array<AxisWord, kMaxReshardRank> dims = {};
  /// Bit a: axis a is partial.
  uint32_t partial = 0;
  /// Bit d: dimension d is split in the target's grain, else the source's. Set
  /// where it makes no difference, so that equal layouts are equal states.
  uint32_t targetGrain = 0;
  /// The partial axes are of the target's reduction.
  bool targetKind = true;
};

/// What hashing needs: all lists, four zero bits after each; the rest.
using ReshardKey = std::pair<uint64_t, uint64_t>;

/// One edge: the move, its length, input and output bytes together.
struct ReshardEdge {
  ReshardMove move = ReshardMove::Slice;
  AxisWord axes = 0;
  unsigned dim = 0, toDim = 0;
  ReshardLength length;
  uint64_t bytes = 0;
  double sent = 0;
};

class ReshardGraph {
public:
  using Visit =
      llvm::function_ref<void(const ReshardEdge &, const ReshardState &)>;

  /// `directed`: axes that leave a place go to where the target has them, or
  /// are replicated. Few states, among them those of gatherThenSlice.
  ReshardGraph(const ReshardProblem &problem, const ReshardCosts &costs,
               bool directed = false);

  ReshardState source() const;
  ReshardState target() const;
  ReshardKey keyOf(const ReshardState &state) const;
  /// Bytes of the largest part.
  uint64_t bytesOf(const ReshardState &state) const;
  /// Calls `visit` for every move from `state`, in a fixed order.
  void forEachMove(const ReshardState &state, Visit visit) const;
  /// Makes `to` of `from` by the edge's move and prices the edge.
  void follow(ReshardEdge &edge, const ReshardState &from,
              ReshardState &to) const;
  /// The same for a move that has been made, in full.
  ReshardStep stepOf(const ReshardEdge &edge, const ReshardState &from,
                     const ReshardState &to) const;
  /// Axes of dimension `dim` that need not move.
  unsigned keptPrefix(unsigned dim) const { return kept[dim]; }
  /// Partial axes that the target has not.
  uint32_t toReduce() const;
  /// Partial axes that the target has and `state` has not.
  uint32_t toOwn(const ReshardState &state) const;
  /// One latency between nodes, in the unit of lengths.
  uint64_t latencyAcross() const;

private:
  void reduceMoves(const ReshardState &state, Visit visit) const;
  void splitMoves(const ReshardState &state, Visit visit) const;
  void joinMoves(const ReshardState &state, Visit visit) const;
  void ownMove(const ReshardState &state, Visit visit) const;
  /// Calls `body` for every list of some of the axes `set`, longer by `start`.
  void forEachList(uint32_t set, AxisWord start,
                   llvm::function_ref<void(AxisWord)> body) const;
  void visitMove(ReshardMove move, AxisWord axes, unsigned dim, unsigned toDim,
                 const ReshardState &state, Visit visit) const;
  /// True where `axes` may come below those that split `dim`.
  bool mayAdd(const ReshardState &state, unsigned dim, AxisWord axes) const;
  int64_t grainOf(const ReshardState &state, unsigned dim) const;
  /// Chooses the grain's bit of a dimension that has changed.
  void normalise(ReshardState &state, unsigned dim) const;
  int64_t largestPart(const ReshardState &state, unsigned dim) const;
  void price(ReshardEdge &edge, uint64_t before, uint64_t after) const;
  int64_t product(AxisWord axes) const;
  uint32_t replicated(const ReshardState &state) const;
  unsigned rank() const { return static_cast<unsigned>(problem.shape.size()); }

  const ReshardProblem &problem;
  const ReshardCosts &costs;
  /// Ranks of the mesh.
  uint64_t ranks = 1;
  /// Bits of the axes that nothing can be sent over.
  uint32_t timeAxes = 0;
  /// With many axes: the leading axes of each dimension, and the partial ones,
  /// that both layouts share stay as they are.
  bool sharedStay = false, directed = false;
  ReshardKey targetKey;
  llvm::SmallVector<unsigned, 4> kept;
  uint32_t partialOfSource = 0, partialOfTarget = 0;
};

} // namespace mlir::parc

#endif // PARC_LIB_ANALYSIS_RESHARDMOVES_H
