//===- NNVerify.h - Checks that the ops' verifiers share --------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the verifiers of the nn ops have in common. A dynamic dimension agrees
/// with every size. Each check emits its diagnostic on the op.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNVERIFY_H
#define PARC_DIALECTS_NN_NNVERIFY_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace mlir::nn {

/// True where the two sizes are equal or one of them is dynamic.
bool sizesAgree(int64_t a, int64_t b);

/// The type of a value that ODS made sure is a ranked tensor.
RankedTensorType tensorType(Value value);

/// `name` has floats as elements.
LogicalResult checkFloat(Operation *op, StringRef name, RankedTensorType type);

/// `name` has i64 as elements.
LogicalResult checkInteger(Operation *op, StringRef name,
                           RankedTensorType type);

/// `name` has `element` as elements, which are those of `like`.
LogicalResult checkElement(Operation *op, StringRef name, RankedTensorType type,
                           StringRef like, Type element);
/// `type`, a sum over elements of `element`, has these or wider ones.
LogicalResult checkSumElement(Operation *op, StringRef name,
                              RankedTensorType type, StringRef like,
                              Type element);

/// `name` has rank `rank`.
LogicalResult checkRank(Operation *op, StringRef name, RankedTensorType type,
                        int64_t rank);

/// `name` has at least rank `rank`.
LogicalResult checkMinRank(Operation *op, StringRef name, RankedTensorType type,
                           int64_t rank);

/// Dimension `dim` of `name` has size `size`, which is that of `like`.
LogicalResult checkDim(Operation *op, StringRef name, RankedTensorType type,
                       int64_t dim, StringRef like, int64_t size);

/// `name` has the shape `shape`, which is that of `like`.
LogicalResult checkShape(Operation *op, StringRef name, RankedTensorType type,
                         StringRef like, ArrayRef<int64_t> shape);

/// `value` is greater than zero and finite.
LogicalResult checkPositive(Operation *op, StringRef name, double value);

/// `value` is a probability of dropping: at least 0 and less than 1.
LogicalResult checkDropRate(Operation *op, StringRef name, double value);

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNVERIFY_H
