//===- OverlapLayers.cpp - Streams that layers use ------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a backward pass scatters and accumulates, and what an update gathers
/// and stores, goes to the stream whole, so that nothing waits for it; and a
/// layer's parameters are gathered while the layer before computes.
///
//===----------------------------------------------------------------------===//

#include "Overlap.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

using Slot = std::pair<StringAttr, StringAttr>;

static Slot slotOf(AccumulateOp op) {
  return {op.getParamAttr().getAttr(), op.getSlotAttr()};
}

/// The collective over data axes that makes what is accumulated, for nothing
/// else.
static Operation *onlyMaker(const OverlapRole &role, AccumulateOp op) {
  Operation *def = op.getInput().getDefiningOp();
  bool fits = isa_and_nonnull<ReduceScatterOp, AllReduceOp>(def) &&
              def->getBlock() == op->getBlock() && def->hasOneUse() &&
              role.moves(def) && role.isOverData(def);
  return fits ? def : nullptr;
}

/// Slots that are filled by collectives alone: one order, that of the stream.
static DenseSet<Slot> slotsOfStream(const OverlapRole &role, Region &region) {
  DenseSet<Slot> slots, others;
  region.walk([&](AccumulateOp op) {
    (onlyMaker(role, op) ? slots : others).insert(slotOf(op));
  });
  for (const Slot &slot : others)
    slots.erase(slot);
  return slots;
}

/// Neighbours of one bucket, or one accumulation, as one start.
static void startScatters(OverlapRole &role, ArrayRef<AccumulateOp> ops) {
  AccumulateOp first = ops.front();
  Operation *last = first.getInput().getDefiningOp();
  for (AccumulateOp op : ops) {
    Operation *def = op.getInput().getDefiningOp();
    if (last->isBeforeInBlock(def))
      last = def;
  }
  OpBuilder builder(last->getContext());
  builder.setInsertionPointAfter(last);
  SmallVector<Location> places;
  for (AccumulateOp op : ops)
    places.push_back(op.getInput().getLoc());
  Location loc = ops.size() == 1 ? places[0] : builder.getFusedLoc(places);
  auto axes = last->getAttrOfType<ArrayAttr>("axes");
  StartOp start = createStart(builder, loc, role.requireGradientStream(axes));
  Operation *end = start.getBlock()->getTerminator();
  for (AccumulateOp op : ops) {
    Operation *def = op.getInput().getDefiningOp();
    def->removeAttr("bucket");
    def->moveBefore(end);
  }
  for (AccumulateOp op : ops)
    op->moveBefore(end);
}

static void startScatters(OverlapRole &role, Block &block,
                          const DenseSet<Slot> &slots) {
  llvm::MapVector<Attribute, SmallVector<AccumulateOp>> buckets;
  SmallVector<SmallVector<AccumulateOp>> groups;
  for (auto op : block.getOps<AccumulateOp>()) {
    if (!slots.contains(slotOf(op)))
      continue;
    Operation *def = onlyMaker(role, op);
    if (Attribute bucket = def->getAttr("bucket"))
      buckets[bucket].push_back(op);
    else
      groups.push_back({op});
  }
  for (auto &[number, ops] : buckets)
    groups.push_back(ops);
  for (ArrayRef<AccumulateOp> ops : groups)
    startScatters(role, ops);
}

void mlir::parc::accumulateOnStream(OverlapRole &role) {
  Region &backward = role.role.getBackward();
  DenseSet<Slot> slots = slotsOfStream(role, backward);
  if (slots.empty())
    return;
  SmallVector<Block *> blocks{&backward.front()};
  backward.walk([&](StackOp stack) { blocks.push_back(stack.getBlock()); });
  for (Block *block : blocks)
    startScatters(role, *block, slots);
}

//===----------------------------------------------------------------------===//
// New values
//===----------------------------------------------------------------------===//

/// What happens to a gathered value: views of it, and the store that alone
/// reads it. Empty where it is another.
static SmallVector<Operation *> wayToStore(AllGatherOp gather) {
  SmallVector<Operation *> way;
  Operation *op = gather;
  while (op->getNumResults() == 1 && op->hasOneUse()) {
    Operation *user = *op->user_begin();
    bool isView = isa<tensor::ExpandShapeOp>(user);
    if (user->getBlock() != gather->getBlock() ||
        !(isView || isa<StoreOp>(user)))
      return {};
    way.push_back(user);
    op = user;
  }
  return isa<StoreOp>(op) ? way : SmallVector<Operation *>();
}

static void startStores(OverlapRole &role, ArrayRef<AllGatherOp> gathers) {
  Block *block = AllGatherOp(gathers.front())->getBlock();
  Operation *last = gathers.back();
  SmallVector<Operation *> ways;
  SmallVector<Location> places;
  for (AllGatherOp gather : gathers) {
    places.push_back(gather.getLoc());
    for (Operation *op : wayToStore(gather)) {
      ways.push_back(op);
      for (Value operand : op->getOperands()) {
        Operation *def = operand.getDefiningOp();
        if (def && def->getBlock() == block && !llvm::is_contained(ways, def) &&
            last->isBeforeInBlock(def))
          last = def;
      }
    }
  }
  OpBuilder builder(role.role.getContext());
  builder.setInsertionPointAfter(last);
  AllGatherOp first = gathers.front();
  StartOp start = createStart(
      builder, places.size() == 1 ? places[0] : builder.getFusedLoc(places),
      role.requireGradientStream(first.getAxes()));
  Operation *end = start.getBlock()->getTerminator();
  for (AllGatherOp gather : gathers) {
    gather->removeAttr("bucket");
    gather->moveBefore(end);
  }
  for (Operation *op : ways)
    op->moveBefore(end);
}

void mlir::parc::storeOnStream(OverlapRole &role) {
  Region &update = role.role.getUpdate();
  SmallVector<Block *> blocks{&update.front()};
  update.walk([&](StackOp stack) {
    if (!stack->getParentOfType<StartOp>())
      blocks.push_back(stack.getBlock());
  });
  bool any = false;
  for (Block *block : blocks) {
    llvm::MapVector<Attribute, SmallVector<AllGatherOp>> groups;
    for (auto gather : block->getOps<AllGatherOp>())
      if (role.moves(gather) && role.isOverData(gather) &&
          !wayToStore(gather).empty())
        groups[bucketKey(gather)].push_back(gather);
    for (auto &[key, gathers] : groups)
      startStores(role, gathers);
    any |= !groups.empty();
  }
  if (!any)
    return;
  OpBuilder builder(update.front().getTerminator());
  WaitOp::create(builder, role.role.getLoc(), TypeRange(), role.gradientStream,
                 ValueRange());
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

/// True where the gather reads parameters of this layer and nothing else.
static bool readsLayerOnly(AllGatherOp gather) {
  if (!llvm::all_of(gather->getOperands(), canRemake))
    return false;
  auto module = gather->getParentOfType<ModuleOp>();
  Operation *def = gather.getInput().getDefiningOp();
  while (!isa<LoadOp>(def))
    def = def->getOperand(0).getDefiningOp();
  auto param = module.lookupSymbol<ParamOp>(cast<LoadOp>(def).getParam());
  return param && param.getLayers() &&
         cast<LoadOp>(def).getSlot() == kValueSlot;
}

static void startAhead(Block &block, ArrayRef<AllGatherOp> gathers) {
  OpBuilder builder(block.getParentOp()->getContext());
  builder.setInsertionPointToStart(&block);
  // Starts of a block stand at its beginning, in order.
  for (Operation &op : block) {
    auto start = dyn_cast<StartOp>(op);
    if (!start || !start.getAhead())
      break;
    builder.setInsertionPointAfter(start);
  }
  SmallVector<Type> pending, types;
  SmallVector<Location> places;
  for (AllGatherOp gather : gathers) {
    places.push_back(gather.getLoc());
    types.push_back(gather.getType());
    pending.push_back(PendingType::get(gather.getContext(), types.back()));
  }
  Location loc = gathers.size() == 1 ? places[0] : builder.getFusedLoc(places);
  auto start = StartOp::create(builder, loc, pending, streamOf(gathers.front()),
                               builder.getUnitAttr());
  Operation *reader = block.getTerminator();
  for (AllGatherOp gather : gathers)
    for (Operation *user : gather->getUsers()) {
      Operation *here = block.findAncestorOpInBlock(*user);
      if (here->isBeforeInBlock(reader))
        reader = here;
    }
  builder.setInsertionPoint(reader);
  auto wait =
      WaitOp::create(builder, loc, types, StringAttr(), start.getPending());
  OpBuilder body = OpBuilder::atBlockEnd(&start.getBody().emplaceBlock());
  IRMapping mapping;
  SmallVector<Value> results;
  for (auto [gather, value] : llvm::zip(gathers, wait.getOutputs())) {
    for (Value operand : gather->getOperands())
      remake(body, operand, mapping);
    gather->removeAttr("bucket");
    results.push_back(body.clone(*gather, mapping)->getResult(0));
    AllGatherOp(gather).getResult().replaceAllUsesWith(value);
    gather->erase();
  }
  YieldOp::create(body, loc, results);
}

void mlir::parc::gatherAhead(OverlapRole &role) {
  for (Region *region : {&role.role.getForward(), &role.role.getBackward()})
    for (auto stack : region->front().getOps<StackOp>()) {
      llvm::MapVector<Attribute, SmallVector<AllGatherOp>> groups;
      for (auto gather : stack.getBlock()->getOps<AllGatherOp>())
        if (role.moves(gather) && readsLayerOnly(gather))
          groups[bucketKey(gather)].push_back(gather);
      for (auto &[key, gathers] : groups)
        startAhead(*stack.getBlock(), gathers);
      for (Operation &op :
           llvm::make_early_inc_range(llvm::reverse(*stack.getBlock())))
        if (isa<LoadOp>(op) && op.use_empty())
          op.erase();
    }
}

//===----------------------------------------------------------------------===//
// Work beside what travels
//===----------------------------------------------------------------------===//

/// What is computed for `op` alone, and `op`, in the block's order.
static void collectWork(Operation *op, SmallVectorImpl<Operation *> &work) {
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    if (def && def->getBlock() == op->getBlock() && def->hasOneUse() &&
        def->getNumResults() == 1 && isMemoryEffectFree(def) &&
        isa<RankedTensorType>(operand.getType()) && !isCollective(def))
      collectWork(def, work);
  }
  work.push_back(op);
}

/// True where nothing is computed between a start and its wait.
static bool isIdle(StartOp start, WaitOp wait) {
  for (Operation *op = start->getNextNode(); op != wait; op = op->getNextNode())
    if (!isa<AccumulateOp, StartOp, LoadOp>(op) &&
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>) &&
        !isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::EmptyOp>(
            op) &&
        !op->hasTrait<OpTrait::ConstantLike>())
      return false;
  return true;
}

static void workInWindows(Block &block) {
  SmallVector<AccumulateOp> pending;
  DenseSet<Operation *> placed;
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    ops.push_back(&op);
  for (Operation *op : ops) {
    if (auto sum = dyn_cast<AccumulateOp>(op); sum && !placed.contains(op))
      pending.push_back(sum);
    auto start = dyn_cast<StartOp>(op);
    if (isa<StackOp, LastMicroOp>(op) ||
        (start && (start.getAhead() || start.getNumResults() == 0)))
      pending.clear();
    if (!start || start.getAhead() || start.getNumResults() == 0)
      continue;
    auto wait = cast<WaitOp>(*start.getPending()[0].user_begin());
    if (!isIdle(start, wait))
      continue;
    for (Operation *inside = start; inside != wait;
         inside = inside->getNextNode())
      if (auto sum = dyn_cast<AccumulateOp>(inside))
        pending.push_back(sum);
    for (AccumulateOp sum : pending) {
      placed.insert(sum);
      SmallVector<Operation *> work;
      collectWork(sum, work);
      for (Operation *part : work)
        if (part->isBeforeInBlock(wait))
          part->moveBefore(wait);
    }
    pending.clear();
  }
}

/// The first reader may stand later now.
static void sinkWaits(Block &block) {
  for (WaitOp wait : llvm::to_vector(block.getOps<WaitOp>())) {
    if (wait.getStream())
      continue;
    Operation *reader = block.getTerminator();
    for (Operation *user : wait->getUsers())
      if (Operation *here = block.findAncestorOpInBlock(*user);
          here->isBeforeInBlock(reader))
        reader = here;
    wait->moveBefore(reader);
  }
}

void mlir::parc::workBesideStarts(OverlapRole &role) {
  Region &backward = role.role.getBackward();
  SmallVector<Block *> blocks{&backward.front()};
  backward.walk([&](StackOp stack) { blocks.push_back(stack.getBlock()); });
  for (Block *block : blocks) {
    workInWindows(*block);
    sinkWaits(*block);
  }
}
