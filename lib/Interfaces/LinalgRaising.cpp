//===- LinalgRaising.cpp - Named ops out of generic ones ------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Named ops say what they do, and library calls are found by them. Inputs that
/// nothing reads go first: they would keep forward values alive.
///
//===----------------------------------------------------------------------===//

#include "LinalgRaising.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::parc;

bool mlir::parc::isContraction(ArrayRef<AffineMap> maps) {
  bool contracts = false;
  for (AffineMap map : maps)
    if (!map.isProjectedPermutation())
      return false;
  for (unsigned loop = 0; loop < maps[0].getNumDims(); ++loop) {
    bool lhs = maps[0].isFunctionOfDim(loop);
    bool rhs = maps[1].isFunctionOfDim(loop);
    bool result = maps[2].isFunctionOfDim(loop);
    if (result ? !lhs && !rhs : !lhs || !rhs)
      return false;
    contracts |= !result;
  }
  return contracts;
}

bool mlir::parc::matchProductSum(Block *block, Value sum, bool allowCasts) {
  auto isArgument = [&](Value value, unsigned index) {
    if (auto extend = value.getDefiningOp<arith::ExtFOp>();
        extend && allowCasts)
      value = extend.getIn();
    return value == block->getArgument(index);
  };
  auto add = sum.getDefiningOp<arith::AddFOp>();
  if (!add)
    return false;
  Value product = add.getLhs();
  if (product == block->getArgument(2))
    product = add.getRhs();
  else if (add.getRhs() != block->getArgument(2))
    return false;
  auto mul = product.getDefiningOp<arith::MulFOp>();
  return mul && ((isArgument(mul.getLhs(), 0) && isArgument(mul.getRhs(), 1)) ||
                 (isArgument(mul.getLhs(), 1) && isArgument(mul.getRhs(), 0)));
}

void mlir::parc::eraseWithInit(linalg::GenericOp op) {
  SmallVector<Value> pending(op.getOutputs());
  op.erase();
  while (!pending.empty()) {
    Operation *def = pending.pop_back_val().getDefiningOp();
    if (!def || !isOpTriviallyDead(def))
      continue;
    pending.append(def->operand_begin(), def->operand_end());
    def->erase();
  }
}

/// `op` without the inputs that its body does not read, as far as the loops'
/// extents remain known without them.
static linalg::GenericOp dropUnreadInputs(OpBuilder &builder,
                                          linalg::GenericOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<unsigned> kept;
  llvm::SmallBitVector covered(op.getNumLoops());
  auto covers = [&](AffineMap map) {
    bool adds = false;
    for (AffineExpr expr : map.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(expr);
          dim && !covered.test(dim.getPosition())) {
        covered.set(dim.getPosition());
        adds = true;
      }
    return adds;
  };
  (void)covers(maps.back());
  unsigned numInputs = op.getInputs().size();
  llvm::SmallBitVector keep(numInputs);
  for (unsigned i = 0; i < numInputs; ++i)
    if (!op.getBlock()->getArgument(i).use_empty()) {
      keep.set(i);
      (void)covers(maps[i]);
    }
  // Gradients come last and cover most loops: they are asked first.
  for (unsigned i = numInputs; i-- > 0;)
    if (!keep.test(i) && covers(maps[i]))
      keep.set(i);
  if (keep.all())
    return op;

  SmallVector<Value> inputs;
  SmallVector<AffineMap> keptMaps;
  for (unsigned i : keep.set_bits()) {
    inputs.push_back(op.getInputs()[i]);
    keptMaps.push_back(maps[i]);
  }
  keptMaps.push_back(maps.back());
  auto smaller = linalg::GenericOp::create(
      builder, op.getLoc(), op.getResultTypes(), inputs, op.getOutputs(),
      keptMaps, op.getIteratorTypesArray(),
      [&](OpBuilder &inner, Location, ValueRange arguments) {
        IRMapping mapping;
        unsigned next = 0;
        for (unsigned i : keep.set_bits())
          mapping.map(op.getBlock()->getArgument(i), arguments[next++]);
        mapping.map(op.getBlock()->getArguments().back(), arguments.back());
        for (Operation &bodyOp : *op.getBlock())
          inner.clone(bodyOp, mapping);
      });
  op.erase();
  return smaller;
}

/// The position of each dimension of `part` in `whole`: both are projected
/// permutations and every loop of `part` is in `whole`.
static SmallVector<int64_t> positionsIn(AffineMap part, AffineMap whole) {
  SmallVector<int64_t> positions;
  for (AffineExpr expr : part.getResults())
    positions.push_back(*whole.getResultPosition(expr));
  return positions;
}

/// The dimensions of `whole` whose loops `part` lacks.
static SmallVector<int64_t> missingFrom(AffineMap part, AffineMap whole) {
  SmallVector<int64_t> missing;
  for (auto [dim, expr] : llvm::enumerate(whole.getResults()))
    if (!part.getResultPosition(expr))
      missing.push_back(dim);
  return missing;
}

/// A copy of the input to other dimensions; null where no named op does it.
static Value raiseCopy(OpBuilder &builder, linalg::GenericOp op, AffineMap from,
                       AffineMap to) {
  Location loc = op.getLoc();
  Value input = op.getInputs()[0], init = op.getOutputs()[0];
  if (from == to)
    return input;
  SmallVector<int64_t> positions = positionsIn(from, to);
  if (from.getNumResults() == to.getNumResults()) {
    // Transposed dimension i is input dimension permutation[i].
    SmallVector<int64_t> permutation(positions.size());
    for (auto [i, position] : llvm::enumerate(positions))
      permutation[position] = i;
    return linalg::TransposeOp::create(builder, loc, input, init, permutation)
        ->getResult(0);
  }
  if (!llvm::is_sorted(positions))
    return {};
  return linalg::BroadcastOp::create(builder, loc, input, init,
                                     missingFrom(from, to))
      ->getResult(0);
}

/// A sum of the input over dimensions; null where no named op does it.
static Value raiseSum(OpBuilder &builder, linalg::GenericOp op, AffineMap from,
                      AffineMap to) {
  // A result dimension that the input lacks repeats the sum.
  if (!llvm::all_of(
          to.getResults(),
          [&](AffineExpr expr) { return !!from.getResultPosition(expr); }) ||
      !llvm::is_sorted(positionsIn(to, from)))
    return {};
  auto body = [](OpBuilder &inner, Location loc, ValueRange arguments) {
    Value sum = arith::AddFOp::create(inner, loc, arguments[1], arguments[0]);
    linalg::YieldOp::create(inner, loc, sum);
  };
  return linalg::ReduceOp::create(builder, op.getLoc(), op.getInputs(),
                                  op.getOutputs(), missingFrom(to, from), body)
      ->getResult(0);
}

/// The named op that `op` is, as a value; null where it is none.
static Value raiseNamed(OpBuilder &builder, linalg::GenericOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  Block *body = op.getBlock();
  Value yielded = body->getTerminator()->getOperand(0);
  if (!llvm::all_of(maps,
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return {};
  if (op.getInputs().size() == 2 && isContraction(maps) &&
      matchProductSum(body, yielded, /*allowCasts=*/false))
    return linalg::ContractOp::create(builder, op.getLoc(), op.getResultTypes(),
                                      op.getInputs(), op.getOutputs(),
                                      builder.getAffineMapArrayAttr(maps))
        .getResult(0);
  if (op.getInputs().size() != 1)
    return {};
  if (yielded == body->getArgument(0) && op.getNumReductionLoops() == 0)
    return raiseCopy(builder, op, maps[0], maps[1]);
  auto add = yielded.getDefiningOp<arith::AddFOp>();
  if (add && add.getLhs() == body->getArgument(1) &&
      add.getRhs() == body->getArgument(0))
    return raiseSum(builder, op, maps[0], maps[1]);
  return {};
}

Value mlir::parc::raiseGeneric(OpBuilder &builder, linalg::GenericOp op) {
  linalg::GenericOp smaller = dropUnreadInputs(builder, op);
  Value named = raiseNamed(builder, smaller);
  if (!named)
    return smaller.getResult(0);
  eraseWithInit(smaller);
  return named;
}
