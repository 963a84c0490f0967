//===- FactorAxes.h - Axes of dimensions and of factors ------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the axes that split a dimension to the axes that split its factors, and
/// back; and the grain that this leaves the dimension.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_ANALYSIS_FACTORAXES_H
#define PARC_ANALYSIS_FACTORAXES_H

#include "parc/Analysis/Layouts.h"

namespace mlir::parc {

using Axes = SmallVector<StringAttr, 2>;

/// True where `axes` begins with `prefix`.
bool startsWith(ArrayRef<StringAttr> axes, ArrayRef<StringAttr> prefix);

/// The axes of each factor of a dimension that is split over `split`. All are
/// the major factor's; in a nested cut only those that divide its units, once
/// there are more parts than units, and the next factor has the others. A set
/// does not tell: its factors get none.
SmallVector<Axes> distribute(const DimFactors &dim, const OpFactors &factors,
                             ArrayRef<StringAttr> split, const AxisSizes &axes);

/// The axes of each dimension of a value, from those of the op's factors. The
/// axes of a set are ordered after `like`, the layout that the value has or
/// will get: those of the same dimension first, those of other dimensions last,
/// so that the latter can leave the set in one exchange.
SmallVector<Axes> dimsOf(const ValueFactors &dims, ArrayRef<Axes> factorAxes,
                         ShardingAttr like);

/// Elements of a dimension that stay together under the factors' axes.
int64_t grainOf(const DimFactors &dim, const OpFactors &factors,
                ArrayRef<Axes> factorAxes, const AxisSizes &axes);

} // namespace mlir::parc

#endif // PARC_ANALYSIS_FACTORAXES_H
