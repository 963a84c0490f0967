//===- Buckets.cpp - Collectives of an update, together -------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Levels of a block: an op is as deep as the collectives that it depends on.
///
//===----------------------------------------------------------------------===//

#include "Buckets.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::parc;

static bool isBucketed(Operation *op) {
  return isa<AllReduceOp, AllGatherOp, ReduceScatterOp>(op) &&
         cast<RankedTensorType>(op->getResult(0).getType()).getRank() > 0;
}

/// How many collectives follow each other on the way to each op of a block.
/// Loads see what was stored before the step, so values alone order ops.
static DenseMap<Operation *, unsigned> levelsOf(Block &block) {
  DenseMap<Operation *, unsigned> levels;
  for (Operation &op : block) {
    unsigned level = 0;
    auto read = [&](Value value) {
      Operation *def = value.getDefiningOp();
      if (def && def->getBlock() == &block)
        level = std::max(level, levels.lookup(def) + isBucketed(def));
    };
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        read(operand);
    });
    levels[&op] = level;
  }
  return levels;
}

/// Sorts a block by levels, the collectives at the end of each.
static void sortBlock(Block &block) {
  DenseMap<Operation *, unsigned> levels = levelsOf(block);
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  llvm::stable_sort(ops, [&](Operation *a, Operation *b) {
    return std::pair(levels.lookup(a), isBucketed(a)) <
           std::pair(levels.lookup(b), isBucketed(b));
  });
  for (Operation *op : ops)
    op->moveBefore(block.getTerminator());
}

Attribute mlir::parc::bucketKey(Operation *op) {
  Builder builder(op->getContext());
  Type element =
      cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  Attribute kind = op->hasAttr("kind") ? op->getAttr("kind")
                                       : Attribute(builder.getUnitAttr());
  return builder.getArrayAttr(
      {builder.getStringAttr(op->getName().getStringRef()), kind,
       op->getAttr("axes"), TypeAttr::get(element)});
}

/// Numbers the buckets among `ops`, neighbours that do not need each other, and
/// lets those of one bucket follow each other.
static void number(ArrayRef<Operation *> ops, int64_t &next) {
  llvm::MapVector<Attribute, SmallVector<Operation *>> buckets;
  for (Operation *op : ops)
    buckets[bucketKey(op)].push_back(op);
  for (auto &[key, members] : buckets) {
    if (members.size() < 2)
      continue;
    Builder builder(members.front()->getContext());
    Operation *last = nullptr;
    for (Operation *op : members) {
      op->setAttr("bucket", builder.getI64IntegerAttr(next));
      if (last)
        op->moveAfter(last);
      last = op;
    }
    ++next;
  }
}

static void numberBlock(Block &block, int64_t &next) {
  DenseMap<Operation *, unsigned> levels = levelsOf(block);
  llvm::MapVector<unsigned, SmallVector<Operation *>> byLevel;
  for (Operation &op : block)
    if (isBucketed(&op))
      byLevel[levels.lookup(&op)].push_back(&op);
  for (auto &[level, ops] : byLevel)
    number(ops, next);
}

void mlir::parc::bucketUpdate(StepOp step) {
  int64_t next = 0;
  SmallVector<Block *> blocks;
  for (Block &block : step.getUpdate())
    blocks.push_back(&block);
  step.getUpdate().walk(
      [&](StackOp stack) { blocks.push_back(stack.getBlock()); });
  for (Block *block : blocks) {
    sortBlock(*block);
    numberBlock(*block, next);
  }
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

/// Gathers of loaded values, and what they are made from, go first.
static void gatherFirst(Block &block, int64_t &next) {
  llvm::SmallPtrSet<Operation *, 32> early;
  SmallVector<Operation *> before, gathers;
  for (Operation &op : block.without_terminator()) {
    bool isGather = isa<AllGatherOp>(op);
    bool isIndex =
        op.getNumRegions() == 0 && isMemoryEffectFree(&op) &&
        llvm::none_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>);
    bool ready = llvm::all_of(op.getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      return def && early.contains(def);
    });
    if (!ready || !(isGather || isIndex || isa<LoadOp>(op)))
      continue;
    // One gather does not wait for another.
    if (!isGather)
      early.insert(&op);
    (isGather ? gathers : before).push_back(&op);
  }
  if (gathers.size() < 2)
    return;
  before.append(gathers);
  Operation *first = &block.front();
  for (Operation *op : before) {
    if (op == first)
      first = first->getNextNode();
    else
      op->moveBefore(first);
  }
  number(gathers, next);
}

/// Scatters whose result is only accumulated go last.
static void scatterLast(Block &block, int64_t &next) {
  SmallVector<Operation *> scatters;
  for (auto scatter : block.getOps<ReduceScatterOp>())
    if (scatter->hasOneUse() && isa<AccumulateOp>(*scatter->user_begin()))
      scatters.push_back(scatter);
  if (scatters.size() < 2)
    return;
  for (Operation *op : scatters)
    op->moveBefore(block.getTerminator());
  for (Operation *op : scatters)
    (*op->user_begin())->moveBefore(block.getTerminator());
  number(scatters, next);
}

void mlir::parc::bucketLayers(StepOp step) {
  int64_t next = 0;
  step.getMicro().walk([&](StackOp stack) {
    gatherFirst(*stack.getBlock(), next);
    scatterLast(*stack.getBlock(), next);
  });
}
