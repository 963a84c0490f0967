//===- NNBalance.cpp - The loss that balances experts ---------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.balance_loss and its gradient: checks, factors, definitions.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNExpertParts.h"
#include "NN/NNVerify.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

/// Checks what both ops state of scores (`scoresName`), ids, the scalar
/// (`scalarName`) and attributes.
static LogicalResult verifyBalance(Operation *op, StringRef scoresName,
                                   RankedTensorType scores,
                                   RankedTensorType ids, StringRef scalarName,
                                   RankedTensorType scalar, double coefficient,
                                   int64_t scope) {
  if (failed(checkRank(op, scoresName, scores, 3)) ||
      failed(checkFloat(op, scoresName, scores)) ||
      failed(checkRank(op, "ids", ids, 3)) ||
      failed(checkInteger(op, "ids", ids)) ||
      failed(checkDim(op, "ids", ids, 0, "the sequences of the scores",
                      scores.getDimSize(0))) ||
      failed(checkDim(op, "ids", ids, 1, "the positions of the scores",
                      scores.getDimSize(1))) ||
      failed(checkRank(op, scalarName, scalar, 0)) ||
      failed(checkElement(op, scalarName, scalar, "the scores",
                          scores.getElementType())) ||
      failed(checkPositive(op, "coefficient", coefficient)))
    return failure();
  if (scope != 0 && scope != 1)
    return op->emitOpError() << "expected the scope 1 (each sequence) or 0 "
                                "(the whole batch), got "
                             << scope;
  // Sizes that are whole on every rank: the mean is over all of them.
  for (int64_t dim = scope == 0 ? 0 : 1; dim < 3; ++dim)
    if (scores.isDynamicDim(dim) || ids.isDynamicDim(dim))
      return op->emitOpError()
             << "expected dimension " << dim << " of " << scoresName
             << " and ids to be static, got " << scores << " and " << ids;
  return success();
}

namespace {
/// The definition of both ops. Loops of what is counted a scope: B where it is
/// a sequence, then E.
struct Balance {
  Balance(ImplicitLocOpBuilder &b, Value ids, RankedTensorType scores,
          double coefficient, bool bySequence)
      : b(b), ids(ids), bySequence(bySequence),
        compute(computeType(scores.getElementType())) {
    int64_t experts = scores.getDimSize(2), tokens = scores.getDimSize(1);
    if (!bySequence)
      tokens *= scores.getDimSize(0);
    scale = coefficient * static_cast<double>(experts) /
            static_cast<double>(tokens * tensorType(ids).getDimSize(2));
    expert = bySequence ? 1 : 0;
    if (bySequence)
      sizes.push_back(dimSize(b, ids, 0));
    sizes.push_back(b.getIndexAttr(experts));
    scope = loopRange(0, expert + 1);
  }

  /// The loop over sequences, the next one free after the scope's.
  unsigned sequence() const { return bySequence ? 0 : 1; }

  /// The number of choices of each expert, as floats.
  Value counts() {
    Access choices{ids, {sequence(), 2, 3}};
    return reduce(b, 4, choices, {scope, sizes, compute}, Combine::Sum,
                  [&](ImplicitLocOpBuilder &b, ValueRange x) {
                    Value same = equals(b, x[0], loopIndex(b, expert));
                    return oneIf(b, same, compute);
                  });
  }

  /// The sum of the scores of each expert.
  Value sums(Value scores) {
    Access each{scores, {sequence(), 2, expert}};
    return reduce(b, 3, each, {scope, sizes, compute}, Combine::Sum,
                  [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
  }

  ImplicitLocOpBuilder &b;
  Value ids;
  bool bySequence;
  Type compute;
  double scale;
  unsigned expert;
  Loops scope;
  Sizes sizes;
};
} // namespace

/// Factors B, S, E, K.
static OpFactors balanceFactors(RankedTensorType scores, RankedTensorType ids,
                                int64_t scope) {
  OpFactors factors;
  factors.add(scores.getDimSize(0), 1, scope == 1);
  factors.add(scores.getDimSize(1), 1, false);
  factors.add(scores.getDimSize(2), 1, false);
  factors.add(ids.getDimSize(2), 1, false);
  return factors;
}

static ValueFactors scoresDims() { return {{0}, {1}, {2}}; }
static ValueFactors idsDims() { return {{0}, {1}, {3}}; }

//===----------------------------------------------------------------------===//
// nn.balance_loss
//===----------------------------------------------------------------------===//

LogicalResult BalanceLossOp::verify() {
  return verifyBalance(*this, "scores", tensorType(getScores()),
                       tensorType(getIds()), "result", tensorType(getResult()),
                       getCoefficient().convertToDouble(), getScope());
}

FailureOr<OpFactors> BalanceLossOp::getFactors() {
  OpFactors factors =
      balanceFactors(tensorType(getScores()), tensorType(getIds()), getScope());
  factors.operands = {scoresDims(), idsDims()};
  factors.results = {{}};
  factors.linear = {{0}};
  return factors;
}

int64_t BalanceLossOp::getBatchScope() { return getScope(); }

FailureOr<SmallVector<Value>> BalanceLossOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RankedTensorType type = tensorType(getScores());
  Balance balance(b, getIds(), type, getCoefficient().convertToDouble(),
                  getScope() == 1);
  Access counts{balance.counts(), balance.scope};
  Access sums{balance.sums(getScores()), balance.scope};
  Value loss =
      reduce(b, balance.scope.size(), {counts, sums}, {{}, {}, balance.compute},
             Combine::Sum, [&](ImplicitLocOpBuilder &b, ValueRange x) {
               Value scale = floatConstant(b, balance.compute, balance.scale);
               return mul(b, mul(b, x[0], x[1]), scale);
             });
  return SmallVector<Value>{storedAs(b, loss, type.getElementType())};
}

LogicalResult
BalanceLossOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                             ArrayRef<Type> wanted,
                             SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(2, Value());
  if (resultGradients[0] && wanted[0])
    operandGradients[0] = BalanceLossGradOp::create(
        builder, getLoc(), getScores().getType(), getIds(), resultGradients[0],
        getCoefficientAttr(), getScopeAttr());
  return success();
}

//===----------------------------------------------------------------------===//
// nn.balance_loss_grad
//===----------------------------------------------------------------------===//

LogicalResult BalanceLossGradOp::verify() {
  return verifyBalance(*this, "result", tensorType(getResult()),
                       tensorType(getIds()), "grad", tensorType(getGrad()),
                       getCoefficient().convertToDouble(), getScope());
}

FailureOr<OpFactors> BalanceLossGradOp::getFactors() {
  OpFactors factors =
      balanceFactors(tensorType(getResult()), tensorType(getIds()), getScope());
  factors.operands = {idsDims(), {}};
  factors.results = {scoresDims()};
  factors.linear = {{1}};
  return factors;
}

int64_t BalanceLossGradOp::getBatchScope() { return getScope(); }

FailureOr<SmallVector<Value>> BalanceLossGradOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RankedTensorType type = tensorType(getResult());
  Balance balance(b, getIds(), type, getCoefficient().convertToDouble(),
                  getScope() == 1);
  Loops scope = balance.bySequence ? Loops{0, 2} : Loops{2};
  Sizes sizes{dimSize(b, getIds(), 0), b.getIndexAttr(type.getDimSize(1)),
              b.getIndexAttr(type.getDimSize(2))};
  return SmallVector<Value>{
      map(b, 3, {{balance.counts(), scope}, {getGrad(), {}}},
          {{0, 1, 2}, sizes, type.getElementType()},
          [&](ImplicitLocOpBuilder &b, ValueRange x) {
            Value scale = floatConstant(b, balance.compute, balance.scale);
            return mul(b, mul(b, x[0], scale), x[1]);
          })};
}
