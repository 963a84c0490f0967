//===- NNOptimizer.cpp - Optimizer ----------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.sum_squares, nn.add_n and nn.adamw: checks, factors, definitions.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNBuilders.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// nn.sum_squares
//===----------------------------------------------------------------------===//

LogicalResult SumSquaresOp::verify() {
  RankedTensorType result = tensorType(getResult());
  if (failed(checkFloat(*this, "input", tensorType(getInput()))) ||
      failed(checkFloat(*this, "result", result)))
    return failure();
  return checkRank(*this, "result", result, 0);
}

FailureOr<OpFactors> SumSquaresOp::getFactors() {
  OpFactors factors;
  factors.uniform = true;
  ValueFactors dims;
  for (int64_t size : tensorType(getInput()).getShape())
    dims.push_back({factors.add(size)});
  factors.operands.push_back(dims);
  factors.results.emplace_back();
  return factors;
}

FailureOr<SmallVector<Value>> SumSquaresOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  unsigned rank = tensorType(getInput()).getRank();
  Type element = tensorType(getResult()).getElementType();
  Value sum = reduce(
      b, rank, Access{getInput(), loopRange(0, rank)},
      {{}, {}, computeType(element)}, Combine::Sum,
      [](ImplicitLocOpBuilder &b, ValueRange x) { return mul(b, x[0], x[0]); });
  return SmallVector<Value>{storedAs(b, sum, element)};
}

//===----------------------------------------------------------------------===//
// nn.add_n
//===----------------------------------------------------------------------===//

LogicalResult AddNOp::verify() {
  if (getInputs().empty())
    return emitOpError() << "expected at least one operand, got none";
  RankedTensorType result = tensorType(getResult());
  if (failed(checkFloat(*this, "result", result)))
    return failure();
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    std::string name = "operand " + std::to_string(i);
    RankedTensorType type = tensorType(input);
    if (failed(checkElement(*this, name, type, "the result",
                            result.getElementType())) ||
        failed(
            checkShape(*this, name, type, "as the result", result.getShape())))
      return failure();
  }
  return success();
}

FailureOr<OpFactors> AddNOp::getFactors() {
  OpFactors factors = OpFactors::elementwise(*this);
  factors.linear.resize(1);
  for (unsigned i = 0; i < getNumOperands(); ++i)
    factors.linear[0].push_back(i);
  return factors;
}

FailureOr<SmallVector<Value>> AddNOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RankedTensorType type = tensorType(getResult());
  if (getInputs().size() == 1)
    return SmallVector<Value>{getInputs().front()};
  Loops all = loopRange(0, type.getRank());
  SmallVector<Access> inputs;
  for (Value input : getInputs())
    inputs.push_back({input, all});
  return SmallVector<Value>{
      map(b, type.getRank(), inputs,
          {all, dimSizes(b, getInputs().front()), type.getElementType()},
          [](ImplicitLocOpBuilder &b, ValueRange x) {
            Value sum = x.front();
            for (Value term : x.drop_front())
              sum = add(b, sum, term);
            return sum;
          })};
}

//===----------------------------------------------------------------------===//
// nn.adamw
//===----------------------------------------------------------------------===//

LogicalResult AdamWOp::verify() {
  RankedTensorType param = tensorType(getParam());
  std::pair<StringRef, Value> alike[] = {
      {"param", getParam()}, {"grad", getGrad()}, {"m", getM()}, {"v", getV()}};
  for (auto &[name, value] : alike) {
    RankedTensorType type = tensorType(value);
    if (failed(checkFloat(*this, name, type)) ||
        failed(checkShape(*this, name, type, "as param", param.getShape())))
      return failure();
  }
  RankedTensorType scalar = tensorType(getLr());
  if (failed(checkFloat(*this, "the scalars", scalar)))
    return failure();
  return checkRank(*this, "the scalars", scalar, 0);
}

FailureOr<OpFactors> AdamWOp::getFactors() {
  return OpFactors::elementwise(*this);
}

namespace {
/// The operands of nn.adamw, in its order.
enum AdamW : unsigned {
  Param,
  Grad,
  M,
  V,
  Lr,
  Beta1,
  Beta2,
  Eps,
  Decay,
  Correction1,
  Correction2,
  GradScale
};
} // namespace

/// The elements in the widest of their types.
static SmallVector<Value> inOneType(ImplicitLocOpBuilder &b, ValueRange x) {
  Type widest = x.front().getType();
  for (Type type : x.getTypes())
    if (type.getIntOrFloatBitWidth() > widest.getIntOrFloatBitWidth())
      widest = type;
  return llvm::map_to_vector(
      x, [&](Value value) { return converted(b, value, widest); });
}

/// The formula in the op's description.
static SmallVector<Value> adamW(ImplicitLocOpBuilder &b, ValueRange elements) {
  SmallVector<Value> x = inOneType(b, elements);
  Value one = floatConstant(b, x[Param].getType(), 1);
  Value g = mul(b, x[Grad], x[GradScale]);
  Value m = add(b, mul(b, x[Beta1], x[M]), mul(b, sub(b, one, x[Beta1]), g));
  Value v = add(b, mul(b, x[Beta2], x[V]),
                mul(b, sub(b, one, x[Beta2]), mul(b, g, g)));
  Value root = math::SqrtOp::create(b, div(b, v, x[Correction2]));
  Value direction = div(b, div(b, m, x[Correction1]), add(b, root, x[Eps]));
  Value kept = mul(b, x[Param], sub(b, one, mul(b, x[Lr], x[Decay])));
  return {sub(b, kept, mul(b, x[Lr], direction)), m, v};
}

FailureOr<SmallVector<Value>> AdamWOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  unsigned rank = tensorType(getParam()).getRank();
  Loops all = loopRange(0, rank);
  SmallVector<Access> inputs;
  for (Value operand : getOperands())
    inputs.push_back({operand, inputs.size() <= V ? all : Loops()});
  Sizes sizes = dimSizes(b, getParam());
  SmallVector<Output> outputs;
  for (Value state : {getParam(), getM(), getV()})
    outputs.push_back({all, sizes, tensorType(state).getElementType()});
  return mapMany(b, rank, inputs, outputs, adamW);
}
