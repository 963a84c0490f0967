//===- ClassGraph.h - Dimensions that factors connect ---------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Classes of dimensions: all that must be split alike where nothing is
/// resharded, such as heads in every value and weight that has them.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_ANALYSIS_CLASSGRAPH_H
#define PARC_ANALYSIS_CLASSGRAPH_H

#include "parc/Analysis/Propagation.h"
#include <map>

namespace mlir::parc {

/// A class of dimensions that factors connect, by its smallest node.
using DimClass = unsigned;
constexpr DimClass kNoClass = ~0u;

/// One op's place in the graph.
struct ClassedOp {
  Operation *op = nullptr;
  const OpFactors *factors = nullptr;
  /// The class of each factor; kNoClass for one that no dimension leads with.
  SmallVector<DimClass> classes;
};

/// The classes of a module's dimensions.
class ClassGraph {
public:
  explicit ClassGraph(Propagation &propagation);

  /// Ops with factors, in program order.
  ArrayRef<ClassedOp> ops() const { return classedOps; }
  DimClass classOf(Value value, unsigned dim) const {
    return find(firstNode[propagation.rowOf(value)] + dim);
  }
  /// All (value, dimension) of a class, in program order.
  ArrayRef<std::pair<Value, unsigned>> members(DimClass cls) const;
  /// False where some op needs a dimension of the class whole.
  bool isSplittable(DimClass cls) const;
  /// True where some member has a unit for each part of its axes and `added`.
  bool hasUnits(DimClass cls, ArrayRef<StringAttr> added) const;
  /// Adds axes to all members, as many as each has units for; if none has
  /// enough, all, so that the user hears of it.
  void place(DimClass cls, ArrayRef<StringAttr> added);

private:
  void connect();
  void collect();
  unsigned find(unsigned n) const {
    while (parents[n] != n)
      n = parents[n] = parents[parents[n]];
    return n;
  }

  Propagation &propagation;
  std::vector<unsigned> firstNode;
  mutable std::vector<unsigned> parents;
  std::vector<ClassedOp> classedOps;
  std::map<DimClass, std::vector<std::pair<Value, unsigned>>> classMembers;
  std::map<DimClass, bool> splittable;
};

} // namespace mlir::parc

#endif // PARC_ANALYSIS_CLASSGRAPH_H
