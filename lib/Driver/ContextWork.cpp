//===- ContextWork.cpp - Attention's work over context ranks --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What ops that meet the whole sequence compute, by rank.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/ContextWork.h"
#include "parc/Analysis/Layouts.h"
#include "parc/Pipeline/Part.h"
#include "parc/Transforms/Passes.h"

#include "Parc/Parc.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

/// The dimension of the sequence in what meets it whole.
static constexpr unsigned kSequenceDim = 1;

namespace {

/// How one op's work is shared.
class Shares {
public:
  Shares(RingOpInterface op, const AxisSizes &axes, int64_t fold)
      : op(op), type(cast<RankedTensorType>(op->getResult(0).getType())),
        sharding(getSharding(type)), fold(fold), axes(axes),
        cp(axes.partsOf("cp", op->getContext())) {}

  /// Each part of a dimension has its share of all other dimensions alike.
  double maxOverMean() {
    double product = 1;
    if (sharding && type.hasStaticShape())
      for (unsigned dim = 0, e = type.getRank(); dim != e; ++dim)
        product *= unevenness(dim);
    return product;
  }

  /// How the op meets the whole sequence.
  StringRef kind() {
    if (op.getRingAxes())
      return "ring";
    for (unsigned dim = 0, e = type.getRank(); dim != e; ++dim)
      if (dim != kSequenceDim && !mine(dim).empty())
        return "ulysses";
    return "all-gather";
  }

private:
  /// The axes of cp that dimension `dim` is split on.
  SmallVector<StringAttr> mine(unsigned dim) const {
    SmallVector<StringAttr> result;
    if (sharding)
      for (StringAttr axis : sharding.getDims()[dim].getAxes())
        if (llvm::is_contained(cp, axis))
          result.push_back(axis);
    return result;
  }

  /// The work of entry `j` of dimension `dim`.
  int64_t work(unsigned dim, int64_t j) {
    if (dim != kSequenceDim)
      return 1;
    bool folded = fold > 1;
    return op.getWorkAt(folded ? foldedIndex(type.getDimSize(dim), fold, j)
                               : j);
  }

  /// The most work of a part of dimension `dim` on cp, over the mean. A part
  /// on cp alone: what other axes cut off counts as its own part there.
  double unevenness(unsigned dim) {
    int64_t parts = axes.product(mine(dim));
    if (parts == 1)
      return 1;
    int64_t grain = static_cast<int64_t>(sharding.getDims()[dim].getGrain());
    GrainedDim cut{type.getDimSize(dim), grain};
    int64_t most = 0, all = 0;
    for (int64_t part = 0; part < parts; ++part) {
      int64_t sum = 0, begin = cut.start(parts, part);
      for (int64_t j = begin; j < begin + cut.size(parts, part); ++j)
        sum += work(dim, j);
      most = std::max(most, sum);
      all += sum;
    }
    return all ? static_cast<double>(most) * static_cast<double>(parts) /
                     static_cast<double>(all)
               : 1;
  }

  RingOpInterface op;
  RankedTensorType type;
  ShardingAttr sharding;
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
    step.walk([&](RingOpInterface op) {
      Shares shares(op, axes, fold ? fold.getInt() : 1);
      if (!result)
        result.emplace();
      result->kind = shares.kind().str();
      result->maxOverMean = std::max(result->maxOverMean, shares.maxOverMean());
      result->folded = fold != nullptr;
    });
  }
  return result;
}
