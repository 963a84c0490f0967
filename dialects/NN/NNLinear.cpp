//===- NNLinear.cpp - Linear maps -----------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.linear and nn.bias_add: checks, factors, gradients, definitions.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNBuilders.h"
#include "NN/NNVerify.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// nn.linear
//===----------------------------------------------------------------------===//

LogicalResult LinearOp::verify() {
  RankedTensorType input = tensorType(getInput());
  RankedTensorType weight = tensorType(getWeight());
  RankedTensorType result = tensorType(getResult());
  if (failed(checkMinRank(*this, "input", input, 1)) ||
      failed(checkRank(*this, "weight", weight, 2)) ||
      failed(checkFloat(*this, "input", input)))
    return failure();
  Type element = input.getElementType();
  int64_t contracted = getTransposed() ? 0 : 1;
  if (failed(checkElement(*this, "weight", weight, "the input", element)) ||
      failed(checkElement(*this, "result", result, "the input", element)) ||
      failed(checkDim(*this, "weight", weight, contracted,
                      "the input's last dimension", input.getShape().back())))
    return failure();
  SmallVector<int64_t> shape(input.getShape().drop_back());
  shape.push_back(weight.getDimSize(1 - contracted));
  return checkShape(*this, "result", result,
                    "the input's leading dimensions and the weight's rows",
                    shape);
}

namespace {
/// The loops of a linear map: the leading dimensions, then N, then K.
struct LinearLoops {
  explicit LinearLoops(LinearOp op) {
    unsigned leading = tensorType(op.getInput()).getRank() - 1;
    unsigned n = leading, k = leading + 1;
    count = leading + 2;
    input = result = loopRange(0, leading);
    input.push_back(k);
    result.push_back(n);
    weight = op.getTransposed() ? Loops{k, n} : Loops{n, k};
  }
  unsigned count;
  Loops input, weight, result;
};
} // namespace

/// One factor a loop.
static ValueFactors factorsOf(ArrayRef<unsigned> loops) {
  ValueFactors dims;
  for (unsigned loop : loops)
    dims.push_back({loop});
  return dims;
}

FailureOr<OpFactors> LinearOp::getFactors() {
  LinearLoops loops(*this);
  OpFactors factors;
  for (int64_t size : tensorType(getResult()).getShape())
    factors.add(size);
  factors.add(tensorType(getInput()).getShape().back());
  factors.operands = {factorsOf(loops.input), factorsOf(loops.weight)};
  factors.results = {factorsOf(loops.result)};
  factors.linear = {{0}, {1}};
  return factors;
}

FailureOr<SmallVector<Value>> LinearOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  LinearLoops loops(*this);
  Sizes sizes = dimSizes(b, getInput());
  sizes.back() = dimSize(b, getWeight(), getTransposed() ? 1 : 0);
  Type element = tensorType(getResult()).getElementType();
  return SmallVector<Value>{contract(b, loops.count, {getInput(), loops.input},
                                     {getWeight(), loops.weight},
                                     {loops.result, sizes, element})};
}

LogicalResult
LinearOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                        ArrayRef<Type> wanted,
                        SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(2, Value());
  Value grad = resultGradients[0];
  if (!grad)
    return success();
  ImplicitLocOpBuilder b(getLoc(), builder);
  LinearLoops loops(*this);
  Access gradAccess{grad, loops.result};
  Access input{getInput(), loops.input}, weight{getWeight(), loops.weight};
  if (wanted[0])
    operandGradients[0] =
        contract(b, loops.count, gradAccess, weight,
                 {loops.input, dimSizes(b, getInput()), wanted[0]});
  if (wanted[1])
    operandGradients[1] =
        contract(b, loops.count, gradAccess, input,
                 {loops.weight, dimSizes(b, getWeight()), wanted[1]});
  return success();
}

//===----------------------------------------------------------------------===//
// nn.bias_add
//===----------------------------------------------------------------------===//

LogicalResult BiasAddOp::verify() {
  RankedTensorType input = tensorType(getInput());
  RankedTensorType bias = tensorType(getBias());
  if (failed(checkMinRank(*this, "input", input, 1)) ||
      failed(checkFloat(*this, "input", input)) ||
      failed(checkElement(*this, "bias", bias, "the input",
                          input.getElementType())))
    return failure();
  return checkShape(*this, "bias", bias, "the input's last dimension",
                    {input.getShape().back()});
}

FailureOr<OpFactors> BiasAddOp::getFactors() {
  OpFactors factors = OpFactors::elementwise(*this);
  unsigned last = tensorType(getInput()).getRank() - 1;
  factors.operands[1] = {{last}};
  factors.uniform = false;
  factors.linear = {{0, 1}};
  return factors;
}

FailureOr<SmallVector<Value>> BiasAddOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RankedTensorType type = tensorType(getInput());
  unsigned rank = type.getRank();
  Loops all = loopRange(0, rank);
  Access input{getInput(), all}, bias{getBias(), {rank - 1}};
  return SmallVector<Value>{
      map(b, rank, {input, bias},
          {all, dimSizes(b, getInput()), type.getElementType()},
          [](ImplicitLocOpBuilder &b, ValueRange x) {
            return add(b, x[0], x[1]);
          })};
}

LogicalResult
BiasAddOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                         ArrayRef<Type> wanted,
                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(2, Value());
  Value grad = resultGradients[0];
  if (!grad)
    return success();
  ImplicitLocOpBuilder b(getLoc(), builder);
  if (wanted[0])
    operandGradients[0] = grad;
  if (wanted[1])
    operandGradients[1] = sumToLast(b, grad, wanted[1]);
  return success();
}
