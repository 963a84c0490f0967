//===- NNAttentionParts.cpp - What attention and its gradient share -------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The checks, factors and builders of NNAttentionParts.h.
///
//===----------------------------------------------------------------------===//

#include "NN/NNAttentionParts.h"
#include "NN/NNRandom.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

int64_t AttentionView::groupSize() const {
  if (groupAttr)
    return *groupAttr;
  int64_t heads = tensorType(query).getDimSize(2);
  int64_t groups = tensorType(key).getDimSize(2);
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(groups) || !groups)
    return ShapedType::kDynamic;
  return heads / groups;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static LogicalResult verifyShapes(const AttentionView &view) {
  Operation *op = view.op;
  RankedTensorType query = tensorType(view.query), key = tensorType(view.key);
  RankedTensorType value = tensorType(view.value);
  Type element = query.getElementType();
  if (failed(checkRank(op, "query", query, 4)) ||
      failed(checkRank(op, "key", key, 4)) ||
      failed(checkRank(op, "value", value, 4)) ||
      failed(checkFloat(op, "query", query)) ||
      failed(checkElement(op, "key", key, "the query", element)) ||
      failed(checkElement(op, "value", value, "the query", element)) ||
      failed(checkDim(op, "key", key, 0, "the query's batch",
                      query.getDimSize(0))) ||
      failed(checkDim(op, "key", key, 3, "the query's head size",
                      query.getDimSize(3))))
    return failure();
  for (int64_t dim = 0; dim < 3; ++dim)
    if (failed(checkDim(op, "value", value, dim, "as the key",
                        key.getDimSize(dim))))
      return failure();
  return success();
}

static LogicalResult verifyHeads(const AttentionView &view) {
  int64_t heads = tensorType(view.query).getDimSize(2);
  int64_t groups = tensorType(view.key).getDimSize(2);
  if (view.groupAttr && static_cast<int64_t>(*view.groupAttr) < 1)
    return view.op->emitOpError() << "expected a positive group, got "
                                  << static_cast<int64_t>(*view.groupAttr);
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(groups) ||
      view.withinGroups)
    return success();
  if (groups < 1 || heads % groups)
    return view.op->emitOpError()
           << "expected the query's heads to be a multiple of the key's "
           << groups << ", got " << heads;
  if (view.groupAttr && view.groupSize() * groups != heads)
    return view.op->emitOpError()
           << "expected group to be " << heads / groups << " (query heads a "
           << "key head), got " << view.groupSize();
  return success();
}

static LogicalResult verifyPositions(const AttentionView &view) {
  Operation *op = view.op;
  RankedTensorType query = tensorType(view.query), key = tensorType(view.key);
  RankedTensorType queryPositions = tensorType(view.queryPositions);
  RankedTensorType keyPositions = tensorType(view.keyPositions);
  SmallVector<int64_t> keySizes(key.getShape().take_front(2));
  // A local op on a ring has its part of the keys, and all positions.
  if (view.ringOf && view.ringOf->size() == 2)
    keySizes[1] = view.ringOf->front();
  return success(
      succeeded(checkInteger(op, "query positions", queryPositions)) &&
      succeeded(checkInteger(op, "key positions", keyPositions)) &&
      succeeded(checkShape(op, "query positions", queryPositions,
                           "B x S of the query",
                           query.getShape().take_front(2))) &&
      succeeded(checkShape(op, "key positions", keyPositions,
                           "B x T of the key", keySizes)));
}

static LogicalResult verifyRing(const AttentionView &view) {
  Operation *op = view.op;
  if (view.ringOf &&
      (!view.ring || view.ringOf->size() != 2 || view.ringOf->front() < 1 ||
       view.ringOf->back() < 1 || view.ringOf->front() % view.ringOf->back()))
    return op->emitOpError() << "expected `of` to be an extent and its grain, "
                                "on a ring";
  if (!view.ring)
    return success();
  std::string reason = whyNoRing(view);
  if (!reason.empty())
    return op->emitOpError() << "cannot be on a ring: " << reason;
  return success();
}

static LogicalResult verifyDropout(const AttentionView &view) {
  Operation *op = view.op;
  if (failed(checkDropRate(op, "dropout", view.dropout)))
    return failure();
  if (view.dropout > 0 && !view.seed)
    return op->emitOpError()
           << "expected a seed, as dropout is " << view.dropout;
  if (view.seed) {
    RankedTensorType seed = tensorType(view.seed);
    if (failed(checkInteger(op, "seed", seed)) ||
        failed(checkRank(op, "seed", seed, 0)))
      return failure();
  }
  if (view.shape && view.shape->size() != 4)
    return op->emitOpError() << "expected 4 sizes B, H, S, T in shape, got "
                             << view.shape->size();
  return success();
}

LogicalResult nn::verifyAttention(const AttentionView &view) {
  if (failed(verifyShapes(view)) || failed(verifyHeads(view)) ||
      failed(verifyPositions(view)) ||
      failed(checkPositive(view.op, "scale", view.scale)))
    return failure();
  if (view.window && static_cast<int64_t>(*view.window) < 1)
    return view.op->emitOpError() << "expected a positive window, got "
                                  << static_cast<int64_t>(*view.window);
  return success(succeeded(verifyDropout(view)) && succeeded(verifyRing(view)));
}

std::string nn::whyNoRing(const AttentionView &view) {
  if (tensorType(view.query).getDimSize(1) !=
      tensorType(view.key).getDimSize(1))
    return "it has another number of keys than of queries";
  return "";
}

int64_t nn::visibleKeys(const AttentionView &view, int64_t position) {
  int64_t keys = tensorType(view.key).getDimSize(1);
  if (ShapedType::isDynamic(keys))
    return 1;
  if (!view.causal)
    return keys;
  int64_t seen = std::min(position + 1, keys);
  return view.window ? std::min(seen, static_cast<int64_t>(*view.window))
                     : seen;
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

AttentionFactors::AttentionFactors(const AttentionView &view) {
  ArrayRef<int64_t> queryShape = tensorType(view.query).getShape();
  ArrayRef<int64_t> keyShape = tensorType(view.key).getShape();
  bool drops = view.dropout > 0;
  factors.add(queryShape[0]);
  factors.add(queryShape[1]);
  factors.add(tensorType(view.keyPositions).getDimSize(1), 1,
              /*splittable=*/false);
  factors.add(keyShape[2]);
  factors.add(view.groupSize());
  factors.add(queryShape[3], 1, /*splittable=*/false);
  factors.add(tensorType(view.value).getDimSize(3), 1, /*splittable=*/false);
  factors.factors[Batch].needsOffset = drops;
  factors.factors[Query].needsOffset = drops;
  factors.factors[Key].ordered = drops;
  factors.factors[Group].needsOffset = drops;
  factors.factors[Member].needsOffset = true;
  DimFactors heads(DimCut::Nested, {Group, Member});
  query = {{Batch}, {Query}, heads, {Head}};
  unsigned keys = view.ring ? Query : Key;
  key = {{Batch}, {keys}, {Group}, {Head}};
  value = {{Batch}, {keys}, {Group}, {ValueHead}};
  result = {{Batch}, {Query}, heads, {ValueHead}};
  queryPositions = {{Batch}, {Query}};
  keyPositions = {{Batch}, {Key}};
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

AttentionSpace::AttentionSpace(ImplicitLocOpBuilder &b,
                               const AttentionView &view)
    : b(b), view(view) {
  element = tensorType(view.query).getElementType();
  compute = computeType(element);
  int64_t group = view.groupSize();
  int64_t heads = tensorType(view.query).getDimSize(2);
  OpFoldResult groups = ShapedType::isDynamic(heads)
                            ? dimSize(b, view.key, 2)
                            : OpFoldResult(b.getIndexAttr(heads / group));
  sizes = {dimSize(b, view.query, 0), groups, b.getIndexAttr(group),
           dimSize(b, view.query, 1), dimSize(b, view.key, 1)};
  if (view.dropout > 0)
    randomKeyValue = randomKey(b, view.seed, view.site, view.stream);
}

Output AttentionSpace::scoreOutput(Type type) const {
  return {scoreLoops(), sizes, type};
}

Output AttentionSpace::rowOutput() const {
  return {rowLoops(), Sizes(ArrayRef(sizes).drop_back()), compute};
}

Output AttentionSpace::queryOutput(Value like, Type type) const {
  OpFoldResult last = dimSize(b, like, 3);
  return {queryLoops(), {sizes[B], sizes[S], sizes[G], sizes[R], last}, type};
}

Output AttentionSpace::keyOutput(Value like, Type type) const {
  return {keyLoops(), dimSizes(b, like), type};
}

static const SmallVector<ReassociationIndices> &headGroups() {
  static const SmallVector<ReassociationIndices> groups{{0}, {1}, {2, 3}, {4}};
  return groups;
}

Value AttentionSpace::splitHeads(Value tensor) const {
  Sizes split{sizes[B], sizes[S], sizes[G], sizes[R], dimSize(b, tensor, 3)};
  // The sizes must be as static as the source's.
  split[0] = dimSize(b, tensor, 0);
  split[1] = dimSize(b, tensor, 1);
  SmallVector<int64_t> shape;
  for (OpFoldResult size : split)
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  return tensor::ExpandShapeOp::create(b, RankedTensorType::get(shape, element),
                                       tensor, headGroups(), split);
}

Value AttentionSpace::joinHeads(Value tensor, Type type) const {
  return tensor::CollapseShapeOp::create(b, type, tensor, headGroups());
}

Value AttentionSpace::products(Value splitQuery) const {
  return contract(b, 6, queries(splitQuery), keys(view.key),
                  scoreOutput(compute));
}

SmallVector<Access> AttentionSpace::masked(ArrayRef<Access> inputs) const {
  SmallVector<Access> all(inputs);
  if (view.causal || view.window) {
    all.push_back({view.queryPositions, {B, S}});
    all.push_back({view.keyPositions, {B, T}});
  }
  return all;
}

Value AttentionSpace::visible(ImplicitLocOpBuilder &nested,
                              ValueRange positions) const {
  if (positions.empty())
    return Value();
  Value query = positions[0], key = positions[1], result;
  if (view.causal)
    result =
        arith::CmpIOp::create(nested, arith::CmpIPredicate::sle, key, query);
  if (!view.window)
    return result;
  Value age = arith::SubIOp::create(nested, query, key);
  Value near = arith::CmpIOp::create(nested, arith::CmpIPredicate::slt, age,
                                     integerConstant(nested, *view.window));
  if (!result)
    return near;
  return arith::AndIOp::create(nested, result, near);
}

Value AttentionSpace::scaled(ImplicitLocOpBuilder &nested,
                             Value product) const {
  return mul(nested, product, floatConstant(nested, compute, view.scale));
}

Value AttentionSpace::rowMaxima(Value products) const {
  auto body = [&](ImplicitLocOpBuilder &nested, ValueRange x) -> Value {
    Value score = scaled(nested, x[0]);
    Value sees = visible(nested, x.drop_front());
    return sees ? select(nested, sees, score, bottomConstant(nested, compute))
                : score;
  };
  return reduce(b, 5, masked(scores(products)), rowOutput(), Combine::Max,
                body);
}

Value AttentionSpace::exponentials(Value products, Value maxima) const {
  auto body = [&](ImplicitLocOpBuilder &nested, ValueRange x) -> Value {
    Value shifted = sub(nested, scaled(nested, x[0]), x[1]);
    Value power = math::ExpOp::create(nested, shifted);
    Value sees = visible(nested, x.drop_front(2));
    return sees ? select(nested, sees, power, floatConstant(nested, compute, 0))
                : power;
  };
  return map(b, 5, masked({scores(products), rows(maxima)}),
             scoreOutput(element), body);
}

Value AttentionSpace::rowSums(Value exponentials) const {
  return reduce(b, 5, scores(exponentials), rowOutput(), Combine::Sum,
                [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
}

Value AttentionSpace::rowDots(Value x, Value y) const {
  return reduce(b, 5, {scores(x), scores(y)}, rowOutput(), Combine::Sum,
                [](ImplicitLocOpBuilder &nested, ValueRange v) {
                  return mul(nested, v[0], v[1]);
                });
}

Value AttentionSpace::keeps(ImplicitLocOpBuilder &nested) const {
  auto at = [&](unsigned loop) -> Value {
    return linalg::IndexOp::create(nested, loop);
  };
  auto plus = [&](Value x, Value y) -> Value {
    return y ? arith::AddIOp::create(nested, x, y).getResult() : x;
  };
  Value batch = plus(at(B), view.batchStart);
  Value head =
      arith::MulIOp::create(nested, at(G), indexValue(nested, sizes[R]));
  head = plus(plus(head, at(R)), view.headStart);
  Sizes box;
  if (view.shape)
    for (int64_t size : *view.shape)
      box.push_back(nested.getIndexAttr(size));
  else
    box = {sizes[B], dimSize(nested, view.query, 2), sizes[S], sizes[T]};
  Value query = plus(at(S), view.queryStart);
  Value key = plus(at(T), view.keyStart);
  if (view.fold) {
    query = foldedIndexOf(nested, query, box[2], *view.fold);
    key = foldedIndexOf(nested, key, box[3], *view.fold);
  }
  Value index = rowMajorIndex(nested, {batch, head, query, key}, box);
  return keepsElement(nested, randomKeyValue, index, view.dropout);
}

Value AttentionSpace::dropped(ImplicitLocOpBuilder &nested, Value value) const {
  if (!randomKeyValue)
    return value;
  Value keep = keeps(nested);
  Value rate = floatConstant(nested, compute, 1 - view.dropout);
  Value zero = floatConstant(nested, compute, 0);
  return select(nested, keep, div(nested, value, rate), zero);
}

Value AttentionSpace::dropped(Value tensor) const {
  if (!randomKeyValue)
    return tensor;
  return map(b, 5, scores(tensor), scoreOutput(element),
             [&](ImplicitLocOpBuilder &nested, ValueRange x) {
               return dropped(nested, x[0]);
             });
}
