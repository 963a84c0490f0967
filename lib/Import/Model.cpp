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
#include "NN/NNBuilders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::parc;

/// Longer sequences are asked for, not assumed.
static constexpr int64_t kUsualSequence = 8192;
/// Loads of experts differ more the fewer tokens there are: queues hold all
/// tokens of a batch of up to `kSmallBatch`, and otherwise this many times the
/// balanced load.
static constexpr int64_t kSmallBatch = 4096;
static constexpr double kUsualBuffer = 2.0;
/// Slots that hold all tokens even where slots are cut equally and tokens are
/// not: four sequences on three ranks are 1, 1 and 2.
static constexpr double kAllTokens = 2.0;

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
    if (spec.wide)
      type = type.clone(getWideType());
    types[spec.symbol] = type;
    ParamOp::create(builder, at(spec.symbol),
                    builder.getStringAttr(spec.symbol), TypeAttr::get(type),
                    spec.layers ? builder.getI64IntegerAttr(spec.layers)
                                : nullptr,
                    spec.value ? nullptr : number(spec.std),
                    spec.value ? number(*spec.value) : nullptr,
                    CheckpointAttr::get(context, spec.checkpoint, spec.boxShape,
                                        spec.boxOffsets),
                    builder.getI64IntegerAttr(spec.firstLayer),
                    builder.getI64IntegerAttr(1), /*no_decay=*/nullptr,
                    /*sharding=*/nullptr, /*slot_shardings=*/nullptr,
                    /*slot_types=*/nullptr);
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
  if (config.experts.auxiliaryWeight > 0) {
    auto sums = RankedTensorType::get(
        {batch.batch / scopeSize(), config.experts.count}, getWideType());
    chosenSums = splat("balance.chosen", sums, 0.0);
    scoreSums = splat("balance.scores", sums, 0.0);
  }
  for (const LayerRun &each : config.runs)
    x = buildStack(each, x);
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
    buildTables();
  }
  return dropout("embed.dropout", x, config.embeddingDropout);
}

void ModelBuilder::buildTables() {
  RankedTensorType table =
      tensorOf({batch.batch, batch.sequence, config.rotaryDim / 2});
  auto tables =
      nn::RopeTableOp::create(builder, at("rope"), table, table, positions,
                              builder.getDenseF64ArrayAttr(
                                  config.rope.getFrequencies(config.rotaryDim)),
                              number(config.rope.tableScale));
  cosines = tables.getCos();
  sines = tables.getSin();
}

Value ModelBuilder::buildStack(const LayerRun &layers, Value x) {
  Location location = at(layers.stack);
  // A loss that layers add to goes along with what they compute.
  SmallVector<Value> carried{x};
  SmallVector<Location> places{at("x")};
  if (chosenSums) {
    carried.append({chosenSums, scoreSums});
    places.append({at("balance.chosen"), at("balance.scores")});
  }
  SmallVector<Type> types(ValueRange(carried).getTypes());
  auto stack = StackOp::create(builder, location, types, layers.stack, 0,
                               layers.count, /*reverse=*/false,
                               /*reductions=*/0, carried, ValueRange());
  OpBuilder::InsertionGuard guard(builder);
  types.insert(types.begin(), builder.getIndexType());
  places.insert(places.begin(), at("layer"));
  Block *body = builder.createBlock(&stack.getBody(), {}, types, places);
  run = &layers;
  layer = body->getArgument(0);
  if (chosenSums) {
    chosenSums = body->getArgument(2);
    scoreSums = body->getArgument(3);
  }
  SmallVector<Value> yielded{buildLayer(body->getArgument(1))};
  if (chosenSums)
    yielded.append({chosenSums, scoreSums});
  YieldOp::create(builder, location, yielded);
  layer = Value();
  run = nullptr;
  if (chosenSums) {
    chosenSums = stack.getResult(1);
    scoreSums = stack.getResult(2);
  }
  return stack.getResult(0);
}

Value ModelBuilder::buildLayer(Value x) {
  Value h = norm("attn.norm", "attn_norm", x);
  h = buildAttention(h);
  x = add("attn.add", x, h);
  h = norm("mlp.norm", "mlp_norm", x);
  h = run->experts ? buildExperts(h) : buildMlp(h);
  return add("mlp.add", x, h);
}

/// down(act(gate(x)) * up(x))
Value ModelBuilder::buildGated(const Twine &name, const Twine &symbol, Value x,
                               bool bias) {
  auto line = [&](StringRef part, Value from) {
    return linear((name + "." + part).str(), (symbol + part).str(), from, bias);
  };
  Value gate = activate((name + ".act").str(), line("gate", x));
  Value up = line("up", x);
  Value inner =
      arith::MulFOp::create(builder, at((name + ".gated").str()), gate, up);
  return line("down", inner);
}

Value ModelBuilder::buildMlp(Value x) {
  Value y;
  if (architecture.mlp == MlpKind::Gated) {
    y = buildGated("mlp", "", x, config.mlpBias);
  } else {
    Value inner = linear("mlp.up", "up", x, config.mlpBias);
    inner = activate("mlp.act", inner);
    y = linear("mlp.down", "down", inner, config.mlpBias);
  }
  return dropout("mlp.dropout", y, config.residualDropout);
}

void ModelBuilder::buildLoss(Value x) {
  // A head's weight is stored outputs first in every layout.
  Value weight = load(config.tied ? "embed" : "head");
  RankedTensorType type = tensorOf({batch.batch, batch.sequence, config.vocab});
  Value logits = nn::LinearOp::create(builder, at("head"), type, x, weight,
                                      /*transposed=*/nullptr);
  ObserveOp::create(builder, at("logits"), builder.getStringAttr("logits"),
                    logits, /*fold=*/nullptr);
  // Sums over tokens and over the vocabulary need more than 8 bits.
  Type sum = getWideType();
  logits = convert("logits", logits, sum);
  auto scalar = RankedTensorType::get({}, sum);
  auto rows = RankedTensorType::get({batch.batch, batch.sequence}, sum);
  auto loss = nn::SoftmaxCrossEntropyOp::create(builder, at("loss"), scalar,
                                                scalar, rows, logits, labels);
  Value total = loss.getLoss();
  if (chosenSums)
    total = add("loss", total, buildBalanceLoss());
  YieldOp::create(builder, at("loss"), ValueRange{total, loss.getCount()});
}

/// Whether the product stays below 2^62.
static bool fits(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    if (llvm::MulOverflow(product, size, product))
      return false;
  return product < (int64_t{1} << 62);
}

/// A factor as it was written, as far as six digits tell.
static std::string text(double value) {
  std::string result;
  llvm::raw_string_ostream(result) << llvm::format("%g", value);
  return result;
}

/// Sizes of queues; a fault where an expert could take no token at all.
static FailureOr<QueueSizes> getQueueSizes(MLIRContext *context,
                                           const ModelConfig &config,
                                           const BatchOptions &batch) {
  const ExpertsConfig &experts = config.experts;
  const RoutingOptions &routing = batch.routing;
  QueueSizes sizes;
  if (!experts.count)
    return sizes;
  int64_t tokens = batch.batch * batch.sequence;
  double share = static_cast<double>(experts.perToken) /
                 static_cast<double>(experts.count);
  int64_t batchParts = std::min(routing.batchParts, batch.batch);
  int64_t sequenceParts = std::min(routing.sequenceParts, batch.sequence);
  auto length =
      static_cast<double>(llvm::divideCeil(batch.sequence, sequenceParts));
  double factor = routing.bufferFactor;
  if (factor == 0.0)
    factor = tokens <= kSmallBatch ? kAllTokens / share : kUsualBuffer;
  // The same for each sequence, so that queues grow as batches do, and for each
  // part that of the largest.
  double slots =
      std::min(std::ceil(factor * share * length), kAllTokens * length);
  sizes.slots =
      batchParts * sequenceParts *
      static_cast<int64_t>(llvm::divideCeil(batch.batch, batchParts)) *
      static_cast<int64_t>(slots);
  if (!routing.drops)
    return sizes;
  int64_t sequences = routing.scope ? routing.scope : batch.batch;
  auto scope = static_cast<double>(sequences * batch.sequence);
  double capacity = routing.capacityFactor * share * scope;
  if (capacity < 1.0) {
    emitError(FileLineColLoc::get(context, config.file, 1, 1))
        << "expected experts of a capacity of at least one token, got "
        << llvm::formatv("{0:F2}", capacity).str() << ": a capacity factor of "
        << text(routing.capacityFactor) << " x " << sequences * batch.sequence
        << " tokens x " << experts.perToken << " choices / " << experts.count
        << " experts; raise --capacity-factor or --seq";
    return failure();
  }
  sizes.capacity = static_cast<int64_t>(std::min(std::ceil(capacity), scope));
  return sizes;
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
  const ExpertsConfig &experts = config.experts;
  int64_t widest = std::max(
      {config.vocab, config.ffn, config.hidden, config.heads * config.headDim,
       config.heads * (config.latent.plainDim + config.valueDim),
       experts.sharedFfn});
  if (!fits({batch.batch, batch.sequence, widest}) ||
      !fits({batch.batch, batch.sequence, batch.sequence, config.heads}) ||
      !fits({batch.batch, batch.sequence, std::max<int64_t>(experts.count, 1),
             std::max(config.hidden, experts.ffn)}))
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
  FailureOr<QueueSizes> queue = getQueueSizes(context, config, batch);
  if (failed(queue))
    return failure();
  return ModelBuilder(context, config, batch, *queue).build();
}

void mlir::parc::registerImportDialects(DialectRegistry &registry) {
  registry.insert<ParcDialect, nn::NNDialect, arith::ArithDialect,
                  linalg::LinalgDialect, tensor::TensorDialect>();
}

void mlir::parc::printModel(ModuleOp module, raw_ostream &os) {
  module.print(os, OpPrintingFlags().printNameLocAsPrefix());
  os << '\n';
}
