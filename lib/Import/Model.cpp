//===- Model.cpp - The model of a config ----------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The decoder, top down: parameters, the step, the stack of layers,
/// attention and the multi-layer perceptron, the loss.
///
//===----------------------------------------------------------------------===//

#include "parc/Import/Model.h"
#include "ModelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::parc;

/// Longer sequences are asked for, not assumed.
static constexpr int64_t kUsualSequence = 8192;

OwningOpRef<ModuleOp> ModelBuilder::build() {
  OwningOpRef<ModuleOp> owner = ModuleOp::create(at("model"));
  module = *owner;
  builder.setInsertionPointToEnd(module.getBody());
  declareParameters();
  buildStep();
  return owner;
}

void ModelBuilder::declareParameters() {
  for (const ParameterSpec &spec : getParameters(config)) {
    RankedTensorType type = tensorOf(spec.shape);
    types[spec.symbol] = type;
    ParamOp::create(builder, at(spec.symbol),
                    builder.getStringAttr(spec.symbol), TypeAttr::get(type),
                    spec.perLayer ? builder.getI64IntegerAttr(config.layers)
                                  : nullptr,
                    spec.value ? nullptr : number(spec.std),
                    spec.value ? number(*spec.value) : nullptr,
                    CheckpointAttr::get(context, spec.checkpoint, spec.boxShape,
                                        spec.boxOffsets),
                    builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(1),
                    /*no_decay=*/nullptr, /*sharding=*/nullptr);
  }
}

void ModelBuilder::buildStep() {
  SmallVector<StringRef> inputs = {"tokens", "labels", "positions"};
  SmallVector<Type> inputTypes(3, integersOf({batch.batch, batch.sequence}));
  if (config.hasDropout()) {
    inputs.push_back("seed");
    inputTypes.push_back(integersOf({1}));
  }
  auto step =
      StepOp::create(builder, at("train"), builder.getStringAttr("train"),
                     builder.getStrArrayAttr(inputs));
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Location> locations;
  for (StringRef input : inputs)
    locations.push_back(at(input));
  Block *micro =
      builder.createBlock(&step.getMicro(), {}, inputTypes, locations);
  tokens = micro->getArgument(0);
  labels = micro->getArgument(1);
  positions = micro->getArgument(2);
  if (config.hasDropout())
    seed = tensor::CollapseShapeOp::create(builder, at("seed"), integersOf({}),
                                           micro->getArgument(3),
                                           ArrayRef<ReassociationIndices>());
  Value x = buildEmbedding();
  x = buildStack(x);
  x = norm("final_norm", "final_norm", x);
  buildLoss(x);
}

Value ModelBuilder::buildEmbedding() {
  RankedTensorType type =
      tensorOf({batch.batch, batch.sequence, config.hidden});
  Value x = nn::EmbeddingOp::create(builder, at("embed"), type, tokens,
                                    load("embed"), /*start=*/Value());
  if (architecture.positions == PositionKind::Learned) {
    Value p = nn::EmbeddingOp::create(builder, at("position"), type, positions,
                                      load("position"), /*start=*/Value());
    x = add("embed", x, p);
  } else {
    RankedTensorType table =
        tensorOf({batch.batch, batch.sequence, config.headDim / 2});
    auto tables =
        nn::RopeTableOp::create(builder, at("rope"), table, table, positions,
                                builder.getDenseF64ArrayAttr(
                                    config.rope.getFrequencies(config.headDim)),
                                number(1.0));
    cosines = tables.getCos();
    sines = tables.getSin();
  }
  return dropout("embed.dropout", x, config.embeddingDropout);
}

Value ModelBuilder::buildStack(Value x) {
  auto stack = StackOp::create(builder, at("layers"), TypeRange(x.getType()),
                               "layers", 0, config.layers, /*reverse=*/false,
                               /*reductions=*/0, ValueRange(x), ValueRange());
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&stack.getBody(), {},
                                    {builder.getIndexType(), x.getType()},
                                    {at("layer"), at("x")});
  layer = body->getArgument(0);
  Value y = buildLayer(body->getArgument(1));
  YieldOp::create(builder, at("layers"), ValueRange(y));
  layer = Value();
  return stack.getResult(0);
}

Value ModelBuilder::buildLayer(Value x) {
  Value h = norm("layers.attn.norm", "attn_norm", x);
  h = buildAttention(h);
  x = add("layers.attn.add", x, h);
  h = norm("layers.mlp.norm", "mlp_norm", x);
  h = buildMlp(h);
  return add("layers.mlp.add", x, h);
}

Value ModelBuilder::buildAttention(Value x) {
  Value q = linear("layers.attn.q", "q", x, config.qkvBias);
  Value k = linear("layers.attn.k", "k", x, config.qkvBias);
  Value v = linear("layers.attn.v", "v", x, config.qkvBias);
  q = splitHeads("layers.attn.q.heads", q, config.heads);
  k = splitHeads("layers.attn.k.heads", k, config.kvHeads);
  v = splitHeads("layers.attn.v.heads", v, config.kvHeads);
  q = headNorm("layers.attn.q.norm", "q_norm", q);
  k = headNorm("layers.attn.k.norm", "k_norm", k);
  q = rope("layers.attn.q.rope", q);
  k = rope("layers.attn.k.rope", k);
  double scale = config.scaleScores
                     ? 1.0 / std::sqrt(static_cast<double>(config.headDim))
                     : 1.0;
  bool drops = config.attentionDropout > 0;
  Value context = nn::AttentionOp::create(
      builder, at("layers.attn.context"), q.getType(), q, k, v, positions,
      positions, drops ? seed : Value(), drops ? layer : Value(),
      /*batch_start=*/Value(), /*head_start=*/Value(), builder.getUnitAttr(),
      config.window ? builder.getI64IntegerAttr(*config.window) : nullptr,
      number(scale), number(config.attentionDropout),
      builder.getI64IntegerAttr(drops ? nextSite++ : 0), /*group=*/nullptr,
      /*within_groups=*/nullptr,
      /*shape=*/nullptr, /*ring=*/nullptr, /*ring_of=*/nullptr);
  context = joinHeads("layers.attn.joined", context);
  Value o = linear("layers.attn.o", "o", context, config.outputBias);
  return dropout("layers.attn.dropout", o, config.residualDropout);
}

Value ModelBuilder::buildMlp(Value x) {
  Value inner;
  if (architecture.mlp == MlpKind::Gated) {
    Value gate = linear("layers.mlp.gate", "gate", x, config.mlpBias);
    gate = activate("layers.mlp.act", gate);
    Value up = linear("layers.mlp.up", "up", x, config.mlpBias);
    inner = arith::MulFOp::create(builder, at("layers.mlp.gated"), gate, up);
  } else {
    inner = linear("layers.mlp.up", "up", x, config.mlpBias);
    inner = activate("layers.mlp.act", inner);
  }
  Value down = linear("layers.mlp.down", "down", inner, config.mlpBias);
  return dropout("layers.mlp.dropout", down, config.residualDropout);
}

void ModelBuilder::buildLoss(Value x) {
  // A head's weight is stored outputs first in every layout.
  Value weight = load(config.tied ? "embed" : "head");
  RankedTensorType type = tensorOf({batch.batch, batch.sequence, config.vocab});
  Value logits = nn::LinearOp::create(builder, at("head"), type, x, weight,
                                      /*transposed=*/nullptr);
  ObserveOp::create(builder, at("logits"), builder.getStringAttr("logits"),
                    logits);
  Type sum = element;
  if (config.element == ElementKind::BF16) {
    // Sums over tokens and over the vocabulary need more than 8 bits.
    sum = builder.getF32Type();
    logits =
        arith::ExtFOp::create(builder, at("logits"), type.clone(sum), logits);
  }
  auto scalar = RankedTensorType::get({}, sum);
  auto rows = RankedTensorType::get({batch.batch, batch.sequence}, sum);
  auto loss = nn::SoftmaxCrossEntropyOp::create(builder, at("loss"), scalar,
                                                scalar, rows, logits, labels);
  YieldOp::create(builder, at("loss"),
                  ValueRange{loss.getLoss(), loss.getCount()});
}

/// Whether the product stays below 2^62.
static bool fits(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    if (llvm::MulOverflow(product, size, product))
      return false;
  return product < (int64_t{1} << 62);
}

static LogicalResult checkBatch(MLIRContext *context, const ModelConfig &config,
                                BatchOptions batch) {
  Location location = FileLineColLoc::get(context, config.file, 1, 1);
  const ConfigKeys &keys = config.architecture->keys;
  if (batch.batch < 1)
    return emitError(location)
           << "expected a batch of at least 1 sequence, got " << batch.batch;
  if (batch.sequence < 1)
    return emitError(location)
           << "expected a sequence of at least 1 token, got " << batch.sequence;
  int64_t widest = std::max(
      {config.vocab, config.ffn, config.hidden, config.heads * config.headDim});
  if (!fits({batch.batch, batch.sequence, widest}) ||
      !fits({batch.batch, batch.sequence, batch.sequence, config.heads}))
    return emitError(location)
           << "expected tensors of fewer than 2^62 elements, got a batch of "
           << batch.batch << " sequences of " << batch.sequence
           << " tokens; make one smaller";
  if (batch.sequence <= config.maxPositions)
    return success();
  if (config.architecture->positions == PositionKind::Learned)
    return emitError(location)
           << "expected a sequence of at most " << config.maxPositions
           << " tokens ('" << keys.maxPositions
           << "'), because positions are learned, got " << batch.sequence;
  emitWarning(location) << "sequences of " << batch.sequence
                        << " tokens are longer than the model was made for: '"
                        << keys.maxPositions << "' is " << config.maxPositions;
  return success();
}

FailureOr<OwningOpRef<ModuleOp>>
mlir::parc::buildModel(MLIRContext *context, const ModelConfig &config,
                       BatchOptions batch) {
  if (batch.sequence == 0)
    batch.sequence = std::min(config.maxPositions, kUsualSequence);
  if (failed(checkBatch(context, config, batch)))
    return failure();
  return ModelBuilder(context, config, batch).build();
}

void mlir::parc::registerImportDialects(DialectRegistry &registry) {
  registry.insert<ParcDialect, nn::NNDialect, arith::ArithDialect,
                  tensor::TensorDialect>();
}

void mlir::parc::printModel(ModuleOp module, raw_ostream &os) {
  module.print(os, OpPrintingFlags().printNameLocAsPrefix());
  os << '\n';
}
