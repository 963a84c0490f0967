//===- NNQueueParts.cpp - Definitions of the ops on queues ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The functions of NNQueueParts.h.
///
//===----------------------------------------------------------------------===//

#include "NN/NNQueueParts.h"
#include "NN/NNExpertParts.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// Checks and factors
//===----------------------------------------------------------------------===//

LogicalResult nn::verifyQueues(Operation *op, const QueueValues &values) {
  RankedTensorType queues = tensorType(values.queues);
  RankedTensorType ids = tensorType(values.ids);
  if (failed(checkRank(op, "queues", queues, 3)) ||
      failed(checkFloat(op, "queues", queues)) ||
      failed(checkRank(op, "ids", ids, 3)) ||
      failed(checkInteger(op, "ids", ids)))
    return failure();
  if (queues.isDynamicDim(0))
    return op->emitOpError()
           << "expected queues of a static number of experts, got " << queues;
  if (values.slot) {
    RankedTensorType slot = tensorType(values.slot);
    if (failed(checkInteger(op, "slot", slot)) ||
        failed(checkShape(op, "slot", slot, "as ids", ids.getShape())))
      return failure();
  }
  if (values.weights) {
    RankedTensorType weights = tensorType(values.weights);
    if (failed(checkFloat(op, "weights", weights)) ||
        failed(checkShape(op, "weights", weights, "as ids", ids.getShape())))
      return failure();
  }
  RankedTensorType tokens = tensorType(values.tokens);
  if (failed(checkElement(op, "tokens", tokens, "the queues",
                          queues.getElementType())))
    return failure();
  return checkShape(
      op, "tokens", tokens, "the positions of ids and a row of the queues",
      {ids.getDimSize(0), ids.getDimSize(1), queues.getDimSize(2)});
}

QueueFactors::QueueFactors(const QueueValues &values) {
  RankedTensorType queues = tensorType(values.queues);
  RankedTensorType ids = tensorType(values.ids);
  factors.add(ids.getDimSize(0));
  factors.add(ids.getDimSize(1));
  factors.add(queues.getDimSize(2));
  factors.add(ids.getDimSize(2), 1, false);
  factors.add(queues.getDimSize(0), 1, false);
}

Value nn::slotStart(OpBuilder &builder, Location loc, Value queues) {
  RankedTensorType type = tensorType(queues);
  ShardingAttr sharding = getSharding(type);
  if (!sharding || sharding.getDims()[1].empty())
    return {};
  DimShardingAttr split = sharding.getDims()[1];
  SmallVector<Attribute> axes(split.getAxes().begin(), split.getAxes().end());
  return PartStartOp::create(builder, loc, builder.getIndexType(),
                             builder.getArrayAttr(axes),
                             builder.getI64IntegerAttr(type.getDimSize(1)),
                             builder.getI64IntegerAttr(split.getGrain()));
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

Value QueueBuilder::dealSlots() {
  Value limit = indexValue(b, slots);
  Value counts = countChoices(b, values.ids, experts);
  CheckLoadOp::create(b, counts.getType(), counts, limit);
  Value earlier = countEarlier(b, values.ids, /*scope=*/0);
  Loops all{0, 1, 2};
  Type integer = b.getI64Type();
  Value bound = arith::IndexCastOp::create(b, integer, limit);
  Value first = start
                    ? arith::IndexCastOp::create(b, integer, start).getResult()
                    : Value();
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    Value known = below(b, x[0], integerConstant(b, experts));
    Value placed = both(b, known, less(b, x[1], bound));
    Value slot =
        first ? arith::AddIOp::create(b, x[1], first).getResult() : x[1];
    return select(b, placed, slot,
                  integerConstant(b, static_cast<uint64_t>(-1)));
  };
  return map(b, 3, {{values.ids, all}, {earlier, all}},
             {all, dimSizes(b, values.ids), integer}, body);
}

/// A choice's place, of which `inside` says whether it is here; else the
/// indices are some that are.
struct QueueBuilder::Place {
  Value inside, expert, slot;
};

QueueBuilder::Place QueueBuilder::placeOf(ImplicitLocOpBuilder &b, Value id,
                                          Value slot) {
  Type index = b.getIndexType();
  Value expert = arith::IndexCastOp::create(b, index, id);
  Value local = arith::IndexCastOp::create(b, index, slot);
  if (start)
    local = arith::SubIOp::create(b, local, start);
  // A choice without a slot is far before the part, and so not below its size.
  Value inside = both(b, below(b, local, indexValue(b, slots)),
                      below(b, expert, indexConstant(b, experts)));
  Value first = indexConstant(b, 0);
  return {inside, select(b, inside, expert, first),
          select(b, inside, local, first)};
}

//===----------------------------------------------------------------------===//
// Into queues
//===----------------------------------------------------------------------===//

/// Each choice's row of the queues laid end to end, -1 where it has none.
Value QueueBuilder::places() {
  Loops all{0, 1, 2};
  Value size = indexValue(b, slots);
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    Place place = placeOf(b, x[0], x[1]);
    Value row = arith::AddIOp::create(
        b, arith::MulIOp::create(b, place.expert, size), place.slot);
    row = arith::IndexCastOp::create(b, b.getI64Type(), row);
    return select(b, place.inside, row,
                  integerConstant(b, static_cast<uint64_t>(-1)));
  };
  return map(b, 3, {{values.ids, all}, {values.slot, all}},
             {all, dimSizes(b, values.ids), b.getI64Type()}, body);
}

/// Each choice's row of tokens, times its weight.
Value QueueBuilder::rows(Type element) {
  SmallVector<Access> inputs{{values.tokens, {0, 1, 3}}};
  if (values.weights)
    inputs.push_back({values.weights, {0, 1, 2}});
  Sizes sizes = dimSizes(b, values.ids);
  sizes.push_back(dimSize(b, values.tokens, 2));
  Type compute = computeType(element);
  return map(b, 4, inputs, {{0, 1, 2, 3}, sizes, element},
             [&](ImplicitLocOpBuilder &b, ValueRange x) {
               return values.weights ? mul(b, x[0], converted(b, x[1], compute))
                                     : x[0];
             });
}

/// `a * b`, static where both are.
static OpFoldResult product(ImplicitLocOpBuilder &b, OpFoldResult size,
                            int64_t factor) {
  if (auto constant = getConstantIntValue(size))
    return b.getIndexAttr(*constant * factor);
  return arith::MulIOp::create(b, cast<Value>(size), indexConstant(b, factor))
      .getResult();
}

static int64_t staticSize(OpFoldResult size) {
  return getConstantIntValue(size).value_or(ShapedType::kDynamic);
}

Value QueueBuilder::fill(Type element) {
  OpFoldResult width = dimSize(b, values.tokens, 2);
  Output output{
      {0, 1}, {product(b, slots, experts), width}, computeType(element)};
  Value place = places(), row = rows(element);
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
    Value to = arith::IndexCastOp::create(b, b.getIndexType(), x[0]);
    Value here = equals(b, to, linalg::IndexOp::create(b, 0));
    return select(b, here, x[1], floatConstant(b, x[1].getType(), 0));
  };
  Value sum = reduce(b, 5, {{place, {2, 3, 4}}, {row, {2, 3, 4, 1}}}, output,
                     Combine::Sum, body);
  // As for nn.embedding_grad: no need to test every pair.
  sum.getDefiningOp()->setAttr("parc.scatter", b.getUnitAttr());
  sum = storedAs(b, sum, element);
  auto type = RankedTensorType::get(
      {experts, staticSize(slots), staticSize(width)}, element);
  SmallVector<ReassociationIndices> groups{{0, 1}, {2}};
  SmallVector<OpFoldResult> shape{b.getIndexAttr(experts), slots, width};
  return tensor::ExpandShapeOp::create(b, type, sum, groups, shape);
}

//===----------------------------------------------------------------------===//
// Out of queues
//===----------------------------------------------------------------------===//

/// The element in column `column` (a loop) of a choice's row.
Value QueueBuilder::read(ImplicitLocOpBuilder &b, const Place &place,
                         unsigned column, Type compute) {
  Value at = linalg::IndexOp::create(b, column);
  Value value = tensor::ExtractOp::create(
      b, values.queues, ValueRange{place.expert, place.slot, at});
  return converted(b, value, compute);
}

Value QueueBuilder::combine(Type element) {
  Type compute = computeType(element);
  SmallVector<Access> inputs{{values.ids, {0, 1, 3}}, {values.slot, {0, 1, 3}}};
  if (values.weights)
    inputs.push_back({values.weights, {0, 1, 3}});
  Sizes sizes = dimSizes(b, values.ids);
  sizes.back() = dimSize(b, values.queues, 2);
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    Place place = placeOf(b, x[0], x[1]);
    Value term = read(b, place, 2, compute);
    if (values.weights)
      term = mul(b, term, converted(b, x[2], compute));
    return select(b, place.inside, term, floatConstant(b, compute, 0));
  };
  Value sum =
      reduce(b, 4, inputs, {{0, 1, 2}, sizes, compute}, Combine::Sum, body);
  return storedAs(b, sum, element);
}

Value QueueBuilder::products(Type element) {
  Type compute = computeType(tensorType(values.queues).getElementType());
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    Place place = placeOf(b, x[0], x[1]);
    Value term = mul(b, read(b, place, 3, compute), x[2]);
    return select(b, place.inside, term, floatConstant(b, compute, 0));
  };
  Value sum =
      reduce(b, 4,
             {{values.ids, {0, 1, 2}},
              {values.slot, {0, 1, 2}},
              {values.tokens, {0, 1, 3}}},
             {{0, 1, 2}, dimSizes(b, values.ids), compute}, Combine::Sum, body);
  return storedAs(b, sum, element);
}
