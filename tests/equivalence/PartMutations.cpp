//===- PartMutations.cpp - Parts in wrong places --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Mutations of collectives, slices and offsets.
///
//===----------------------------------------------------------------------===//

#include "Mutations.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "parc/Analysis/OpLayout.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

void mlir::parc::equiv::replaceOp(Operation *op, Value by) {
  op->getResult(0).replaceAllUsesWith(by);
  op->erase();
}

void mlir::parc::equiv::wrapResult(Operation *op,
                                   function_ref<Value(OpBuilder &, Value)> by) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value result = op->getResult(0);
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : result.getUses())
    uses.push_back(&use);
  Value made = by(builder, result);
  for (OpOperand *use : uses)
    use->set(made);
}

bool mlir::parc::equiv::swapAxis(Operation *op, StringRef attr,
                                 const Subject &subject) {
  OpBuilder builder(op->getContext());
  Attribute one = builder.getStringAttr(subject.axis),
            two = builder.getStringAttr(subject.other);
  SmallVector<Attribute> axes(op->getAttrOfType<ArrayAttr>(attr).getValue());
  if (llvm::is_contained(axes, one) == llvm::is_contained(axes, two))
    return false;
  for (Attribute &axis : axes)
    if (axis == one || axis == two)
      axis = axis == one ? two : one;
  op->setAttr(attr, builder.getArrayAttr(axes));
  return true;
}

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static bool isStatic(Value value) {
  return cast<RankedTensorType>(value.getType()).hasStaticShape();
}

/// Puts `source` into `dest`, or takes a slice from it, at `offset` of `dim`.
static SmallVector<OpFoldResult> along(OpBuilder &builder, size_t rank,
                                       int64_t dim, int64_t value,
                                       ArrayRef<int64_t> others) {
  SmallVector<OpFoldResult> list;
  for (size_t i = 0; i < rank; ++i)
    list.push_back(builder.getIndexAttr(
        static_cast<int64_t>(i) == dim ? value
                                       : (others.empty() ? 0 : others[i])));
  return list;
}

Value mlir::parc::equiv::rotated(OpBuilder &builder, Value value, int64_t dim,
                                 int64_t part) {
  if (!isStatic(value) || part < 1)
    return {};
  ArrayRef<int64_t> shape = shapeOf(value);
  int64_t rest = shape[dim] - part;
  if (rest < 1)
    return {};
  Location loc = value.getLoc();
  auto type = cast<RankedTensorType>(value.getType());
  size_t rank = shape.size();
  Value result = arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(type, builder.getZeroAttr(type.getElementType())));
  SmallVector<OpFoldResult> ones(rank, builder.getIndexAttr(1));
  for (auto [from, to, size] : {std::tuple(part, int64_t(0), rest),
                                std::tuple(int64_t(0), rest, part)}) {
    auto sizes = along(builder, rank, dim, size, shape);
    Value slice = tensor::ExtractSliceOp::create(
        builder, loc, value, along(builder, rank, dim, from, {}), sizes, ones);
    result = tensor::InsertSliceOp::create(builder, loc, slice, result,
                                           along(builder, rank, dim, to, {}),
                                           sizes, ones);
  }
  return result;
}

/// An all-gather, or the gathering half of an all-to-all, in another order of
/// ranks.
static bool ranksSwapped(Operation *op, const Subject &) {
  if (isZero(op->getOperand(0)))
    return false;
  auto exchange = dyn_cast<AllToAllOp>(op);
  auto dim = static_cast<int64_t>(exchange ? exchange.getGatherDim()
                                           : cast<AllGatherOp>(op).getDim());
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value result = op->getResult(0);
  if (!isStatic(op->getOperand(0)) || !isStatic(result) ||
      shapeOf(result)[dim] <= shapeOf(op->getOperand(0))[dim])
    return false;
  wrapResult(op, [&](OpBuilder &at, Value value) {
    return rotated(at, value, dim, shapeOf(op->getOperand(0))[dim]);
  });
  return true;
}

/// The part of the next rank: of a slice, a reduce-scatter, or what an
/// all-to-all sends.
static bool shifted(Operation *op, const Subject &) {
  if (isZero(op->getOperand(0)))
    return false;
  auto exchange = dyn_cast<AllToAllOp>(op);
  int64_t dim = exchange ? static_cast<int64_t>(exchange.getSplitDim())
                         : op->getAttrOfType<IntegerAttr>("dim").getInt();
  if (!isStatic(op->getResult(0)))
    return false;
  OpBuilder builder(op);
  Value turned =
      rotated(builder, op->getOperand(0), dim, shapeOf(op->getResult(0))[dim]);
  if (!turned)
    return false;
  op->setOperand(0, turned);
  return true;
}

/// Gathers along another dimension: as many elements, in another order.
static bool gatheredElsewhere(Operation *op, const Subject &) {
  auto gather = cast<AllGatherOp>(op);
  if (!isStatic(gather.getInput()) || !isStatic(gather.getResult()) ||
      isZero(gather.getInput()))
    return false;
  SmallVector<int64_t> shape(shapeOf(gather.getInput()));
  ArrayRef<int64_t> whole = shapeOf(gather.getResult());
  auto dim = static_cast<int64_t>(gather.getDim());
  int64_t ranks = whole[dim] / shape[dim];
  for (int64_t other = 0; other < dim; ++other) {
    // Along a dimension of size 1 before it the order would be the same.
    if (shape[other] * shape[dim] == 1)
      continue;
    int64_t before = 1;
    for (int64_t i = other; i < dim; ++i)
      before *= shape[i];
    if (before == 1 || !gather.getOuter().empty())
      continue;
    shape[other] *= ranks;
    OpBuilder builder(op);
    auto type = gather.getType();
    Value made = AllGatherOp::create(
        builder, op->getLoc(),
        RankedTensorType::get(shape,
                              cast<RankedTensorType>(type).getElementType()),
        gather.getInput(), builder.getI64IntegerAttr(other),
        builder.getI64IntegerAttr(shape[other]), builder.getI64IntegerAttr(1),
        gather.getAxesAttr(), gather.getOuterAttr(), gather.getWhyAttr());
    ReassociationIndices all;
    for (size_t i = 0; i < shape.size(); ++i)
      all.push_back(static_cast<int64_t>(i));
    SmallVector<ReassociationIndices> one = {all};
    Value flat =
        tensor::CollapseShapeOp::create(builder, op->getLoc(), made, one);
    replaceOp(op, tensor::ExpandShapeOp::create(builder, op->getLoc(), type,
                                                flat, one));
    return true;
  }
  return false;
}

/// Every rank's own part in the place of everybody's.
static bool gatheredFromItself(Operation *op, const Subject &) {
  auto gather = cast<AllGatherOp>(op);
  Value input = gather.getInput(), result = gather.getResult();
  if (!isStatic(input) || !isStatic(result) || isZero(input))
    return false;
  auto dim = static_cast<int64_t>(gather.getDim());
  int64_t part = shapeOf(input)[dim], whole = shapeOf(result)[dim];
  OpBuilder builder(op);
  Location loc = op->getLoc();
  size_t rank = shapeOf(result).size();
  auto type = cast<RankedTensorType>(result.getType());
  Value made = arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(type, builder.getZeroAttr(type.getElementType())));
  SmallVector<OpFoldResult> ones(rank, builder.getIndexAttr(1));
  for (int64_t at = 0; at < whole; at += part)
    made = tensor::InsertSliceOp::create(
        builder, loc, input, made, along(builder, rank, dim, at, {}),
        along(builder, rank, dim, part, shapeOf(input)), ones);
  replaceOp(op, made);
  return true;
}

static bool isFloatSum(Operation *op) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  return reduce && reduce.getKind() == ReductionKind::Sum &&
         isa<FloatType>(getElementTypeOrSelf(reduce.getResult().getType()));
}

/// The mean in the place of the sum: a gradient per replica, not per batch.
static bool halved(Operation *op, const Subject &) {
  if (!isFloatSum(op))
    return false;
  wrapResult(op, [](OpBuilder &builder, Value value) -> Value {
    auto type = cast<RankedTensorType>(value.getType());
    Value half = arith::ConstantOp::create(
        builder, value.getLoc(),
        DenseElementsAttr::get(
            RankedTensorType::get({}, type.getElementType()),
            builder.getFloatAttr(type.getElementType(), 0.5)));
    // Twice the value is wrong alike; a half needs a product of its shape.
    if (type.getRank() == 0)
      return arith::MulFOp::create(builder, value.getLoc(), value, half);
    Value sum = arith::AddFOp::create(builder, value.getLoc(), value, value);
    return arith::AddFOp::create(builder, value.getLoc(), sum, value);
  });
  return true;
}

/// Reduces over the last of several axes only.
static bool reducesLastOnly(Operation *op, const Subject &) {
  auto reduce = cast<AllReduceOp>(op);
  if (reduce.getAxes().size() < 2)
    return false;
  reduce.setAxesAttr(
      OpBuilder(op).getArrayAttr(reduce.getAxes().getValue().take_back()));
  return true;
}

/// What the first rank has in the place of the sum.
static bool countsOneRank(Operation *op, const Subject &) {
  if (!isFloatSum(op) || isZero(op->getOperand(0)))
    return false;
  auto reduce = cast<AllReduceOp>(op);
  OpBuilder builder(op);
  Value own = OwnOp::create(builder, op->getLoc(), reduce.getInput().getType(),
                            reduce.getInput(), reduce.getAxesAttr());
  reduce.getInputMutable().assign(own);
  return true;
}

/// Each rank's part begins where its neighbour's does.
static bool startsAtNeighbour(Operation *op, const Subject &) {
  auto start = cast<PartStartOp>(op);
  if (op->use_empty())
    return false;
  wrapResult(op, [&](OpBuilder &builder, Value value) -> Value {
    Location loc = value.getLoc();
    Value size = PartSizeOp::create(builder, loc, builder.getIndexType(),
                                    start.getAxesAttr(), start.getExtentAttr(),
                                    start.getGrainAttr());
    Value next = arith::AddIOp::create(builder, loc, value, size);
    Value extent = arith::ConstantIndexOp::create(
        builder, loc, static_cast<int64_t>(start.getExtent()));
    return arith::RemUIOp::create(builder, loc, next, extent);
  });
  return true;
}

static Break onOtherAxis() {
  return [](Operation *op, const Subject &subject) {
    return !op->use_empty() && !isZero(op->getOperand(0)) &&
           swapAxis(op, "axes", subject);
  };
}

std::vector<Mutation> mlir::parc::equiv::partMutations() {
  StringRef gather = AllGatherOp::getOperationName(),
            exchange = AllToAllOp::getOperationName(),
            scatter = ReduceScatterOp::getOperationName(),
            reduce = AllReduceOp::getOperationName();
  return {
      {"all_gather over another axis", gather, onOtherAxis()},
      {"all_gather in another order of ranks", gather, ranksSwapped},
      {"all_gather along another dimension", gather, gatheredElsewhere},
      {"all_gather of its own part", gather, gatheredFromItself},
      {"all_to_all over another axis", exchange, onOtherAxis()},
      {"all_to_all from the wrong ranks", exchange, ranksSwapped},
      {"all_to_all to the wrong ranks", exchange, shifted},
      {"reduce_scatter over another axis", scatter, onOtherAxis()},
      {"reduce_scatter shifted by a rank", scatter, shifted},
      {"slice shifted by a rank", SliceOp::getOperationName(), shifted},
      {"own on another axis", OwnOp::getOperationName(), onOtherAxis()},
      {"all_reduce scaled, not by two", reduce, halved},
      {"all_reduce over the last axis only", reduce, reducesLastOnly},
      {"all_reduce counts one rank", reduce, countsOneRank},
      {"part_start of the next rank", PartStartOp::getOperationName(),
       startsAtNeighbour},
  };
}
