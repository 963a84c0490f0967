//===- FactorAxes.cpp - Axes of dimensions and of factors -----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How the factors of one dimension share its axes.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/FactorAxes.h"

using namespace mlir;
using namespace mlir::parc;

bool mlir::parc::startsWith(ArrayRef<StringAttr> axes,
                            ArrayRef<StringAttr> prefix) {
  return axes.size() >= prefix.size() &&
         axes.take_front(prefix.size()) == prefix;
}

/// How many of `split` the factor takes before the next one gets the rest.
static size_t numTaken(const Factor &factor, ArrayRef<StringAttr> split,
                       const AxisSizes &axes) {
  if (ShapedType::isDynamic(factor.size) || axes.product(split) <= factor.size)
    return split.size();
  size_t taken = 0;
  for (size_t count = 1; count <= split.size(); ++count)
    if (factor.size % axes.product(split.take_front(count)) == 0)
      taken = count;
  return taken;
}

SmallVector<Axes> mlir::parc::distribute(const DimFactors &dim,
                                         const OpFactors &factors,
                                         ArrayRef<StringAttr> split,
                                         const AxisSizes &axes) {
  SmallVector<Axes> result(dim.size());
  if (dim.empty() || split.empty() || dim.cut == DimCut::Set)
    return result;
  size_t at = 0;
  while (dim.cut == DimCut::Nested && at + 1 < dim.size() &&
         factors.factors[dim[at + 1]].splittable) {
    size_t taken = numTaken(factors.factors[dim[at]], split, axes);
    result[at].append(split.begin(), split.begin() + taken);
    split = split.drop_front(taken);
    if (split.empty())
      return result;
    ++at;
  }
  result[at].append(split.begin(), split.end());
  return result;
}

/// Orders the axes of a set: see dimsOf.
static Axes ordered(ArrayRef<StringAttr> all, unsigned dim, ShardingAttr like) {
  if (!like)
    return Axes(all);
  Axes result;
  auto take = [&](ArrayRef<StringAttr> from) {
    for (StringAttr axis : from)
      if (llvm::is_contained(all, axis) && !llvm::is_contained(result, axis))
        result.push_back(axis);
  };
  take(like.getDims()[dim].getAxes());
  SmallVector<StringAttr> elsewhere;
  for (auto [index, other] : llvm::enumerate(like.getDims()))
    if (index != dim)
      elsewhere.append(other.getAxes().begin(), other.getAxes().end());
  for (StringAttr axis : all)
    if (!llvm::is_contained(elsewhere, axis))
      take(axis);
  take(elsewhere);
  return result;
}

SmallVector<Axes> mlir::parc::dimsOf(const ValueFactors &dims,
                                     ArrayRef<Axes> factorAxes,
                                     ShardingAttr like) {
  SmallVector<Axes> result;
  for (auto [index, dim] : llvm::enumerate(dims)) {
    Axes axes;
    switch (dim.cut) {
    case DimCut::Major:
      if (!dim.empty())
        axes = factorAxes[dim.front()];
      break;
    case DimCut::Nested:
      for (unsigned factor : dim)
        axes.append(factorAxes[factor]);
      break;
    case DimCut::Set:
      for (unsigned factor : dim)
        axes.append(factorAxes[factor]);
      axes = ordered(axes, index, like);
      break;
    }
    result.push_back(std::move(axes));
  }
  return result;
}

int64_t mlir::parc::grainOf(const DimFactors &dim, const OpFactors &factors,
                            ArrayRef<Axes> factorAxes, const AxisSizes &axes) {
  if (dim.empty() || dim.cut == DimCut::Set)
    return 1;
  size_t last = 0;
  if (dim.cut == DimCut::Nested)
    for (size_t at = 1; at < dim.size(); ++at)
      if (!factorAxes[dim[at]].empty())
        last = at;
  const Factor &factor = factors.factors[dim[last]];
  bool fine = last > 0 || axes.product(factorAxes[dim.front()]) >
                              factor.size / factor.grain;
  int64_t grain = fine ? factor.fineGrain : factor.grain;
  for (unsigned minor : ArrayRef<unsigned>(dim).drop_front(last + 1))
    grain *= factors.factors[minor].size;
  return grain;
}
