//===- FlatLowering.cpp - Collectives on flat parts -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reduce-scatter, all-gather and slice of lists of elements.
///
//===----------------------------------------------------------------------===//

#include "FlatLowering.h"
#include "Reasons.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "parc/Analysis/OpLayout.h"

using namespace mlir;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

static ArrayAttr attr(OpBuilder &builder, ArrayRef<StringAttr> list) {
  return builder.getArrayAttr(SmallVector<Attribute>(list.begin(), list.end()));
}

/// The local extents of the dimensions of `type`, before it is flattened.
static SmallVector<OpFoldResult> localSizes(OpBuilder &builder, Location loc,
                                            RankedTensorType type,
                                            ShardingAttr sharding,
                                            const AxisSizes &axes) {
  RankedTensorType local = localType(type, sharding.withFlat({}), axes);
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    DimShardingAttr split = sharding.getDims()[dim];
    if (!local.isDynamicDim(dim))
      sizes.push_back(builder.getIndexAttr(local.getDimSize(dim)));
    else
      sizes.push_back(
          PartSizeOp::create(builder, loc, builder.getIndexType(),
                             attr(builder, split.getAxes()),
                             builder.getI64IntegerAttr(type.getDimSize(dim)),
                             builder.getI64IntegerAttr(split.getGrain()))
              .getResult());
  }
  return sizes;
}

static Value toValue(OpBuilder &builder, Location loc, OpFoldResult size) {
  if (auto value = dyn_cast<Value>(size))
    return value;
  return arith::ConstantIndexOp::create(
      builder, loc, cast<IntegerAttr>(cast<Attribute>(size)).getInt());
}

static Value productOf(OpBuilder &builder, Location loc,
                       ArrayRef<OpFoldResult> sizes) {
  Value product = toValue(builder, loc, sizes.front());
  for (OpFoldResult size : sizes.drop_front())
    product = arith::MulIOp::create(builder, loc, product,
                                    toValue(builder, loc, size));
  return product;
}

Value mlir::parc::flatPartSize(OpBuilder &builder, Location loc,
                               RankedTensorType type, ShardingAttr sharding,
                               const AxisSizes &axes) {
  Value elements =
      productOf(builder, loc, localSizes(builder, loc, type, sharding, axes));
  int64_t parts = axes.product(sharding.getFlat());
  // With one unit a part, a part starts at its own number.
  Value index = PartStartOp::create(
      builder, loc, builder.getIndexType(), attr(builder, sharding.getFlat()),
      builder.getI64IntegerAttr(parts), builder.getI64IntegerAttr(1));
  Value count = arith::ConstantIndexOp::create(builder, loc, parts);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  auto startOf = [&](Value part) -> Value {
    Value units = arith::MulIOp::create(builder, loc, part, elements);
    return arith::DivSIOp::create(builder, loc, units, count);
  };
  Value next = arith::AddIOp::create(builder, loc, index, one);
  Value end = startOf(next), start = startOf(index);
  return arith::SubIOp::create(builder, loc, end, start);
}

//===----------------------------------------------------------------------===//
// Reshards
//===----------------------------------------------------------------------===//

namespace {

/// One change of layout to or from flat parts.
class FlatReshard {
public:
  FlatReshard(OpBuilder &builder, ReshardOp op, Value local,
              const AxisSizes &axes)
      : builder(builder), op(op), loc(op.getLoc()), value(local), axes(axes),
        type(cast<RankedTensorType>(op.getType())),
        from(getSharding(op.getInput().getType())),
        to(getSharding(op.getType())) {}

  FailureOr<Value> run();

private:
  void findElements();
  void flatten();
  void cut();
  void gather();
  void reduce(ArrayRef<StringAttr> over);
  void own();
  /// The reshard's reason, with this move's bytes.
  WhyAttr why(ReshardMove move, ArrayRef<StringAttr> over);
  IntegerAttr number(int64_t n) { return builder.getI64IntegerAttr(n); }
  RankedTensorType typeUnder(ShardingAttr sharding) {
    return localType(type, sharding, axes);
  }
  /// All dimensions of the value as one group.
  SmallVector<ReassociationIndices> wholeGroup() {
    return {llvm::to_vector<2>(llvm::seq<int64_t>(0, type.getRank()))};
  }

  OpBuilder &builder;
  ReshardOp op;
  Location loc;
  Value value;
  const AxisSizes &axes;
  RankedTensorType type;
  ShardingAttr from, to;
  Axes partial;
  /// Elements of the local part: a number where it is one, else a value.
  int64_t elements = 0;
  Value size;
  SmallVector<OpFoldResult> sizes;
};

} // namespace

void FlatReshard::findElements() {
  ShardingAttr whole = to.withFlat({}).withoutPartial();
  sizes = localSizes(builder, loc, type, whole, axes);
  RankedTensorType local = typeUnder(whole);
  if (local.hasStaticShape())
    elements = local.getNumElements();
  else
    size = productOf(builder, loc, sizes);
}

void FlatReshard::flatten() {
  if (type.getRank() == 1)
    return;
  value = tensor::CollapseShapeOp::create(builder, loc, value, wholeGroup());
}

/// The list becomes its part: reduced on the way where it is a partial sum.
void FlatReshard::cut() {
  ArrayRef<StringAttr> flat = to.getFlat();
  Axes summed;
  for (StringAttr axis : flat)
    if (llvm::is_contained(partial, axis))
      summed.push_back(axis);
  Type result = typeUnder(to.withoutPartial());
  if (summed.size() == flat.size()) {
    value = ReduceScatterOp::create(
        builder, loc, result,
        ReductionKindAttr::get(builder.getContext(), from.getKind()), value,
        number(0), number(elements), number(1), attr(builder, flat),
        builder.getArrayAttr({}), why(ReshardMove::ReduceScatter, flat), size);
  } else {
    reduce(summed);
    value = SliceOp::create(builder, loc, result, value, number(0),
                            number(elements), number(1), attr(builder, flat),
                            builder.getArrayAttr({}), size);
  }
  llvm::erase_if(
      partial, [&](StringAttr axis) { return llvm::is_contained(flat, axis); });
}

void FlatReshard::gather() {
  RankedTensorType whole = typeUnder(to.withoutPartial());
  auto list = RankedTensorType::get({size ? ShapedType::kDynamic : elements},
                                    type.getElementType());
  value = AllGatherOp::create(
      builder, loc, list, value, number(0), number(elements), number(1),
      attr(builder, from.getFlat()), builder.getArrayAttr({}),
      why(ReshardMove::AllGather, from.getFlat()), size);
  if (type.getRank() != 1)
    value = tensor::ExpandShapeOp::create(builder, loc, whole, value,
                                          wholeGroup(), sizes);
}

/// What is cut or gathered counts as a whole list, what is reduced besides as
/// the smaller part.
WhyAttr FlatReshard::why(ReshardMove move, ArrayRef<StringAttr> over) {
  ShardingAttr whole = to.withFlat({}).withoutPartial();
  if (move == ReshardMove::AllReduce)
    whole = from.isFlat() || to.isFlat() ? (from.isFlat() ? from : to) : whole;
  return op.getWhyAttr().withMove(
      from, to,
      ringBytes(move, largestPart(type, whole, axes), type, over, axes));
}

void FlatReshard::reduce(ArrayRef<StringAttr> over) {
  if (over.empty())
    return;
  value = AllReduceOp::create(builder, loc, from.getKind(), value,
                              attr(builder, over),
                              why(ReshardMove::AllReduce, over));
}

/// A value becomes an addend: whole on one coordinate, zero on the others.
void FlatReshard::own() {
  Axes added;
  for (StringAttr axis : to.getPartial())
    if (!llvm::is_contained(from.getPartial(), axis))
      added.push_back(axis);
  if (!added.empty() && to.getKind() == ReductionKind::Sum)
    value = OwnOp::create(builder, loc, value.getType(), value,
                          attr(builder, added));
}

FailureOr<Value> FlatReshard::run() {
  if (from.getDims() != to.getDims() ||
      (from.isFlat() && to.isFlat() && from.getFlat() != to.getFlat()))
    return emitError(loc) << "expected flat parts of one layout, got " << from
                          << " and " << to;
  partial.assign(from.getPartial().begin(), from.getPartial().end());
  bool cuts = !from.isFlat() && to.isFlat();
  if (from.getFlat() != to.getFlat())
    findElements();
  if (cuts) {
    flatten();
    cut();
  }
  // What is left is summed on the smaller part.
  Axes over;
  for (StringAttr axis : partial)
    if (!llvm::is_contained(to.getPartial(), axis))
      over.push_back(axis);
  for (StringAttr axis : over)
    if (axis.getValue() == kMicroBatchAxis)
      return emitError(loc)
             << "a sum over micro-batches is needed whole: " << op.getWhy();
  reduce(over);
  if (from.isFlat() && !to.isFlat())
    gather();
  own();
  return value;
}

FailureOr<Value> mlir::parc::lowerFlatReshard(OpBuilder &builder, ReshardOp op,
                                              Value local,
                                              const AxisSizes &axes) {
  return FlatReshard(builder, op, local, axes).run();
}
