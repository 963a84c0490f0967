//===- ReshardTesting.h - What the reshard tests share ----------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All layouts of a tensor on a mesh; the shortest paths between them, found
/// without the library's code; a simulator that carries a path out on numbers.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TESTS_UNIT_ANALYSIS_RESHARDTESTING_H
#define PARC_TESTS_UNIT_ANALYSIS_RESHARDTESTING_H

#include "parc/Analysis/ReshardSearch.h"

#include <map>
#include <string>
#include <vector>

namespace mlir::parc::testing {

using Sizes = std::vector<int64_t>;

/// A mesh whose last axis changes fastest with the rank.
struct TestMesh {
  Sizes sizes;
  int64_t nodeSize = 8;

  int64_t ranks() const;
  int64_t strideOf(size_t axis) const;
  int64_t coordinate(int64_t rank, size_t axis) const;
  std::string text() const;
};

/// All ways to split `rank` dimensions over some axes of the mesh, and where
/// `partial` all ways to leave partial some of those that split nothing.
std::vector<ReshardLayout> allLayouts(const TestMesh &mesh, size_t rank,
                                      bool partial);

ReshardProblem makeProblem(const TestMesh &mesh, const Sizes &shape,
                           const ReshardLayout &from, const ReshardLayout &to);

std::string text(const ReshardLayout &layout);
std::string text(const ReshardPath &path);

/// Shortest paths by brute force: all layouts, every move between them, rounds
/// of relaxation over all edges (Bellman and Ford).
class ReshardReference {
public:
  ReshardReference(const TestMesh &mesh, const Sizes &shape,
                   int64_t elementBytes, const ReshardCosts &costs);

  const std::vector<ReshardLayout> &layouts() const { return all; }
  struct Answer {
    uint64_t time = 0, transfer = 0, peakLimit = 0;
    /// Of gather-then-slice.
    uint64_t simpleTime = 0, simpleTransfer = 0;
  };
  /// The length of the path that searchReshard should find.
  Answer length(size_t from, size_t to);

private:
  using Length = std::pair<uint64_t, uint64_t>;
  struct Edge {
    size_t from, to;
    Length length;
    uint64_t bytes;
  };
  struct Simple {
    Length length;
    uint64_t peak;
  };
  void addEdges(size_t from);
  void addEdge(size_t from, const ReshardLayout &to, const ReshardAxes &axes,
               char kind);
  uint64_t bytesOf(const ReshardLayout &layout) const;
  Length lengthOf(const ReshardAxes &axes, char kind, uint64_t before,
                  uint64_t after) const;
  const std::vector<Length> &lengths(size_t from, uint64_t limit);
  Length lengthTo(size_t from, size_t to, uint64_t limit);
  Simple gatherAndSlice(const ReshardLayout &from,
                        const ReshardLayout &to) const;

  TestMesh mesh;
  Sizes shape;
  uint64_t elementBytes;
  ReshardCosts costs;
  std::vector<ReshardLayout> all;
  std::map<std::string, size_t> numbers;
  std::vector<Edge> edges;
  std::map<std::pair<size_t, uint64_t>, std::vector<Length>> found;
};

enum class Reduction { Sum, Max, Min };

/// Carries `path` out on all ranks' parts of a tensor of numbers. The reason
/// why the result is not the tensor in the target layout, or nothing.
std::string simulate(const TestMesh &mesh, const ReshardProblem &problem,
                     const ReshardPath &path, Reduction from, Reduction to);

} // namespace mlir::parc::testing

#endif // PARC_TESTS_UNIT_ANALYSIS_RESHARDTESTING_H
