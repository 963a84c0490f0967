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
#include "NN/NNBuilders.h"
#include "NN/NNExpertBuilders.h"
#include "NN/NNExpertParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::parc;

/// What transformers adds to a sum of sigmoid scores before it divides by it.
static constexpr double kTiny = 1e-20;

Value ModelBuilder::splat(StringRef name, RankedTensorType type, double value) {
  auto number = builder.getFloatAttr(type.getElementType(), value);
  return arith::ConstantOp::create(builder, at(name),
                                   DenseElementsAttr::get(type, number));
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

/// Scores, choice and weights, computed in the router's own type.
nn::Routing ModelBuilder::buildRouting(Value x) {
  const ExpertsConfig &experts = config.experts;
  Value weight = load("router");
  Value input = convert("mlp.router", x, getElementTypeOrSelf(weight));
  Value logits = nn::LinearOp::create(builder, at("mlp.router"),
                                      withLast(input, experts.count), input,
                                      weight, /*transposed=*/nullptr);
  nn::RouterOptions options;
  options.topK = experts.perToken;
  options.renormalise = experts.normalize;
  options.scale = experts.scale;
  options.groups = experts.groups;
  options.groupTopK = experts.topGroups;
  if (architecture.router == RouterKind::Sigmoid) {
    options.score = nn::RouterScore::Sigmoid;
    options.epsilon = kTiny;
    options.groupScore = "top2_sum";
    options.bias = load("router_bias");
  }
  ImplicitLocOpBuilder inner(at("mlp.router"), builder);
  return nn::buildRouter(inner, logits, options);
}

Value ModelBuilder::limitChoices(Value ids) {
  if (!queue.capacity)
    return ids;
  return nn::LimitExpertsOp::create(
      builder, at("mlp.kept"), ids.getType(), ids,
      builder.getI64IntegerAttr(*queue.capacity),
      builder.getI64IntegerAttr(batch.routing.scope));
}

/// A tensor with a row for each sequence, summed over each `scope` consecutive
/// ones.
static Value sumScopes(ImplicitLocOpBuilder &b, Value rows, int64_t scope) {
  if (scope == 1)
    return rows;
  auto type = cast<RankedTensorType>(rows.getType());
  ArrayRef<int64_t> row = type.getShape().drop_front();
  unsigned rank = type.getRank();
  int64_t scopes = type.getDimSize(0) / scope;
  SmallVector<int64_t> shape{scopes, scope};
  SmallVector<ReassociationIndices> groups{{0, 1}};
  nn::Output sums{
      nn::loopRange(0, rank), {b.getIndexAttr(scopes)}, type.getElementType()};
  nn::Loops loops{0, rank};
  for (unsigned dim = 1; dim < rank; ++dim) {
    shape.push_back(row[dim - 1]);
    groups.push_back({dim + 1});
    sums.sizes.push_back(b.getIndexAttr(row[dim - 1]));
    loops.push_back(dim);
  }
  auto itself = [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; };
  // Of the whole batch, sequences are a dimension of their own.
  if (scopes == 1)
    loops.erase(loops.begin());
  else
    rows = tensor::ExpandShapeOp::create(b, type.clone(shape), rows, groups);
  return nn::reduce(b, rank + 1, {{rows, loops}}, sums, nn::Combine::Sum,
                    itself);
}

/// Adds a layer's choices and scores to those of the layers before. Each is
/// summed by itself, so that stages can hand it on wherever the batch is split.
void ModelBuilder::addBalance(const nn::Routing &routing) {
  if (!chosenSums)
    return;
  ImplicitLocOpBuilder b(at("mlp.balance"), builder);
  nn::Sizes sizes = nn::dimSizes(b, routing.scores);
  Type type = getElementTypeOrSelf(routing.scores.getType());
  nn::Output rows{{0, 1}, {sizes[0], sizes[2]}, type};
  Value chosen = nn::reduce(
      b, 4, {{routing.ids, {0, 2, 3}}}, rows, nn::Combine::Sum,
      [&](ImplicitLocOpBuilder &b, ValueRange x) {
        return nn::oneIf(b, nn::equals(b, x[0], nn::loopIndex(b, 1)), type);
      });
  Value scores =
      nn::reduce(b, 3, {{routing.scores, {0, 2, 1}}}, rows, nn::Combine::Sum,
                 [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
  chosenSums =
      add("mlp.balance", chosenSums, sumScopes(b, chosen, scopeSize()));
  scoreSums = add("mlp.balance", scoreSums, sumScopes(b, scores, scopeSize()));
}

/// The labels of each scope that count.
Value ModelBuilder::countLabels(ImplicitLocOpBuilder &b, Type type) {
  Value each = nn::reduce(
      b, 2, {{labels, {0, 1}}}, {{0}, {nn::dimSize(b, labels, 0)}, type},
      nn::Combine::Sum, [&](ImplicitLocOpBuilder &b, ValueRange x) {
        return nn::oneIf(b, nn::isValid(b, x[0]), type);
      });
  return sumScopes(b, each, scopeSize());
}

/// The loss that balances experts (arXiv:2101.03961, of top-k routing): experts
/// times the sum over experts of choices a token times mean score, means being
/// over the tokens of a scope and all layers together, as transformers has it
/// for the whole batch. The step divides what this yields by the labels that
/// count; a scope weighs as many as it has, so that the result is a mean over
/// scopes, and labels left out do not make it heavier.
Value ModelBuilder::buildBalanceLoss() {
  int64_t layers = 0;
  for (const LayerRun &each : config.runs)
    layers += each.experts ? each.count : 0;
  auto means = static_cast<double>(layers * batch.sequence * scopeSize());
  double factor = config.experts.auxiliaryWeight *
                  static_cast<double>(config.experts.count) / (means * means);
  ImplicitLocOpBuilder b(at("balance"), builder);
  Type type = getElementTypeOrSelf(scoreSums.getType());
  return nn::reduce(
      b, 2,
      {{chosenSums, {0, 1}}, {scoreSums, {0, 1}}, {countLabels(b, type), {0}}},
      {{}, {}, type}, nn::Combine::Sum,
      [&](ImplicitLocOpBuilder &b, ValueRange x) {
        Value scale = nn::floatConstant(b, type, factor);
        Value weight = nn::mul(b, x[2], scale);
        return nn::mul(b, nn::mul(b, x[0], x[1]), weight);
      });
}

/// Each expert's own linear map of its queue.
Value ModelBuilder::expertLinear(StringRef name, StringRef symbol,
                                 Value queues) {
  Value weight = load(symbol);
  ImplicitLocOpBuilder inner(at(name), builder);
  return nn::buildExpertLinear(inner, queues, weight);
}

Value ModelBuilder::buildExperts(Value x) {
  const ExpertsConfig &experts = config.experts;
  nn::Routing routing = buildRouting(x);
  addBalance(routing);
  Value ids = limitChoices(routing.ids);
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
  Value weights = convert("mlp.weights", routing.weights, element);
  Value y = nn::CombineOp::create(builder, at("mlp.combined"), x.getType(),
                                  queues, ids, sent.getSlot(), weights,
                                  /*start=*/Value());
  if (experts.sharedFfn)
    y = add("mlp.sum", y, buildGated("mlp.shared", "shared_", x, false));
  return dropout("mlp.dropout", y, config.residualDropout);
}
