//===- NNExpertBuilders.cpp - A mixture of experts, by parts --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The functions of NNExpertBuilders.h. Weights are made of upstream ops, whose
/// gradients reach the scores.
///
//===----------------------------------------------------------------------===//

#include "NN/NNExpertBuilders.h"
#include "NN/NN.h"
#include "NN/NNExpertParts.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::nn;

static Value buildScores(ImplicitLocOpBuilder &b, Value logits,
                         RouterScore score) {
  if (score == RouterScore::Softmax)
    return SoftmaxOp::create(b, logits.getType(), logits);
  Loops all{0, 1, 2};
  Output output{all, dimSizes(b, logits), tensorType(logits).getElementType()};
  return map(b, 3, Access{logits, all}, output,
             [](ImplicitLocOpBuilder &b, ValueRange x) {
               Value one = floatConstant(b, x[0].getType(), 1);
               Value power = math::ExpOp::create(b, neg(b, x[0]));
               return div(b, one, add(b, one, power));
             });
}

/// `B x S x K`, the scores of the chosen.
static Value takeScores(ImplicitLocOpBuilder &b, Value scores, Value ids) {
  Output output{
      {0, 1, 2}, dimSizes(b, ids), tensorType(scores).getElementType()};
  return reduce(b, 4, {{ids, {0, 1, 2}}, {scores, {0, 1, 3}}}, output,
                Combine::Sum, [](ImplicitLocOpBuilder &b, ValueRange x) {
                  Value zero = floatConstant(b, x[1].getType(), 0);
                  return select(b, equals(b, x[0], loopIndex(b, 3)), x[1],
                                zero);
                });
}

/// `weights / (their sum + epsilon)`.
static Value renormalise(ImplicitLocOpBuilder &b, Value weights,
                         double epsilon) {
  Type element = tensorType(weights).getElementType();
  Sizes sizes = dimSizes(b, weights);
  Output row{{0, 1}, Sizes(ArrayRef(sizes).drop_back()), element};
  Access all{weights, {0, 1, 2}};
  Value sums =
      reduce(b, 3, all, row, Combine::Sum,
             [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
  return map(b, 3, {all, {sums, {0, 1}}}, {{0, 1, 2}, sizes, element},
             [&](ImplicitLocOpBuilder &b, ValueRange x) {
               Value sum = x[1];
               if (epsilon != 0)
                 sum = add(b, sum, floatConstant(b, sum.getType(), epsilon));
               return div(b, x[0], sum);
             });
}

static Value scaled(ImplicitLocOpBuilder &b, Value weights, double scale) {
  Loops all{0, 1, 2};
  return map(b, 3, Access{weights, all},
             {all, dimSizes(b, weights), tensorType(weights).getElementType()},
             [&](ImplicitLocOpBuilder &b, ValueRange x) {
               return mul(b, x[0], floatConstant(b, x[0].getType(), scale));
             });
}

Routing nn::buildRouter(ImplicitLocOpBuilder &b, Value logits,
                        const RouterOptions &options) {
  Routing routing;
  routing.scores = buildScores(b, logits, options.score);
  SmallVector<int64_t> shape(tensorType(logits).getShape());
  shape.back() = options.topK;
  routing.ids = SelectExpertsOp::create(
      b, RankedTensorType::get(shape, b.getI64Type()), routing.scores,
      options.bias, b.getI64IntegerAttr(options.topK),
      b.getI64IntegerAttr(options.groups),
      b.getI64IntegerAttr(options.groupTopK),
      b.getStringAttr(options.groupScore));
  routing.weights = takeScores(b, routing.scores, routing.ids);
  if (options.renormalise)
    routing.weights = renormalise(b, routing.weights, options.epsilon);
  if (options.scale != 1)
    routing.weights = scaled(b, routing.weights, options.scale);
  return routing;
}

Value nn::buildBalanceLoss(ImplicitLocOpBuilder &b, const Routing &routing,
                           double coefficient, bool bySequence) {
  Type element = tensorType(routing.scores).getElementType();
  return BalanceLossOp::create(
      b, RankedTensorType::get({}, element), routing.scores, routing.ids,
      b.getF64FloatAttr(coefficient), b.getI64IntegerAttr(bySequence ? 1 : 0));
}

Value nn::buildExpertLinear(ImplicitLocOpBuilder &b, Value queues, Value weight,
                            bool transposed) {
  // Loops: E, C, F, H.
  Sizes sizes = dimSizes(b, queues);
  sizes.back() = dimSize(b, weight, transposed ? 2 : 1);
  Access matrix{weight, transposed ? Loops{0, 3, 2} : Loops{0, 2, 3}};
  return contract(b, 4, {queues, {0, 1, 3}}, matrix,
                  {{0, 1, 2}, sizes, tensorType(queues).getElementType()});
}
