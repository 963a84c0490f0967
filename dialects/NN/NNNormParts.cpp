//===- NNNormParts.cpp - What norms and their gradients share -------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The row statistics, checks and factors of NNNormParts.h.
///
//===----------------------------------------------------------------------===//

#include "NN/NNNormParts.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

RowSpace::RowSpace(ImplicitLocOpBuilder &b, Value input) : b(b) {
  RankedTensorType type = tensorType(input);
  last = type.getRank() - 1;
  all = loopRange(0, last + 1);
  rows = loopRange(0, last);
  sizes = dimSizes(b, input);
  rowSizes = Sizes(ArrayRef(sizes).drop_back());
  element = type.getElementType();
  compute = computeType(element);
  size = floatValue(b, sizes.back(), compute);
}

SmallVector<Value> RowSpace::sumRows(ArrayRef<Access> inputs, unsigned results,
                                     MultiBody body) {
  SmallVector<Output> outputs(results, Output{rows, rowSizes, compute});
  return reduceMany(b, last + 1, inputs, outputs, Combine::Sum, body);
}

Value RowSpace::sumRow(ArrayRef<Access> inputs, Body body) {
  return reduce(b, last + 1, inputs, {rows, rowSizes, compute}, Combine::Sum,
                body);
}

Value RowSpace::eachRow(ArrayRef<Value> inputs, Body body) {
  SmallVector<Access> accesses;
  for (Value input : inputs)
    accesses.push_back(perRow(input));
  return map(b, last, accesses, {rows, rowSizes, compute}, body);
}

Value RowSpace::eachElement(ArrayRef<Access> inputs, Body body) {
  return map(b, last + 1, inputs, {all, sizes, element}, body);
}

Value RowSpace::sumColumns(ArrayRef<Access> inputs, Type stored, Body body) {
  Output output{{last}, {sizes.back()}, computeType(stored)};
  Value sum = reduce(b, last + 1, inputs, output, Combine::Sum, body);
  return storedAs(b, sum, stored);
}

Value RowSpace::overSize(ImplicitLocOpBuilder &nested, Value value) {
  return div(nested, value, size);
}

Value RowSpace::inverseRoot(Value sum, double epsilon) {
  return eachRow({sum}, [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
    Value shift = floatConstant(b, compute, epsilon);
    return math::RsqrtOp::create(b, add(b, overSize(b, x[0]), shift));
  });
}

Value RowSpace::inverseRms(Value input, double epsilon) {
  Value squares =
      sumRow({whole(input)}, [](ImplicitLocOpBuilder &b, ValueRange x) {
        return mul(b, x[0], x[0]);
      });
  return inverseRoot(squares, epsilon);
}

Value RowSpace::mean(Value input) {
  Value sum = sumRow({whole(input)},
                     [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
  return eachRow({sum}, [&](ImplicitLocOpBuilder &b, ValueRange x) {
    return overSize(b, x[0]);
  });
}

Value RowSpace::inverseDeviation(Value input, Value mean, double epsilon) {
  Value squares = sumRow({whole(input), perRow(mean)},
                         [](ImplicitLocOpBuilder &b, ValueRange x) {
                           Value centred = sub(b, x[0], x[1]);
                           return mul(b, centred, centred);
                         });
  return inverseRoot(squares, epsilon);
}

LogicalResult nn::verifyNorm(Operation *op, Value input,
                             ArrayRef<std::pair<StringRef, Value>> vectors,
                             double epsilon) {
  RankedTensorType type = tensorType(input);
  if (failed(checkMinRank(op, "input", type, 1)) ||
      failed(checkFloat(op, "input", type)) ||
      failed(checkPositive(op, "epsilon", epsilon)))
    return failure();
  for (auto [name, vector] : vectors) {
    RankedTensorType vectorType = tensorType(vector);
    if (failed(checkElement(op, name, vectorType, "the input",
                            type.getElementType())) ||
        failed(checkShape(op, name, vectorType, "the input's last dimension",
                          {type.getShape().back()})))
      return failure();
  }
  return success();
}

LogicalResult nn::verifyLikeInput(Operation *op, StringRef name, Value value,
                                  Value input) {
  RankedTensorType type = tensorType(value), like = tensorType(input);
  if (failed(checkElement(op, name, type, "the input", like.getElementType())))
    return failure();
  return checkShape(op, name, type, "as the input", like.getShape());
}

OpFactors nn::normFactors(Operation *op) {
  OpFactors factors;
  auto input = cast<RankedTensorType>(op->getOperand(0).getType());
  ValueFactors whole;
  for (int64_t size : input.getShape())
    whole.push_back({factors.add(size)});
  factors.factors.back().splittable = false;
  // A vector is told from the input by its rank; where the input itself is a
  // vector, both have the same factors.
  auto dims = [&](Type type) {
    int64_t rank = cast<RankedTensorType>(type).getRank();
    return rank == input.getRank() ? whole : ValueFactors{whole.back()};
  };
  for (Type type : op->getOperandTypes())
    factors.operands.push_back(dims(type));
  for (Type type : op->getResultTypes())
    factors.results.push_back(dims(type));
  return factors;
}
