//===- NNRouting.cpp - Which experts a token goes to ----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.select_experts and nn.limit_experts: checks, factors, definitions. The
/// largest scores are found by counting, for each, those that are larger: no
/// order of evaluation enters, so that every domain and device agrees.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNExpertParts.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// nn.select_experts
//===----------------------------------------------------------------------===//

static LogicalResult verifyGroups(SelectExpertsOp op, int64_t experts) {
  int64_t groups = op.getGroups(), kept = op.getGroupTopK();
  if (groups < 1 || experts % groups != 0)
    return op.emitOpError() << "expected groups that divide the " << experts
                            << " experts evenly, got " << groups;
  if (kept < 1 || kept > groups)
    return op.emitOpError()
           << "expected to keep 1 to " << groups << " groups, got " << kept;
  int64_t members = experts / groups, chosen = op.getTopK();
  if (chosen < 1 || chosen > kept * members)
    return op.emitOpError()
           << "expected top_k of 1 to " << kept * members << ", the experts in "
           << kept << " of " << groups << " groups, got " << chosen;
  StringRef score = op.getGroupScore();
  if (score != "max" && score != "top2_sum")
    return op.emitOpError() << "expected the score \"max\" or \"top2_sum\" of "
                               "a group, got \""
                            << score << "\"";
  if (score == "top2_sum" && members < 2)
    return op.emitOpError()
           << "expected groups of at least 2 experts for \"top2_sum\", got "
           << members;
  return success();
}

LogicalResult SelectExpertsOp::verify() {
  RankedTensorType scores = tensorType(getScores());
  RankedTensorType ids = tensorType(getIds());
  if (failed(checkMinRank(*this, "scores", scores, 1)) ||
      failed(checkFloat(*this, "scores", scores)) ||
      failed(checkInteger(*this, "ids", ids)))
    return failure();
  int64_t experts = scores.getShape().back();
  if (ShapedType::isDynamic(experts))
    return emitOpError() << "expected a static number of experts, got "
                         << scores;
  if (getBias()) {
    RankedTensorType bias = tensorType(getBias());
    if (failed(checkElement(*this, "bias", bias, "the scores",
                            scores.getElementType())) ||
        failed(checkShape(*this, "bias", bias, "the number of experts",
                          {experts})))
      return failure();
  }
  if (failed(verifyGroups(*this, experts)))
    return failure();
  SmallVector<int64_t> shape(scores.getShape().drop_back());
  shape.push_back(getTopK());
  return checkShape(*this, "ids", ids,
                    "the scores' leading dimensions and top_k", shape);
}

FailureOr<OpFactors> SelectExpertsOp::getFactors() {
  RankedTensorType type = tensorType(getScores());
  OpFactors factors;
  ValueFactors rows;
  for (int64_t size : type.getShape().drop_back())
    rows.push_back({factors.add(size)});
  unsigned experts = factors.add(type.getShape().back(), 1, false);
  unsigned chosen = factors.add(getTopK(), 1, false);
  ValueFactors scores = rows, ids = rows;
  scores.push_back({experts});
  ids.push_back({chosen});
  factors.operands = {scores};
  if (getBias())
    factors.operands.push_back({{experts}});
  factors.results = {ids};
  return factors;
}

namespace {

/// Builds the definition of one nn.select_experts. In every nest the leading
/// loops are the rows, then come one or two loops over experts or groups.
class Selection {
public:
  Selection(ImplicitLocOpBuilder &b, SelectExpertsOp op)
      : b(b), op(op), type(tensorType(op.getScores())),
        first(static_cast<unsigned>(type.getRank()) - 1), second(first + 1),
        rows(loopRange(0, first)), experts(type.getShape().back()),
        members(experts / static_cast<int64_t>(op.getGroups())),
        sizes(dimSizes(b, op.getScores())) {
    sizes.pop_back();
  }

  Value build();

private:
  /// The rows' loops and one more.
  Loops with(unsigned loop) const {
    Loops loops = rows;
    loops.push_back(loop);
    return loops;
  }
  /// What is made of each row: `count` elements, on the first loop.
  Output output(int64_t count, Type element) const {
    Sizes all = sizes;
    all.push_back(b.getIndexAttr(count));
    return {with(first), all, element};
  }
  Value biased();
  Value ranks(Value values, int64_t count, Value allowed, bool inGroups);
  Value groupScores(Value scores);
  Value allowedExperts(Value groupRanks);
  Value groupOf(ImplicitLocOpBuilder &b, unsigned loop) {
    return arith::DivUIOp::create(b, loopIndex(b, loop),
                                  integerConstant(b, members));
  }

  ImplicitLocOpBuilder &b;
  SelectExpertsOp op;
  RankedTensorType type;
  unsigned first, second;
  Loops rows;
  int64_t experts, members;
  Sizes sizes;
};

} // namespace

Value Selection::biased() {
  if (!op.getBias())
    return op.getScores();
  Type element = computeType(type.getElementType());
  return map(
      b, second, {{op.getScores(), with(first)}, {op.getBias(), {first}}},
      output(experts, element),
      [](ImplicitLocOpBuilder &b, ValueRange x) { return add(b, x[0], x[1]); });
}

/// The number of values of the row (the allowed ones, or those of the same
/// group) that come before each: larger ones, and equal ones of lower number.
Value Selection::ranks(Value values, int64_t count, Value allowed,
                       bool inGroups) {
  SmallVector<Access> inputs{{values, with(second)}, {values, with(first)}};
  if (allowed)
    inputs.push_back({allowed, with(second)});
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    using P = arith::CmpFPredicate;
    Value larger = arith::CmpFOp::create(b, P::OGT, x[0], x[1]);
    Value same = arith::CmpFOp::create(b, P::OEQ, x[0], x[1]);
    Value lower = less(b, loopIndex(b, second), loopIndex(b, first));
    Value counts = either(b, larger, both(b, same, lower));
    if (inGroups)
      counts =
          both(b, counts, equals(b, groupOf(b, second), groupOf(b, first)));
    Value one = oneIf(b, counts);
    return allowed ? arith::MulIOp::create(b, one, x[2]).getResult() : one;
  };
  return reduce(b, second + 1, inputs, output(count, b.getI64Type()),
                Combine::Sum, body);
}

/// The sum of the best one or two scores of each group.
Value Selection::groupScores(Value scores) {
  Value ranksInGroup = ranks(scores, experts, Value(), /*inGroups=*/true);
  int64_t best = op.getGroupScore() == "max" ? 1 : 2;
  Type element = computeType(type.getElementType());
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    Value member = equals(b, groupOf(b, second), loopIndex(b, first));
    Value counts = both(b, member, less(b, x[1], integerConstant(b, best)));
    return select(b, counts, x[0], floatConstant(b, element, 0));
  };
  return reduce(b, second + 1,
                {{scores, with(second)}, {ranksInGroup, with(second)}},
                output(op.getGroups(), element), Combine::Sum, body);
}

/// 1 for each expert of a group that is kept, else 0.
Value Selection::allowedExperts(Value groupRanks) {
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    Value kept = less(b, x[0], integerConstant(b, op.getGroupTopK()));
    Value mine = equals(b, groupOf(b, first), loopIndex(b, second));
    return oneIf(b, both(b, kept, mine));
  };
  return reduce(b, second + 1, Access{groupRanks, with(second)},
                output(experts, b.getI64Type()), Combine::Sum, body);
}

Value Selection::build() {
  Value scores = biased(), allowed;
  if (op.getGroups() != op.getGroupTopK())
    allowed = allowedExperts(ranks(groupScores(scores), op.getGroups(), Value(),
                                   /*inGroups=*/false));
  SmallVector<Access> inputs{
      {ranks(scores, experts, allowed, /*inGroups=*/false), with(second)}};
  if (allowed)
    inputs.push_back({allowed, with(second)});
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    Value chosen = equals(b, x[0], loopIndex(b, first));
    if (allowed)
      chosen = both(b, chosen, equals(b, x[1], integerConstant(b, 1)));
    return select(b, chosen, loopIndex(b, second),
                  integerConstant(b, static_cast<uint64_t>(-1)));
  };
  return reduce(b, second + 1, inputs, output(op.getTopK(), b.getI64Type()),
                Combine::Max, body);
}

FailureOr<SmallVector<Value>> SelectExpertsOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  return SmallVector<Value>{Selection(b, *this).build()};
}

//===----------------------------------------------------------------------===//
// nn.limit_experts
//===----------------------------------------------------------------------===//

LogicalResult LimitExpertsOp::verify() {
  RankedTensorType ids = tensorType(getIds());
  if (failed(checkRank(*this, "ids", ids, 3)) ||
      failed(checkInteger(*this, "ids", ids)))
    return failure();
  if (static_cast<int64_t>(getCapacity()) < 1)
    return emitOpError() << "expected a capacity of at least 1, got "
                         << static_cast<int64_t>(getCapacity())
                         << "; with none every token would be dropped";
  if (static_cast<int64_t>(getScope()) < 0)
    return emitOpError() << "expected a scope of at least 1 sequence, or 0 for "
                            "the whole batch, got "
                         << static_cast<int64_t>(getScope());
  return success();
}

FailureOr<OpFactors> LimitExpertsOp::getFactors() {
  ArrayRef<int64_t> shape = tensorType(getIds()).getShape();
  auto scope = static_cast<int64_t>(getScope());
  OpFactors factors;
  // A last scope that is not whole would not be made of units.
  bool units =
      scope > 0 && !ShapedType::isDynamic(shape[0]) && shape[0] % scope == 0;
  factors.add(shape[0], units ? scope : 1, units);
  // Who comes first stays.
  factors.factors[factors.add(shape[1], 1, false)].ordered = true;
  factors.add(shape[2], 1, false);
  factors.operands = {{{0}, {1}, {2}}};
  factors.results = factors.operands;
  return factors;
}

int64_t LimitExpertsOp::getBatchScope() { return getScope(); }

FailureOr<SmallVector<Value>> LimitExpertsOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Loops all{0, 1, 2};
  Value earlier = countEarlier(b, getIds(), getScope());
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    Value fits = less(b, x[1], integerConstant(b, getCapacity()));
    return select(b, fits, x[0], integerConstant(b, static_cast<uint64_t>(-1)));
  };
  return SmallVector<Value>{map(b, 3, {{getIds(), all}, {earlier, all}},
                                {all, dimSizes(b, getIds()), b.getI64Type()},
                                body)};
}
