//===- NNAttention.cpp - Attention ----------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.attention: checks, factors, gradient, definition.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNAttentionLocal.h"
#include "NN/NNAttentionParts.h"
#include "NN/NNAttentionRing.h"
#include "NN/NNVerify.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

LogicalResult AttentionOp::verify() {
  AttentionView view(*this);
  if (failed(verifyAttention(view)))
    return failure();
  RankedTensorType query = tensorType(getQuery());
  RankedTensorType result = tensorType(getResult());
  if (failed(checkElement(*this, "result", result, "the query",
                          query.getElementType())))
    return failure();
  SmallVector<int64_t> shape(query.getShape());
  shape.back() = tensorType(getValue()).getShape().back();
  return checkShape(*this, "result", result,
                    "the query's shape with the value's head size", shape);
}

FailureOr<OpFactors> AttentionOp::getFactors() {
  AttentionView view(*this);
  AttentionFactors parts(view);
  OpFactors &factors = parts.factors;
  factors.operands = {parts.query, parts.key, parts.value, parts.queryPositions,
                      parts.keyPositions};
  factors.operands.resize(getNumOperands());
  factors.results = {parts.result};
  factors.linear = {{2}};
  return factors;
}

std::string AttentionOp::whyNoRing() {
  return nn::whyNoRing(AttentionView(*this));
}

void AttentionOp::setRingAxes(ArrayAttr axes) { setRingAttr(axes); }

ArrayAttr AttentionOp::getRingAxes() { return getRing().value_or(nullptr); }

int64_t AttentionOp::getWorkAt(int64_t position) {
  return visibleKeys(AttentionView(*this), position);
}

FailureOr<SmallVector<Value>>
AttentionOp::expandRing(OpBuilder &builder, int64_t members, bool contract) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  AttentionView view(*this);
  if (failed(requireGroup(view)) || failed(requireRing(view)))
    return failure();
  RingAttention ring(b, view, members);
  if (members > 1 && !contract)
    return SmallVector<Value>{ring.forward(getResult().getType())};
  return SmallVector<Value>{gatheredFrom(b, *this, ring).getResult()};
}

Operation *AttentionOp::buildLocal(OpBuilder &builder, ValueRange operands,
                                   TypeRange types,
                                   ArrayRef<SmallVector<OpFoldResult>> sizes) {
  return buildLocalAttention(*this, builder, operands, types);
}

void AttentionOp::setFactorOffset(OpBuilder &builder, unsigned factor,
                                  Value start) {
  setAttentionOffset(*this, builder, factor, start);
}

LogicalResult AttentionOp::setFactorFold(unsigned factor, int64_t parts) {
  setFoldAttr(parts ? Builder(getContext()).getI64IntegerAttr(parts) : nullptr);
  return success();
}

/// Normalises after the product with the values: `(sum e v) / sum e`.
FailureOr<SmallVector<Value>> AttentionOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  AttentionView view(*this);
  if (failed(requireGroup(view)) || failed(requireNoRing(view)))
    return failure();
  repeatKeyHeads(b, view);
  AttentionSpace space(b, view);
  Value products = space.products(space.splitHeads(getQuery()));
  Value powers = space.exponentials(products, space.rowMaxima(products));
  Value sums = space.rowSums(powers);
  powers = space.dropped(powers);
  Output context = space.queryOutput(view.value, space.compute);
  Value unscaled =
      contract(b, 6, space.scores(powers), space.keys(view.value), context);
  // From here on the loops are the context's dimensions: b, s, g, r, x.
  Loops all = loopRange(0, 5);
  Value result = map(b, 5, {{unscaled, all}, {sums, {0, 2, 3, 1}}},
                     {all, context.sizes, space.element},
                     [](ImplicitLocOpBuilder &nested, ValueRange x) {
                       return div(nested, x[0], x[1]);
                     });
  return SmallVector<Value>{space.joinHeads(result, getResult().getType())};
}

LogicalResult
AttentionOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                           ArrayRef<Type> wanted,
                           SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(getNumOperands(), Value());
  if (!resultGradients[0] || !(wanted[0] || wanted[1] || wanted[2]))
    return success();
  auto grad = AttentionGradOp::create(
      builder, getLoc(), getQuery().getType(), getKey().getType(),
      getValue().getType(), getQuery(), getKey(), getValue(),
      resultGradients[0], getQueryPositions(), getKeyPositions(), getSeed(),
      getStream(), getBatchStart(), getQueryStart(), getHeadStart(),
      getCausalAttr(), getWindowAttr(), getScaleAttr(), getDropoutAttr(),
      getSiteAttr(), getGroupAttr(), getWithinGroupsAttr(), getShapeAttr(),
      getFoldAttr(), getRingAttr(), getRingOfAttr());
  for (unsigned i = 0; i < 3; ++i)
    if (wanted[i])
      operandGradients[i] = grad->getResult(i);
  return success();
}
