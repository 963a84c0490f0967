//===- NNRope.cpp - Rotary positions --------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.rope_table and nn.rope: checks, factors, gradient, definitions.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNBuilders.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// nn.rope_table
//===----------------------------------------------------------------------===//

LogicalResult RopeTableOp::verify() {
  RankedTensorType positions = tensorType(getPositions());
  RankedTensorType cos = tensorType(getCos());
  if (failed(checkInteger(*this, "positions", positions)) ||
      failed(checkFloat(*this, "the tables", cos)))
    return failure();
  SmallVector<int64_t> shape(positions.getShape());
  shape.push_back(getFrequencies().size());
  return checkShape(*this, "the tables", cos,
                    "the shape of positions and the number of frequencies",
                    shape);
}

FailureOr<OpFactors> RopeTableOp::getFactors() {
  OpFactors factors = OpFactors::elementwise(*this);
  factors.factors.back().splittable = false;
  factors.uniform = false;
  return factors;
}

FailureOr<SmallVector<Value>> RopeTableOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  unsigned rank = tensorType(getPositions()).getRank();
  Type element = tensorType(getCos()).getElementType();
  Type compute = computeType(element);
  int64_t count = getFrequencies().size();
  SmallVector<Attribute> values;
  for (double frequency : getFrequencies())
    values.push_back(b.getFloatAttr(compute, frequency));
  auto frequencyType = RankedTensorType::get({count}, compute);
  Value frequencies = arith::ConstantOp::create(
      b, DenseElementsAttr::get(frequencyType, values));
  Sizes sizes = dimSizes(b, getPositions());
  sizes.push_back(b.getIndexAttr(count));
  Output output{loopRange(0, rank + 1), sizes, element};
  return mapMany(
      b, rank + 1,
      {{getPositions(), loopRange(0, rank)}, {frequencies, {rank}}},
      {output, output}, [&](ImplicitLocOpBuilder &b, ValueRange x) {
        Value position = arith::SIToFPOp::create(b, compute, x[0]);
        Value angle = mul(b, position, x[1]);
        Value scale = floatConstant(b, compute, getScale().convertToDouble());
        Value cos = math::CosOp::create(b, angle);
        Value sin = math::SinOp::create(b, angle);
        return SmallVector<Value>{mul(b, scale, cos), mul(b, scale, sin)};
      });
}

//===----------------------------------------------------------------------===//
// nn.rope
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::verify() {
  RankedTensorType input = tensorType(getInput());
  RankedTensorType cos = tensorType(getCos());
  if (failed(checkRank(*this, "input", input, 4)) ||
      failed(checkFloat(*this, "input", input)) ||
      failed(checkElement(*this, "the tables", cos, "the input",
                          input.getElementType())))
    return failure();
  int64_t size = input.getDimSize(3);
  if (!ShapedType::isDynamic(size) && size % 2)
    return emitOpError() << "expected an even dimension 3 of input, got "
                         << size;
  int64_t half = ShapedType::isDynamic(size) ? size : size / 2;
  return checkShape(*this, "the tables", cos,
                    "B x S x D/2 of the input B x S x H x D",
                    {input.getDimSize(0), input.getDimSize(1), half});
}

FailureOr<OpFactors> RopeOp::getFactors() {
  OpFactors factors;
  for (int64_t size : tensorType(getInput()).getShape())
    factors.add(size);
  factors.factors[3].splittable = false;
  unsigned half = factors.add(tensorType(getCos()).getDimSize(2), /*grain=*/1,
                              /*splittable=*/false);
  ValueFactors input{{0}, {1}, {2}, {3}}, table{{0}, {1}, {half}};
  factors.operands = {input, table, table};
  factors.results = {input};
  factors.linear = {{0}};
  return factors;
}

/// Half of an even size.
static OpFoldResult halfOf(ImplicitLocOpBuilder &b, OpFoldResult size) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return b.getIndexAttr(*constant / 2);
  Value two = indexConstant(b, 2);
  return arith::DivUIOp::create(b, cast<Value>(size), two).getResult();
}

FailureOr<SmallVector<Value>> RopeOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RankedTensorType type = tensorType(getInput());
  // Which of the pair, and which pair: loops 3 and 4 in the order in which the
  // last dimension holds them.
  unsigned side = getInterleaved() ? 4 : 3, pair = getInterleaved() ? 3 : 4;
  Sizes sizes = dimSizes(b, getInput());
  OpFoldResult half = halfOf(b, sizes.back());
  sizes.resize(5);
  sizes[pair] = half;
  sizes[side] = b.getIndexAttr(2);
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  SmallVector<ReassociationIndices> groups{{0}, {1}, {2}, {3, 4}};
  Type element = type.getElementType();
  Value pairs = tensor::ExpandShapeOp::create(
      b, RankedTensorType::get(shape, element), getInput(), groups, sizes);
  Loops all = loopRange(0, 5), table{0, 1, pair};
  bool backwards = getInverse();
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
    SmallVector<Value> indices;
    for (unsigned loop : all)
      indices.push_back(linalg::IndexOp::create(b, loop));
    Value one = indexConstant(b, 1);
    indices[side] = arith::SubIOp::create(b, one, indices[side]);
    // The other one's index is 1 for the first of the pair.
    Value isFirst =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, indices[side], one);
    Value other = tensor::ExtractOp::create(b, pairs, indices);
    if (other.getType() != x[0].getType())
      other = arith::ExtFOp::create(b, x[0].getType(), other);
    Value straight = mul(b, x[0], x[1]), across = mul(b, other, x[2]);
    Value minus = sub(b, straight, across), plus = add(b, straight, across);
    return backwards ? select(b, isFirst, plus, minus)
                     : select(b, isFirst, minus, plus);
  };
  Value turned = map(b, 5, {{pairs, all}, {getCos(), table}, {getSin(), table}},
                     {all, sizes, element}, body);
  return SmallVector<Value>{
      tensor::CollapseShapeOp::create(b, type, turned, groups)};
}

LogicalResult RopeOp::buildGradient(OpBuilder &builder,
                                    ValueRange resultGradients,
                                    ArrayRef<Type> wanted,
                                    SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(3, Value());
  if (wanted[1] || wanted[2])
    return emitOpError() << "has no gradient for its tables";
  if (resultGradients[0] && wanted[0])
    operandGradients[0] = RopeOp::create(
        builder, getLoc(), getInput().getType(), resultGradients[0], getCos(),
        getSin(), getInterleaved(), !getInverse());
  return success();
}
