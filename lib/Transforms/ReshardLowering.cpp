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
#include "Reasons.h"
#include "parc/Analysis/OpLayout.h"

#include <cmath>

using namespace mlir;
using namespace mlir::parc;

namespace {

/// One reshard under way: the value and the layout it has by now.
class ReshardSequence {
public:
  ReshardSequence(OpBuilder &builder, ReshardOp op, Value local,
                  ValueRange used, const AxisSizes &axes,
                  const ReshardPlan &plan)
      : builder(builder), op(op), value(local), axes(axes), plan(plan),
        type(cast<RankedTensorType>(op.getType())),
        from(getSharding(op.getInput().getType())),
        target(getSharding(op.getType())), current(from.getDims()),
        partial(from.getPartial()) {
    // Numbers of rows are of the layouts before and after.
    if (plan.path.steps.size() == 1 &&
        plan.path.steps.front().move == ReshardMove::AllToAll)
      this->used.assign(used.begin(), used.end());
  }

  FailureOr<Value> run();

private:
  void build(const ReshardStep &step);
  void allReduce(const ReshardStep &step);
  void reduceScatter(const ReshardStep &step);
  void allGather(const ReshardStep &step);
  void allToAll(const ReshardStep &step);
  void slice(const ReshardStep &step);
  void own(const ReshardStep &step);
  /// Splits a dimension by `outer`, then `inner`.
  void split(unsigned dim, const ReshardAxes &outer, const ReshardAxes &inner,
             int64_t grain);
  RankedTensorType localTypeNow() const {
    return localType(type,
                     ShardingAttr::get(type.getContext(), current,
                                       ReductionKind::Sum,
                                       ArrayRef<StringAttr>{}),
                     axes);
  }
  /// The layout before the step under way, and by now.
  ShardingAttr layoutNow() const;
  void reduced(const ReshardStep &step);
  /// The reshard's reason, with what this step does of it.
  WhyAttr why(const ReshardStep &step) const;
  SmallVector<StringAttr> names(const ReshardAxes &list) const;
  /// The names of axes and the tensor's number of a dimension.
  ArrayAttr attr(const ReshardAxes &list) const;
  IntegerAttr dimAttr(unsigned dim) const { return attr(plan.dims[dim]); }
  IntegerAttr extentAttr(unsigned dim) const {
    return attr(plan.problem.shape[dim]);
  }
  IntegerAttr attr(int64_t number) const {
    return builder.getI64IntegerAttr(number);
  }
  LogicalResult checkTime();

  OpBuilder &builder;
  ReshardOp op;
  Value value;
  SmallVector<Value> used;
  const AxisSizes &axes;
  const ReshardPlan &plan;
  RankedTensorType type;
  ShardingAttr from, target;
  SmallVector<DimShardingAttr> current;
  SmallVector<StringAttr> partial;
  ShardingAttr before;
};

} // namespace

SmallVector<StringAttr> ReshardSequence::names(const ReshardAxes &list) const {
  SmallVector<StringAttr> result;
  for (uint8_t axis : list)
    result.push_back(plan.axes[axis]);
  return result;
}

ArrayAttr ReshardSequence::attr(const ReshardAxes &list) const {
  SmallVector<StringAttr> axisNames = names(list);
  return builder.getArrayAttr(
      SmallVector<Attribute>(axisNames.begin(), axisNames.end()));
}

ShardingAttr ReshardSequence::layoutNow() const {
  bool asBefore = llvm::all_of(partial, [&](StringAttr axis) {
    return llvm::is_contained(from.getPartial(), axis);
  });
  return ShardingAttr::get(type.getContext(), current,
                           partial.empty() ? ReductionKind::Sum
                           : asBefore      ? from.getKind()
                                           : target.getKind(),
                           partial);
}

void ReshardSequence::reduced(const ReshardStep &step) {
  SmallVector<StringAttr> gone = names(step.axes);
  llvm::erase_if(
      partial, [&](StringAttr axis) { return llvm::is_contained(gone, axis); });
}

WhyAttr ReshardSequence::why(const ReshardStep &step) const {
  ShardingAttr now = layoutNow();
  int64_t bytes =
      bytesOfMove(step.move, type, before, now, names(step.axes), axes);
  // Accessors of ops are not const.
  ReshardOp reshard = op;
  if (!used.empty())
    bytes = std::llround(static_cast<double>(bytes) *
                         static_cast<double>(*reshard.getRows()) /
                         static_cast<double>(type.getDimSize(0)) /
                         static_cast<double>(type.getDimSize(1)));
  return reshard.getWhyAttr().withMove(before, now, bytes);
}

void ReshardSequence::split(unsigned dim, const ReshardAxes &outer,
                            const ReshardAxes &inner, int64_t grain) {
  SmallVector<StringAttr> names;
  for (const ReshardAxes &list : {outer, inner})
    for (uint8_t axis : list)
      names.push_back(plan.axes[axis]);
  current[plan.dims[dim]] =
      DimShardingAttr::get(type.getContext(), names, names.empty() ? 1 : grain);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void ReshardSequence::allReduce(const ReshardStep &step) {
  reduced(step);
  value = AllReduceOp::create(builder, op.getLoc(), from.getKind(), value,
                              attr(step.axes), why(step));
}

void ReshardSequence::reduceScatter(const ReshardStep &step) {
  reduced(step);
  split(step.dim, step.outer, step.axes, step.grain);
  value = ReduceScatterOp::create(
      builder, op.getLoc(), localTypeNow(),
      ReductionKindAttr::get(builder.getContext(), from.getKind()), value,
      dimAttr(step.dim), extentAttr(step.dim), attr(step.grain),
      attr(step.axes), attr(step.outer), why(step));
}

void ReshardSequence::allGather(const ReshardStep &step) {
  split(step.dim, step.outer, {}, step.grain);
  value = AllGatherOp::create(builder, op.getLoc(), localTypeNow(), value,
                              dimAttr(step.dim), extentAttr(step.dim),
                              attr(step.grain), attr(step.axes),
                              attr(step.outer), why(step));
}

void ReshardSequence::allToAll(const ReshardStep &step) {
  split(step.dim, step.outer, {}, step.grain);
  split(step.toDim, step.toOuter, step.axes, step.toGrain);
  value = AllToAllOp::create(
      builder, op.getLoc(), localTypeNow(), value, used,
      used.empty() ? IntegerAttr() : op.getRowsAttr(), dimAttr(step.dim),
      extentAttr(step.dim), attr(step.grain), attr(step.outer),
      dimAttr(step.toDim), extentAttr(step.toDim), attr(step.toGrain),
      attr(step.toOuter), attr(step.axes), why(step));
}

void ReshardSequence::slice(const ReshardStep &step) {
  split(step.dim, step.outer, step.axes, step.grain);
  value = SliceOp::create(builder, op.getLoc(), localTypeNow(), value,
                          dimAttr(step.dim), extentAttr(step.dim),
                          attr(step.grain), attr(step.axes), attr(step.outer));
}

/// A replicated value becomes an addend: whole on one coordinate, zero on the
/// others. Zero is so already, and maxima do not mind copies.
void ReshardSequence::own(const ReshardStep &step) {
  if (target.getKind() == ReductionKind::Sum && !isZero(op.getInput()))
    value = OwnOp::create(builder, op.getLoc(), value.getType(), value,
                          attr(step.axes));
  partial.append(names(step.axes));
}

void ReshardSequence::build(const ReshardStep &step) {
  before = layoutNow();
  switch (step.move) {
  case ReshardMove::AllReduce:
    return allReduce(step);
  case ReshardMove::ReduceScatter:
    return reduceScatter(step);
  case ReshardMove::AllGather:
    return allGather(step);
  case ReshardMove::AllToAll:
    return allToAll(step);
  case ReshardMove::Slice:
    return slice(step);
  case ReshardMove::Own:
    return own(step);
  }
}

//===----------------------------------------------------------------------===//
// The sequence
//===----------------------------------------------------------------------===//

/// Micro-batches follow each other in time: none can wait for a later one.
LogicalResult ReshardSequence::checkTime() {
  ReshardAxes joined;
  const ReshardProblem &problem = plan.problem;
  for (uint8_t axis : problem.from.partial)
    if (!problem.sameKind || !llvm::is_contained(problem.to.partial, axis))
      joined.push_back(axis);
  for (unsigned dim = 0; dim < problem.shape.size(); ++dim)
    joined.append(
        ReshardAxes(ArrayRef(problem.from.dims[dim])
                        .drop_front(commonReshardPrefix(problem, dim))));
  for (uint8_t axis : joined)
    if (problem.axes[axis].inTime)
      return emitError(op.getLoc())
             << "a value that is split over micro-batches is needed whole: "
             << op.getWhy()
             << "; use one micro-batch, or make the op linear in the batch";
  return success();
}

FailureOr<Value> ReshardSequence::run() {
  if (failed(checkTime()))
    return failure();
  for (const ReshardStep &step : plan.path.steps)
    build(step);
  return value;
}

FailureOr<Value> mlir::parc::lowerReshard(OpBuilder &builder, ReshardOp op,
                                          Value local, ValueRange used,
                                          const AxisSizes &axes,
                                          ReshardPlanner &planner) {
  if (getSharding(op.getInput().getType()).isFlat() ||
      getSharding(op.getType()).isFlat())
    return lowerFlatReshard(builder, op, local, axes);
  const ReshardPlan *plan = planner.plan(cast<RankedTensorType>(op.getType()),
                                         getSharding(op.getInput().getType()),
                                         getSharding(op.getType()));
  if (!plan)
    return emitError(op.getLoc())
           << "expected a change of layout of at most " << kMaxReshardRank
           << " dimensions over at most " << kMaxReshardAxes
           << " axes, got one between " << getSharding(op.getInput().getType())
           << " and " << getSharding(op.getType())
           << "; split fewer dimensions";
  return ReshardSequence(builder, op, local, used, axes, *plan).run();
}
