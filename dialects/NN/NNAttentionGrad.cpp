//===- NNAttentionGrad.cpp - Gradients of attention -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.attention_grad: checks, factors, definition.
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

LogicalResult AttentionGradOp::verify() {
  AttentionView view(*this);
  if (failed(verifyAttention(view)))
    return failure();
  Type element = tensorType(getQuery()).getElementType();
  SmallVector<int64_t> shape(tensorType(getQuery()).getShape());
  shape.back() = tensorType(getValue()).getShape().back();
  RankedTensorType grad = tensorType(getGrad());
  if (failed(checkElement(*this, "grad", grad, "the query", element)) ||
      failed(checkShape(*this, "grad", grad,
                        "the query's shape with the value's head size", shape)))
    return failure();
  std::pair<StringRef, std::pair<Value, Value>> pairs[] = {
      {"query_grad", {getQueryGrad(), getQuery()}},
      {"key_grad", {getKeyGrad(), getKey()}},
      {"value_grad", {getValueGrad(), getValue()}}};
  for (auto &[name, values] : pairs) {
    RankedTensorType type = tensorType(values.first);
    if (failed(checkElement(*this, name, type, "the query", element)) ||
        failed(checkShape(*this, name, type, "as its operand",
                          tensorType(values.second).getShape())))
      return failure();
  }
  return success();
}

FailureOr<OpFactors> AttentionGradOp::getFactors() {
  AttentionView view(*this);
  AttentionFactors parts(view);
  OpFactors &factors = parts.factors;
  factors.operands = {parts.query,          parts.key,
                      parts.value,          parts.result,
                      parts.queryPositions, parts.keyPositions};
  factors.operands.resize(getNumOperands());
  factors.results = {parts.query, parts.key, parts.value};
  factors.linear = {{3}};
  return factors;
}

std::string AttentionGradOp::whyNoRing() {
  return nn::whyNoRing(AttentionView(*this));
}

void AttentionGradOp::setRingAxes(ArrayAttr axes) { setRingAttr(axes); }

ArrayAttr AttentionGradOp::getRingAxes() { return getRing().value_or(nullptr); }

int64_t AttentionGradOp::getWorkAt(int64_t position) {
  return visibleKeys(AttentionView(*this), position);
}

FailureOr<SmallVector<Value>> AttentionGradOp::expandRing(OpBuilder &builder,
                                                          int64_t members,
                                                          bool contract) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  AttentionView view(*this);
  if (failed(requireGroup(view)) || failed(requireRing(view)))
    return failure();
  RingAttention ring(b, view, members);
  if (members > 1 && !contract)
    return ring.backward(getGrad(), getResultTypes());
  AttentionGradOp whole = gatheredFrom(b, *this, ring);
  return SmallVector<Value>{
      whole.getQueryGrad(),
      ring.scattered(whole.getKeyGrad(), getKeyGrad().getType()),
      ring.scattered(whole.getValueGrad(), getValueGrad().getType())};
}

Operation *
AttentionGradOp::buildLocal(OpBuilder &builder, ValueRange operands,
                            TypeRange types,
                            ArrayRef<SmallVector<OpFoldResult>> sizes) {
  return buildLocalAttention(*this, builder, operands, types);
}

void AttentionGradOp::setFactorOffset(OpBuilder &builder, unsigned factor,
                                      Value start) {
  setAttentionOffset(*this, builder, factor, start);
}

LogicalResult AttentionGradOp::setFactorFold(unsigned factor, int64_t parts) {
  setFoldAttr(parts ? Builder(getContext()).getI64IntegerAttr(parts) : nullptr);
  return success();
}

/// The probabilities `e / sum e`, as they are and as dropout leaves them (the
/// same value without dropout).
static std::pair<Value, Value> probabilities(ImplicitLocOpBuilder &b,
                                             const AttentionSpace &space,
                                             Value powers, Value sums,
                                             bool drops) {
  Output output = space.scoreOutput(space.element);
  SmallVector<Output> outputs(drops ? 2 : 1, output);
  SmallVector<Value> results =
      mapMany(b, 5, {space.scores(powers), space.rows(sums)}, outputs,
              [&](ImplicitLocOpBuilder &nested, ValueRange x) {
                SmallVector<Value> values{div(nested, x[0], x[1])};
                if (drops)
                  values.push_back(space.dropped(nested, values.front()));
                return values;
              });
  return {results.front(), results.back()};
}

/// With P the probabilities, D what dropout leaves of them, and dD the gradient
/// for D: `(D dD - P sum_t(D dD)) scale`, the gradient for the products.
static Value productsGrad(ImplicitLocOpBuilder &b, const AttentionSpace &space,
                          Value whole, Value dropped, Value droppedGrad,
                          double scale) {
  Value delta = space.rowDots(dropped, droppedGrad);
  return map(b, 5,
             {space.scores(whole), space.scores(dropped),
              space.scores(droppedGrad), space.rows(delta)},
             space.scoreOutput(space.element),
             [&](ImplicitLocOpBuilder &nested, ValueRange x) {
               Value own = mul(nested, x[1], x[2]);
               Value shared = mul(nested, x[0], x[3]);
               Value factor = floatConstant(nested, space.compute, scale);
               return mul(nested, sub(nested, own, shared), factor);
             });
}

FailureOr<SmallVector<Value>> AttentionGradOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  AttentionView view(*this);
  if (failed(requireGroup(view)) || failed(requireNoRing(view)))
    return failure();
  repeatKeyHeads(b, view);
  AttentionSpace space(b, view);
  Value query = space.splitHeads(getQuery());
  Value grad = space.splitHeads(getGrad());
  Value products = space.products(query);
  Value powers = space.exponentials(products, space.rowMaxima(products));
  Value sums = space.rowSums(powers);
  auto [whole, dropped] =
      probabilities(b, space, powers, sums, view.dropout > 0);
  Value droppedGrad =
      contract(b, 6, space.queries(grad), space.keys(view.value),
               space.scoreOutput(space.compute));
  Value slopes =
      productsGrad(b, space, whole, dropped, droppedGrad, view.scale);
  Value queryGrad = contract(b, 6, space.scores(slopes), space.keys(view.key),
                             space.queryOutput(getQuery(), space.element));
  Value keyGrad = contract(b, 6, space.scores(slopes), space.queries(query),
                           space.keyOutput(view.key, space.element));
  Value valueGrad = contract(b, 6, space.scores(dropped), space.queries(grad),
                             space.keyOutput(view.value, space.element));
  return SmallVector<Value>{
      space.joinHeads(queryGrad, getQueryGrad().getType()),
      sumKeyHeads(b, view, keyGrad, getKey()),
      sumKeyHeads(b, view, valueGrad, getValue())};
}
