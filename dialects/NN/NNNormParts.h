//===- NNNormParts.h - What norms and their gradients share -----*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The row space of a norm, its row statistics, checks and factors. A statistic
/// is an op of its own, computed once a row.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNNORMPARTS_H
#define PARC_DIALECTS_NN_NNNORMPARTS_H

#include "NN/NNBuilders.h"
#include "Parc/Factors.h"

namespace mlir::nn {

/// Builds over the rows (last dimension) of one tensor.
class RowSpace {
public:
  RowSpace(ImplicitLocOpBuilder &b, Value input);

  /// A tensor of the input's shape.
  Access whole(Value tensor) const { return {tensor, all}; }
  /// A tensor with one element a row.
  Access perRow(Value tensor) const { return {tensor, rows}; }
  /// A vector as long as a row.
  Access perColumn(Value tensor) const { return {tensor, {last}}; }

  /// Sums over each row; one body result a sum.
  SmallVector<Value> sumRows(ArrayRef<Access> inputs, unsigned results,
                             MultiBody body);
  Value sumRow(ArrayRef<Access> inputs, Body body);
  /// One result a row from per-row inputs; `body` divides sums by `size`.
  Value eachRow(ArrayRef<Value> inputs, Body body);
  /// Elements of the input's shape and type.
  Value eachElement(ArrayRef<Access> inputs, Body body);
  /// Sums over all rows, stored as `element`.
  Value sumColumns(ArrayRef<Access> inputs, Type element, Body body);

  /// `rsqrt(mean(x^2) + epsilon)`, per row.
  Value inverseRms(Value input, double epsilon);
  /// `mean(x)`, per row.
  Value mean(Value input);
  /// `rsqrt(mean((x - mean)^2) + epsilon)`, per row.
  Value inverseDeviation(Value input, Value mean, double epsilon);
  /// `value` over the row's length.
  Value overSize(ImplicitLocOpBuilder &nested, Value value);

private:
  /// `rsqrt(sum / size + epsilon)`, per row.
  Value inverseRoot(Value sum, double epsilon);

  ImplicitLocOpBuilder &b;
  unsigned last;
  Loops all, rows;
  Sizes sizes, rowSizes;
  Type element, compute;
  /// The row's length as a float.
  Value size;
};

/// Checks an input of a norm, vectors as long as its rows, and epsilon.
LogicalResult verifyNorm(Operation *op, Value input,
                         ArrayRef<std::pair<StringRef, Value>> vectors,
                         double epsilon);

/// Checks that `value` has the shape and elements of `input`.
LogicalResult verifyLikeInput(Operation *op, StringRef name, Value value,
                              Value input);

/// A factor a dimension of `op`'s first operand, the last one whole; values of
/// rank one belong to that one.
parc::OpFactors normFactors(Operation *op);

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNNORMPARTS_H
