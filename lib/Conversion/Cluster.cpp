//===- Cluster.cpp - Joins kernels ----------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A map becomes part of the one kernel that reads it, where that computes
/// nothing twice; a map over a reduction's result becomes its finish. What is
/// trivial is computed again wherever it is read. A statistic of a row is
/// read by every element of the row, so it stays a kernel of its own.
///
//===----------------------------------------------------------------------===//

#include "Convert.h"

using namespace mlir;
using namespace mlir::parc;

/// Bodies beyond this are left alone: registers run out, not bandwidth.
static constexpr size_t kMaxOps = 160;

static size_t sizeOf(Block &block) {
  return std::distance(block.begin(), block.end());
}

/// True for a body that costs less than the memory it would save.
static bool isTrivial(rt::MapOp map) {
  // The runtime has no memory of bits.
  for (Type type : map.getResultTypes())
    if (cast<RankedTensorType>(type).getElementType().isInteger(1))
      return true;
  size_t arithmetic = 0, reads = 0;
  for (Operation &op : map.getBody().front().without_terminator()) {
    if (isa<arith::ConstantOp>(op))
      continue;
    if (isa<rt::AtOp>(op)) {
      ++reads;
      continue;
    }
    if (isa<math::MathDialect>(op.getDialect()) || isa<arith::DivFOp>(op))
      return false;
    ++arithmetic;
  }
  return reads <= 1 && arithmetic <= 1;
}

/// The kernel of `block` that holds `user`, null where it is none.
static Operation *kernelOf(Operation *user, Block *block) {
  if (!isa<rt::AtOp>(user))
    return nullptr;
  Operation *kernel = user->getParentOp();
  return kernel->getBlock() == block ? kernel : nullptr;
}

/// All reads of `map` where one kernel of its block makes them all.
static bool collectReads(rt::MapOp map, Operation *&consumer,
                         SmallVectorImpl<rt::AtOp> &reads) {
  consumer = nullptr;
  for (Operation *user : map->getUsers()) {
    Operation *kernel = kernelOf(user, map->getBlock());
    if (!kernel || (consumer && kernel != consumer))
      return false;
    consumer = kernel;
    reads.push_back(cast<rt::AtOp>(user));
  }
  return consumer != nullptr;
}

/// True where `indices` visit each element once: distinct loop indices, and
/// all of the region's.
static bool visitsOnce(rt::AtOp read, OperandRange indices) {
  Block *block = read->getBlock();
  DenseSet<Value> seen;
  for (Value index : indices) {
    auto argument = dyn_cast<BlockArgument>(index);
    if (!argument || argument.getOwner() != block || !seen.insert(index).second)
      return false;
  }
  size_t loops = llvm::count_if(block->getArguments(), [](BlockArgument a) {
    return a.getType().isIndex();
  });
  return seen.size() == loops;
}

/// Replaces one read by the body that computes what is read.
static void inlineRead(rt::MapOp map, rt::AtOp read) {
  OpBuilder builder(read);
  IRMapping local;
  Block &body = map.getBody().front();
  local.map(body.getArguments(), read.getIndices());
  for (Operation &op : body.without_terminator())
    builder.clone(op, local);
  unsigned number = cast<OpResult>(read.getTensor()).getResultNumber();
  Value value = body.getTerminator()->getOperand(number);
  read.getResult().replaceAllUsesWith(local.lookupOrDefault(value));
  read.erase();
}

static bool inlineMap(rt::MapOp map) {
  if (map->use_empty())
    return false;
  if (isTrivial(map)) {
    SmallVector<rt::AtOp> reads;
    for (Operation *user : map->getUsers())
      if (auto read = dyn_cast<rt::AtOp>(user))
        reads.push_back(read);
    for (rt::AtOp read : reads)
      inlineRead(map, read);
    return !reads.empty();
  }
  Operation *consumer;
  SmallVector<rt::AtOp> reads;
  if (!collectReads(map, consumer, reads))
    return false;
  for (rt::AtOp read : reads) {
    if (!visitsOnce(read, read.getIndices()) ||
        read.getIndices() != reads[0].getIndices() ||
        read->getBlock() != reads[0]->getBlock())
      return false;
    if (sizeOf(*read->getBlock()) + sizeOf(map.getBody().front()) > kMaxOps)
      return false;
  }
  for (rt::AtOp read : reads)
    inlineRead(map, read);
  return true;
}

/// Makes a map that alone reads a reduction its finish.
static bool finishReduction(rt::ReduceOp reduce) {
  rt::MapOp map;
  SmallVector<rt::AtOp> reads;
  for (Operation *user : reduce->getUsers()) {
    auto kernel =
        dyn_cast_or_null<rt::MapOp>(kernelOf(user, reduce->getBlock()));
    if (!kernel || (map && kernel != map))
      return false;
    map = kernel;
    reads.push_back(cast<rt::AtOp>(user));
  }
  if (!map)
    return false;
  auto shape = cast<RankedTensorType>(reduce.getType(0)).getShape();
  Block &body = map.getBody().front();
  if (cast<RankedTensorType>(map.getType(0)).getShape() != shape ||
      sizeOf(body) > kMaxOps)
    return false;
  for (rt::AtOp read : reads)
    if (!llvm::equal(read.getIndices(), body.getArguments()))
      return false;
  // The new reduction stands where the map was: all that it reads is there.
  OpBuilder builder(map);
  auto made = rt::ReduceOp::create(
      builder, reduce.getLoc(), map.getResultTypes(), reduce.getKind(),
      reduce.getSizes(), reduce.getExtents(), reduce.getOpenSizes());
  made.getBody().takeBody(reduce.getBody());
  made.getFinish().takeBody(reduce.getFinish());
  Block &finish = made.getFinish().front();
  auto yield = cast<rt::YieldOp>(finish.getTerminator());
  IRMapping local;
  local.map(body.getArguments(),
            finish.getArguments().take_front(body.getNumArguments()));
  for (rt::AtOp read : reads)
    local.map(
        read.getResult(),
        yield.getOperand(cast<OpResult>(read.getTensor()).getResultNumber()));
  OpBuilder tail(yield);
  for (Operation &op : body.without_terminator())
    if (!local.contains(op.getNumResults() ? op.getResult(0) : Value()))
      tail.clone(op, local);
  SmallVector<Value> values;
  for (Value value : body.getTerminator()->getOperands())
    values.push_back(local.lookupOrDefault(value));
  yield.getValuesMutable().assign(values);
  map->replaceAllUsesWith(made.getResults());
  map.erase();
  reduce.erase();
  return true;
}

/// Erases what nothing reads.
static void eraseDead(Block &block) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops)) {
    if (isa<rt::MapOp, rt::ReduceOp>(op))
      for (Region &region : op->getRegions())
        eraseDead(region.front());
    if (isOpTriviallyDead(op))
      op->erase();
  }
}

static void clusterBlock(Block &block) {
  for (bool changed = true; changed;) {
    changed = false;
    eraseDead(block);
    for (Operation &op : llvm::make_early_inc_range(block))
      if (auto map = dyn_cast<rt::MapOp>(op))
        changed |= inlineMap(map);
    eraseDead(block);
    for (auto reduce : llvm::to_vector(block.getOps<rt::ReduceOp>()))
      changed |= finishReduction(reduce);
  }
}

void mlir::parc::clusterKernels(Operation *op) {
  SmallVector<Block *> blocks;
  op->walk([&](Operation *inner) {
    if (isa<rt::RoleOp, rt::StackOp>(inner))
      for (Region &region : inner->getRegions())
        blocks.push_back(&region.front());
  });
  for (Block *block : blocks)
    clusterBlock(*block);
}
