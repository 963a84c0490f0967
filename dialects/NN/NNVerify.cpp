//===- NNVerify.cpp - Checks that the ops' verifiers share ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The checks of NNVerify.h.
///
//===----------------------------------------------------------------------===//

#include "NN/NNVerify.h"
#include <cmath>

using namespace mlir;

bool nn::sizesAgree(int64_t a, int64_t b) {
  return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b);
}

RankedTensorType nn::tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult nn::checkFloat(Operation *op, StringRef name,
                             RankedTensorType type) {
  if (isa<FloatType>(type.getElementType()))
    return success();
  return op->emitOpError() << "expected " << name << " of floats, got " << type;
}

LogicalResult nn::checkInteger(Operation *op, StringRef name,
                               RankedTensorType type) {
  if (type.getElementType().isSignlessInteger(64))
    return success();
  return op->emitOpError() << "expected " << name << " of i64, got " << type;
}

LogicalResult nn::checkElement(Operation *op, StringRef name,
                               RankedTensorType type, StringRef like,
                               Type element) {
  if (type.getElementType() == element)
    return success();
  return op->emitOpError() << "expected " << name << " of " << element
                           << ", as " << like << ", got " << type;
}

LogicalResult nn::checkSumElement(Operation *op, StringRef name,
                                  RankedTensorType type, StringRef like,
                                  Type element) {
  auto own = dyn_cast<FloatType>(type.getElementType());
  if (own && own.getWidth() >= element.getIntOrFloatBitWidth())
    return success();
  return op->emitOpError() << "expected " << name << " of " << element
                           << " or wider, as a sum over " << like << ", got "
                           << type;
}

LogicalResult nn::checkRank(Operation *op, StringRef name,
                            RankedTensorType type, int64_t rank) {
  if (type.getRank() == rank)
    return success();
  return op->emitOpError() << "expected " << name << " of rank " << rank
                           << ", got " << type;
}

LogicalResult nn::checkMinRank(Operation *op, StringRef name,
                               RankedTensorType type, int64_t rank) {
  if (type.getRank() >= rank)
    return success();
  return op->emitOpError() << "expected " << name << " of rank " << rank
                           << " or more, got " << type;
}

LogicalResult nn::checkDim(Operation *op, StringRef name, RankedTensorType type,
                           int64_t dim, StringRef like, int64_t size) {
  if (sizesAgree(type.getDimSize(dim), size))
    return success();
  return op->emitOpError() << "expected dimension " << dim << " of " << name
                           << " to be " << size << " (" << like << "), got "
                           << type.getDimSize(dim);
}

LogicalResult nn::checkShape(Operation *op, StringRef name,
                             RankedTensorType type, StringRef like,
                             ArrayRef<int64_t> shape) {
  if (failed(checkRank(op, name, type, shape.size())))
    return failure();
  for (auto [dim, size] : llvm::enumerate(shape))
    if (failed(checkDim(op, name, type, dim, like, size)))
      return failure();
  return success();
}

LogicalResult nn::checkPositive(Operation *op, StringRef name, double value) {
  if (std::isfinite(value) && value > 0)
    return success();
  return op->emitOpError() << "expected a positive " << name << ", got "
                           << value;
}

LogicalResult nn::checkDropRate(Operation *op, StringRef name, double value) {
  if (value >= 0 && value < 1)
    return success();
  return op->emitOpError() << "expected " << name
                           << " of at least 0 and less than 1, got " << value;
}
