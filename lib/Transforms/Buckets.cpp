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

/// Collectives that can be one: what they share, as text-free keys.
static Attribute bucketKey(Operation *op) {
  Builder builder(op->getContext());
  Type element =
      cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  Attribute kind = op->hasAttr("kind") ? op->getAttr("kind")
                                       : Attribute(builder.getUnitAttr());
  return builder.getArrayAttr(
      {builder.getStringAttr(op->getName().getStringRef()), kind,
       op->getAttr("axes"), TypeAttr::get(element)});
}

static void numberBlock(Block &block, int64_t &next) {
  DenseMap<Operation *, unsigned> levels = levelsOf(block);
  llvm::MapVector<std::pair<unsigned, Attribute>, SmallVector<Operation *>>
      buckets;
  for (Operation &op : block)
    if (isBucketed(&op))
      buckets[{levels.lookup(&op), bucketKey(&op)}].push_back(&op);
  Builder builder(block.getParentOp()->getContext());
  for (auto &[key, ops] : buckets) {
    if (ops.size() < 2)
      continue;
    for (Operation *op : ops) {
      op->setAttr("bucket", builder.getI64IntegerAttr(next));
      // Those of one bucket follow each other.
      if (op != ops.front())
        op->moveAfter(ops[llvm::find(ops, op) - ops.begin() - 1]);
    }
    ++next;
  }
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
