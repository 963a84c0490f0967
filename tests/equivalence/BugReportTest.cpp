//===- BugReportTest.cpp - Public bugs of other partitioners --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Programs on which other partitioners were reported to compute something
/// else than the program, written anew as training steps with constraints.
/// Each is compared with itself in one piece, exactly; where the report says
/// what is right, with that as well. The numbers are those of docs/status.md.
///
//===----------------------------------------------------------------------===//

#include "Model.h"
#include "Mutations.h"
#include "parc/Eval/Compare.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

namespace {

class BugReport : public ::testing::Test {
protected:
  /// A step around `body`, which ends in `%y` of `type`: the loss is the sum of
  /// y times a parameter of its shape, and y is observed. `params` are whole
  /// lines.
  static std::string step(const std::string &params, const std::string &inputs,
                          const std::string &body, const std::string &type,
                          int64_t rank);
  /// Prepares `text` and runs it whole.
  void prepareText(const std::string &text, int64_t vocabulary = 11);
  /// Partitions what was prepared, and compares.
  void expectEqual(const Plan &plan);
  /// The text of the staged program.
  std::string stagedText(const Plan &plan);
  std::string errorsOf(const Plan &plan);
  /// The elements of an observed value of the whole program.
  std::vector<int64_t> observed(const std::string &name);

  Context context;
  OwningOpRef<ModuleOp> module;
  Whole<Zp> whole;
};

} // namespace

std::string BugReport::step(const std::string &params,
                            const std::string &inputs, const std::string &body,
                            const std::string &type, int64_t rank) {
  std::string dims;
  for (int64_t i = 0; i < rank; ++i)
    dims += (i ? ", " : "") + std::to_string(i);
  size_t colon = inputs.find(':');
  std::string names =
      inputs.empty() ? "" : "\"" + inputs.substr(1, colon - 1) + "\"";
  return params + "parc.param @weight : " + type +
         "\nparc.step @train inputs [" + names + "] micro {\n" +
         (inputs.empty() ? "" : "^bb0(" + inputs + "):\n") +
         "  %zero = arith.constant dense<0.0> : tensor<f32>\n" + body +
         "  %weight = parc.load @weight : " + type +
         "\n  parc.observe \"y\", %y : " + type +
         "\n  %p = arith.mulf %y, %weight : " + type +
         "\n  %l = linalg.reduce { arith.addf } ins(%p : " + type +
         ") outs(%zero : tensor<f32>) dimensions = [" + dims +
         "]\n  %n = arith.constant dense<3.0> : tensor<f32>\n"
         "  parc.yield %l, %n : tensor<f32>, tensor<f32>\n} update {}\n";
}

void BugReport::prepareText(const std::string &text, int64_t vocabulary) {
  std::string error;
  module = prepare(context.mlir, text, error);
  ASSERT_TRUE(module) << error;
  auto run = runWhole<Zp>(*module, vocabulary);
  ASSERT_TRUE(succeeded(run));
  whole = std::move(*run);
}

void BugReport::expectEqual(const Plan &plan) {
  ASSERT_TRUE(module);
  Errors errors(context.mlir);
  OwningOpRef<ModuleOp> clone = pinned(*module, plan, {});
  ASSERT_TRUE(succeeded(shard(*clone, plan))) << errors.text;
  ASSERT_TRUE(succeeded(stage(*clone, plan))) << errors.text;
  ASSERT_TRUE(succeeded(decompose(*clone))) << errors.text;
  EXPECT_EQ(compare(*clone, whole), "") << errors.text;
}

std::string BugReport::stagedText(const Plan &plan) {
  OwningOpRef<ModuleOp> clone = pinned(*module, plan, {});
  EXPECT_TRUE(succeeded(shard(*clone, plan)));
  EXPECT_TRUE(succeeded(stage(*clone, plan)));
  std::string text;
  llvm::raw_string_ostream(text) << *clone;
  return text;
}

std::string BugReport::errorsOf(const Plan &plan) {
  Errors errors(context.mlir);
  OwningOpRef<ModuleOp> clone = pinned(*module, plan, {});
  EXPECT_TRUE(failed(shard(*clone, plan)));
  return errors.text;
}

std::vector<int64_t> BugReport::observed(const std::string &name) {
  std::vector<int64_t> list;
  const auto &value = whole.observed.at(name);
  for (int64_t i = 0; i < value.size(); ++i)
    list.push_back(static_cast<int64_t>(value.floats()[i].v));
  return list;
}

//===----------------------------------------------------------------------===//
// Reshapes, partial values
//===----------------------------------------------------------------------===//

/// An axis of one rank, and a product of ones.
TEST_F(BugReport, BR07b_AxisOfOneRank) {
  prepareText(step("", "",
                   R"(  %a0 = arith.constant dense<1.0> : tensor<16x8xf32>
  %a = parc.constraint %a0 : tensor<16x8xf32> to #parc.sharding<[{"batch"}, {}]>
  %b0 = arith.constant dense<1.0> : tensor<8x6xf32>
  %b = parc.constraint %b0 : tensor<8x6xf32> to #parc.sharding<[{}, {"model"}]>
  %f = arith.constant dense<0.0> : tensor<16x6xf32>
  %y = linalg.matmul ins(%a, %b : tensor<16x8xf32>, tensor<8x6xf32>) outs(%f : tensor<16x6xf32>) -> tensor<16x6xf32>
)",
                   "tensor<16x6xf32>", 2));
  for (int64_t ranks : {2, 4, 8})
    expectEqual({{{"batch", ranks}, {"model", 1}}});
  EXPECT_EQ(observed("y"), std::vector<int64_t>(96, 8));
}

/// Two results belong together: the index of the largest, not a sum of them.
TEST_F(BugReport, BR08_PlaceOfTheLargest) {
  prepareText(step(
      "", "",
      R"(  %x0 = arith.constant dense<[[3.0, 9.0, 4.0, 1.0, 5.0, 8.0], [0.0, 2.0, 2.0, 7.0, 7.0, 1.0]]> : tensor<2x6xf32>
  %x = parc.constraint %x0 : tensor<2x6xf32> to #parc.sharding<[{}, {"tp"}]>
  %i = nn.select_experts %x top_k 1 : tensor<2x6xf32> -> tensor<2x1xi64>
  %y = arith.sitofp %i : tensor<2x1xi64> to tensor<2x1xf32>
)",
      "tensor<2x1xf32>", 2));
  for (int64_t ranks : {2, 3, 4})
    expectEqual({{{"tp", ranks}}});
  // Of equal ones the first.
  EXPECT_EQ(observed("y"), (std::vector<int64_t>{1, 3}));
}

/// The largest of all parts shifts, the sum of all parts divides.
TEST_F(BugReport, BR09_SoftmaxAlongTheSplitDimension) {
  prepareText(step("parc.param @x : tensor<3x8xf32> {sharding = "
                   "#parc.sharding<[{}, {\"a\"}]>}\n",
                   "%labels: tensor<3xi64>",
                   R"(  %x = parc.load @x : tensor<3x8xf32>
  %y, %c, %e = nn.softmax_cross_entropy %x, %labels : tensor<3x8xf32>, tensor<3xi64> -> tensor<f32>, tensor<f32>, tensor<3xf32>
)",
                   "tensor<f32>", 0),
              8);
  for (int64_t ranks : {2, 4, 8})
    expectEqual({{{"a", ranks}}});
  std::string text = stagedText({{{"a", 4}}});
  size_t first = text.find("parc.all_reduce");
  EXPECT_TRUE(StringRef(text).substr(first).starts_with("parc.all_reduce max"));
  EXPECT_TRUE(StringRef(text).contains("parc.all_reduce sum"));
}

TEST_F(BugReport, BR10_ViewAcrossTheSplitDimension) {
  auto body = [](const std::string &layout) {
    return "  %x0 = parc.load @x : tensor<12x8xf32>\n"
           "  %x = parc.constraint %x0 : tensor<12x8xf32> to " +
           layout + R"(
  %f = tensor.collapse_shape %x [[0, 1]] : tensor<12x8xf32> into tensor<96xf32>
  %y = tensor.expand_shape %f [[0, 1]] output_shape [16, 6] : tensor<96xf32> into tensor<16x6xf32>
)";
  };
  for (const char *layout :
       {"#parc.sharding<[{}, {\"x\"}]>", "#parc.sharding<[{\"x\"}, {}]>",
        "#parc.sharding<[{\"x\"}, {\"y\"}]>"}) {
    prepareText(step("parc.param @x : tensor<12x8xf32>\n", "", body(layout),
                     "tensor<16x6xf32>", 2));
    expectEqual({{{"x", 4}, {"y", 1}}});
    expectEqual({{{"x", 2}, {"y", 3}}});
  }
}

/// Parts of 1, 1, 1 and 2 rows come together as five; three rows are too few
/// for four ranks, which is said.
TEST_F(BugReport, BR12_RoundTripOfUnequalParts) {
  auto text = [](const std::string &rows) {
    std::string type = "tensor<" + rows + "x10xf32>";
    return step("parc.param @x : " + type +
                    " {sharding = #parc.sharding<[{\"x\"}, {}]>}\n",
                "",
                "  %x = parc.load @x : " + type +
                    "\n  %y = parc.constraint %x : " + type +
                    " to #parc.sharding<[{}, {}]>\n",
                type, 2);
  };
  prepareText(text("5"));
  for (int64_t ranks = 2; ranks <= 5; ++ranks)
    expectEqual({{{"x", ranks}}});
  prepareText(text("3"));
  EXPECT_NE(errorsOf({{{"x", 4}}}).find("more parts than units"),
            std::string::npos);
}

TEST_F(BugReport, BR13_FlattenedUnequalParts) {
  prepareText(step("parc.param @x : tensor<6x5xf32> {sharding = "
                   "#parc.sharding<[{\"x\"}, {}]>}\n",
                   "",
                   R"(  %x = parc.load @x : tensor<6x5xf32>
  %y = tensor.collapse_shape %x [[0, 1]] : tensor<6x5xf32> into tensor<30xf32>
)",
                   "tensor<30xf32>", 1));
  expectEqual({{{"x", 4}}});
  expectEqual({{{"x", 5}}});
}

/// A contraction over two axes, wanted over one of them.
TEST_F(BugReport, BR16_PartialToMixed) {
  for (const char *to :
       {"[{\"a\"}, {}]", "[{\"b\"}, {}]", "[{}, {\"a\", \"b\"}]", "[{}, {}]"}) {
    prepareText(step("parc.param @x : tensor<6x8xf32> {sharding = "
                     "#parc.sharding<[{}, {\"a\", \"b\"}]>}\n"
                     "parc.param @w : tensor<5x8xf32> {sharding = "
                     "#parc.sharding<[{}, {\"a\", \"b\"}]>}\n",
                     "",
                     std::string(R"(  %x = parc.load @x : tensor<6x8xf32>
  %w = parc.load @w : tensor<5x8xf32>
  %h = nn.linear %x, %w : tensor<6x8xf32>, tensor<5x8xf32> -> tensor<6x5xf32>
  %y = parc.constraint %h : tensor<6x5xf32> to #parc.sharding<)") +
                         to + ">\n",
                     "tensor<6x5xf32>", 2));
    expectEqual({{{"a", 2}, {"b", 2}}});
    expectEqual({{{"b", 2}, {"a", 2}, {"c", 2}}});
  }
}

TEST_F(BugReport, BR17_TwoAxisMoveGathersNothing) {
  prepareText(step("parc.param @a : tensor<16x16x16xf32>\n", "",
                   R"(  %a = parc.load @a : tensor<16x16x16xf32>
  %b = parc.constraint %a : tensor<16x16x16xf32> to #parc.sharding<[{"y"}, {}, {"x"}]>
  %c = nn.silu %b : tensor<16x16x16xf32>
  %y = parc.constraint %c : tensor<16x16x16xf32> to #parc.sharding<[{}, {"x", "y"}, {}]>
)",
                   "tensor<16x16x16xf32>", 3));
  Plan plan = {{{"x", 4}, {"y", 2}}};
  expectEqual(plan);
  EXPECT_EQ(stagedText(plan).find("parc.all_gather"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

/// Words that do not occur have no gradient, whoever has their row.
TEST_F(BugReport, BR15_GradientOfAnEmbedding) {
  prepareText(step("parc.param @w : tensor<64x8xf32> {sharding = "
                   "#parc.sharding<[{\"tp\"}, {}]>}\n",
                   "%ids: tensor<32xi64>",
                   R"(  %w = parc.load @w : tensor<64x8xf32>
  %i = parc.constraint %ids : tensor<32xi64> to #parc.sharding<[{"dp", "tp"}]>
  %y = nn.embedding %i, %w : tensor<32xi64>, tensor<64x8xf32> -> tensor<32x8xf32>
)",
                   "tensor<32x8xf32>", 2),
              64);
  expectEqual({{{"dp", 2}, {"tp", 4}}});
  const auto *grad = whole.after.find({"w", 0, "grad"});
  ASSERT_TRUE(grad);
  std::set<int64_t> used;
  for (int64_t i = 0; i < 32; ++i)
    used.insert(inputValue("ids", i, 32, 64));
  EXPECT_LT(used.size(), 64u);
  for (int64_t row = 0; row < 64; ++row)
    for (int64_t column = 0; column < 8; ++column)
      EXPECT_EQ(grad->floats()[row * 8 + column].v != 0, used.count(row) == 1);
}

TEST_F(BugReport, BR19_VocabulariesThatDoNotDivide) {
  for (int64_t words = 5; words <= 17; words += 3) {
    Sizes sizes = unevenSizes();
    sizes['V'] = words;
    Model model = {"head",
                   "t:VN",
                   "ids:BS labels:BS",
                   "l:",
                   "%x = nn.embedding %ids, %t : $ids, $t -> $x\n"
                   "%z = nn.linear %x, %t : $x, $t -> $z\n"
                   "%l, %c, %e = nn.softmax_cross_entropy %z, %labels : $z, "
                   "$labels -> $l, $l, $e",
                   "x:BSN z:BSV e:BS"};
    prepareText(moduleText(model, sizes), words);
    for (int64_t tp = 2; tp <= 5; ++tp) {
      Plan plan = {{{"tp", tp}}};
      plan.strategy = true;
      expectEqual(plan);
    }
  }
}

//===----------------------------------------------------------------------===//
// Heads, experts, losses
//===----------------------------------------------------------------------===//

static std::string decoder(int64_t heads, int64_t keyHeads, int64_t layers) {
  auto text = [](int64_t number) { return std::to_string(number); };
  return R"({"model_type": "llama", "hidden_size": 6, "intermediate_size": 8,
  "vocab_size": 11, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
  "rope_theta": 10000.0, "head_dim": 2, "num_hidden_layers": )" +
         text(layers) + ", \"num_attention_heads\": " + text(heads) +
         ", \"num_key_value_heads\": " + text(keyHeads) + "}";
}

static std::string experts(const std::string &count) {
  return R"({"model_type": "mixtral", "hidden_size": 8, "intermediate_size": 8,
  "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 4,
  "head_dim": 2, "num_experts_per_tok": 1, "vocab_size": 11,
  "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
  "num_local_experts": )" +
         count + "}";
}

TEST_F(BugReport, BR24_FewerKeyHeadsThanRanks) {
  for (auto [heads, keyHeads, tp] :
       {std::tuple(8, 2, 4), {8, 1, 4}, {6, 2, 4}, {5, 5, 3}}) {
    module =
        prepare(importedModel(context.mlir, decoder(heads, keyHeads, 1), 2, 3));
    ASSERT_TRUE(module);
    whole = *runWhole<Zp>(*module, 11);
    Plan plan = {{{"tp", tp}}};
    plan.strategy = true;
    SCOPED_TRACE(std::to_string(heads) + " heads, " + std::to_string(keyHeads) +
                 " of keys, tp " + std::to_string(tp));
    expectEqual(plan);
  }
}

TEST_F(BugReport, BR24e_MasksOfDropout) {
  for (const char *layout : {"[{\"x\"}, {}]", "[{}, {\"x\"}]"}) {
    prepareText(step("parc.param @x : tensor<8x9xf32>\n", "",
                     R"(  %x0 = parc.load @x : tensor<8x9xf32>
  %x = parc.constraint %x0 : tensor<8x9xf32> to #parc.sharding<)" +
                         std::string(layout) + R"(>
  %seed = arith.constant dense<42> : tensor<i64>
  %y = nn.dropout %x seed %seed rate 0.5 site 1 : tensor<8x9xf32>, tensor<i64>
)",
                     "tensor<8x9xf32>", 2));
    for (int64_t ranks : {2, 4, 8})
      expectEqual({{{"x", ranks}}});
  }
}

/// Every way to make 4 and 8 ranks of replicas, experts' ranks, and ranks of
/// one expert.
TEST_F(BugReport, BR26_GradientsOfExperts) {
  for (const char *count : {"2", "8"}) {
    module = prepare(importedModel(context.mlir, experts(count), 8, 4));
    ASSERT_TRUE(module);
    whole = *runWhole<Zp>(*module, 11);
    for (int64_t ranks : {4, 8})
      for (int64_t ep = 1; ep <= std::stoi(count) && ep <= ranks; ep *= 2)
        for (int64_t tp = 1; tp * ep <= ranks && tp <= 4; tp *= 2) {
          Plan plan = {{{"tp", tp}, {"edp", ranks / tp / ep}, {"dp", ep}}};
          plan.strategy = true;
          plan.options.sequenceParallel = tp > 1;
          if (ep > 1)
            plan.options.expertAxes = {"dp"};
          SCOPED_TRACE("ep " + std::to_string(ep) + ", tp " +
                       std::to_string(tp) + " of " + std::to_string(ranks));
          expectEqual(plan);
        }
  }
}

/// A shared expert that is split, among tokens that are split as well.
TEST_F(BugReport, BR28_SharedExpertAndSplitTokens) {
  module = prepare(importedModel(context.mlir, R"({
  "model_type": "deepseek_v3", "hidden_size": 6, "intermediate_size": 8,
  "moe_intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2,
  "num_key_value_heads": 2, "q_lora_rank": 3, "kv_lora_rank": 2,
  "qk_nope_head_dim": 2, "qk_rope_head_dim": 2, "v_head_dim": 3,
  "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1,
  "n_group": 2, "topk_group": 1, "first_k_dense_replace": 0, "vocab_size": 11,
  "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
  "norm_topk_prob": true, "routed_scaling_factor": 2.5})",
                                 1, 8));
  ASSERT_TRUE(module);
  whole = *runWhole<Zp>(*module, 11);
  Plan plan = {{{"tp", 2}, {"cp", 2}}};
  plan.strategy = plan.options.sequenceParallel = true;
  expectEqual(plan);
  plan.options.expertAxes = {"cp"};
  expectEqual(plan);
}

/// A partial product and a value that all have.
TEST_F(BugReport, BR25_PartialPlusReplicated) {
  prepareText(step("parc.param @x : tensor<4x8xf32> {sharding = "
                   "#parc.sharding<[{}, {\"tp\"}]>}\n"
                   "parc.param @w : tensor<6x8xf32> {sharding = "
                   "#parc.sharding<[{}, {\"tp\"}]>}\n"
                   "parc.param @b : tensor<4x6xf32>\n",
                   "",
                   R"(  %x = parc.load @x : tensor<4x8xf32>
  %w = parc.load @w : tensor<6x8xf32>
  %b = parc.load @b : tensor<4x6xf32>
  %h = nn.linear %x, %w : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<4x6xf32>
  %y = arith.addf %h, %b : tensor<4x6xf32>
)",
                   "tensor<4x6xf32>", 2));
  for (int64_t ranks : {2, 3, 8})
    expectEqual({{{"tp", ranks}}});
}

/// The sum over ranks of (w^2 + 1) d, with d = 0 and 1, at any w: 2 w.
TEST_F(BugReport, BR29_GradientOfASummedLoss) {
  prepareText(R"(
  parc.param @w : tensor<f32>
  parc.step @train inputs [] micro {
    %zero = arith.constant dense<0.0> : tensor<f32>
    %w = parc.load @w : tensor<f32>
    %s = arith.mulf %w, %w : tensor<f32>
    %e = arith.constant dense<0.0> : tensor<2xf32>
    %v = linalg.broadcast ins(%s : tensor<f32>) outs(%e : tensor<2xf32>) dimensions = [0]
    %one = arith.constant dense<1.0> : tensor<2xf32>
    %t = arith.addf %v, %one : tensor<2xf32>
    %d0 = arith.constant dense<[0.0, 1.0]> : tensor<2xf32>
    %d = parc.constraint %d0 : tensor<2xf32> to #parc.sharding<[{"x"}]>
    %p = arith.mulf %t, %d : tensor<2xf32>
    %l = linalg.reduce { arith.addf } ins(%p : tensor<2xf32>) outs(%zero : tensor<f32>) dimensions = [0]
    %n = arith.constant dense<1.0> : tensor<f32>
    parc.yield %l, %n : tensor<f32>, tensor<f32>
  } update {}
)");
  expectEqual({{{"x", 2}}});
  Zp w = whole.before.find({"w", 0, "value"})->floats()[0];
  EXPECT_EQ(whole.after.find({"w", 0, "grad"})->floats()[0], w + w);
}

TEST_F(BugReport, BR30_NormsUnderSequenceParallelism) {
  prepareText(stackModelText());
  for (int64_t tp : {2, 4}) {
    Plan plan = {{{"tp", tp}}, 2, "1f1b", true};
    plan.options.sequenceParallel = true;
    expectEqual(plan);
  }
}

TEST_F(BugReport, BR32_AccumulationInAPipeline) {
  // Labels that count for nothing are not the same in all micro-batches.
  prepareText(stackModelText());
  for (int64_t microBatches = 1; microBatches <= 6; ++microBatches)
    for (const char *rule : {"gpipe", "1f1b"})
      expectEqual({{{"pp", 2}}, microBatches, rule, true});
}

TEST_F(BugReport, BR36_FewMicroBatches) {
  module = prepare(importedModel(context.mlir, decoder(2, 1, 4), 8, 3));
  ASSERT_TRUE(module);
  whole = *runWhole<Zp>(*module, 11);
  for (int64_t microBatches : {1, 2, 3, 5, 8})
    for (const char *rule : {"gpipe", "1f1b"})
      expectEqual({{{"pp", 4}}, microBatches, rule, true});
}

/// An argument that nothing reads.
TEST_F(BugReport, BR50_UnusedInput) {
  prepareText(step("parc.param @x : tensor<4x6xf32> {sharding = "
                   "#parc.sharding<[{\"x\"}, {\"y\"}]>}\n",
                   "%ids: tensor<5xi64>",
                   R"(  %x = parc.load @x : tensor<4x6xf32>
  %y = nn.silu %x : tensor<4x6xf32>
)",
                   "tensor<4x6xf32>", 2));
  expectEqual({{{"x", 2}, {"y", 4}}});
}
