//===- Reasons.cpp - Why data moves ---------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Collects what is known of a change of layout.
///
//===----------------------------------------------------------------------===//

#include "Reasons.h"
#include <cmath>

using namespace mlir;
using namespace mlir::parc;

/// The dimension that an axis splits, -3 where it splits the list of elements,
/// -2 where it is partial, -1 if none.
static int64_t placeOf(ShardingAttr sharding, StringAttr axis) {
  if (llvm::is_contained(sharding.getFlat(), axis))
    return -3;
  if (llvm::is_contained(sharding.getPartial(), axis))
    return -2;
  for (auto [index, dim] : llvm::enumerate(sharding.getDims()))
    if (llvm::is_contained(dim.getAxes(), axis))
      return index;
  return -1;
}

/// Axes that do in `to` what they do not in `from`, in order of naming.
static SmallVector<StringAttr> movedAxes(ShardingAttr from, ShardingAttr to) {
  SmallVector<StringAttr> moved;
  auto visit = [&](ArrayRef<StringAttr> axes) {
    for (StringAttr axis : axes)
      if (placeOf(from, axis) != placeOf(to, axis) &&
          !llvm::is_contained(moved, axis))
        moved.push_back(axis);
  };
  for (ShardingAttr sharding : {from, to}) {
    visit(sharding.getPartial());
    visit(sharding.getFlat());
    for (DimShardingAttr dim : sharding.getDims())
      visit(dim.getAxes());
  }
  return moved;
}

/// Who placed an axis of what an op works on: a value that moved is looked at
/// before it did.
static StringAttr originIn(Operation *op, StringAttr axis,
                           const Propagation &propagation) {
  if (!op)
    return nullptr;
  auto inValue = [&](Value value) {
    while (auto reshard = value.getDefiningOp<ReshardOp>())
      value = reshard.getInput();
    return propagation.originOf(value, axis);
  };
  for (Value operand : op->getOperands())
    if (StringAttr found = inValue(operand))
      return found;
  for (Value result : op->getResults())
    if (StringAttr found = inValue(result))
      return found;
  if (StringAttr pinned = propagation.pinOriginOf(op))
    if (pinned.getValue().starts_with(wholeAxis(axis)))
      return pinned;
  return nullptr;
}

/// Who placed an axis that a stored sum is partial over: looked up where the
/// sum is added to.
static StringAttr originOfSlot(Operation *op, StringAttr axis,
                               const Propagation &propagation) {
  auto load = dyn_cast_if_present<LoadOp>(op);
  auto step = load ? load->getParentOfType<StepOp>() : StepOp();
  StringAttr found;
  if (step)
    step.getMicro().walk([&](AccumulateOp add) {
      if (add.getParam() != load.getParam() || add.getSlot() != load.getSlot())
        return WalkResult::advance();
      Value value = add.getInput();
      while (auto reshard = value.getDefiningOp<ReshardOp>())
        value = reshard.getInput();
      found = originIn(value.getDefiningOp(), axis, propagation);
      return found ? WalkResult::interrupt() : WalkResult::advance();
    });
  return found;
}

/// What is moved, by the model's names: a parameter with its slot, or what an
/// op computes.
static std::string valueName(OpOperand &operand) {
  auto slotName = [](StringRef param, StringRef slot) {
    return slot == "value" ? param.str() : (param + "." + slot).str();
  };
  Value value = operand.get();
  while (auto reshard = value.getDefiningOp<ReshardOp>())
    value = reshard.getInput();
  if (auto load = value.getDefiningOp<LoadOp>())
    return slotName(load.getParam(), load.getSlot());
  if (auto add = dyn_cast<AccumulateOp>(operand.getOwner()))
    return slotName(add.getParam(), add.getSlot());
  if (auto store = dyn_cast<StoreOp>(operand.getOwner()))
    return slotName(store.getParam(), store.getSlot());
  Operation *producer = value.getDefiningOp();
  return producer ? describe(producer) : "";
}

WhyAttr mlir::parc::whyOf(OpOperand &operand, StringRef text, ShardingAttr from,
                          ShardingAttr to, const Propagation &propagation) {
  Value value = operand.get();
  Operation *producer = value.getDefiningOp();
  SmallVector<StringAttr> because;
  auto add = [&](StringAttr origin) {
    if (origin && !llvm::is_contained(because, origin))
      because.push_back(origin);
    return origin != nullptr;
  };
  for (StringAttr axis : movedAxes(from, to)) {
    // A partial sum comes from what its op reads, a split from the value.
    bool had = placeOf(from, axis) != -1, has = placeOf(to, axis) != -1;
    if (placeOf(from, axis) == -3 || placeOf(to, axis) == -3)
      add(StringAttr::get(axis.getContext(), "zero shares training state out "
                                             "over " +
                                                 wholeAxis(axis)));
    if (had && !add(propagation.originOf(value, axis)) &&
        !add(originIn(producer, axis, propagation)))
      add(originOfSlot(producer, axis, propagation));
    if (has)
      add(originIn(operand.getOwner(), axis, propagation));
  }
  auto type = cast<RankedTensorType>(value.getType());
  return WhyAttr::get(operand.getOwner()->getContext(), text,
                      valueName(operand), withSharding(type, nullptr), from, to,
                      std::nullopt, because);
}

int64_t mlir::parc::ringBytes(ReshardMove move, int64_t elements,
                              RankedTensorType type, ArrayRef<StringAttr> over,
                              const AxisSizes &axes) {
  auto members = static_cast<double>(axes.product(over));
  double share = (members - 1) / members * static_cast<double>(elements) *
                 static_cast<double>(elementBytes(type));
  return std::llround(move == ReshardMove::AllReduce ? 2 * share : share);
}

int64_t mlir::parc::bytesOfMove(ReshardMove move, RankedTensorType type,
                                ShardingAttr from, ShardingAttr to,
                                ArrayRef<StringAttr> over,
                                const AxisSizes &axes) {
  // What is gathered is whole afterwards.
  ShardingAttr whole = move == ReshardMove::AllGather ? to : from;
  return ringBytes(move, largestPart(type, whole, axes), type, over, axes);
}
