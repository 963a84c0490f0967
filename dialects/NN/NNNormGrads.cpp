//===- NNNormGrads.cpp - Gradients of norms -------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The gradients of nn.rms_norm and nn.layer_norm for input and weight: checks,
/// factors, definitions.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNNormParts.h"
#include "NN/NNVerify.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

/// Checks of both gradients for the input.
template <typename GradOp> static LogicalResult verifyInputGrad(GradOp op) {
  Value input = op.getInput();
  return success(
      succeeded(verifyNorm(op, input, {{"weight", op.getWeight()}},
                           op.getEpsilon().convertToDouble())) &&
      succeeded(verifyLikeInput(op, "grad", op.getGrad(), input)) &&
      succeeded(verifyLikeInput(op, "result", op.getResult(), input)));
}

/// Checks of both gradients for the weight, which are sums and may be wider.
template <typename GradOp> static LogicalResult verifyWeightGrad(GradOp op) {
  RankedTensorType input = tensorType(op.getInput());
  RankedTensorType result = tensorType(op.getResult());
  if (failed(verifyNorm(op, op.getInput(), {},
                        op.getEpsilon().convertToDouble())) ||
      failed(verifyLikeInput(op, "grad", op.getGrad(), op.getInput())) ||
      failed(checkSumElement(op, "result", result, "the input",
                             input.getElementType())))
    return failure();
  return checkShape(op, "result", result, "the input's last dimension",
                    {input.getShape().back()});
}

//===----------------------------------------------------------------------===//
// nn.rms_norm_input_grad
//===----------------------------------------------------------------------===//

LogicalResult RmsNormInputGradOp::verify() { return verifyInputGrad(*this); }

FailureOr<OpFactors> RmsNormInputGradOp::getFactors() {
  OpFactors factors = normFactors(*this);
  factors.linear = {{1}, {2}};
  return factors;
}

/// With r = rsqrt(mean(x^2) + eps): `r w dy - x r^3 mean(x w dy)`.
FailureOr<SmallVector<Value>>
RmsNormInputGradOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RowSpace rows(b, getInput());
  Access input = rows.whole(getInput()), grad = rows.whole(getGrad());
  Access weight = rows.perColumn(getWeight());
  Value scale = rows.inverseRms(getInput(), getEpsilon().convertToDouble());
  Value dot = rows.sumRow({input, weight, grad},
                          [](ImplicitLocOpBuilder &b, ValueRange x) {
                            return mul(b, x[0], mul(b, x[1], x[2]));
                          });
  Value pull =
      rows.eachRow({scale, dot}, [&](ImplicitLocOpBuilder &b, ValueRange x) {
        Value cube = mul(b, x[0], mul(b, x[0], x[0]));
        return mul(b, cube, rows.overSize(b, x[1]));
      });
  return SmallVector<Value>{rows.eachElement(
      {input, weight, grad, rows.perRow(scale), rows.perRow(pull)},
      [](ImplicitLocOpBuilder &b, ValueRange x) {
        Value direct = mul(b, x[3], mul(b, x[1], x[2]));
        return sub(b, direct, mul(b, x[0], x[4]));
      })};
}

//===----------------------------------------------------------------------===//
// nn.rms_norm_weight_grad
//===----------------------------------------------------------------------===//

LogicalResult RmsNormWeightGradOp::verify() { return verifyWeightGrad(*this); }

FailureOr<OpFactors> RmsNormWeightGradOp::getFactors() {
  OpFactors factors = normFactors(*this);
  factors.linear = {{1}};
  return factors;
}

FailureOr<SmallVector<Value>>
RmsNormWeightGradOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RowSpace rows(b, getInput());
  Value scale = rows.inverseRms(getInput(), getEpsilon().convertToDouble());
  return SmallVector<Value>{rows.sumColumns(
      {rows.whole(getInput()), rows.perRow(scale), rows.whole(getGrad())},
      tensorType(getResult()).getElementType(),
      [](ImplicitLocOpBuilder &b, ValueRange x) {
        return mul(b, mul(b, x[0], x[1]), x[2]);
      })};
}

//===----------------------------------------------------------------------===//
// nn.layer_norm_input_grad
//===----------------------------------------------------------------------===//

LogicalResult LayerNormInputGradOp::verify() { return verifyInputGrad(*this); }

FailureOr<OpFactors> LayerNormInputGradOp::getFactors() {
  OpFactors factors = normFactors(*this);
  factors.linear = {{1}, {2}};
  return factors;
}

/// With n = (x - mean) r, r the inverse deviation, and g = w dy:
/// `r (g - mean(g) - n mean(g n))`.
FailureOr<SmallVector<Value>>
LayerNormInputGradOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RowSpace rows(b, getInput());
  Value mean = rows.mean(getInput());
  Value scale =
      rows.inverseDeviation(getInput(), mean, getEpsilon().convertToDouble());
  SmallVector<Access> inputs{rows.whole(getInput()), rows.perRow(mean),
                             rows.perRow(scale), rows.perColumn(getWeight()),
                             rows.whole(getGrad())};
  auto normal = [](ImplicitLocOpBuilder &b, ValueRange x) {
    return mul(b, sub(b, x[0], x[1]), x[2]);
  };
  SmallVector<Value> sums =
      rows.sumRows(inputs, 2, [&](ImplicitLocOpBuilder &b, ValueRange x) {
        Value g = mul(b, x[3], x[4]);
        return SmallVector<Value>{g, mul(b, g, normal(b, x))};
      });
  auto average = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    return rows.overSize(b, x[0]);
  };
  inputs.push_back(rows.perRow(rows.eachRow({sums[0]}, average)));
  inputs.push_back(rows.perRow(rows.eachRow({sums[1]}, average)));
  return SmallVector<Value>{
      rows.eachElement(inputs, [&](ImplicitLocOpBuilder &b, ValueRange x) {
        Value g = mul(b, x[3], x[4]);
        Value along = mul(b, normal(b, x), x[6]);
        return mul(b, x[2], sub(b, sub(b, g, x[5]), along));
      })};
}

//===----------------------------------------------------------------------===//
// nn.layer_norm_weight_grad
//===----------------------------------------------------------------------===//

LogicalResult LayerNormWeightGradOp::verify() {
  return verifyWeightGrad(*this);
}

FailureOr<OpFactors> LayerNormWeightGradOp::getFactors() {
  OpFactors factors = normFactors(*this);
  factors.linear = {{1}};
  return factors;
}

FailureOr<SmallVector<Value>>
LayerNormWeightGradOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RowSpace rows(b, getInput());
  Value mean = rows.mean(getInput());
  Value scale =
      rows.inverseDeviation(getInput(), mean, getEpsilon().convertToDouble());
  return SmallVector<Value>{
      rows.sumColumns({rows.whole(getInput()), rows.perRow(mean),
                       rows.perRow(scale), rows.whole(getGrad())},
                      tensorType(getResult()).getElementType(),
                      [](ImplicitLocOpBuilder &b, ValueRange x) {
                        return mul(b, mul(b, sub(b, x[0], x[1]), x[2]), x[3]);
                      })};
}
