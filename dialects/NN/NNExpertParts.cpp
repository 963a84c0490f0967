//===- NNExpertParts.cpp - What the expert ops have in common -------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The functions of NNExpertParts.h.
///
//===----------------------------------------------------------------------===//

#include "NN/NNExpertParts.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::nn;

using Predicate = arith::CmpIPredicate;

Value nn::loopIndex(ImplicitLocOpBuilder &b, unsigned loop) {
  Value index = linalg::IndexOp::create(b, loop);
  return arith::IndexCastOp::create(b, b.getI64Type(), index);
}

Value nn::equals(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::CmpIOp::create(b, Predicate::eq, x, y);
}

Value nn::less(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::CmpIOp::create(b, Predicate::slt, x, y);
}

Value nn::below(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::CmpIOp::create(b, Predicate::ult, x, y);
}

Value nn::both(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::AndIOp::create(b, x, y);
}

Value nn::either(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::OrIOp::create(b, x, y);
}

Value nn::oneIf(ImplicitLocOpBuilder &b, Value condition) {
  return select(b, condition, integerConstant(b, 1), integerConstant(b, 0));
}

/// Whether the position on loops `later` comes after that on loops `earlier`.
static Value comesBefore(ImplicitLocOpBuilder &b, ArrayRef<unsigned> earlier,
                         ArrayRef<unsigned> later) {
  Value x = loopIndex(b, earlier.front()), y = loopIndex(b, later.front());
  Value before = less(b, x, y);
  if (earlier.size() == 1)
    return before;
  Value rest = comesBefore(b, earlier.drop_front(), later.drop_front());
  return either(b, before, both(b, equals(b, x, y), rest));
}

Value nn::countEarlier(ImplicitLocOpBuilder &b, Value ids, int64_t scope) {
  // A scope of one sequence needs no loop over other sequences.
  bool single = scope == 1;
  Loops mine{0, 1, 2}, others = single ? Loops{0, 3, 4} : Loops{3, 4, 5};
  Loops earlier = single ? Loops{3, 4} : others;
  Loops later = single ? Loops{1, 2} : mine;
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    Value counts =
        both(b, equals(b, x[0], x[1]), comesBefore(b, earlier, later));
    if (scope > 1) {
      Value size = integerConstant(b, scope);
      Value own = arith::DivUIOp::create(b, loopIndex(b, 0), size);
      Value other = arith::DivUIOp::create(b, loopIndex(b, 3), size);
      counts = both(b, counts, equals(b, own, other));
    }
    return oneIf(b, counts);
  };
  return reduce(b, single ? 5 : 6, {{ids, mine}, {ids, others}},
                {mine, dimSizes(b, ids), b.getI64Type()}, Combine::Sum, body);
}

Value nn::countChoices(ImplicitLocOpBuilder &b, Value ids, int64_t experts) {
  Output output{{0}, {b.getIndexAttr(experts)}, b.getI64Type()};
  return reduce(b, 4, Access{ids, {1, 2, 3}}, output, Combine::Sum,
                [](ImplicitLocOpBuilder &b, ValueRange x) {
                  return oneIf(b, equals(b, x[0], loopIndex(b, 0)));
                });
}
