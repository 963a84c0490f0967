//===- ReshardLowering.cpp - From a reshard to collectives ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Carries out a change of layout, one collective after the other.
///
//===----------------------------------------------------------------------===//

#include "ReshardLowering.h"
#include "FlatLowering.h"
#include "parc/Analysis/OpLayout.h"

using namespace mlir;
using namespace mlir::parc;

namespace {

/// One reshard under way: the value and the layout it has by now.
class ReshardSequence {
public:
  ReshardSequence(OpBuilder &builder, ReshardOp op, Value local,
                  const AxisSizes &axes, CollectiveCounts &counts)
      : builder(builder), op(op), value(local), axes(axes), counts(counts),
        type(cast<RankedTensorType>(op.getType())) {
    ShardingAttr from = getSharding(op.getInput().getType());
    target = getSharding(op.getType());
    partial.assign(from.getPartial().begin(), from.getPartial().end());
    kind = from.getKind();
    for (auto [have, want] : llvm::zip(from.getDims(), target.getDims())) {
      current.emplace_back(have.getAxes());
      wanted.emplace_back(want.getAxes());
      grains.push_back(have.empty() ? want.getGrain() : have.getGrain());
    }
  }

  FailureOr<Value> run();

private:
  void scatter();
  void reduce();
  void move();
  void gather();
  void cut();
  void own();
  /// Axes that `current[dim]` has beyond its common prefix with the target.
  Axes surplus(unsigned dim) const;
  size_t commonPrefix(unsigned dim) const;
  ShardingAttr layout() const;
  RankedTensorType localTypeNow() const {
    return localType(type, layout(), axes);
  }
  ArrayAttr attr(ArrayRef<StringAttr> list) const {
    return builder.getArrayAttr(
        SmallVector<Attribute>(list.begin(), list.end()));
  }
  IntegerAttr attr(int64_t number) const {
    return builder.getI64IntegerAttr(number);
  }
  /// Micro-batches follow each other in time: none can wait for a later one.
  LogicalResult checkTime(ArrayRef<StringAttr> over);

  OpBuilder &builder;
  ReshardOp op;
  Value value;
  const AxisSizes &axes;
  CollectiveCounts &counts;
  RankedTensorType type;
  ShardingAttr target;
  ReductionKind kind;
  Axes partial;
  SmallVector<Axes> current, wanted;
  SmallVector<int64_t> grains;
};

} // namespace

size_t ReshardSequence::commonPrefix(unsigned dim) const {
  size_t length = 0;
  while (length < current[dim].size() && length < wanted[dim].size() &&
         current[dim][length] == wanted[dim][length])
    ++length;
  return length;
}

Axes ReshardSequence::surplus(unsigned dim) const {
  return Axes(ArrayRef(current[dim]).drop_front(commonPrefix(dim)));
}

ShardingAttr ReshardSequence::layout() const {
  SmallVector<DimShardingAttr> dims;
  for (auto [list, grain] : llvm::zip(current, grains))
    dims.push_back(DimShardingAttr::get(type.getContext(), list,
                                        list.empty() ? 1 : grain));
  return ShardingAttr::get(type.getContext(), dims, ReductionKind::Sum,
                           ArrayRef<StringAttr>{});
}

LogicalResult ReshardSequence::checkTime(ArrayRef<StringAttr> over) {
  for (StringAttr axis : over)
    if (axis.getValue() == kMicroBatchAxis)
      return emitError(op.getLoc())
             << "a value that is split over micro-batches is needed whole: "
             << op.getWhy()
             << "; use one micro-batch, or make the op linear in the batch";
  return success();
}

/// Partial sums of which the target wants parts: a reduce-scatter each.
void ReshardSequence::scatter() {
  for (unsigned dim = 0; dim < current.size(); ++dim) {
    if (commonPrefix(dim) != current[dim].size())
      continue;
    Axes tail(ArrayRef(wanted[dim]).drop_front(current[dim].size()));
    if (tail.empty() || !llvm::all_of(tail, [&](StringAttr axis) {
          return llvm::is_contained(partial, axis);
        }))
      continue;
    Axes outer = current[dim];
    current[dim].append(tail);
    value = ReduceScatterOp::create(
        builder, op.getLoc(), localTypeNow(),
        ReductionKindAttr::get(builder.getContext(), kind), value, attr(dim),
        attr(type.getDimSize(dim)), attr(grains[dim]), attr(tail), attr(outer),
        op.getWhyAttr());
    ++counts.reduceScatter;
    llvm::erase_if(partial, [&](StringAttr axis) {
      return llvm::is_contained(tail, axis);
    });
  }
}

void ReshardSequence::reduce() {
  Axes over;
  for (StringAttr axis : partial)
    if (!llvm::is_contained(target.getPartial(), axis))
      over.push_back(axis);
  if (over.empty())
    return;
  value = AllReduceOp::create(builder, op.getLoc(), kind, value, attr(over),
                              op.getWhyAttr());
  ++counts.allReduce;
  llvm::erase_if(
      partial, [&](StringAttr axis) { return llvm::is_contained(over, axis); });
}

/// A split that leaves one dimension for another: an all-to-all.
void ReshardSequence::move() {
  for (unsigned from = 0; from < current.size(); ++from)
    for (unsigned to = 0; to < current.size(); ++to) {
      Axes moved = surplus(from);
      if (from == to || moved.empty() ||
          commonPrefix(to) != current[to].size() ||
          ArrayRef(wanted[to]).drop_front(current[to].size()) !=
              ArrayRef(moved))
        continue;
      // The dimensions' other splits must be none: the op has no outer axes.
      if (moved.size() != current[from].size() || !current[to].empty())
        continue;
      current[from].clear();
      current[to] = moved;
      value = AllToAllOp::create(builder, op.getLoc(), localTypeNow(), value,
                                 attr(from), attr(type.getDimSize(from)),
                                 attr(grains[from]), attr(to),
                                 attr(type.getDimSize(to)), attr(grains[to]),
                                 attr(moved), op.getWhyAttr());
      ++counts.allToAll;
    }
}

void ReshardSequence::gather() {
  for (unsigned dim = 0; dim < current.size(); ++dim) {
    Axes tail = surplus(dim);
    if (tail.empty())
      continue;
    current[dim].resize(commonPrefix(dim));
    value = AllGatherOp::create(builder, op.getLoc(), localTypeNow(), value,
                                attr(dim), attr(type.getDimSize(dim)),
                                attr(grains[dim]), attr(tail),
                                attr(current[dim]), op.getWhyAttr());
    ++counts.allGather;
  }
}

void ReshardSequence::cut() {
  for (unsigned dim = 0; dim < current.size(); ++dim) {
    Axes tail(ArrayRef(wanted[dim]).drop_front(current[dim].size()));
    if (tail.empty())
      continue;
    Axes outer = current[dim];
    current[dim].append(tail);
    value = SliceOp::create(builder, op.getLoc(), localTypeNow(), value,
                            attr(dim), attr(type.getDimSize(dim)),
                            attr(grains[dim]), attr(tail), attr(outer));
  }
}

/// A replicated value becomes an addend: whole on one coordinate, zero on the
/// others. Zero is so already, and maxima do not mind copies.
void ReshardSequence::own() {
  Axes over;
  for (StringAttr axis : target.getPartial())
    if (!llvm::is_contained(partial, axis))
      over.push_back(axis);
  if (over.empty() || target.getKind() != ReductionKind::Sum ||
      isZero(op.getInput()))
    return;
  value =
      OwnOp::create(builder, op.getLoc(), value.getType(), value, attr(over));
}

FailureOr<Value> ReshardSequence::run() {
  Axes discharged;
  for (StringAttr axis : partial)
    if (!llvm::is_contained(target.getPartial(), axis))
      discharged.push_back(axis);
  for (unsigned dim = 0; dim < current.size(); ++dim)
    discharged.append(surplus(dim));
  if (failed(checkTime(discharged)))
    return failure();
  scatter();
  reduce();
  move();
  gather();
  cut();
  own();
  return value;
}

FailureOr<Value> mlir::parc::lowerReshard(OpBuilder &builder, ReshardOp op,
                                          Value local, const AxisSizes &axes,
                                          CollectiveCounts &counts) {
  if (getSharding(op.getInput().getType()).isFlat() ||
      getSharding(op.getType()).isFlat())
    return lowerFlatReshard(builder, op, local, axes, counts);
  return ReshardSequence(builder, op, local, axes, counts).run();
}
