//===- Models.h - Pieces of the upstream models ------------------*- C++
//-*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the units of this library share: one attaching function a dialect and
/// the analyses and builders behind more than one model.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_INTERFACES_MODELS_H
#define PARC_LIB_INTERFACES_MODELS_H

#include "Parc/Factors.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <optional>

namespace mlir::parc {

void attachArithSharding(MLIRContext *context);
void attachMathSharding(MLIRContext *context);
void attachLinalgSharding(MLIRContext *context);
void attachTensorSharding(MLIRContext *context);
void attachArithGradients(MLIRContext *context);
void attachMathGradients(MLIRContext *context);
void attachLinalgGradients(MLIRContext *context);
void attachTensorGradients(MLIRContext *context);

/// How result `result` of `op` accumulates over the loops that its map lacks:
/// the body is a chain of one combiner from the init's argument to the yield,
/// and what it combines depends on no other init.
/// None for any other body.
std::optional<ReductionKind> matchCombiner(linalg::LinalgOp op,
                                           unsigned result);

/// The minimal sets of operands in which all results of `op` are jointly
/// linear and homogeneous, in ascending order.
SmallVector<SmallVector<unsigned, 2>> findLinearSets(linalg::LinalgOp op);

/// The body's argument for operand `operand`; null where the body has none.
BlockArgument getBodyArgument(linalg::LinalgOp op, unsigned operand);

/// True where the body of `op` reads operand `operand`.
bool readsOperand(linalg::LinalgOp op, unsigned operand);

/// The first tensor that the regions of `op` use without having it as an
/// operand; null where there is none.
Value getCapturedTensor(Operation *op);

/// The sizes of the dynamic dimensions of `type` as index values, from the
/// sizes of all its dimensions.
SmallVector<Value> getDynamicSizes(OpBuilder &builder, Location loc, Type type,
                                   ArrayRef<OpFoldResult> sizes);

/// The gradient of an elementwise float op `op` of one result, on scalars or
/// on tensors of one shape: pushes one value an operand, null where `wanted`
/// is not set. Fails, without a diagnostic, for an op that has no rule.
LogicalResult buildElementwiseGradient(OpBuilder &builder, Operation *op,
                                       Value gradient, ArrayRef<bool> wanted,
                                       SmallVectorImpl<Value> &gradients);

/// A tensor of zeros of the static type `type`: a fill of an empty tensor.
Value buildZeros(OpBuilder &builder, Location loc, RankedTensorType type);

} // namespace mlir::parc

#endif // PARC_LIB_INTERFACES_MODELS_H
