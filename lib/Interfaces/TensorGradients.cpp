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
static bool isWanted(Operation *op, unsigned i, ArrayRef<Type> wanted) {
  return wanted[i] &&
         isa<FloatType>(getElementTypeOrSelf(op->getOperand(i).getType()));
}

/// `type` with the elements of `gradient`.
static RankedTensorType like(RankedTensorType type, Value gradient) {
  return type.clone(getElementTypeOrSelf(gradient));
}

/// Common checks: pushes nulls for all operands, and sets `any` where there is
/// something to build.
static LogicalResult start(Operation *op, Value gradient, ArrayRef<Type> wanted,
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
                              ArrayRef<Type>,
                              SmallVectorImpl<Value> &gradients) const {
    gradients.append(op->getNumOperands(), Value());
    return success();
  }
};

/// The gradient of a structural op: `Derived::build` runs where some operand
/// wants a gradient and all that do have static shapes.
template <typename Derived, typename OpT>
struct StructuralGradient
    : DifferentiableOpInterface::ExternalModel<Derived, OpT> {
  bool onlyMoves(Operation *) const { return true; }

  LogicalResult buildGradient(Operation *op, OpBuilder &builder,
                              ValueRange resultGradients, ArrayRef<Type> wanted,
                              SmallVectorImpl<Value> &gradients) const {
    bool any = false;
    if (failed(start(op, resultGradients[0], wanted, gradients, any)))
      return failure();
    if (any)
      Derived::build(cast<OpT>(op), builder, resultGradients[0], wanted,
                     gradients);
    return success();
  }
};

struct ExpandGradient
    : StructuralGradient<ExpandGradient, tensor::ExpandShapeOp> {
  static void build(tensor::ExpandShapeOp expand, OpBuilder &builder,
                    Value gradient, ArrayRef<Type> wanted,
                    SmallVectorImpl<Value> &gradients) {
    gradients[0] = tensor::CollapseShapeOp::create(
        builder, expand.getLoc(), like(expand.getSrcType(), gradient), gradient,
        expand.getReassociationIndices());
  }
};

struct CollapseGradient
    : StructuralGradient<CollapseGradient, tensor::CollapseShapeOp> {
  static void build(tensor::CollapseShapeOp collapse, OpBuilder &builder,
                    Value gradient, ArrayRef<Type> wanted,
                    SmallVectorImpl<Value> &gradients) {
    gradients[0] = tensor::ExpandShapeOp::create(
        builder, collapse.getLoc(), like(collapse.getSrcType(), gradient),
        gradient, collapse.getReassociationIndices());
  }
};

struct ExtractSliceGradient
    : StructuralGradient<ExtractSliceGradient, tensor::ExtractSliceOp> {
  static void build(tensor::ExtractSliceOp slice, OpBuilder &builder,
                    Value gradient, ArrayRef<Type> wanted,
                    SmallVectorImpl<Value> &gradients) {
    Value zeros = buildZeros(builder, slice.getLoc(),
                             like(slice.getSourceType(), gradient));
    gradients[0] = tensor::InsertSliceOp::create(
        builder, slice.getLoc(), gradient, zeros, slice.getMixedOffsets(),
        slice.getMixedSizes(), slice.getMixedStrides());
  }
};

struct InsertSliceGradient
    : StructuralGradient<InsertSliceGradient, tensor::InsertSliceOp> {
  static void build(tensor::InsertSliceOp slice, OpBuilder &builder,
                    Value gradient, ArrayRef<Type> wanted,
                    SmallVectorImpl<Value> &gradients) {
    if (isWanted(slice, 0, wanted))
      gradients[0] = tensor::ExtractSliceOp::create(
          builder, slice.getLoc(), like(slice.getSourceType(), gradient),
          gradient, slice.getMixedOffsets(), slice.getMixedSizes(),
          slice.getMixedStrides());
    if (!isWanted(slice, 1, wanted))
      return;
    // What was overwritten does not matter.
    Value zeros = buildZeros(builder, slice.getLoc(),
                             like(slice.getSourceType(), gradient));
    gradients[1] = tensor::InsertSliceOp::create(
        builder, slice.getLoc(), zeros, gradient, slice.getMixedOffsets(),
        slice.getMixedSizes(), slice.getMixedStrides());
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
