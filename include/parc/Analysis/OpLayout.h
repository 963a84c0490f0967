//===- OpLayout.h - The layout that an op runs in ------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the axes that split an op's factors to the layouts of its operands and
/// results, and the choice of those axes. Also the check that layouts on the
/// op's types agree with its factors.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_ANALYSIS_OPLAYOUT_H
#define PARC_ANALYSIS_OPLAYOUT_H

#include "parc/Analysis/Propagation.h"

namespace mlir::parc {

/// How an op runs: the axes of each factor, the axes over which operands of
/// one linear set, and so the results, stay partial, and the axes that cut the
/// flattened parts of all its tensors but scalars.
struct OpLayout {
  SmallVector<Axes> factorAxes;
  Axes carriedPartial;
  SmallVector<unsigned, 2> carriedOperands;
  Axes flat;
};

/// Axes over which a result without split factors is partial, in the order of
/// the factors; and how they combine. Fails where kinds differ.
LogicalResult newPartial(const OpFactors &factors, const ValueFactors &result,
                         ArrayRef<Axes> factorAxes, ReductionKind &kind,
                         Axes &partial);

/// `sharding` with the flat axes of the op, where the value of that type is not
/// a scalar.
ShardingAttr withOpFlat(ShardingAttr sharding, ArrayRef<StringAttr> flat);

/// What the choice of an op's axes is bound to.
struct LayoutBounds {
  /// Axes of factors that were decided elsewhere.
  FactorPins pins;
  /// Axes that split a parameter for good: the op runs where it lies.
  function_ref<bool(StringAttr)> keeps;
  /// Of each operand that is partial, the layouts that it has been brought to
  /// for other readers: the op may read it there.
  SmallVector<SmallVector<ShardingAttr, 1>> copies;
};

/// Chooses the axes of an op's factors from the layouts its operands have and
/// its results are wished in: what is pinned; then as the parameters lie that
/// it reads or makes the gradient of; then the most parts (work is what
/// parallelism is for), then the fewest bytes moved, then the first in order.
OpLayout chooseLayout(Operation *op, const OpFactors &factors,
                      ArrayRef<ShardingAttr> operands,
                      ArrayRef<ShardingAttr> wishes, const LayoutBounds &bounds,
                      const AxisSizes &axes);

/// Checks the layouts on the types of an op of the sharded phase against its
/// factors; emits an error that names the value, dimension and axes.
LogicalResult verifyOpLayout(Operation *op, const AxisSizes &axes);

/// True for a fill or constant whose elements are all zero.
bool isZero(Value value);

} // namespace mlir::parc

#endif // PARC_ANALYSIS_OPLAYOUT_H
