//===- Factors.h - What can be split in an op ----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The factors of an op, as in an einsum: the vocabulary in which ops tell the
/// engine what can be split and what splitting it means.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_PARC_FACTORS_H
#define PARC_DIALECTS_PARC_FACTORS_H

#include "Parc/ParcEnums.h.inc"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::parc {

/// One index of an op's iteration space.
struct Factor {
  /// Extent in elements; dynamic for a local op.
  int64_t size = 1;
  /// How many consecutive elements must stay together (heads of a group).
  int64_t grain = 1;
  /// The same where a nested cut is finer than the major factor's elements.
  int64_t fineGrain = 1;
  /// False where the op needs the whole of it (the row of a norm).
  bool splittable = true;
  /// How results that lack this factor combine when it is split.
  ReductionKind reduction = ReductionKind::Sum;
  /// True where the local op must know the global start of its part.
  bool needsOffset = false;
  /// True where what the op computes depends on the order along it, though it
  /// need not be told where a part starts: it takes the whole.
  bool ordered = false;
};

/// How the factors of one dimension share the axes that split it.
enum class DimCut {
  /// Only the major-most factor can be split; the dimension's grain is then the
  /// product of the minor ones' sizes times the major's grain.
  Major,
  /// The major factor takes the axes that divide it evenly. What is left cuts
  /// the flattened rest, by the grain of the minor factor if that can be split:
  /// query heads that share a key head, on more ranks than key heads.
  Nested,
  /// The dimension is a set of places without an order: it takes the axes of
  /// all its factors, unless another dimension has them. The queues of experts.
  Set
};

/// The factors of one dimension, major to minor. Empty for a dimension of
/// extent one that belongs to no factor.
struct DimFactors : SmallVector<unsigned, 2> {
  using SmallVector<unsigned, 2>::SmallVector;
  DimFactors() = default;
  DimFactors(DimCut cut, std::initializer_list<unsigned> factors)
      : SmallVector<unsigned, 2>(factors), cut(cut) {}

  DimCut cut = DimCut::Major;
};
/// The dimensions of one operand or result. Empty for a scalar.
using ValueFactors = SmallVector<DimFactors, 4>;

/// The factors of an op. A result without a split factor is partial over the
/// axes that split it, combining by the factor's reduction.
struct OpFactors {
  SmallVector<Factor> factors;
  SmallVector<ValueFactors> operands;
  SmallVector<ValueFactors> results;
  /// Sets of operands in which all results are jointly linear, the others held
  /// fixed: {{0,1}} for x+y, {{0},{1}} for x*y. A value partial by sum may
  /// enter an op only through such a set, and then all of the set is partial.
  SmallVector<SmallVector<unsigned, 2>> linear;
  /// True where all tensors but scalars have one shape and no element's place
  /// matters: the op may then run on any equal subset of their elements, as a
  /// list. A scalar result combines the subsets by a sum.
  bool uniform = false;

  /// True where a factor of an operand is in no result: results are sums.
  bool sums() const;

  /// Adds a factor and returns its index.
  unsigned add(int64_t size, int64_t grain = 1, bool splittable = true);

  /// Factors of an op all of whose tensors have the shape `shape` and are
  /// split alike (scalars excepted: they get no dimensions).
  static OpFactors elementwise(Operation *op);
};

/// Clones `op` with other operands and result types; regions are cloned too.
Operation *cloneWithTypes(OpBuilder &builder, Operation *op,
                          ValueRange operands, TypeRange types);

} // namespace mlir::parc

#endif // PARC_DIALECTS_PARC_FACTORS_H
