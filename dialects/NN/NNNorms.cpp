//===- NNNorms.cpp - Norms ------------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.rms_norm and nn.layer_norm: checks, factors, gradients, definitions.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNNormParts.h"
#include "NN/NNVerify.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// nn.rms_norm
//===----------------------------------------------------------------------===//

LogicalResult RmsNormOp::verify() {
  return verifyNorm(*this, getInput(), {{"weight", getWeight()}},
                    getEpsilon().convertToDouble());
}

FailureOr<OpFactors> RmsNormOp::getFactors() {
  OpFactors factors = normFactors(*this);
  factors.linear = {{1}};
  return factors;
}

FailureOr<SmallVector<Value>> RmsNormOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RowSpace rows(b, getInput());
  Value scale = rows.inverseRms(getInput(), getEpsilon().convertToDouble());
  return SmallVector<Value>{rows.eachElement(
      {rows.whole(getInput()), rows.perRow(scale), rows.perColumn(getWeight())},
      [](ImplicitLocOpBuilder &b, ValueRange x) {
        return mul(b, mul(b, x[0], x[1]), x[2]);
      })};
}

LogicalResult
RmsNormOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                         ArrayRef<Type> wanted,
                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(2, Value());
  Value grad = resultGradients[0];
  if (!grad)
    return success();
  if (wanted[0])
    operandGradients[0] = RmsNormInputGradOp::create(
        builder, getLoc(), getInput().getType(), getInput(), getWeight(), grad,
        getEpsilonAttr());
  if (wanted[1])
    operandGradients[1] = RmsNormWeightGradOp::create(
        builder, getLoc(), tensorType(getWeight()).clone(wanted[1]), getInput(),
        grad, getEpsilonAttr());
  return success();
}

//===----------------------------------------------------------------------===//
// nn.layer_norm
//===----------------------------------------------------------------------===//

LogicalResult LayerNormOp::verify() {
  return verifyNorm(*this, getInput(),
                    {{"weight", getWeight()}, {"bias", getBias()}},
                    getEpsilon().convertToDouble());
}

FailureOr<OpFactors> LayerNormOp::getFactors() {
  OpFactors factors = normFactors(*this);
  factors.linear = {{1, 2}};
  return factors;
}

FailureOr<SmallVector<Value>> LayerNormOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RowSpace rows(b, getInput());
  Value mean = rows.mean(getInput());
  Value scale =
      rows.inverseDeviation(getInput(), mean, getEpsilon().convertToDouble());
  return SmallVector<Value>{rows.eachElement(
      {rows.whole(getInput()), rows.perRow(mean), rows.perRow(scale),
       rows.perColumn(getWeight()), rows.perColumn(getBias())},
      [](ImplicitLocOpBuilder &b, ValueRange x) {
        Value normal = mul(b, sub(b, x[0], x[1]), x[2]);
        return add(b, mul(b, normal, x[3]), x[4]);
      })};
}

LogicalResult
LayerNormOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                           ArrayRef<Type> wanted,
                           SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(3, Value());
  Value grad = resultGradients[0];
  if (!grad)
    return success();
  ImplicitLocOpBuilder b(getLoc(), builder);
  if (wanted[0])
    operandGradients[0] =
        LayerNormInputGradOp::create(b, getInput().getType(), getInput(),
                                     getWeight(), grad, getEpsilonAttr());
  if (wanted[1])
    operandGradients[1] = LayerNormWeightGradOp::create(
        b, tensorType(getWeight()).clone(wanted[1]), getInput(), grad,
        getEpsilonAttr());
  if (wanted[2])
    operandGradients[2] = sumToLast(b, grad, wanted[2]);
  return success();
}
