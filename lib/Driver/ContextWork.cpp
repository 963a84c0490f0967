//===- ContextWork.cpp - Attention's work over context ranks --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Visible pairs of queries and keys, by rank.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/ContextWork.h"
#include "parc/Analysis/Layouts.h"
#include "parc/Pipeline/Part.h"
#include "parc/Transforms/Passes.h"

#include "NN/NN.h"
#include "Parc/Parc.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

namespace {

/// One attention op's shares.
class Shares {
public:
  Shares(nn::AttentionOp op, const AxisSizes &axes, int64_t fold)
      : type(cast<RankedTensorType>(op.getQuery().getType())),
        keys(cast<RankedTensorType>(op.getKey().getType()).getDimSize(1)),
        causal(op.getCausal()), fold(fold), axes(axes),
        cp(axes.partsOf("cp", op.getContext())) {
    if (std::optional<uint64_t> limit = op.getWindow())
      window = static_cast<int64_t>(*limit);
  }

  /// Queries are split with the keys that each of them sees, heads alike.
  double maxOverMean() const {
    if (type.isDynamicDim(1) || type.isDynamicDim(2) ||
        ShapedType::isDynamic(keys))
      return 1;
    return unevenness(1, [&](int64_t j) { return visible(j); }) *
           unevenness(2, [](int64_t) { return int64_t(1); });
  }

  /// How the queries meet all keys.
  StringRef kind(nn::AttentionOp op) const {
    auto ring = dyn_cast<RingOpInterface>(op.getOperation());
    if (ring && ring.getRingAxes())
      return "ring";
    return mine(2).empty() ? "all-gather" : "ulysses";
  }

private:
  /// The axes of cp that dimension `dim` of the queries is split on.
  SmallVector<StringAttr> mine(unsigned dim) const {
    SmallVector<StringAttr> result;
    if (ShardingAttr sharding = getSharding(type))
      for (StringAttr axis : sharding.getDims()[dim].getAxes())
        if (llvm::is_contained(cp, axis))
          result.push_back(axis);
    return result;
  }

  /// The keys that the query at place `place` of the sequence sees.
  int64_t visible(int64_t place) const {
    if (!causal)
      return keys;
    int64_t position =
        fold > 1 ? foldedIndex(type.getDimSize(1), fold, place) : place;
    int64_t seen = std::min(position + 1, keys);
    return window ? std::min(seen, *window) : seen;
  }

  /// The most work of a part of dimension `dim` on cp, over the mean. A part
  /// on cp alone: what other axes cut off counts as its own part there.
  double unevenness(unsigned dim, function_ref<int64_t(int64_t)> work) const {
    ShardingAttr sharding = getSharding(type);
    if (!sharding)
      return 1;
    int64_t parts = axes.product(mine(dim));
    int64_t grain = static_cast<int64_t>(sharding.getDims()[dim].getGrain());
    GrainedDim cut{type.getDimSize(dim), grain};
    int64_t most = 0, all = 0;
    for (int64_t part = 0; part < parts; ++part) {
      int64_t sum = 0, begin = cut.start(parts, part);
      for (int64_t j = begin; j < begin + cut.size(parts, part); ++j)
        sum += work(j);
      most = std::max(most, sum);
      all += sum;
    }
    return all ? static_cast<double>(most) * static_cast<double>(parts) /
                     static_cast<double>(all)
               : 1;
  }

  RankedTensorType type;
  int64_t keys;
  bool causal;
  std::optional<int64_t> window;
  int64_t fold;
  const AxisSizes &axes;
  SmallVector<StringAttr, 2> cp;
};

} // namespace

std::optional<ContextWork> mlir::parc::driver::contextWork(ModuleOp module) {
  AxisSizes axes(module, /*microBatches=*/1);
  if (axes.product(axes.partsOf("cp", module.getContext())) == 1)
    return std::nullopt;
  std::optional<ContextWork> result;
  for (StepOp step : module.getOps<StepOp>()) {
    auto fold = step->getAttrOfType<IntegerAttr>(kFoldAttr);
    step.walk([&](nn::AttentionOp op) {
      Shares shares(op, axes, fold ? fold.getInt() : 1);
      if (!result)
        result.emplace();
      result->kind = shares.kind(op).str();
      result->maxOverMean = std::max(result->maxOverMean, shares.maxOverMean());
      result->folded = fold != nullptr;
    });
  }
  return result;
}
