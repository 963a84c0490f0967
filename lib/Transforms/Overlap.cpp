//===- Overlap.cpp - Start early, wait late -------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The pass, and the collectives of one block: neighbours of one bucket become
/// one start, which moves up, and its wait, which stands before the first
/// reader. Starts of a block keep their order and never pass a stack, whose
/// layers have starts of their own.
///
//===----------------------------------------------------------------------===//

#include "Overlap.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "parc/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::parc {
#define GEN_PASS_DEF_OVERLAP
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// Axes and streams
//===----------------------------------------------------------------------===//

static SmallVector<StringAttr> axesOf(Operation *collective) {
  return SmallVector<StringAttr>(
      collective->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>());
}

OverlapRole::OverlapRole(RoleOp role, const AxisSizes &sizes)
    : role(role), sizes(sizes) {
  auto add = [&](StringAttr axis) {
    if (axis.getValue() != kMicroBatchAxis && axis.getValue() != kStageAxis &&
        sizes.of(axis) > 1 && !llvm::is_contained(dataAxes, axis))
      dataAxes.push_back(axis);
  };
  if (auto shardings = role->getAttrOfType<ArrayAttr>("input_shardings"))
    for (Attribute input : shardings)
      if (auto sharding = dyn_cast<ShardingAttr>(input))
        for (DimShardingAttr dim : sharding.getDims())
          llvm::for_each(dim.getAxes(), add);
  // Inputs may come whole and be cut by the program. What a step adds up of
  // its batch, the loss, is still summed over the ranks that have parts of it.
  for (Block &update : role.getUpdate())
    for (BlockArgument sum : update.getArguments())
      for (Operation *user : sum.getUsers())
        if (isCollective(user))
          llvm::for_each(axesOf(user), add);
}

bool OverlapRole::moves(Operation *collective) const {
  SmallVector<StringAttr> axes = axesOf(collective);
  auto reduce = dyn_cast<AllReduceOp>(collective);
  if (reduce && reduce.getStages()) {
    llvm::erase_if(axes, [](StringAttr axis) { return axis == kStageAxis; });
    return sizes.product(axes) *
               static_cast<int64_t>(reduce.getStages()->size()) >
           1;
  }
  return sizes.product(axes) > 1;
}

bool OverlapRole::isOverData(Operation *collective) const {
  return llvm::all_of(axesOf(collective), [&](StringAttr axis) {
    return llvm::is_contained(dataAxes, axis);
  });
}

StringAttr mlir::parc::streamOf(MLIRContext *context,
                                ArrayRef<StringAttr> axes) {
  SmallVector<StringRef> names;
  for (StringAttr axis : axes) {
    StringRef whole = axis.getValue().split('.').first;
    if (!llvm::is_contained(names, whole))
      names.push_back(whole);
  }
  return StringAttr::get(context, llvm::join(names, "_"));
}

StringAttr mlir::parc::streamOf(Operation *collective) {
  return streamOf(collective->getContext(), axesOf(collective));
}

StringAttr OverlapRole::requireGradientStream(ArrayAttr axes) {
  SmallVector<StringAttr> own(axes.getAsRange<StringAttr>());
  if (!gradientStream)
    gradientStream =
        streamOf(role.getContext(), dataAxes.empty() ? own : dataAxes);
  return gradientStream;
}

//===----------------------------------------------------------------------===//
// Making
//===----------------------------------------------------------------------===//

bool mlir::parc::canRemake(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() > 0)
    return false;
  bool isView = isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op);
  bool isIndex =
      isMemoryEffectFree(op) &&
      llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
  return (isa<LoadOp>(op) || isView || isIndex) &&
         llvm::all_of(op->getOperands(), canRemake);
}

StartOp mlir::parc::createStart(OpBuilder &builder, Location loc,
                                StringAttr stream) {
  auto start =
      StartOp::create(builder, loc, TypeRange(), stream, /*ahead=*/nullptr);
  OpBuilder body = OpBuilder::atBlockEnd(&start.getBody().emplaceBlock());
  YieldOp::create(body, loc, ValueRange());
  return start;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

namespace {

/// The collectives of one block.
class BlockStarter {
public:
  BlockStarter(const OverlapRole &role, Block &block)
      : role(role), block(block) {}

  unsigned run();

private:
  using Group = SmallVector<Operation *>;

  void collect();
  bool canJoin(const Group &group);
  Operation *lastMade(const Group &group);
  Operation *firstReader(const Group &group);
  void start(const Group &group);

  const OverlapRole &role;
  Block &block;
  /// In order, and what starts may not pass.
  std::vector<Group> groups;
  DenseMap<Operation *, Operation *> barrierBefore;
  Operation *lastStart = nullptr;
};

} // namespace

static bool isBarrier(Operation *op) {
  return isa<StackOp, StartOp, LastMicroOp>(op);
}

void BlockStarter::collect() {
  Operation *barrier = nullptr;
  Attribute open;
  for (Operation &op : block) {
    if (isBarrier(&op)) {
      open = nullptr;
      barrier = &op;
    }
    if (!isCollective(&op) || !role.moves(&op))
      continue;
    barrierBefore[&op] = barrier;
    Attribute bucket = op.getAttr("bucket");
    if (!bucket || bucket != open)
      groups.emplace_back();
    groups.back().push_back(&op);
    open = bucket;
  }
}

/// The last op of the block that makes what the group reads; null where all is
/// there from the beginning.
Operation *BlockStarter::lastMade(const Group &group) {
  Operation *last = nullptr;
  for (Operation *op : group)
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && def->getBlock() == &block &&
          (!last || last->isBeforeInBlock(def)))
        last = def;
    }
  return last;
}

Operation *BlockStarter::firstReader(const Group &group) {
  Operation *first = block.getTerminator();
  for (Operation *op : group)
    for (Operation *user : op->getUsers()) {
      Operation *here = block.findAncestorOpInBlock(*user);
      if (here->isBeforeInBlock(first))
        first = here;
    }
  return first;
}

/// All operands are there before any result is read.
bool BlockStarter::canJoin(const Group &group) {
  Operation *last = lastMade(group);
  return !last || last->isBeforeInBlock(firstReader(group));
}

void BlockStarter::start(const Group &group) {
  Operation *reader = firstReader(group);
  Operation *after = lastMade(group);
  for (Operation *floor : {lastStart, barrierBefore.lookup(group.front())})
    if (floor && (!after || after->isBeforeInBlock(floor)))
      after = floor;
  OpBuilder builder(block.getParentOp()->getContext());
  if (after)
    builder.setInsertionPointAfter(after);
  else
    builder.setInsertionPointToStart(&block);
  SmallVector<Location> places;
  SmallVector<Type> pending, types;
  SmallVector<Value> results;
  for (Operation *op : group) {
    places.push_back(op->getLoc());
    types.push_back(op->getResult(0).getType());
    pending.push_back(PendingType::get(op->getContext(), types.back()));
    results.push_back(op->getResult(0));
  }
  Location loc = group.size() == 1 ? places[0] : builder.getFusedLoc(places);
  auto start = StartOp::create(builder, loc, pending, streamOf(group.front()),
                               /*ahead=*/nullptr);
  builder.setInsertionPoint(reader);
  auto wait =
      WaitOp::create(builder, loc, types, StringAttr(), start.getPending());
  for (auto [from, to] : llvm::zip(results, wait.getOutputs()))
    from.replaceAllUsesWith(to);
  Block *body = &start.getBody().emplaceBlock();
  for (Operation *op : group) {
    op->removeAttr("bucket");
    op->moveBefore(body, body->end());
  }
  builder.setInsertionPointToEnd(body);
  YieldOp::create(builder, loc, results);
  lastStart = start;
}

unsigned BlockStarter::run() {
  collect();
  unsigned count = 0;
  for (const Group &group : groups) {
    if (canJoin(group)) {
      start(group);
      ++count;
      continue;
    }
    for (Operation *op : group)
      start({op});
    count += group.size();
  }
  return count;
}

static unsigned startBlocks(const OverlapRole &role, Region &region) {
  unsigned count = 0;
  for (Block &block : region) {
    for (auto stack : block.getOps<StackOp>())
      count += startBlocks(role, stack.getBody());
    count += BlockStarter(role, block).run();
  }
  return count;
}

namespace {
struct OverlapPass : public parc::impl::OverlapBase<OverlapPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    int64_t microBatches = 1;
    for (ScheduleOp schedule : module.getOps<ScheduleOp>())
      microBatches = static_cast<int64_t>(schedule.getMicroBatches());
    AxisSizes sizes(module, microBatches);
    for (RoleOp op : module.getOps<RoleOp>()) {
      OverlapRole role(op, sizes);
      accumulateOnStream(role);
      gatherAhead(role);
      moveReductions(role);
      waitForGradients(role);
      storeOnStream(role);
      for (Region &region : op->getRegions())
        startBlocks(role, region);
      workBesideStarts(role);
    }
  }
};
} // namespace
