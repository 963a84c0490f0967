//===- NNSoftmax.cpp - Softmax over the last dimension --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.softmax and its gradient: checks, factors, definitions.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNBuilders.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

/// All dimensions but the last can be split.
static OpFactors rowFactors(Operation *op) {
  OpFactors factors = OpFactors::elementwise(op);
  factors.factors.back().splittable = false;
  return factors;
}

/// The loops and sizes of rows and of their elements.
namespace {
struct Rows {
  Rows(ImplicitLocOpBuilder &b, Value tensor) : type(tensorType(tensor)) {
    unsigned rank = static_cast<unsigned>(type.getRank());
    all = loopRange(0, rank);
    outer = loopRange(0, rank - 1);
    element = type.getElementType();
    compute = computeType(element);
    sizes = dimSizes(b, tensor);
    row = {outer, Sizes(ArrayRef(sizes).drop_back()), compute};
  }
  unsigned loops() const { return all.size(); }
  RankedTensorType type;
  Loops all, outer;
  Type element, compute;
  Sizes sizes;
  Output row;
};
} // namespace

//===----------------------------------------------------------------------===//
// nn.softmax
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::verify() {
  RankedTensorType type = tensorType(getInput());
  if (failed(checkMinRank(*this, "input", type, 1)))
    return failure();
  return checkFloat(*this, "input", type);
}

FailureOr<OpFactors> SoftmaxOp::getFactors() { return rowFactors(*this); }

FailureOr<SmallVector<Value>> SoftmaxOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Rows rows(b, getInput());
  Access input{getInput(), rows.all};
  auto power = [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
    return math::ExpOp::create(b, sub(b, x[0], x[1]));
  };
  Value maxima =
      reduce(b, rows.loops(), input, rows.row, Combine::Max,
             [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
  Access top{maxima, rows.outer};
  Value sums =
      reduce(b, rows.loops(), {input, top}, rows.row, Combine::Sum, power);
  return SmallVector<Value>{map(b, rows.loops(),
                                {input, top, {sums, rows.outer}},
                                {rows.all, rows.sizes, rows.element},
                                [&](ImplicitLocOpBuilder &b, ValueRange x) {
                                  return div(b, power(b, x), x[2]);
                                })};
}

LogicalResult
SoftmaxOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                         ArrayRef<Type> wanted,
                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(1, Value());
  if (resultGradients[0] && wanted[0])
    operandGradients[0] =
        SoftmaxGradOp::create(builder, getLoc(), getInput().getType(),
                              getResult(), resultGradients[0]);
  return success();
}

//===----------------------------------------------------------------------===//
// nn.softmax_grad
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxGradOp::verify() {
  RankedTensorType type = tensorType(getOutput());
  RankedTensorType grad = tensorType(getGrad());
  if (failed(checkMinRank(*this, "output", type, 1)) ||
      failed(checkFloat(*this, "output", type)) ||
      failed(checkElement(*this, "grad", grad, "the output",
                          type.getElementType())))
    return failure();
  return checkShape(*this, "grad", grad, "as the output", type.getShape());
}

FailureOr<OpFactors> SoftmaxGradOp::getFactors() {
  OpFactors factors = rowFactors(*this);
  factors.linear = {{1}};
  return factors;
}

FailureOr<SmallVector<Value>> SoftmaxGradOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Rows rows(b, getOutput());
  Access output{getOutput(), rows.all}, grad{getGrad(), rows.all};
  Value sums = reduce(
      b, rows.loops(), {output, grad}, rows.row, Combine::Sum,
      [](ImplicitLocOpBuilder &b, ValueRange x) { return mul(b, x[0], x[1]); });
  return SmallVector<Value>{map(b, rows.loops(),
                                {output, grad, {sums, rows.outer}},
                                {rows.all, rows.sizes, rows.element},
                                [](ImplicitLocOpBuilder &b, ValueRange x) {
                                  return mul(b, x[0], sub(b, x[1], x[2]));
                                })};
}
