//===- BadConfigTest.cpp - Configs that are refused -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every way that a config.json can be wrong, with the whole text and the
/// place of what the user is told.
///
//===----------------------------------------------------------------------===//

#include "ImportTesting.h"
#include "parc/Import/Config.h"

using namespace mlir;
using namespace mlir::parc;

namespace {
/// Line numbers in the expectations count from here.
constexpr const char *kBase = R"({
  "model_type": "llama",
  "hidden_size": 32,
  "intermediate_size": 56,
  "num_attention_heads": 4,
  "num_hidden_layers": 3,
  "num_key_value_heads": 2,
  "max_position_embeddings": 64,
  "rms_norm_eps": 1e-06,
  "vocab_size": 97
})";

constexpr const char *kRope = R"("vocab_size": 97,
  "rope_scaling": {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16
  })";

std::string diagnose(StringRef text,
                     std::optional<ElementKind> element = std::nullopt) {
  MLIRContext context;
  Collected collected(context);
  FailureOr<ModelConfig> config =
      readModelConfig(&context, text, "config.json", element);
  bool error = StringRef(collected.text).contains("error: ");
  EXPECT_EQ(failed(config), error) << collected.text;
  return collected.text;
}

struct Case {
  const char *from, *to, *expected;
};

/// Prints the edit where a test fails.
void PrintTo(const Case &one, std::ostream *os) {
  *os << one.from << " -> " << one.to;
}

class BadField : public testing::TestWithParam<Case> {};

TEST_P(BadField, IsNamedAtItsPlace) {
  EXPECT_EQ(diagnose(edit(kBase, GetParam().from, GetParam().to)),
            std::string(GetParam().expected) + "\n");
}

const Case kCases[] = {
    // Missing and misspelt.
    {"  \"hidden_size\": 32,\n", "",
     "1:1: error: expected field 'hidden_size', got none"},
    {"\"hidden_size\"", "\"hiden_size\"",
     "3:3: error: expected field 'hidden_size', got 'hiden_size'; rename it"},
    {"32", "null", "3:18: error: expected field 'hidden_size', got null"},
    {"\"num_key_value_heads\"", "\"num_key_value_head\"",
     "7:3: error: unknown field 'num_key_value_head'; did you mean "
     "'num_key_value_heads'?"},
    {"\"model_type\"", "\"modeltype\"",
     "2:3: error: expected field 'model_type', got 'modeltype'; rename it"},
    {"\"vocab_size\": 97", "\"vocab_size\": 97, \"attention_bais\": true",
     "10:21: error: unknown field 'attention_bais'; did you mean "
     "'attention_bias'?"},
    // Types and ranges.
    {"32", "\"32\"",
     "3:18: error: field 'hidden_size': expected a whole number from 1 to "
     "2147483647, got \"32\""},
    {"32", "32.5",
     "3:18: error: field 'hidden_size': expected a whole number from 1 to "
     "2147483647, got 32.5"},
    {"32", "[32]",
     "3:18: error: field 'hidden_size': expected a whole number from 1 to "
     "2147483647, got an array"},
    {"97", "0",
     "10:17: error: field 'vocab_size': expected a whole number from 1 to "
     "2147483647, got 0"},
    {"97", "-97",
     "10:17: error: field 'vocab_size': expected a whole number from 1 to "
     "2147483647, got -97"},
    {"97", "1e30",
     "10:17: error: field 'vocab_size': expected a whole number from 1 to "
     "2147483647, got 1e30"},
    {"97", "18446744073709551617",
     "10:17: error: field 'vocab_size': expected a whole number from 1 to "
     "2147483647, got 18446744073709551617"},
    {": 3,", ": 100001,",
     "6:24: error: field 'num_hidden_layers': expected a whole number from 1 "
     "to 100000, got 100001"},
    {"1e-06", "0",
     "9:19: error: field 'rms_norm_eps': expected a number between 0 and 1, "
     "both excluded, got 0"},
    {"1e-06", "true",
     "9:19: error: field 'rms_norm_eps': expected a number between 0 and 1, "
     "both excluded, got true"},
    {"97", "97, \"tie_word_embeddings\": 1",
     "10:44: error: field 'tie_word_embeddings': expected true or false, got "
     "1"},
    {"97", "97, \"attention_dropout\": 1.0",
     "10:42: error: field 'attention_dropout': expected less than 1, got 1"},
    {"97", "97, \"attention_dropout\": -0.1",
     "10:42: error: field 'attention_dropout': expected a number from 0 to 1, "
     "got -0.1"},
    // Sizes that do not go together.
    {": 2,", ": 3,",
     "5:26: error: field 'num_attention_heads': expected a multiple of "
     "'num_key_value_heads', 3, got 4"},
    {"\"num_attention_heads\": 4", "\"num_attention_heads\": 6",
     "3:18: error: field 'hidden_size': expected a multiple of "
     "'num_attention_heads', 6, got 32; or give 'head_dim'"},
    {"97", "97, \"head_dim\": 7",
     "10:33: error: expected an even number of elements a head, because "
     "rotary positions turn pairs, got 7"},
    {"32", "12",
     "3:18: error: expected an even number of elements a head, because "
     "rotary positions turn pairs, got 3"},
    {"97", "97, \"head_dim\": 2147483646",
     "5:26: error: expected a layer of at most 2147483647 elements a "
     "position"},
    {": 32,\n  \"intermediate_size\": 56",
     ": 2147483640,\n  \"intermediate_size\": 2147483647",
     "6:24: error: expected fewer than 2^62 parameters"},
    // What is not supported.
    {"\"llama\"", "\"lama\"",
     "2:17: error: not supported yet: model_type \"lama\"; expected "
     "deepseek_v3, gpt2, llama, mistral, mixtral, qwen2, qwen3, qwen3_moe "
     "(nearest: llama)"},
    {"\"llama\"", "\"\"",
     "2:17: error: field 'model_type': expected a name, "
     "got \"\""},
    {"\"llama\"", "7",
     "2:17: error: field 'model_type': expected a string, "
     "got 7"},
    {"97", "97, \"hidden_act\": \"relu\"",
     "10:35: error: field 'hidden_act': expected \"silu\" or \"swish\" or "
     "\"gelu\" or \"gelu_new\" or \"gelu_pytorch_tanh\" (others are not "
     "supported), got \"relu\""},
    {"97", "97, \"pretraining_tp\": 2",
     "10:39: error: field 'pretraining_tp': expected 1 (others are not "
     "supported), got 2"},
    {"97", "97, \"partial_rotary_factor\": 0.5",
     "10:46: error: field 'partial_rotary_factor': expected 1 (others are "
     "not supported), got 0.5"},
    {"97", "97, \"quantization_config\": {\"bits\": 4}",
     "10:21: error: field 'quantization_config' is not supported"},
    {"97", "97, \"architectures\": [\"LlamaForTokenClassification\"]",
     "10:38: error: field 'architectures': expected [\"LlamaForCausalLM\"], "
     "got [\"LlamaForTokenClassification\"]"},
    {"97", "97, \"torch_dtype\": \"float16\"",
     "10:36: error: field 'torch_dtype': expected \"float32\", \"bfloat16\" "
     "or \"float64\", got \"float16\"; choose one with --dtype f32|bf16|f64"},
    {"97", "97, \"torch_dtype\": \"float32\", \"dtype\": \"bfloat16\"",
     "10:56: error: fields 'dtype' and 'torch_dtype' differ; remove one"},
    // Rotary positions.
    {"97", "97, \"rope_theta\": 1",
     "10:35: error: field 'rope_theta': expected a number between 1 and "
     "1000000000000, both excluded, got 1"},
    {"97", "97, \"rope_scaling\": 8",
     "10:37: error: field 'rope_scaling': expected an object, got 8"},
    {"97", "97, \"rope_scaling\": {\"type\": \"longrope\"}",
     "10:46: error: field 'rope_scaling.type': expected \"default\" or "
     "\"linear\" or \"llama3\" or \"yarn\" (others are not supported), got "
     "\"longrope\""},
    {"97", "97, \"rope_scaling\": {\"type\": \"linear\"}",
     "10:37: error: expected field 'rope_scaling.factor', got none"},
    {"97", "97, \"rope_scaling\": {\"factor\": 8}",
     "10:37: error: expected field 'rope_scaling.rope_type', got none"},
    {"97",
     "97, \"rope_scaling\": {\"type\": \"default\"}, "
     "\"rope_parameters\": {\"rope_type\": \"default\"}",
     "10:21: error: fields 'rope_scaling' and 'rope_parameters' say the same "
     "thing; remove one"},
    {"97", "97, \"rope_theta\": 5, \"rope_parameters\": {\"rope_theta\": 6}",
     "10:72: error: fields 'rope_theta' and 'rope_parameters.rope_theta' "
     "differ; remove one"},
    {"97", "97, \"rope_parameters\": {\"full_attention\": {}}",
     "10:59: error: field 'rope_parameters.full_attention': one set of "
     "rotary fields for each kind of layer is not supported"},
    // Not a config at all.
    {"97", "97,", "11:2: error: not JSON: expected object key"},
    {"\"vocab_size\": 97", "\"vocab_size\": 97, \"hidden_size\": 32",
     "10:21: error: field 'hidden_size' is given twice; remove one"},
};

INSTANTIATE_TEST_SUITE_P(Import, BadField, testing::ValuesIn(kCases));

TEST(BadConfig, AllFaultsAtOnce) {
  std::string text = edit(kBase, "32", "0");
  text = edit(text, "97", "\"many\"");
  EXPECT_EQ(diagnose(text),
            "3:18: error: field 'hidden_size': expected a whole number from 1 "
            "to 2147483647, got 0\n"
            "10:17: note: field 'vocab_size': expected a whole number from 1 "
            "to 2147483647, got \"many\"\n");
}

TEST(BadConfig, Llama3Scaling) {
  std::string text = edit(kBase, "\"vocab_size\": 97", kRope);
  EXPECT_EQ(diagnose(text), "");
  EXPECT_EQ(diagnose(edit(text, "    \"low_freq_factor\": 1.0,\n", "")),
            "11:19: error: expected field 'rope_scaling.low_freq_factor', got "
            "none\n");
  EXPECT_EQ(diagnose(edit(text, "4.0", "1.0")),
            "15:25: error: field 'rope_scaling.high_freq_factor': expected "
            "more than 'low_freq_factor', 1.0, got 1.0\n");
  EXPECT_EQ(diagnose(edit(text, "\"high_freq_factor\"", "\"hi_freq_factor\"")),
            "15:5: error: expected field 'rope_scaling.high_freq_factor', got "
            "'rope_scaling.hi_freq_factor'; rename it\n");
}

TEST(BadConfig, NotAnObject) {
  EXPECT_EQ(diagnose(""), "1:1: error: not JSON: unexpected EOF\n");
  EXPECT_EQ(diagnose("[1]"),
            "1:1: error: expected a JSON object, got an array\n");
  EXPECT_EQ(diagnose("{"), "1:2: error: not JSON: expected object key\n");
  EXPECT_EQ(diagnose(std::string(40, '[')),
            "1:33: error: expected JSON nested at most 32 deep\n");
  EXPECT_EQ(diagnose(std::string((4 << 20) + 1, ' ')),
            "1:1: error: expected at most 4194304 bytes, got 4194305\n");
}

TEST(BadConfig, NotSupportedYet) {
  EXPECT_EQ(diagnose(readTestConfig("bloom-176b")),
            "15:16: error: not supported yet: model_type \"bloom\"; expected "
            "deepseek_v3, gpt2, llama, mistral, mixtral, qwen2, qwen3, "
            "qwen3_moe\n");
}

TEST(BadConfig, YarnScaling) {
  std::string text = readTestConfig("tiny-deepseek-v3");
  EXPECT_EQ(diagnose(text), "");
  EXPECT_EQ(diagnose(edit(text, "\"beta_slow\": 1", "\"beta_slow\": 32")),
            "37:16: error: expected 'beta_fast' above 'beta_slow', got 32 and "
            "32\n");
  EXPECT_EQ(diagnose(edit(text, "\"factor\": 4.0", "\"factor\": 0.5")),
            "39:13: error: field 'rope_scaling.factor': expected a number "
            "from 1 to 1000000, got 0.5\n");
  EXPECT_EQ(diagnose(edit(text, "\"mscale\": 1.0", "\"mscale\": \"1\"")),
            "40:13: error: field 'rope_scaling.mscale': expected a number "
            "from 0 to 1000000, got \"1\"\n");
  EXPECT_EQ(diagnose(edit(text, "\"mscale\": 1.0", "\"mscal\": 1.0")),
            "40:3: error: unknown field 'rope_scaling.mscal'; did you mean "
            "'rope_scaling.mscale'?\n");
}

TEST(BadConfig, LatentAttention) {
  std::string text = readTestConfig("tiny-deepseek-v3");
  for (StringRef key : {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim",
                        "qk_rope_head_dim", "v_head_dim"}) {
    std::string with = ("\"" + key + "\": ").str();
    size_t at = text.find(with);
    std::string without = text;
    without.erase(at, text.find('\n', at) - at);
    EXPECT_EQ(diagnose(without),
              ("1:1: error: expected field '" + key + "', got none\n").str());
  }
  EXPECT_EQ(
      diagnose(edit(text, "\"q_lora_rank\": 16", "\"q_lora_rank\": null")), "");
  EXPECT_EQ(diagnose(edit(text, "\"q_lora_rank\": 16", "\"q_lora_rank\": 0")),
            "30:17: error: field 'q_lora_rank': expected a whole number from 1 "
            "to 2147483647, got 0\n");
  EXPECT_EQ(diagnose(edit(text, "\"qk_head_dim\": 16", "\"qk_head_dim\": 8")),
            "31:17: error: field 'qk_head_dim': expected 'qk_nope_head_dim' + "
            "'qk_rope_head_dim', 16, got 8\n");
  EXPECT_EQ(diagnose(edit(text, "\"num_key_value_heads\": 4",
                          "\"num_key_value_heads\": 2")),
            "26:25: error: field 'num_key_value_heads': expected "
            "'num_attention_heads', 4, got 2\n");
}

TEST(BadConfig, Experts) {
  std::string text = readTestConfig("tiny-deepseek-v3");
  EXPECT_EQ(diagnose(edit(text, "\"n_routed_experts\": 8",
                          "\"n_routed_experts\": 6")),
            "20:22: error: field 'n_routed_experts': expected a multiple of "
            "'n_group', 4, got 6\n");
  EXPECT_EQ(diagnose(edit(text, "\"n_routed_experts\": 8,\n", "")),
            "1:1: error: expected field 'n_routed_experts', got none\n");
  EXPECT_EQ(diagnose(edit(text, "\"n_group\": 4", "\"n_group\": 8")),
            "19:13: error: field 'n_group': expected at least two experts a "
            "group, because groups are ranked by their two best, so at most 4, "
            "got 8\n");
  EXPECT_EQ(diagnose(edit(text, "\"topk_group\": 2", "\"topk_group\": 5")),
            "48:16: error: field 'topk_group': expected at most 'n_group', 4, "
            "got 5\n");
  EXPECT_EQ(diagnose(edit(text, "\"num_experts_per_tok\": 2",
                          "\"num_experts_per_tok\": 9")),
            "24:25: error: field 'num_experts_per_tok': expected at most "
            "'n_routed_experts', 8, got 9\n");
  EXPECT_EQ(diagnose(edit(text, "\"num_experts_per_tok\": 2",
                          "\"num_experts_per_tok\": 5")),
            "24:25: error: field 'num_experts_per_tok': expected at most the 4 "
            "experts of 'topk_group' groups, got 5\n");
  EXPECT_EQ(diagnose(edit(text, "\"routed_scaling_factor\": 2.5",
                          "\"routed_scaling_factor\": 0")),
            "46:27: error: field 'routed_scaling_factor': expected a number "
            "between 0 and 1000000, both excluded, got 0\n");
  EXPECT_EQ(diagnose(edit(text, "\"first_k_dense_replace\": 1",
                          "\"first_k_dense_replace\": -1")),
            "9:27: error: field 'first_k_dense_replace': expected a whole "
            "number from 0 to 2147483647, got -1\n");
  std::string mixtral = readTestConfig("tiny-mixtral");
  EXPECT_EQ(diagnose(edit(mixtral, "\"num_experts_per_tok\": 2",
                          "\"num_experts_per_tok\": 5")),
            "16:25: error: field 'num_experts_per_tok': expected at most "
            "'num_local_experts', 4, got 5\n");
  EXPECT_EQ(diagnose(edit(mixtral, "\"router_jitter_noise\": 0.0",
                          "\"router_jitter_noise\": 0.1")),
            "27:25: error: field 'router_jitter_noise': expected 0 (others are "
            "not supported), got 0.1\n");
}

constexpr const char *kQwen3Moe = R"({
  "model_type": "qwen3_moe",
  "hidden_size": 32,
  "intermediate_size": 56,
  "moe_intermediate_size": 24,
  "num_experts": 6,
  "num_experts_per_tok": 2,
  "num_attention_heads": 4,
  "head_dim": 8,
  "num_hidden_layers": 5,
  "num_key_value_heads": 2,
  "max_position_embeddings": 64,
  "mlp_only_layers": [1],
  "decoder_sparse_step": 1,
  "vocab_size": 97
})";

TEST(BadConfig, WhichLayersHaveExperts) {
  EXPECT_EQ(diagnose(kQwen3Moe), "");
  EXPECT_EQ(
      diagnose(edit(kQwen3Moe, "[1]", "1")),
      "13:22: error: field 'mlp_only_layers': expected an array, got 1\n");
  EXPECT_EQ(diagnose(edit(kQwen3Moe, "[1]", "[\"1\"]")),
            "13:22: error: field 'mlp_only_layers': expected numbers of "
            "layers, got \"1\"\n");
  EXPECT_EQ(diagnose(edit(kQwen3Moe, "_step\": 1", "_step\": 0")),
            "14:26: error: field 'decoder_sparse_step': expected a whole "
            "number from 1 to 2147483647, got 0\n");
  EXPECT_EQ(diagnose(edit(edit(kQwen3Moe, "_step\": 1", "_step\": 2"),
                          "_layers\": 5", "_layers\": 68")),
            "14:26: error: expected at most 64 runs of layers with and without "
            "experts, got more\n");
}

TEST(Config, RunsOfLayers) {
  MLIRContext context;
  FailureOr<ModelConfig> config =
      readModelConfig(&context, kQwen3Moe, "config.json");
  ASSERT_TRUE(succeeded(config));
  std::string text;
  for (const LayerRun &run : config->runs)
    text += run.stack + " " + run.prefix + " " + std::to_string(run.begin) +
            "+" + std::to_string(run.count) +
            (run.experts ? " experts\n" : "\n");
  EXPECT_EQ(text, "layers  0+1 experts\n"
                  "dense dense_ 1+1\n"
                  "layers2 run2_ 2+3 experts\n");
}

TEST(BadConfig, OtherArchitectures) {
  std::string gpt2 = readTestConfig("tiny-gpt2");
  EXPECT_EQ(diagnose(edit(gpt2, "\"scale_attn_by_inverse_layer_idx\": false",
                          "\"scale_attn_by_inverse_layer_idx\": true")),
            "21:37: error: field 'scale_attn_by_inverse_layer_idx': expected "
            "false (others are not supported), got true\n");
  EXPECT_EQ(diagnose(edit(gpt2, "\"n_head\": 4", "\"n_head\": 5")),
            "15:12: error: field 'n_embd': expected a multiple of 'n_head', "
            "5, got 32\n");
  std::string qwen2 = readTestConfig("tiny-qwen2");
  EXPECT_EQ(diagnose(edit(qwen2, "\"use_sliding_window\": false",
                          "\"use_sliding_window\": true")),
            "29:24: error: field 'use_sliding_window': expected false (others "
            "are not supported), got true\n");
  EXPECT_EQ(
      diagnose(edit(qwen2, "full_attention\"\n", "sliding_attention\"\n")),
      "11:17: error: field 'layer_types': expected \"full_attention\" "
      "in every layer (mixed layers are not supported), got "
      "\"sliding_attention\" in layer 2\n");
  EXPECT_EQ(diagnose(edit(qwen2, "\"num_hidden_layers\": 3",
                          "\"num_hidden_layers\": 4")),
            "11:17: error: field 'layer_types': expected 4 entries, one a "
            "layer, got 3\n");
}

/// Every prefix, and every byte replaced by one that JSON gives a meaning: an
/// answer each time, and what is accepted can be built.
TEST(BadConfig, DamagedTextIsAnswered) {
  MLIRContext context;
  std::string text = readTestConfig("tiny-llama31");
  auto answer = [&](StringRef damaged) {
    Collected collected(context);
    FailureOr<ModelConfig> config =
        readModelConfig(&context, damaged, "config.json");
    if (failed(config)) {
      EXPECT_NE(collected.text.find("error: "), std::string::npos);
      return;
    }
    EXPECT_GE(config->headDim, 2);
    EXPECT_EQ(config->heads % config->kvHeads, 0);
  };
  for (size_t size = 0; size < text.size(); ++size)
    answer(StringRef(text).take_front(size));
  for (char byte :
       {'"', '\\', '{', '}', '[', ',', ':', '0', '9', '-', '.', '\0', '\xff'})
    for (size_t at = 0; at < text.size(); ++at) {
      std::string damaged = text;
      damaged[at] = byte;
      answer(damaged);
    }
}

TEST(Config, UnknownFieldsAreNamed) {
  EXPECT_EQ(diagnose(edit(kBase, "97",
                          "97, \"logit_cap\": 30, \"moon_phase\": {\"a\": 1}")),
            "10:21: warning: not understood, ignored: 'logit_cap', "
            "'moon_phase'\n");
}

TEST(Config, ElementTypeOverride) {
  std::string text = edit(kBase, "97", "97, \"torch_dtype\": \"float16\"");
  EXPECT_EQ(diagnose(text, ElementKind::F64), "");
}
} // namespace
