//===- ModelTest.cpp - Models of real configs -----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every supported config gives a module that verifies, with exactly the
/// published number of parameters, and that reads back as it was printed.
///
//===----------------------------------------------------------------------===//

#include "parc/Import/Model.h"
#include "ImportTesting.h"
#include "NN/NN.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "parc/Import/Parameters.h"

using namespace mlir;
using namespace mlir::parc;

namespace {
class Model : public testing::Test {
protected:
  Model() {
    DialectRegistry registry;
    registerImportDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  ModelConfig read(StringRef text,
                   std::optional<ElementKind> element = std::nullopt) {
    FailureOr<ModelConfig> config =
        readModelConfig(&context, text, "config.json", element);
    EXPECT_TRUE(succeeded(config));
    return succeeded(config) ? *config : ModelConfig();
  }

  OwningOpRef<ModuleOp> build(const ModelConfig &config,
                              BatchOptions batch = {4, 16}) {
    FailureOr<OwningOpRef<ModuleOp>> module =
        buildModel(&context, config, batch);
    EXPECT_TRUE(succeeded(module));
    return succeeded(module) ? std::move(*module) : nullptr;
  }

  static std::string print(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    printModel(module, os);
    return text;
  }

  /// The elements that the declared parameters have together.
  static int64_t countDeclared(ModuleOp module) {
    int64_t total = 0;
    for (ParamOp param : module.getOps<ParamOp>())
      total += param.getTensorType().getNumElements() *
               static_cast<int64_t>(param.getLayers().value_or(1));
    return total;
  }

  /// Every number that the text must carry exactly.
  static std::vector<double> getNumbers(ModuleOp module) {
    std::vector<double> numbers;
    module.walk([&](Operation *op) {
      for (NamedAttribute attribute : op->getAttrs()) {
        if (auto number = dyn_cast<FloatAttr>(attribute.getValue()))
          numbers.push_back(number.getValueAsDouble());
        if (auto all = dyn_cast<DenseF64ArrayAttr>(attribute.getValue()))
          llvm::append_range(numbers, all.asArrayRef());
      }
    });
    return numbers;
  }

  MLIRContext context;
};

TEST_F(Model, PublishedConfigs) {
  const std::pair<const char *, int64_t> published[] = {
      {"deepseek-v3", 671026419200},  {"gpt-145b", 145622261760},
      {"gpt-1t", 1008038758400},      {"gpt2", 124439808},
      {"gpt2-xl", 1557611200},        {"gpt3-175b", 174604259328},
      {"llama-2-7b", 6738415616},     {"llama-3.1-405b", 405853388800},
      {"llama-3.1-70b", 70553706496}, {"llama-3.1-8b", 8030261248},
      {"mistral-7b", 7241732096},     {"mixtral-8x22b", 140630071296},
      {"mixtral-8x7b", 46702792704},  {"qwen2.5-7b", 7615616512},
      {"qwen3-8b", 8190735360},       {"tiny-deepseek-v3", 65796},
      {"tiny-gpt2", 43328},           {"tiny-llama", 31776},
      {"tiny-llama31", 31776},        {"tiny-mistral", 31776},
      {"tiny-mixtral", 80544},        {"tiny-qwen2", 28864},
      {"tiny-qwen3", 41088}};
  for (auto [name, parameters] : published) {
    SCOPED_TRACE(name);
    Collected collected(context);
    ModelConfig config = read(readTestConfig(name));
    ASSERT_NE(config.architecture, nullptr);
    EXPECT_EQ(countParameters(config), parameters);
    OwningOpRef<ModuleOp> module = build(config);
    ASSERT_TRUE(module);
    EXPECT_TRUE(succeeded(verify(*module)));
    EXPECT_EQ(countDeclared(*module), parameters);
    std::string text = print(*module);
    OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(again);
    EXPECT_TRUE(succeeded(verify(*again)));
    EXPECT_EQ(countDeclared(*again), parameters);
    // To the last bit: what is printed is the same as what was built.
    EXPECT_EQ(getNumbers(*again), getNumbers(*module));
    EXPECT_EQ(collected.text, "");
  }
}

TEST_F(Model, BothSpellingsMeanTheSame) {
  // The same model, with rope_theta and rope_scaling in place of
  // rope_parameters.
  std::string newer = readTestConfig("llama-3.1-8b");
  std::string older = edit(edit(newer, "  \"rope_theta\": 500000.0,\n", ""),
                           "\"rope_parameters\": {",
                           "\"rope_theta\": 500000.0, \"rope_scaling\": {");
  ModelConfig a = read(newer), b = read(older);
  EXPECT_EQ(a.rope.theta, 500000.0);
  EXPECT_EQ(a.rope.getFrequencies(128), b.rope.getFrequencies(128));
  EXPECT_EQ(read(edit(newer, "\"use_cache\"",
                      "\"dtype\": \"bfloat16\", \"use_cache\""))
                .element,
            ElementKind::BF16);
  EXPECT_EQ(read(edit(newer, "\"use_cache\"",
                      "\"torch_dtype\": \"bfloat16\", \"use_cache\""))
                .element,
            ElementKind::BF16);
}

TEST_F(Model, RotaryFrequencies) {
  RopeConfig rope;
  // theta^(-2j/8) for theta 10^4.
  SmallVector<double> plain = rope.getFrequencies(8);
  ASSERT_EQ(plain.size(), 4u);
  const double powers[] = {1.0, 0.1, 0.01, 0.001};
  for (auto [got, want] : llvm::zip(plain, powers))
    EXPECT_NEAR(got, want, 1e-17);
  rope.scaling = RopeConfig::Scaling::Linear;
  rope.factor = 4.0;
  EXPECT_NEAR(rope.getFrequencies(8)[1], 0.025, 1e-17);
  // Waves of 2 pi / f against 16: the first between, the others long.
  rope.scaling = RopeConfig::Scaling::Llama3;
  rope.lowFactor = 1.0;
  rope.highFactor = 4.0;
  rope.originalPositions = 16;
  SmallVector<double> scaled = rope.getFrequencies(8);
  const double mixed[] = {0.6366197723675814, 0.025, 0.0025, 0.00025};
  for (auto [got, want] : llvm::zip(scaled, mixed))
    EXPECT_NEAR(got, want, 1e-15);
  // Short waves are kept.
  rope.originalPositions = 1000;
  EXPECT_EQ(rope.getFrequencies(8)[0], 1.0);
}

TEST_F(Model, YarnFrequencies) {
  RopeConfig rope = read(readTestConfig("tiny-deepseek-v3")).rope;
  EXPECT_EQ(rope.scaling, RopeConfig::Scaling::Yarn);
  EXPECT_EQ(rope.tableScale, 1.0);
  // (0.1 ln 4 + 1)^2
  EXPECT_NEAR(rope.scoreScale, 1.2964769927807063, 1e-15);
  // Pairs turn 16 / (2 pi) times and less: the ramp goes from pair 0 to
  // ceil(8 ln(16 / 2 pi) / (2 ln 10^4)) = 1.
  SmallVector<double> got = rope.getFrequencies(8);
  const double wanted[] = {1.0, 0.025, 0.0025, 0.00025};
  for (auto [a, b] : llvm::zip_equal(got, wanted))
    EXPECT_NEAR(a, b, 1e-15);
  // Without both weights the tables are scaled, by 0.1 ln 4 + 1.
  std::string plain =
      edit(edit(readTestConfig("tiny-deepseek-v3"), "  \"mscale\": 1.0,\n", ""),
           "  \"mscale_all_dim\": 1.0,\n", "");
  rope = read(plain).rope;
  EXPECT_NEAR(rope.tableScale, 1.1386294361119891, 1e-15);
  EXPECT_EQ(rope.scoreScale, 1.0);
}

TEST_F(Model, LayersOfTwoKinds) {
  OwningOpRef<ModuleOp> module =
      build(read(readTestConfig("tiny-deepseek-v3")));
  auto dense = module->lookupSymbol<ParamOp>("dense_up");
  auto expert = module->lookupSymbol<ParamOp>("expert_up");
  ASSERT_TRUE(dense && expert);
  EXPECT_EQ(dense.getLayers(), 1u);
  EXPECT_EQ(dense.getCheckpointName(0), "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(expert.getLayers(), 2u);
  EXPECT_EQ(expert.getCheckpointName(1, 5),
            "model.layers.2.mlp.experts.5.up_proj.weight");
  EXPECT_EQ(expert.getCheckpointRows(), 8);
  EXPECT_EQ(expert.getCheckpointShape(), ArrayRef<int64_t>({24, 32}));
}

TEST_F(Model, FusedProjectionsAreBoxes) {
  OwningOpRef<ModuleOp> module = build(read(readTestConfig("tiny-gpt2")));
  auto v = module->lookupSymbol<ParamOp>("v");
  ASSERT_TRUE(v);
  EXPECT_EQ(v.getCheckpointName(2), "transformer.h.2.attn.c_attn.weight");
  EXPECT_EQ(v.getCheckpoint()->getShape(), ArrayRef<int64_t>({32, 96}));
  EXPECT_EQ(v.getCheckpoint()->getOffsets(), ArrayRef<int64_t>({0, 64}));
  auto bias = module->lookupSymbol<ParamOp>("k_bias");
  EXPECT_EQ(bias.getCheckpoint()->getShape(), ArrayRef<int64_t>({96}));
  EXPECT_EQ(bias.getCheckpoint()->getOffsets(), ArrayRef<int64_t>({32}));
  // Projections into the residual stream start smaller: 0.02 / sqrt(2 * 3).
  auto o = module->lookupSymbol<ParamOp>("o");
  EXPECT_NEAR(o.getStd()->convertToDouble(), 0.008164965809277261, 1e-18);
  EXPECT_NEAR(v.getStd()->convertToDouble(), 0.02, 0);
  EXPECT_FALSE(module->lookupSymbol("head"));
}

TEST_F(Model, DropoutTakesASeedAndDistinctSites) {
  std::string text = readTestConfig("gpt2");
  OwningOpRef<ModuleOp> module = build(read(text));
  StepOp step = *module->getOps<StepOp>().begin();
  EXPECT_EQ(step.getInputs().size(), 4u);
  SmallVector<int64_t> sites;
  step.walk([&](nn::DropoutOp op) { sites.push_back(op.getSite()); });
  step.walk([&](nn::AttentionOp op) {
    EXPECT_EQ(op.getDropout().convertToDouble(), 0.1);
    EXPECT_TRUE(op.getSeed());
    EXPECT_TRUE(op.getStream());
    sites.push_back(op.getSite());
  });
  llvm::sort(sites);
  EXPECT_EQ(sites, SmallVector<int64_t>({0, 1, 2, 3}));
  OwningOpRef<ModuleOp> dry = build(read(readTestConfig("tiny-gpt2")));
  StepOp dryStep = *dry->getOps<StepOp>().begin();
  EXPECT_EQ(dryStep.getInputs().size(), 3u);
}

TEST_F(Model, Options) {
  auto attention = [](ModuleOp module) {
    nn::AttentionOp found;
    module.walk([&](nn::AttentionOp op) { found = op; });
    return found;
  };
  OwningOpRef<ModuleOp> mistral = build(read(readTestConfig("tiny-mistral")));
  EXPECT_EQ(attention(*mistral).getWindow(), 8);
  OwningOpRef<ModuleOp> open =
      build(read(edit(readTestConfig("tiny-mistral"), "\"sliding_window\": 8",
                      "\"sliding_window\": null")));
  EXPECT_FALSE(attention(*open).getWindow().has_value());
  EXPECT_NEAR(attention(*open).getScale().convertToDouble(),
              0.35355339059327379, 1e-16);
  // Biases that config.json asks for, on all four projections and the MLP's.
  std::string biased =
      edit(edit(readTestConfig("tiny-llama"), "\"attention_bias\": false",
                "\"attention_bias\": true"),
           "\"mlp_bias\": false", "\"mlp_bias\": true");
  OwningOpRef<ModuleOp> llama = build(read(biased));
  for (StringRef symbol : {"q_bias", "k_bias", "v_bias", "o_bias", "gate_bias",
                           "up_bias", "down_bias"})
    EXPECT_TRUE(llama->lookupSymbol(symbol)) << symbol.str();
  EXPECT_TRUE(succeeded(verify(*llama)));
  OwningOpRef<ModuleOp> qwen2 = build(read(readTestConfig("tiny-qwen2")));
  EXPECT_TRUE(qwen2->lookupSymbol("v_bias"));
  EXPECT_FALSE(qwen2->lookupSymbol("o_bias"));
  // An inner size of its own.
  ModelConfig inner = read(edit(readTestConfig("tiny-gpt2"), "\"n_layer\": 3",
                                "\"n_layer\": 3, \"n_inner\": 7"));
  EXPECT_EQ(inner.ffn, 7);
}

TEST_F(Model, LossOfHalfPrecisionIsSingle) {
  OwningOpRef<ModuleOp> module =
      build(read(readTestConfig("tiny-llama"), ElementKind::BF16));
  EXPECT_TRUE(succeeded(verify(*module)));
  module->walk([&](nn::SoftmaxCrossEntropyOp op) {
    EXPECT_TRUE(cast<RankedTensorType>(op.getLogits().getType())
                    .getElementType()
                    .isF32());
  });
}

TEST_F(Model, BadBatches) {
  ModelConfig gpt2 = read(readTestConfig("tiny-gpt2"));
  ModelConfig llama = read(readTestConfig("tiny-llama"));
  Collected collected(context);
  EXPECT_TRUE(failed(buildModel(&context, gpt2, {4, 65})));
  EXPECT_TRUE(failed(buildModel(&context, gpt2, {0, 16})));
  EXPECT_TRUE(failed(buildModel(&context, gpt2, {4, -1})));
  EXPECT_TRUE(failed(buildModel(&context, llama, {int64_t{1} << 40, 1 << 20})));
  EXPECT_TRUE(succeeded(buildModel(&context, llama, {1, 65})));
  EXPECT_EQ(
      collected.text,
      "1:1: error: expected a sequence of at most 64 tokens ('n_positions'), "
      "because positions are learned, got 65\n"
      "1:1: error: expected a batch of at least 1 sequence, got 0\n"
      "1:1: error: expected a sequence of at least 1 token, got -1\n"
      "1:1: error: expected tensors of fewer than 2^62 elements, got a batch "
      "of 1099511627776 sequences of 1048576 tokens; make one smaller\n"
      "1:1: warning: sequences of 65 tokens are longer than the model was "
      "made for: 'max_position_embeddings' is 64\n");
}

TEST_F(Model, Summary) {
  EXPECT_EQ(describeModel(read(readTestConfig("tiny-llama"))),
            "llama, 3 layers, 31,776 parameters, f32");
  EXPECT_EQ(describeModel(read(readTestConfig("llama-3.1-405b"))),
            "llama, 126 layers, 405.85 B parameters, bf16");
  EXPECT_EQ(summarizeConfig(read(readTestConfig("tiny-mistral"))),
            "model     mistral, 3 layers, 31,776 parameters, f32\n"
            "shape     hidden 32, ffn 56, vocabulary 97\n"
            "attention 4 heads of 8, 2 kv heads, window 8\n"
            "positions rotary, base 10000, made for 64\n"
            "fields    all understood\n");
  EXPECT_EQ(summarizeConfig(read(readTestConfig("gpt2"))),
            "model     gpt2, 12 layers, 124.44 M parameters, f32\n"
            "shape     hidden 768, ffn 3,072, vocabulary 50,257, head tied to "
            "the embedding\n"
            "attention 12 heads of 64\n"
            "positions learned, 1,024\n"
            "dropout   embedding 0.1, attention 0.1, residual 0.1\n"
            "fields    all understood\n");
}

TEST_F(Model, TokenFlops) {
  ModelConfig llama = read(readTestConfig("tiny-llama"));
  TokenFlops flops = getTokenFlops(llama, 16);
  // A layer multiplies 2*32*32 + 2*32*16 + 3*32*56 weights, the head 97*32.
  EXPECT_EQ(flops.weights, 6.0 * (3 * (2048 + 1024 + 5376) + 3104));
  EXPECT_EQ(flops.fullAttention, 12.0 * 3 * 32 * 16);
  EXPECT_EQ(flops.causalAttention, 12.0 * 3 * 32 * 8.5);
  ModelConfig mistral = read(readTestConfig("tiny-mistral"));
  // Positions see 1 to 8 keys, then 8: 36 + 8 * 8 over 16.
  EXPECT_EQ(getTokenFlops(mistral, 16).causalAttention, 12.0 * 3 * 32 * 6.25);
}
} // namespace
