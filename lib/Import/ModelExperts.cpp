//===- ModelExperts.cpp - Experts of a model ------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A layer's router, the queues of its experts, what those compute, and the
/// experts that every token visits.
///
//===----------------------------------------------------------------------===//

#include "ModelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;
using namespace mlir::parc;

/// What transformers adds to a sum of sigmoid scores before it divides by it.
static constexpr double kTiny = 1e-20;

/// The map of `loops` loops to those of `dims`.
static AffineMap pick(MLIRContext *context, unsigned loops,
                      ArrayRef<unsigned> dims) {
  SmallVector<AffineExpr> results;
  for (unsigned dim : dims)
    results.push_back(getAffineDimExpr(dim, context));
  return AffineMap::get(loops, 0, results, context);
}

Value ModelBuilder::zeros(StringRef name, RankedTensorType type) {
  Value zero = arith::ConstantOp::create(
      builder, at(name), builder.getZeroAttr(type.getElementType()));
  Value empty = tensor::EmptyOp::create(builder, at(name), type.getShape(),
                                        type.getElementType());
  return linalg::FillOp::create(builder, at(name), zero, empty).getResult(0);
}

Value ModelBuilder::splat(StringRef name, RankedTensorType type, double value) {
  auto element = builder.getFloatAttr(type.getElementType(), value);
  return arith::ConstantOp::create(builder, at(name),
                                   DenseElementsAttr::get(type, element));
}

Value ModelBuilder::convert(StringRef name, Value x, Type to) {
  auto type = cast<RankedTensorType>(x.getType());
  Type from = type.getElementType();
  if (from == to)
    return x;
  if (from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(builder, at(name), type.clone(to), x);
  return arith::TruncFOp::create(builder, at(name), type.clone(to), x);
}

/// `B x S x E` scores of the experts, in at least f32.
Value ModelBuilder::buildScores(Value x) {
  Type wide =
      config.element == ElementKind::BF16 ? builder.getF32Type() : element;
  Value weight = convert("mlp.router", load("router"), wide);
  Value input = convert("mlp.router", x, wide);
  auto type = cast<RankedTensorType>(withLast(input, config.experts.count));
  Value logits =
      nn::LinearOp::create(builder, at("mlp.router"), type, input, weight,
                           /*transposed=*/nullptr);
  if (architecture.router == RouterKind::Softmax)
    return nn::SoftmaxOp::create(builder, at("mlp.scores"), type, logits);
  Location location = at("mlp.scores");
  Value one = splat("mlp.scores", type, 1.0);
  Value negated = arith::NegFOp::create(builder, location, logits);
  Value power = math::ExpOp::create(builder, location, negated);
  Value sum = arith::AddFOp::create(builder, location, one, power);
  return arith::DivFOp::create(builder, location, one, sum);
}

/// The scores of the chosen experts: a sum over experts of which one term is
/// not zero.
Value ModelBuilder::gatherScores(Value scores, Value ids) {
  auto type = cast<RankedTensorType>(scores.getType());
  auto idsType = cast<RankedTensorType>(ids.getType());
  Value init =
      zeros("mlp.weights",
            RankedTensorType::get(idsType.getShape(), type.getElementType()));
  AffineMap maps[] = {pick(context, 4, {0, 1, 3}), pick(context, 4, {0, 1, 2}),
                      pick(context, 4, {0, 1, 2})};
  using Kind = utils::IteratorType;
  Kind kinds[] = {Kind::parallel, Kind::parallel, Kind::parallel,
                  Kind::reduction};
  auto body = [](OpBuilder &b, Location loc, ValueRange x) {
    Value expert = linalg::IndexOp::create(b, loc, 3);
    expert = arith::IndexCastOp::create(b, loc, x[1].getType(), expert);
    Value chosen =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, expert, x[1]);
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(x[0].getType()));
    Value term = arith::SelectOp::create(b, loc, chosen, x[0], zero);
    Value sum = arith::AddFOp::create(b, loc, x[2], term);
    linalg::YieldOp::create(b, loc, sum);
  };
  return linalg::GenericOp::create(
             builder, at("mlp.weights"), TypeRange(init.getType()),
             ValueRange{scores, ids}, ValueRange(init), maps, kinds, body)
      .getResult(0);
}

/// Each row divided by its sum, and a little more.
Value ModelBuilder::normalizeRows(Value x, double more) {
  StringRef name = "mlp.normalized";
  auto type = cast<RankedTensorType>(x.getType());
  auto rows =
      RankedTensorType::get(type.getShape().drop_back(), type.getElementType());
  Value sums = linalg::ReduceOp::create(
                   builder, at(name), ValueRange(x),
                   ValueRange(zeros(name, rows)), ArrayRef<int64_t>{2},
                   [](OpBuilder &b, Location loc, ValueRange x) {
                     Value sum = arith::AddFOp::create(b, loc, x[0], x[1]);
                     linalg::YieldOp::create(b, loc, sum);
                   })
                   .getResult(0);
  if (more != 0.0)
    sums =
        arith::AddFOp::create(builder, at(name), sums, splat(name, rows, more));
  Value empty = tensor::EmptyOp::create(builder, at(name), type.getShape(),
                                        type.getElementType());
  sums = linalg::BroadcastOp::create(builder, at(name), sums, empty,
                                     ArrayRef<int64_t>{2})
             .getResult()
             .front();
  return arith::DivFOp::create(builder, at(name), x, sums);
}

/// How much each chosen expert's result counts.
Value ModelBuilder::buildWeights(Value scores, Value ids) {
  const ExpertsConfig &experts = config.experts;
  Value weights = gatherScores(scores, ids);
  if (experts.normalize)
    weights = normalizeRows(
        weights, architecture.router == RouterKind::Sigmoid ? kTiny : 0.0);
  if (experts.scale != 1.0)
    weights = arith::MulFOp::create(
        builder, at("mlp.scaled"), weights,
        splat("mlp.scaled", cast<RankedTensorType>(weights.getType()),
              experts.scale));
  return convert("mlp.weights", weights, element);
}

/// Each expert's queue, `E x C x in`, times its weight, `E x out x in`.
Value ModelBuilder::expertLinear(StringRef name, StringRef symbol, Value x) {
  Value weight = load(symbol);
  int64_t out = cast<RankedTensorType>(weight.getType()).getDimSize(1);
  AffineMap maps[] = {pick(context, 4, {0, 1, 3}), pick(context, 4, {0, 2, 3}),
                      pick(context, 4, {0, 1, 2})};
  RankedTensorType type = withLast(x, out);
  return linalg::ContractOp::create(
             builder, at(name), TypeRange(type), ValueRange{x, weight},
             ValueRange(zeros(name, type)), builder.getAffineMapArrayAttr(maps))
      .getResult(0);
}

Value ModelBuilder::limitChoices(Value ids) {
  if (!queue.capacity)
    return ids;
  return nn::LimitExpertsOp::create(
      builder, at("mlp.kept"), ids.getType(), ids,
      builder.getI64IntegerAttr(*queue.capacity),
      builder.getI64IntegerAttr(/*a sequence=*/1));
}

void ModelBuilder::addBalanceLoss(Value scores, Value ids) {
  const ExpertsConfig &experts = config.experts;
  if (!balance)
    return;
  int64_t layers = 0;
  for (const LayerRun &each : config.runs)
    layers += each.experts ? each.count : 0;
  // transformers counts choices a token, and averages over layers.
  double weight = experts.auxiliaryWeight *
                  static_cast<double>(experts.perToken) /
                  static_cast<double>(layers);
  Value loss = nn::BalanceLossOp::create(
      builder, at("mlp.balance"), balance.getType(), scores, ids,
      number(weight), builder.getI64IntegerAttr(/*a sequence=*/1));
  balance = add("mlp.balance", balance, loss);
}

Value ModelBuilder::buildExperts(Value x) {
  const ExpertsConfig &experts = config.experts;
  Value scores = buildScores(x);
  bool biased = architecture.router == RouterKind::Sigmoid;
  Value bias;
  if (biased)
    bias = convert("mlp.bias", load("router_bias"),
                   getElementTypeOrSelf(scores.getType()));
  Value ids = nn::SelectExpertsOp::create(
      builder, at("mlp.chosen"),
      integersOf({batch.batch, batch.sequence, experts.perToken}), scores, bias,
      builder.getI64IntegerAttr(experts.perToken),
      builder.getI64IntegerAttr(experts.groups),
      builder.getI64IntegerAttr(experts.topGroups),
      builder.getStringAttr(biased ? "top2_sum" : "max"));
  Value weights = buildWeights(scores, ids);
  addBalanceLoss(scores, ids);
  ids = limitChoices(ids);
  auto sent = nn::DispatchOp::create(
      builder, at("mlp.queues"),
      tensorOf({experts.count, queue.slots, config.hidden}), ids.getType(), x,
      ids, /*start=*/Value(), /*slots=*/Value());
  Value queues = sent.getQueues();
  Value gate = expertLinear("mlp.expert.gate", "expert_gate", queues);
  gate = activate("mlp.expert.act", gate);
  Value up = expertLinear("mlp.expert.up", "expert_up", queues);
  Value inner =
      arith::MulFOp::create(builder, at("mlp.expert.gated"), gate, up);
  queues = expertLinear("mlp.expert.down", "expert_down", inner);
  Value y = nn::CombineOp::create(builder, at("mlp.combined"), x.getType(),
                                  queues, ids, sent.getSlot(), weights,
                                  /*start=*/Value());
  if (experts.sharedFfn)
    y = add("mlp.sum", y, buildGated("mlp.shared", "shared_", x, false));
  return dropout("mlp.dropout", y, config.residualDropout);
}
