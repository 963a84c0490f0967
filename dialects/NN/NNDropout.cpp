//===- NNDropout.cpp - Dropout --------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.dropout: checks, factors, gradient, definition.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNBuilders.h"
#include "NN/NNRandom.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

LogicalResult DropoutOp::verify() {
  RankedTensorType input = tensorType(getInput());
  RankedTensorType seed = tensorType(getSeed());
  if (failed(checkFloat(*this, "input", input)) ||
      failed(checkInteger(*this, "seed", seed)) ||
      failed(checkRank(*this, "seed", seed, 0)) ||
      failed(checkDropRate(*this, "rate", getRate().convertToDouble())))
    return failure();
  int64_t rank = input.getRank();
  int64_t starts = getStarts().size();
  int64_t sizes = getShape() ? getShape()->size() : 0;
  if (starts != sizes)
    return emitOpError() << "expected as many starts as sizes in shape, got "
                         << starts << " and " << sizes;
  if (starts && starts != rank)
    return emitOpError() << "expected " << rank
                         << " starts, one a dimension of input, got " << starts;
  if (getFold() && static_cast<int64_t>(getFold()->size()) != rank)
    return emitOpError() << "expected " << rank
                         << " numbers in fold, one a dimension of input, got "
                         << getFold()->size();
  return success();
}

FailureOr<OpFactors> DropoutOp::getFactors() {
  OpFactors factors = OpFactors::elementwise(*this);
  for (Factor &factor : factors.factors)
    factor.needsOffset = true;
  factors.uniform = false;
  factors.linear = {{0}};
  return factors;
}

Operation *DropoutOp::buildLocal(OpBuilder &builder, ValueRange operands,
                                 TypeRange types,
                                 ArrayRef<SmallVector<OpFoldResult>> sizes) {
  RankedTensorType whole = tensorType(getInput());
  Value zero;
  if (!getShape())
    zero = arith::ConstantIndexOp::create(builder, getLoc(), 0);
  auto local = cast<DropoutOp>(cloneWithTypes(builder, *this, operands, types));
  if (zero) {
    local.setShape(whole.getShape());
    local.getStartsMutable().assign(SmallVector<Value>(whole.getRank(), zero));
  }
  return local;
}

void DropoutOp::setFactorOffset(OpBuilder &builder, unsigned factor,
                                Value start) {
  getStartsMutable()[factor].set(start);
}

LogicalResult DropoutOp::setFactorFold(unsigned factor, int64_t parts) {
  SmallVector<int64_t> fold(tensorType(getInput()).getRank(), 0);
  if (getFold())
    fold.assign(getFold()->begin(), getFold()->end());
  fold[factor] = parts;
  setFold(fold);
  return success();
}

FailureOr<SmallVector<Value>> DropoutOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RankedTensorType type = tensorType(getInput());
  double rate = getRate().convertToDouble();
  if (rate == 0)
    return SmallVector<Value>{getInput()};
  unsigned rank = type.getRank();
  Loops all = loopRange(0, rank);
  Sizes sizes = dimSizes(b, getInput()), whole = sizes;
  if (getShape())
    for (auto [size, global] : llvm::zip_equal(whole, *getShape()))
      size = b.getIndexAttr(global);
  Value key = randomKey(b, getSeed(), getSite(), getStream());
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    SmallVector<Value> indices;
    for (unsigned loop : all) {
      Value index = linalg::IndexOp::create(b, loop);
      if (!getStarts().empty())
        index = arith::AddIOp::create(b, index, getStarts()[loop]);
      if (getFold() && (*getFold())[loop] > 0)
        index = foldedIndexOf(b, index, whole[loop], (*getFold())[loop]);
      indices.push_back(index);
    }
    Value keep = keepsElement(b, key, rowMajorIndex(b, indices, whole), rate);
    Value remaining = floatConstant(b, x[0].getType(), 1 - rate);
    Value zero = floatConstant(b, x[0].getType(), 0);
    return select(b, keep, div(b, x[0], remaining), zero);
  };
  return SmallVector<Value>{map(b, rank, Access{getInput(), all},
                                {all, sizes, type.getElementType()}, body)};
}

LogicalResult
DropoutOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                         ArrayRef<Type> wanted,
                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(getNumOperands(), Value());
  if (resultGradients[0] && wanted[0])
    operandGradients[0] = DropoutOp::create(
        builder, getLoc(), getInput().getType(), resultGradients[0], getSeed(),
        getStream(), getStarts(), getRateAttr(), getSiteAttr(), getShapeAttr(),
        getFoldAttr());
  return success();
}
