//===- ReshardPlanner.h - Reshards of shardings --------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The reshard search in terms of tensor types and shardings, with a memory of
/// what it has found.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_ANALYSIS_RESHARDPLANNER_H
#define PARC_ANALYSIS_RESHARDPLANNER_H

#include "parc/Analysis/Layouts.h"
#include "parc/Analysis/ReshardSearch.h"

#include <memory>

namespace mlir::parc {

/// A path, and what its numbers mean.
struct ReshardPlan {
  ReshardProblem problem;
  ReshardPath path;
  /// The axis of each number; axes of one rank are left out.
  SmallVector<StringAttr> axes;
  /// The tensor's dimension of each of the problem's.
  SmallVector<unsigned> dims;
};

/// The layouts after each step of a plan's path but the last.
SmallVector<ShardingAttr> layoutsOnWay(const ReshardPlan &plan,
                                       MLIRContext *context, ShardingAttr from,
                                       ShardingAttr to);

/// Finds paths between shardings on one mesh.
class ReshardPlanner {
public:
  explicit ReshardPlanner(const AxisSizes &axes, ReshardCosts costs = {})
      : axes(axes), costs(costs) {}

  /// The path from `from` to `to` of a value of `type`, whose encoding is not
  /// looked at; found once. Null where more dimensions and axes take part than
  /// a search can number.
  const ReshardPlan *plan(RankedTensorType type, ShardingAttr from,
                          ShardingAttr to);

private:
  std::optional<ReshardPlan> search(RankedTensorType type, ShardingAttr from,
                                    ShardingAttr to) const;

  const AxisSizes &axes;
  ReshardCosts costs;
  using Key = std::pair<Type, std::pair<Attribute, Attribute>>;
  DenseMap<Key, std::unique_ptr<ReshardPlan>> known;
};

} // namespace mlir::parc

#endif // PARC_ANALYSIS_RESHARDPLANNER_H
