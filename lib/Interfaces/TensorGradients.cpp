//===- TensorGradients.cpp - Gradients of tensor ops ----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A reshape's gradient is the reshape back; a slice's is the slice put into
/// zeros, an insertion's the slice taken out.
///
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "Parc/Parc.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::parc;

Value mlir::parc::buildZeros(OpBuilder &builder, Location loc,
                             RankedTensorType type) {
  Value zero = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(builder, loc, type, ValueRange());
  return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
}

/// True where operand `i` of `op` needs a gradient and can have one.
static bool isWanted(Operation *op, unsigned i, ArrayRef<bool> wanted) {
  return wanted[i] &&
         isa<FloatType>(getElementTypeOrSelf(op->getOperand(i).getType()));
}

/// Common checks: pushes nulls for all operands, and sets `any` where there is
/// something to build.
static LogicalResult start(Operation *op, Value gradient, ArrayRef<bool> wanted,
                           SmallVectorImpl<Value> &gradients, bool &any) {
  gradients.assign(op->getNumOperands(), Value());
  any = false;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    if (!gradient || !isWanted(op, i, wanted))
      continue;
    any = true;
    auto type = cast<RankedTensorType>(op->getOperand(i).getType());
    if (!type.hasStaticShape())
      return op->emitError("expected a static shape to differentiate, got ")
             << type;
  }
  return success();
}

namespace {

struct EmptyGradient
    : DifferentiableOpInterface::ExternalModel<EmptyGradient, tensor::EmptyOp> {
  LogicalResult buildGradient(Operation *op, OpBuilder &, ValueRange,
                              ArrayRef<bool>,
                              SmallVectorImpl<Value> &gradients) const {
    gradients.append(op->getNumOperands(), Value());
    return success();
  }
};

struct ExpandGradient
    : DifferentiableOpInterface::ExternalModel<ExpandGradient,
                                               tensor::ExpandShapeOp> {
  LogicalResult buildGradient(Operation *op, OpBuilder &builder,
                              ValueRange resultGradients, ArrayRef<bool> wanted,
                              SmallVectorImpl<Value> &gradients) const {
    bool any = false;
    if (failed(start(op, resultGradients[0], wanted, gradients, any)))
      return failure();
    if (!any)
      return success();
    auto expand = cast<tensor::ExpandShapeOp>(op);
    gradients[0] = tensor::CollapseShapeOp::create(
        builder, op->getLoc(), expand.getSrcType(), resultGradients[0],
        expand.getReassociationIndices());
    return success();
  }
};

struct CollapseGradient
    : DifferentiableOpInterface::ExternalModel<CollapseGradient,
                                               tensor::CollapseShapeOp> {
  LogicalResult buildGradient(Operation *op, OpBuilder &builder,
                              ValueRange resultGradients, ArrayRef<bool> wanted,
                              SmallVectorImpl<Value> &gradients) const {
    bool any = false;
    if (failed(start(op, resultGradients[0], wanted, gradients, any)))
      return failure();
    if (!any)
      return success();
    auto collapse = cast<tensor::CollapseShapeOp>(op);
    gradients[0] = tensor::ExpandShapeOp::create(
        builder, op->getLoc(), collapse.getSrcType(), resultGradients[0],
        collapse.getReassociationIndices());
    return success();
  }
};

struct ExtractSliceGradient
    : DifferentiableOpInterface::ExternalModel<ExtractSliceGradient,
                                               tensor::ExtractSliceOp> {
  LogicalResult buildGradient(Operation *op, OpBuilder &builder,
                              ValueRange resultGradients, ArrayRef<bool> wanted,
                              SmallVectorImpl<Value> &gradients) const {
    bool any = false;
    if (failed(start(op, resultGradients[0], wanted, gradients, any)))
      return failure();
    if (!any)
      return success();
    auto slice = cast<tensor::ExtractSliceOp>(op);
    Value zeros = buildZeros(builder, op->getLoc(), slice.getSourceType());
    gradients[0] = tensor::InsertSliceOp::create(
        builder, op->getLoc(), resultGradients[0], zeros,
        slice.getMixedOffsets(), slice.getMixedSizes(),
        slice.getMixedStrides());
    return success();
  }
};

struct InsertSliceGradient
    : DifferentiableOpInterface::ExternalModel<InsertSliceGradient,
                                               tensor::InsertSliceOp> {
  LogicalResult buildGradient(Operation *op, OpBuilder &builder,
                              ValueRange resultGradients, ArrayRef<bool> wanted,
                              SmallVectorImpl<Value> &gradients) const {
    bool any = false;
    if (failed(start(op, resultGradients[0], wanted, gradients, any)))
      return failure();
    if (!any)
      return success();
    auto slice = cast<tensor::InsertSliceOp>(op);
    if (isWanted(op, 0, wanted))
      gradients[0] = tensor::ExtractSliceOp::create(
          builder, op->getLoc(), slice.getSourceType(), resultGradients[0],
          slice.getMixedOffsets(), slice.getMixedSizes(),
          slice.getMixedStrides());
    if (!isWanted(op, 1, wanted))
      return success();
    // What was overwritten does not matter.
    Value zeros = buildZeros(builder, op->getLoc(), slice.getSourceType());
    gradients[1] = tensor::InsertSliceOp::create(
        builder, op->getLoc(), zeros, resultGradients[0],
        slice.getMixedOffsets(), slice.getMixedSizes(),
        slice.getMixedStrides());
    return success();
  }
};

} // namespace

void mlir::parc::attachTensorGradients(MLIRContext *context) {
  tensor::EmptyOp::attachInterface<EmptyGradient>(*context);
  tensor::ExpandShapeOp::attachInterface<ExpandGradient>(*context);
  tensor::CollapseShapeOp::attachInterface<CollapseGradient>(*context);
  tensor::ExtractSliceOp::attachInterface<ExtractSliceGradient>(*context);
  tensor::InsertSliceOp::attachInterface<InsertSliceGradient>(*context);
}
