//===- LinearSets.cpp - In which operands a linalg body is linear ---------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Abstract interpretation of the scalar body of a structured op: for a set of
/// operands, the degree of every value in them. A cast counts as non-linear,
/// for no cast may cross a partial value.
///
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::parc;

/// Beyond this many operands only small and full sets are tried.
static constexpr unsigned kEnumeratedOperands = 8;

namespace {

/// The degree of a value in the operands of the set. Zero is both a constant
/// and homogeneously linear.
enum class Degree { Zero, Constant, Linear, Other };

/// The degrees of one body under one set.
class DegreeAnalysis {
public:
  DegreeAnalysis(linalg::LinalgOp op, const llvm::SmallBitVector &set);
  /// True where all yielded values are linear in the set, and stay so from
  /// iteration to iteration of a reduction.
  bool isLinear();

private:
  Degree get(Value value) const;
  Degree visit(Operation *op) const;

  linalg::LinalgOp op;
  const llvm::SmallBitVector &set;
  llvm::DenseMap<Value, Degree> degrees;
};

} // namespace

static bool isConstant(Degree degree) {
  return degree == Degree::Zero || degree == Degree::Constant;
}

static bool isLinearOrZero(Degree degree) {
  return degree == Degree::Zero || degree == Degree::Linear;
}

/// The degree of a sum, of a choice, of anything that keeps a common degree.
static Degree join(Degree a, Degree b) {
  if (a == Degree::Zero)
    return b;
  if (b == Degree::Zero || a == b)
    return a;
  return Degree::Other;
}

static Degree multiply(Degree a, Degree b) {
  if (a == Degree::Zero || b == Degree::Zero)
    return Degree::Zero;
  if (a == Degree::Constant)
    return b;
  return b == Degree::Constant ? a : Degree::Other;
}

DegreeAnalysis::DegreeAnalysis(linalg::LinalgOp op,
                               const llvm::SmallBitVector &set)
    : op(op), set(set) {
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (BlockArgument arg = getBodyArgument(op, i))
      degrees[arg] = set.test(i) ? Degree::Linear : Degree::Constant;
  for (Operation &inner : op.getBlock()->without_terminator()) {
    Degree degree = visit(&inner);
    for (Value result : inner.getResults())
      degrees[result] = degree;
  }
}

Degree DegreeAnalysis::get(Value value) const {
  if (matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()))
    return Degree::Zero;
  // What the body captures does not depend on any operand.
  auto it = degrees.find(value);
  return it == degrees.end() ? Degree::Constant : it->second;
}

Degree DegreeAnalysis::visit(Operation *inner) const {
  auto operand = [&](unsigned i) { return get(inner->getOperand(i)); };
  if (inner->getNumRegions() == 0 &&
      llvm::all_of(inner->getOperands(),
                   [&](Value value) { return isConstant(get(value)); }))
    return Degree::Constant;
  return TypeSwitch<Operation *, Degree>(inner)
      .Case<arith::AddFOp, arith::SubFOp, arith::AddIOp, arith::SubIOp>(
          [&](Operation *) { return join(operand(0), operand(1)); })
      .Case<arith::MulFOp, arith::MulIOp>(
          [&](Operation *) { return multiply(operand(0), operand(1)); })
      .Case([&](math::FmaOp) {
        return join(multiply(operand(0), operand(1)), operand(2));
      })
      .Case([&](arith::DivFOp) {
        return isConstant(operand(1)) ? operand(0) : Degree::Other;
      })
      .Case([&](arith::NegFOp) { return operand(0); })
      .Case([&](arith::SelectOp) {
        return isConstant(operand(0)) ? join(operand(1), operand(2))
                                      : Degree::Other;
      })
      .Default([](Operation *) { return Degree::Other; });
}

bool DegreeAnalysis::isLinear() {
  Operation *yield = op.getBlock()->getTerminator();
  unsigned firstInit = op.getNumDpsInputs();
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    if (!isLinearOrZero(get(value)))
      return false;
    // A reduction reads what it yielded: linear in, linear out. Without one,
    // too, an init has the layout of its result.
    if (readsOperand(op, firstInit + i) && !set.test(firstInit + i))
      return false;
  }
  return true;
}

BlockArgument mlir::parc::getBodyArgument(linalg::LinalgOp op,
                                          unsigned operand) {
  Block *body = op.getBlock();
  return operand < body->getNumArguments() ? body->getArgument(operand)
                                           : BlockArgument();
}

bool mlir::parc::readsOperand(linalg::LinalgOp op, unsigned operand) {
  BlockArgument arg = getBodyArgument(op, operand);
  return arg && !arg.use_empty();
}

/// The candidate sets of operands out of `read`, smaller ones first.
static SmallVector<llvm::SmallBitVector>
getCandidates(unsigned numOperands, ArrayRef<unsigned> read) {
  SmallVector<llvm::SmallBitVector> candidates;
  auto add = [&](ArrayRef<unsigned> members) {
    llvm::SmallBitVector set(numOperands);
    for (unsigned member : members)
      set.set(member);
    candidates.push_back(set);
  };
  unsigned count = read.size();
  if (count <= kEnumeratedOperands) {
    for (unsigned mask = 1; mask < (1u << count); ++mask) {
      SmallVector<unsigned> members;
      for (unsigned i = 0; i < count; ++i)
        if (mask & (1u << i))
          members.push_back(read[i]);
      add(members);
    }
    llvm::stable_sort(candidates, [](const auto &a, const auto &b) {
      return a.count() < b.count();
    });
    return candidates;
  }
  for (unsigned i = 0; i < count; ++i)
    add(read[i]);
  for (unsigned i = 0; i < count; ++i)
    for (unsigned j = i + 1; j < count; ++j)
      add({read[i], read[j]});
  for (unsigned i = 0; i < count; ++i) {
    SmallVector<unsigned> others(read);
    others.erase(others.begin() + i);
    add(others);
  }
  add(read);
  return candidates;
}

SmallVector<SmallVector<unsigned, 2>>
mlir::parc::findLinearSets(linalg::LinalgOp op) {
  SmallVector<unsigned> read;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (readsOperand(op, i))
      read.push_back(i);
  SmallVector<llvm::SmallBitVector> found;
  SmallVector<SmallVector<unsigned, 2>> sets;
  for (const llvm::SmallBitVector &set :
       getCandidates(op->getNumOperands(), read)) {
    // A superset of a linear set adds only operands that do not matter.
    bool redundant = llvm::any_of(
        found, [&](const llvm::SmallBitVector &old) { return !old.test(set); });
    if (redundant || !DegreeAnalysis(op, set).isLinear())
      continue;
    found.push_back(set);
    sets.emplace_back(set.set_bits_begin(), set.set_bits_end());
  }
  llvm::sort(sets);
  return sets;
}
