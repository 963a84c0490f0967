//===- TensorModels.cpp - Factors of tensor ops ---------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reshapes, slices and empty tensors.
///
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "Parc/Parc.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::parc;

namespace {

struct EmptySharding
    : ShardableOpInterface::ExternalModel<EmptySharding, tensor::EmptyOp> {
  FailureOr<OpFactors> getFactors(Operation *op) const {
    OpFactors factors;
    factors.operands.resize(op->getNumOperands());
    ValueFactors &dims = factors.results.emplace_back();
    for (int64_t size : cast<tensor::EmptyOp>(op).getType().getShape())
      dims.push_back({factors.add(size)});
    return factors;
  }

  Operation *buildLocal(Operation *op, OpBuilder &builder, ValueRange,
                        TypeRange types,
                        ArrayRef<SmallVector<OpFoldResult>> sizes) const {
    return tensor::EmptyOp::create(
        builder, op->getLoc(), types.front(),
        getDynamicSizes(builder, op->getLoc(), types.front(), sizes.front()));
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

/// One factor for each expanded dimension longer than one; a collapsed
/// dimension lists those of its group. Only the first of a group is contiguous
/// in the collapsed dimension, so only it can be split.
static OpFactors getReshapeFactors(Operation *op,
                                   ArrayRef<ReassociationIndices> groups,
                                   RankedTensorType expanded, bool expands) {
  OpFactors factors;
  ValueFactors expandedDims(expanded.getRank()), collapsedDims(groups.size());
  for (auto [group, collapsed] : llvm::zip_equal(groups, collapsedDims)) {
    for (int64_t dim : group) {
      int64_t size = expanded.getDimSize(dim);
      if (size == 1)
        continue;
      unsigned factor = factors.add(size, 1, /*splittable=*/collapsed.empty());
      expandedDims[dim] = {factor};
      collapsed.push_back(factor);
    }
  }
  // A rank-0 side leaves expanded unit dimensions without a group.
  factors.operands.resize(op->getNumOperands());
  factors.operands[0] = expands ? collapsedDims : expandedDims;
  factors.results.push_back(expands ? expandedDims : collapsedDims);
  factors.linear = {{0}};
  return factors;
}

namespace {

struct ExpandSharding
    : ShardableOpInterface::ExternalModel<ExpandSharding,
                                          tensor::ExpandShapeOp> {
  FailureOr<OpFactors> getFactors(Operation *op) const {
    auto expand = cast<tensor::ExpandShapeOp>(op);
    return getReshapeFactors(op, expand.getReassociationIndices(),
                             expand.getResultType(), /*expands=*/true);
  }

  Operation *buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                        TypeRange types,
                        ArrayRef<SmallVector<OpFoldResult>> sizes) const {
    auto type = cast<RankedTensorType>(types.front());
    SmallVector<Value> dynamic =
        getDynamicSizes(builder, op->getLoc(), type, sizes.front());
    return tensor::ExpandShapeOp::create(
        builder, op->getLoc(), type, operands.front(),
        cast<tensor::ExpandShapeOp>(op).getReassociationIndices(),
        getMixedValues(type.getShape(), dynamic, builder));
  }
};

struct CollapseSharding
    : ShardableOpInterface::ExternalModel<CollapseSharding,
                                          tensor::CollapseShapeOp> {
  FailureOr<OpFactors> getFactors(Operation *op) const {
    auto collapse = cast<tensor::CollapseShapeOp>(op);
    return getReshapeFactors(op, collapse.getReassociationIndices(),
                             collapse.getSrcType(), /*expands=*/false);
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// True where slice `op` takes all of dimension `dim` of `large`, the tensor
/// that is sliced.
static bool isWhole(OffsetSizeAndStrideOpInterface op, RankedTensorType large,
                    unsigned dim) {
  if (op.isDynamicOffset(dim) || op.getStaticOffset(dim) != 0 ||
      op.isDynamicStride(dim) || op.getStaticStride(dim) != 1)
    return false;
  // Only a dimension that is split has a dynamic extent, and a dimension that
  // is cut can't be split: equal as dynamic values, too.
  int64_t size =
      op.isDynamicSize(dim) ? ShapedType::kDynamic : op.getStaticSize(dim);
  return size == large.getDimSize(dim);
}

/// The slice's sizes on local operands: those of whole dimensions are the
/// large tensor's local ones.
static SmallVector<OpFoldResult>
getLocalSizes(OffsetSizeAndStrideOpInterface op, ValueRange dynamicSizes,
              RankedTensorType large,
              function_ref<OpFoldResult(unsigned)> getSize,
              OpBuilder &builder) {
  SmallVector<OpFoldResult> sizes =
      getMixedValues(op.getStaticSizes(), dynamicSizes, builder);
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (isWhole(op, large, dim) && large.getDimSize(dim) != 1)
      size = getSize(dim);
  return sizes;
}

/// The operands of a slice, local ones in the order of the original's.
namespace {
struct SliceOperands {
  SliceOperands(OffsetSizeAndStrideOpInterface op, ValueRange operands) {
    unsigned first = op.getOffsetSizeAndStrideStartOperandIndex();
    auto take = [&](size_t count) {
      ValueRange range = operands.slice(first, count);
      first += count;
      return range;
    };
    offsets = take(op.getOffsets().size());
    sizes = take(op.getSizes().size());
    strides = take(op.getStrides().size());
  }
  ValueRange offsets, sizes, strides;
};
} // namespace

/// `factors` of slice `op` of `large`, which cuts or fills `small`. Dimensions
/// taken whole share a factor; the others get unsplittable ones of their own.
static OpFactors getSliceFactors(OffsetSizeAndStrideOpInterface op,
                                 RankedTensorType large, RankedTensorType small,
                                 const llvm::SmallBitVector &dropped,
                                 ValueFactors &largeDims,
                                 ValueFactors &smallDims) {
  OpFactors factors;
  for (unsigned dim = 0, at = 0; dim < large.getRank(); ++dim) {
    int64_t size = large.getDimSize(dim);
    bool whole = isWhole(op, large, dim);
    DimFactors &largeFactors = largeDims.emplace_back();
    if (size != 1)
      largeFactors.push_back(factors.add(size, 1, /*splittable=*/whole));
    if (dropped.test(dim))
      continue;
    DimFactors &smallFactors = smallDims.emplace_back();
    int64_t smallSize = small.getDimSize(at++);
    if (whole)
      smallFactors = largeFactors;
    else if (smallSize != 1)
      smallFactors.push_back(factors.add(smallSize, 1, /*splittable=*/false));
  }
  factors.operands.resize(op->getNumOperands());
  return factors;
}

namespace {

struct ExtractSliceSharding
    : ShardableOpInterface::ExternalModel<ExtractSliceSharding,
                                          tensor::ExtractSliceOp> {
  FailureOr<OpFactors> getFactors(Operation *op) const {
    auto slice = cast<tensor::ExtractSliceOp>(op);
    ValueFactors source, result;
    OpFactors factors =
        getSliceFactors(slice, slice.getSourceType(), slice.getType(),
                        slice.getDroppedDims(), source, result);
    factors.operands[0] = source;
    factors.results.push_back(result);
    factors.linear = {{0}};
    return factors;
  }

  Operation *buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                        TypeRange types,
                        ArrayRef<SmallVector<OpFoldResult>> sizes) const {
    auto slice = cast<tensor::ExtractSliceOp>(op);
    SliceOperands dynamic(slice, operands);
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    auto getSize = [&](unsigned dim) {
      unsigned at = 0;
      for (unsigned i = 0; i < dim; ++i)
        at += dropped.test(i) ? 0 : 1;
      return sizes.front()[at];
    };
    return tensor::ExtractSliceOp::create(
        builder, op->getLoc(), cast<RankedTensorType>(types.front()),
        operands.front(),
        getMixedValues(slice.getStaticOffsets(), dynamic.offsets, builder),
        getLocalSizes(slice, dynamic.sizes, slice.getSourceType(), getSize,
                      builder),
        getMixedValues(slice.getStaticStrides(), dynamic.strides, builder));
  }
};

struct InsertSliceSharding
    : ShardableOpInterface::ExternalModel<InsertSliceSharding,
                                          tensor::InsertSliceOp> {
  FailureOr<OpFactors> getFactors(Operation *op) const {
    auto slice = cast<tensor::InsertSliceOp>(op);
    ValueFactors source, dest;
    OpFactors factors =
        getSliceFactors(slice, slice.getDestType(), slice.getSourceType(),
                        slice.getDroppedDims(), dest, source);
    factors.operands[0] = source;
    factors.operands[1] = dest;
    factors.results.push_back(dest);
    factors.linear = {{0, 1}};
    return factors;
  }

  Operation *buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                        TypeRange,
                        ArrayRef<SmallVector<OpFoldResult>> sizes) const {
    auto slice = cast<tensor::InsertSliceOp>(op);
    SliceOperands dynamic(slice, operands);
    auto getSize = [&](unsigned dim) { return sizes.front()[dim]; };
    return tensor::InsertSliceOp::create(
        builder, op->getLoc(), operands[0], operands[1],
        getMixedValues(slice.getStaticOffsets(), dynamic.offsets, builder),
        getLocalSizes(slice, dynamic.sizes, slice.getDestType(), getSize,
                      builder),
        getMixedValues(slice.getStaticStrides(), dynamic.strides, builder));
  }
};

} // namespace

void mlir::parc::attachTensorSharding(MLIRContext *context) {
  tensor::EmptyOp::attachInterface<EmptySharding>(*context);
  tensor::ExpandShapeOp::attachInterface<ExpandSharding>(*context);
  tensor::CollapseShapeOp::attachInterface<CollapseSharding>(*context);
  tensor::ExtractSliceOp::attachInterface<ExtractSliceSharding>(*context);
  tensor::InsertSliceOp::attachInterface<InsertSliceSharding>(*context);
}
