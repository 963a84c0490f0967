//===- ClassGraph.cpp - Dimensions that factors connect -------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Union of dimensions through the factors of ops.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/ClassGraph.h"

using namespace mlir;
using namespace mlir::parc;

/// Calls `body` with each (value, dimension, factor) of an op. A set has no
/// class: where its places lie is up to each op.
static void forEachDim(Operation *op, const OpFactors &factors,
                       function_ref<void(Value, unsigned, unsigned)> body) {
  auto visit = [&](Value value, const ValueFactors &dims) {
    for (auto [dim, dimFactors] : llvm::enumerate(dims))
      if (!dimFactors.empty() && dimFactors.cut != DimCut::Set)
        body(value, dim, dimFactors.front());
  };
  for (auto [operand, dims] : llvm::zip(op->getOperands(), factors.operands))
    visit(operand, dims);
  for (auto [result, dims] : llvm::zip(op->getResults(), factors.results))
    visit(result, dims);
}

ClassGraph::ClassGraph(Propagation &propagation) : propagation(propagation) {
  unsigned next = 0;
  for (unsigned row = 0; row < propagation.numRows(); ++row) {
    firstNode.push_back(next);
    next += propagation.row(row).size();
  }
  parents.resize(next);
  for (unsigned n = 0; n < next; ++n)
    parents[n] = n;
  connect();
  collect();
}

void ClassGraph::connect() {
  for (const auto &[op, factors] : propagation.ops()) {
    SmallVector<int64_t> first(factors.factors.size(), -1);
    forEachDim(op, factors, [&](Value value, unsigned dim, unsigned factor) {
      unsigned n = firstNode[propagation.rowOf(value)] + dim;
      if (first[factor] < 0) {
        first[factor] = n;
        return;
      }
      unsigned a = find(first[factor]), b = find(n);
      parents[std::max(a, b)] = std::min(a, b);
    });
  }
}

void ClassGraph::collect() {
  for (const auto &[op, factors] : propagation.ops()) {
    ClassedOp &classed = classedOps.emplace_back();
    classed.op = op;
    classed.factors = &factors;
    classed.classes.assign(factors.factors.size(), kNoClass);
    forEachDim(op, factors, [&](Value value, unsigned dim, unsigned factor) {
      DimClass cls = classOf(value, dim);
      classed.classes[factor] = cls;
      auto &values = classMembers[cls];
      if (values.empty() || values.back() != std::pair(value, dim))
        values.push_back({value, dim});
      bool &all = splittable.try_emplace(cls, true).first->second;
      all &= factors.factors[factor].splittable;
    });
  }
}

ArrayRef<std::pair<Value, unsigned>> ClassGraph::members(DimClass cls) const {
  auto found = classMembers.find(cls);
  if (found == classMembers.end())
    return {};
  return found->second;
}

bool ClassGraph::isSplittable(DimClass cls) const {
  auto found = splittable.find(cls);
  return found == splittable.end() || found->second;
}

bool ClassGraph::hasUnits(DimClass cls, ArrayRef<StringAttr> added) const {
  return llvm::any_of(members(cls), [&](const auto &member) {
    return propagation.hasUnits(member.first, member.second, added);
  });
}

void ClassGraph::place(DimClass cls, ArrayRef<StringAttr> added) {
  bool fits = hasUnits(cls, added);
  for (auto [value, dim] : members(cls)) {
    // Values that share a row are placed once.
    bool there = llvm::any_of(
        propagation.row(propagation.rowOf(value)), [&](const DimPlace &place) {
          return llvm::any_of(added, [&](StringAttr axis) {
            return llvm::is_contained(place.axes, axis);
          });
        });
    if (there)
      continue;
    if (fits) {
      propagation.placeFitting(value, dim, added);
      continue;
    }
    for (StringAttr axis : added)
      propagation.place(value, dim, axis);
  }
}
