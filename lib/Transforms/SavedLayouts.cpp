//===- SavedLayouts.cpp - How saved values lie ----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Weighs the layouts of saved values by what forward and backward send.
///
//===----------------------------------------------------------------------===//

#include "SavedLayouts.h"
#include "parc/Analysis/ReshardPlanner.h"

#include <limits>

using namespace mlir;
using namespace mlir::parc;

static constexpr double kNever = std::numeric_limits<double>::infinity();

/// True where micro-batches that `from` tells apart would be joined.
static bool joinsMicroBatches(ShardingAttr from, ShardingAttr to) {
  auto isTime = [](StringAttr axis) { return axis == kMicroBatchAxis; };
  for (auto [before, after] : llvm::zip(from.getDims(), to.getDims())) {
    ArrayRef<StringAttr> had = before.getAxes(), has = after.getAxes();
    const auto *found = llvm::find_if(had, isTime);
    if (found == had.end())
      continue;
    size_t count = found - had.begin() + 1;
    if (has.size() < count || has.take_front(count) != had.take_front(count))
      return true;
  }
  return llvm::any_of(from.getPartial(), isTime) &&
         llvm::none_of(to.getPartial(), isTime);
}

double mlir::parc::turnBytes(RankedTensorType type, ShardingAttr from,
                             ShardingAttr to, const AxisSizes &axes) {
  if (from == to)
    return 0;
  if (from.isFlat() || to.isFlat() || joinsMicroBatches(from, to))
    return kNever;
  return reshardBytes(type, from, to, axes);
}

namespace {

/// One value that a stack saves for another.
class SavedValue {
public:
  /// `saved` is what `forward` yields for the result that is `backward`'s
  /// operand `each`.
  SavedValue(OpOperand &saved, OpResult result, OpOperand &each,
             const AxisSizes &axes)
      : saved(saved), result(result), each(each), axes(axes) {}

  void choose();

private:
  /// A layout to save the value in.
  struct Choice {
    ShardingAttr layout;
    double bytes = kNever, memory = kNever;
    /// What it is made of in the forward: a value, or that which `way` changes,
    /// on its way.
    Value source;
    ReshardOp way;
  };

  bool collect();
  void addWay(ShardingAttr from, ShardingAttr to);
  void addCandidate(ShardingAttr layout);
  Choice weigh(ShardingAttr layout) const;
  void saveForward(const Choice &choice);
  void readBackward(ShardingAttr layout);
  double turn(ShardingAttr from, ShardingAttr to) const {
    return turnBytes(type, from, to, axes);
  }
  BlockArgument argument() const {
    auto backward = cast<StackOp>(each.getOwner());
    return backward.getEachArguments()[each.getOperandNumber() -
                                       backward.getCarry().size()];
  }

  OpOperand &saved;
  OpResult result;
  OpOperand &each;
  const AxisSizes &axes;
  RankedTensorType type;
  /// The value as it was made, and what the forward turned it into for others
  /// than the backward.
  SmallVector<Value> versions;
  SmallVector<ReshardOp> ways;
  /// Layouts in which the backward reads it.
  SmallVector<ShardingAttr> reads;
  SmallVector<ShardingAttr> candidates;
};

} // namespace

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

void SavedValue::addCandidate(ShardingAttr layout) {
  if (!layout.isPartial() && !llvm::is_contained(candidates, layout))
    candidates.push_back(layout);
}

void SavedValue::addWay(ShardingAttr from, ShardingAttr to) {
  if (turn(from, to) == kNever)
    return;
  ReshardPlanner planner(axes);
  if (const ReshardPlan *plan = planner.plan(type, from, to))
    for (ShardingAttr layout : layoutsOnWay(*plan, type.getContext(), from, to))
      addCandidate(layout);
}

/// False where there is nothing to choose.
bool SavedValue::collect() {
  ShardingAttr now = getSharding(saved.get().getType());
  type = withSharding(cast<RankedTensorType>(saved.get().getType()), nullptr);
  Value root = saved.get();
  Block *block = saved.getOwner()->getBlock();
  while (auto reshard = root.getDefiningOp<ReshardOp>())
    root = reshard.getInput();
  if (root.getParentBlock() != block || now.isFlat())
    return false;
  addCandidate(now);
  versions.push_back(root);
  for (size_t index = 0; index < versions.size(); ++index)
    for (Operation *user : versions[index].getUsers()) {
      auto way = dyn_cast<ReshardOp>(user);
      if (!way || way->getBlock() != block ||
          llvm::all_of(way->getUses(),
                       [&](OpOperand &use) { return &use == &saved; }))
        continue;
      ShardingAttr to = getSharding(way.getType());
      if (to.isFlat())
        return false;
      versions.push_back(way.getResult());
      ways.push_back(way);
      addCandidate(to);
      addWay(getSharding(way.getInput().getType()), to);
    }
  for (Operation *user : argument().getUsers()) {
    auto reshard = dyn_cast<ReshardOp>(user);
    ShardingAttr read = reshard ? getSharding(reshard.getType()) : now;
    if (read.isFlat())
      return false;
    if (llvm::is_contained(reads, read))
      continue;
    reads.push_back(read);
    addCandidate(read);
    addWay(now, read);
  }
  return candidates.size() > 1;
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

SavedValue::Choice SavedValue::weigh(ShardingAttr layout) const {
  Choice choice;
  choice.layout = layout;
  choice.memory = partBytes(type, layout, axes);
  auto consider = [&](double bytes, Value source, ReshardOp way) {
    if (bytes >= choice.bytes)
      return;
    choice.bytes = bytes;
    choice.source = source;
    choice.way = way;
  };
  for (Value version : versions)
    consider(turn(getSharding(version.getType()), layout), version, {});
  for (ReshardOp way : ways) {
    if (!way.getUsed().empty())
      continue;
    ShardingAttr from = getSharding(way.getInput().getType());
    ShardingAttr to = getSharding(way.getType());
    double through = turn(from, layout) + turn(layout, to);
    if (!to.isPartial() && through < kNever)
      consider(through - turn(from, to), Value(way->getOperand(0)), way);
  }
  for (ShardingAttr read : reads)
    choice.bytes += turn(layout, read);
  return choice;
}

void SavedValue::choose() {
  if (!collect())
    return;
  Choice best = weigh(candidates.front());
  double limit = best.memory;
  for (ShardingAttr layout : ArrayRef(candidates).drop_front()) {
    Choice choice = weigh(layout);
    if (choice.memory <= limit && std::tie(choice.bytes, choice.memory) <
                                      std::tie(best.bytes, best.memory))
      best = choice;
  }
  if (best.layout == candidates.front() || best.bytes == kNever)
    return;
  readBackward(best.layout);
  saveForward(best);
}

//===----------------------------------------------------------------------===//
// Change
//===----------------------------------------------------------------------===//

static ReshardOp reshard(OpBuilder &builder, Value source, ShardingAttr to,
                         WhyAttr why) {
  auto type = cast<RankedTensorType>(source.getType());
  return ReshardOp::create(builder, source.getLoc(), withSharding(type, to),
                           source,
                           why.withMove(getSharding(type), to, std::nullopt));
}

void SavedValue::saveForward(const Choice &choice) {
  Value source = choice.source;
  if (ReshardOp way = choice.way) {
    OpBuilder builder(way);
    source = reshard(builder, source, choice.layout, way.getWhyAttr());
    way.getInputMutable().assign(source);
    way.setWhyAttr(way.getWhyAttr().withMove(
        choice.layout, getSharding(way.getType()), std::nullopt));
  } else if (getSharding(source.getType()) != choice.layout) {
    OpBuilder builder(saved.getOwner());
    Operation *producer = versions.front().getDefiningOp();
    std::string name = producer ? describe(producer) : std::string("the input");
    WhyAttr why = WhyAttr::get(
        builder.getContext(), name + " is kept as the backward reads it",
        producer ? StringRef(name) : StringRef(), type, ShardingAttr(),
        ShardingAttr(), std::nullopt, ArrayRef<StringAttr>());
    source = reshard(builder, source, choice.layout, why);
  }
  saved.set(source);
  result.setType(LayersType::get(type.getContext(), source.getType()));
}

void SavedValue::readBackward(ShardingAttr layout) {
  BlockArgument value = argument();
  Type now = value.getType();
  value.setType(withSharding(type, layout));
  ReshardOp asBefore;
  for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
    auto read = dyn_cast<ReshardOp>(use.getOwner());
    if (!read) {
      if (!asBefore) {
        OpBuilder builder = OpBuilder::atBlockBegin(value.getOwner());
        asBefore = reshard(
            builder, value, getSharding(now),
            WhyAttr::get(builder.getContext(),
                         "what was saved is laid out otherwise than it is "
                         "read",
                         "", type, ShardingAttr(), ShardingAttr(), std::nullopt,
                         ArrayRef<StringAttr>()));
      }
      use.set(asBefore.getResult());
      continue;
    }
    if (getSharding(read.getType()) == layout) {
      read.getResult().replaceAllUsesWith(value);
      read.erase();
      continue;
    }
    read.setWhyAttr(read.getWhyAttr().withMove(
        layout, getSharding(read.getType()), std::nullopt));
  }
}

void mlir::parc::chooseSavedLayouts(ModuleOp module, const AxisSizes &axes) {
  module.walk([&](StackOp forward) {
    unsigned first = forward.getCarry().size() + forward.getReductions();
    for (OpResult result : forward->getResults().drop_front(first)) {
      if (!result.hasOneUse())
        continue;
      OpOperand &each = *result.use_begin();
      if (isa<StackOp>(each.getOwner()))
        SavedValue(forward.getYield()->getOpOperand(result.getResultNumber()),
                   result, each, axes)
            .choose();
    }
  });
  // Ways to layouts that nobody saves any more, the last step first.
  SmallVector<ReshardOp> all;
  module.walk([&](ReshardOp way) { all.push_back(way); });
  for (ReshardOp way : llvm::reverse(all))
    if (way->use_empty())
      way.erase();
}
