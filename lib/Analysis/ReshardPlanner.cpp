//===- ReshardPlanner.cpp - Reshards of shardings -------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Numbers the axes and dimensions of a reshard.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/ReshardPlanner.h"

using namespace mlir;
using namespace mlir::parc;

namespace {

/// Writes down one problem.
class Numbering {
public:
  Numbering(const AxisSizes &axes, const ReshardCosts &costs,
            RankedTensorType type, ShardingAttr from, ShardingAttr to)
      : axes(axes), costs(costs), type(type), from(from), to(to) {}

  /// False where the problem has too many axes or dimensions.
  bool run(ReshardPlan &plan);

private:
  void numberAxes(ReshardPlan &plan);
  void addDim(ReshardPlan &plan, unsigned dim);
  ReshardAxes listOf(ArrayRef<StringAttr> names) const;

  const AxisSizes &axes;
  const ReshardCosts &costs;
  RankedTensorType type;
  ShardingAttr from, to;
  llvm::StringMap<uint8_t> numbers;
};

} // namespace

/// In the mesh's order, so that equal reshards are equal problems.
void Numbering::numberAxes(ReshardPlan &plan) {
  for (StringRef name : axes.names()) {
    bool partial = llvm::any_of(
        llvm::concat<const StringAttr>(from.getPartial(), to.getPartial()),
        [&](StringAttr axis) { return axis == name; });
    if (axes.of(name) == 1 ||
        !(partial || from.splits(name) || to.splits(name)))
      continue;
    numbers[name] = static_cast<uint8_t>(plan.axes.size());
    plan.axes.push_back(StringAttr::get(type.getContext(), name));
    plan.problem.axes.push_back(
        {axes.of(name),
         membersInNode(axes.of(name), axes.strideOf(name), costs.nodeSize),
         name == kMicroBatchAxis});
  }
}

ReshardAxes Numbering::listOf(ArrayRef<StringAttr> names) const {
  ReshardAxes list;
  for (StringAttr name : names)
    if (auto it = numbers.find(name.getValue()); it != numbers.end())
      list.push_back(it->second);
  return list;
}

void Numbering::addDim(ReshardPlan &plan, unsigned dim) {
  plan.dims.push_back(dim);
  plan.problem.shape.push_back(type.getDimSize(dim));
  for (auto [layout, sharding] :
       {std::pair(&plan.problem.from, from.getDims()[dim]),
        std::pair(&plan.problem.to, to.getDims()[dim])}) {
    layout->dims.push_back(listOf(sharding.getAxes()));
    layout->grains.push_back(layout->dims.back().empty() ? 1
                                                         : sharding.getGrain());
  }
}

bool Numbering::run(ReshardPlan &plan) {
  numberAxes(plan);
  auto rank = static_cast<unsigned>(type.getRank());
  ReshardProblem &problem = plan.problem;
  problem.elementBytes = elementBytes(type);
  // A dimension that nothing splits is of use on the way only; it is the
  // first to go where there are too many.
  bool all =
      rank <= kMaxReshardRank && rank + plan.axes.size() <= kMaxReshardSum;
  for (unsigned dim = 0; dim < rank; ++dim) {
    if (all || !from.getDims()[dim].empty() || !to.getDims()[dim].empty())
      addDim(plan, dim);
    else
      problem.elementBytes *= type.getDimSize(dim);
  }
  problem.from.partial = listOf(from.getPartial());
  problem.to.partial = listOf(to.getPartial());
  llvm::sort(problem.from.partial);
  llvm::sort(problem.to.partial);
  problem.sameKind = problem.from.partial.empty() ||
                     problem.to.partial.empty() ||
                     from.getKind() == to.getKind();
  return plan.axes.size() <= kMaxReshardAxes &&
         plan.dims.size() <= kMaxReshardRank &&
         plan.axes.size() + plan.dims.size() <= kMaxReshardSum;
}

std::optional<ReshardPlan> ReshardPlanner::search(RankedTensorType type,
                                                  ShardingAttr from,
                                                  ShardingAttr to) const {
  ReshardPlan plan;
  if (!Numbering(axes, costs, type, from, to).run(plan))
    return std::nullopt;
  plan.path = searchReshard(plan.problem, costs);
  return plan;
}

const ReshardPlan *ReshardPlanner::plan(RankedTensorType type,
                                        ShardingAttr from, ShardingAttr to) {
  auto [it, isNew] = known.try_emplace(
      Key(RankedTensorType::get(type.getShape(), type.getElementType()),
          {from, to}));
  if (isNew)
    if (std::optional<ReshardPlan> found = search(type, from, to))
      it->second = std::make_unique<ReshardPlan>(std::move(*found));
  return it->second.get();
}

SmallVector<ShardingAttr> mlir::parc::layoutsOnWay(const ReshardPlan &plan,
                                                   MLIRContext *context,
                                                   ShardingAttr from,
                                                   ShardingAttr to) {
  auto names = [&](const ReshardAxes &list) {
    SmallVector<StringAttr> result;
    for (uint8_t axis : list)
      result.push_back(plan.axes[axis]);
    return result;
  };
  SmallVector<DimShardingAttr> dims(from.getDims());
  SmallVector<StringAttr> partial(from.getPartial());
  auto split = [&](unsigned dim, const ReshardAxes &outer,
                   const ReshardAxes &inner, int64_t grain) {
    SmallVector<StringAttr> axes = names(outer);
    axes.append(names(inner));
    dims[plan.dims[dim]] =
        DimShardingAttr::get(context, axes, axes.empty() ? 1 : grain);
  };
  SmallVector<ShardingAttr> layouts;
  for (const ReshardStep &step : plan.path.steps) {
    SmallVector<StringAttr> moved = names(step.axes);
    auto isMoved = [&](StringAttr axis) {
      return llvm::is_contained(moved, axis);
    };
    switch (step.move) {
    case ReshardMove::AllReduce:
      llvm::erase_if(partial, isMoved);
      break;
    case ReshardMove::ReduceScatter:
      llvm::erase_if(partial, isMoved);
      split(step.dim, step.outer, step.axes, step.grain);
      break;
    case ReshardMove::AllGather:
      split(step.dim, step.outer, {}, step.grain);
      break;
    case ReshardMove::AllToAll:
      split(step.dim, step.outer, {}, step.grain);
      split(step.toDim, step.toOuter, step.axes, step.toGrain);
      break;
    case ReshardMove::Slice:
      split(step.dim, step.outer, step.axes, step.grain);
      break;
    case ReshardMove::Own:
      partial.append(moved);
      break;
    }
    layouts.push_back(ShardingAttr::get(
        context, dims, from.isPartial() ? from.getKind() : to.getKind(),
        partial));
  }
  if (!layouts.empty())
    layouts.pop_back();
  return layouts;
}
