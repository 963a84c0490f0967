//===- RanksTest.cpp - Many ranks against one -----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Collectives on uneven parts, and a pipeline of two stages with data
/// parallelism against the same model on one rank.
///
//===----------------------------------------------------------------------===//

#include "TestModule.h"

#include "parc/Eval/Ranks.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::eval;

template <class T> class Ranks : public ::testing::Test {};
using Domains = ::testing::Types<float, double, Zp>;
TYPED_TEST_SUITE(Ranks, Domains);

static std::string replaced(std::string text, StringRef from, StringRef to) {
  size_t at = text.find(from.str());
  EXPECT_NE(at, std::string::npos) << "no " << from.str();
  for (; at != std::string::npos; at = text.find(from.str(), at + to.size()))
    text.replace(at, from.size(), to.str());
  return text;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// One stage; `%x` is this rank's part of the parameter.
static std::string collectives(StringRef mesh, StringRef param,
                               StringRef body) {
  return (mesh + "\n" + param + R"mlir(
  parc.schedule "1f1b" micro_batches 1 layers [] counts [] bounds [0, 0]
  parc.role @only stages [0] inputs [] scalars [] results ["n"] forward 0 {
    )mlir" +
          body + R"mlir(
    parc.yield
  } backward 0 {
    parc.yield
  } update {
    %n = arith.constant dense<1.0> : tensor<f32>
    parc.yield %n : tensor<f32>
  })mlir")
      .str();
}

TYPED_TEST(Ranks, CollectivesOnUnevenParts) {
  using T = TypeParam;
  // Seven columns on three ranks are 2, 2, 3; two rows are 0, 1, 1.
  TestModule test(collectives(
      R"(parc.mesh ["tp"] sizes [3])",
      R"(parc.param @w : tensor<2x?xf32> {sharding = #parc.sharding<[{}, {"tp"}]>})",
      R"mlir(
    %x = parc.load @w : tensor<2x?xf32>
    %whole = parc.all_gather %x dim 1 of 7 over ["tp"] why "t" : tensor<2x?xf32> -> tensor<2x7xf32>
    parc.observe "whole", %whole : tensor<2x7xf32>
    %rs = parc.reduce_scatter sum %whole dim 0 of 2 over ["tp"] why "t" : tensor<2x7xf32> -> tensor<?x7xf32>
    parc.observe "scattered", %rs {sharding = #parc.sharding<[{"tp"}, {}]>} : tensor<?x7xf32>
    %cols = parc.reduce_scatter max %whole dim 1 of 7 over ["tp"] why "t" : tensor<2x7xf32> -> tensor<2x?xf32>
    parc.observe "columns", %cols {sharding = #parc.sharding<[{}, {"tp"}]>} : tensor<2x?xf32>
    %a2a = parc.all_to_all %x gather 1 of 7 split 0 of 2 over ["tp"] why "t" : tensor<2x?xf32> -> tensor<?x7xf32>
    parc.observe "rows", %a2a {sharding = #parc.sharding<[{"tp"}, {}]>} : tensor<?x7xf32>
    %part = parc.slice %whole dim 1 of 7 over ["tp"] : tensor<2x7xf32> -> tensor<2x?xf32>
    parc.observe "part", %part {sharding = #parc.sharding<[{}, {"tp"}]>} : tensor<2x?xf32>
    %owned = parc.own %whole over ["tp"] : tensor<2x7xf32>
    %sum = parc.all_reduce sum %owned over ["tp"] why "t" : tensor<2x7xf32>
    parc.observe "owned", %sum : tensor<2x7xf32>
    )mlir"));
  auto w = ramp<T>({2, 7});
  ParamStore<T> full;
  full.set({"w", 0, "value"}, w);
  auto result = runRanks<T>(*test.module, full, {});
  ASSERT_TRUE(succeeded(result)) << test.errors;
  EXPECT_TRUE(result->replicaDifferences.empty())
      << result->replicaDifferences.front();
  for (const char *name : {"whole", "columns", "rows", "part", "owned"})
    EXPECT_TRUE(sameTensor(result->observed.at(name), w)) << name;
  auto three = Tensor<T>::zeros({2, 7}, false);
  for (int i = 0; i < 3; ++i)
    addInto(three, w);
  EXPECT_TRUE(sameTensor(result->observed.at("scattered"), three));
  EXPECT_TRUE(sameTensor(*result->params.find({"w", 0, "value"}), w));
}

TYPED_TEST(Ranks, GathersBelowOuterAxes) {
  using T = TypeParam;
  // Eleven units of 2 on dp 3 (major) and tp 2: gather over tp, then over dp.
  TestModule test(collectives(
      R"(parc.mesh ["tp", "dp"] sizes [2, 3] order ["tp", "dp"])",
      R"(parc.param @w : tensor<?x3xf32> {sharding = #parc.sharding<[{"dp", "tp" : 2}, {}]>})",
      R"mlir(
    %x = parc.load @w : tensor<?x3xf32>
    %half = parc.all_gather %x dim 0 of 22 grain 2 over ["tp"] outer ["dp"] why "t" : tensor<?x3xf32> -> tensor<?x3xf32>
    parc.observe "half", %half {sharding = #parc.sharding<[{"dp"}, {}]>} : tensor<?x3xf32>
    %whole = parc.all_gather %half dim 0 of 22 grain 2 over ["dp"] why "t" : tensor<?x3xf32> -> tensor<22x3xf32>
    parc.observe "whole", %whole : tensor<22x3xf32>
    %part = parc.slice %half dim 0 of 22 grain 2 over ["tp"] outer ["dp"] : tensor<?x3xf32> -> tensor<?x3xf32>
    parc.observe "part", %part {sharding = #parc.sharding<[{"dp", "tp"}, {}]>} : tensor<?x3xf32>
    )mlir"));
  auto w = ramp<T>({22, 3});
  ParamStore<T> full;
  full.set({"w", 0, "value"}, w);
  auto result = runRanks<T>(*test.module, full, {});
  ASSERT_TRUE(succeeded(result)) << test.errors;
  EXPECT_TRUE(result->replicaDifferences.empty())
      << result->replicaDifferences.front();
  for (const char *name : {"half", "whole", "part"})
    EXPECT_TRUE(sameTensor(result->observed.at(name), w)) << name;
}

TYPED_TEST(Ranks, MovesASplitBelowOuterAxes) {
  using T = TypeParam;
  // Eleven units of 2 on dp 3 (major) and tp 2, and five columns on cp 2: tp
  // leaves the rows for the columns, whose parts over cp and tp are 1, 1, 1, 2.
  TestModule test(collectives(
      R"(parc.mesh ["tp", "dp", "cp"] sizes [2, 3, 2] order ["tp", "dp", "cp"])",
      R"(parc.param @w : tensor<?x3x?xf32> {sharding = #parc.sharding<[{"dp", "tp" : 2}, {}, {"cp"}]>})",
      R"mlir(
    %x = parc.load @w : tensor<?x3x?xf32>
    %moved = parc.all_to_all %x gather 0 of 22 grain 2 outer ["dp"] split 2 of 5 below ["cp"] over ["tp"] why "t" : tensor<?x3x?xf32> -> tensor<?x3x?xf32>
    parc.observe "moved", %moved {sharding = #parc.sharding<[{"dp" : 2}, {}, {"cp", "tp"}]>} : tensor<?x3x?xf32>
    %back = parc.all_to_all %moved gather 2 of 5 outer ["cp"] split 0 of 22 by 2 below ["dp"] over ["tp"] why "t" : tensor<?x3x?xf32> -> tensor<?x3x?xf32>
    parc.observe "back", %back {sharding = #parc.sharding<[{"dp", "tp" : 2}, {}, {"cp"}]>} : tensor<?x3x?xf32>
    %other = parc.all_to_all %x gather 0 of 22 grain 2 split 1 of 3 over ["dp", "tp"] why "t" : tensor<?x3x?xf32> -> tensor<22x?x?xf32>
    parc.observe "other", %other {sharding = #parc.sharding<[{}, {"dp", "tp"}, {"cp"}]>} : tensor<22x?x?xf32>
    )mlir"));
  auto w = ramp<T>({22, 3, 5});
  ParamStore<T> full;
  full.set({"w", 0, "value"}, w);
  auto result = runRanks<T>(*test.module, full, {});
  ASSERT_TRUE(succeeded(result)) << test.errors;
  EXPECT_TRUE(result->replicaDifferences.empty())
      << result->replicaDifferences.front();
  for (const char *name : {"moved", "back", "other"})
    EXPECT_TRUE(sameTensor(result->observed.at(name), w)) << name;
}

TEST(RanksErrors, WrongPartSizeIsLocated) {
  TestModule test(collectives(
      R"(parc.mesh ["tp"] sizes [2])",
      R"(parc.param @w : tensor<?xf32> {sharding = #parc.sharding<[{"tp"}]>})",
      R"mlir(
    %x = parc.load @w : tensor<?xf32>
    %whole = parc.all_gather %x dim 0 of 9 over ["tp"] why "t" : tensor<?xf32> -> tensor<9xf32>
    )mlir"));
  ParamStore<double> full;
  full.set({"w", 0, "value"}, ramp<double>({7}));
  EXPECT_TRUE(failed(runRanks<double>(*test.module, full, {})));
  EXPECT_NE(test.errors.find("expected size 4 of dimension 0, got 3"),
            std::string::npos)
      << test.errors;
  EXPECT_TRUE(failed(runRanks<double>(*test.module, {}, {})));
  EXPECT_NE(test.errors.find("has no value for layer 0"), std::string::npos)
      << test.errors;
}

//===----------------------------------------------------------------------===//
// A pipeline
//===----------------------------------------------------------------------===//

/// h = row sums of the tokens; h = h * w[l] for three layers; loss = sum of h.
static const char *const maps = R"mlir(
#v = affine_map<(i) -> (i)>
#s = affine_map<(i) -> ()>
)mlir";

static const char *const rowSums = R"mlir(
    %zero = arith.constant dense<0.0> : tensor<f32>
    %zf = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %b = tensor.dim %tokens, %c0 : tensor<?x2xi64>
    %e = tensor.empty(%b) : tensor<?xf32>
    %z = linalg.fill ins(%zf : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %rows = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
        ins(%tokens : tensor<?x2xi64>) outs(%z : tensor<?xf32>) {
    ^bb0(%t: i64, %acc: f32):
      %f = arith.sitofp %t : i64 to f32
      %a = arith.addf %acc, %f : f32
      linalg.yield %a : f32
    } -> tensor<?xf32>
)mlir";

static const char *const forwardStack = R"mlir(
    %y, %saved = parc.stack @layers 0 to 3 carry(%rows) : (tensor<?xf32>) -> (tensor<?xf32>, !parc.layers<tensor<?xf32>>) {
    ^bb0(%layer: index, %h: tensor<?xf32>):
      %w = parc.load @w : tensor<f32>
      %n = linalg.generic {indexing_maps = [#v, #s, #v], iterator_types = ["parallel"]}
          ins(%h, %w : tensor<?xf32>, tensor<f32>) outs(%h : tensor<?xf32>) {
      ^bb0(%x: f32, %k: f32, %o: f32):
        %p = arith.mulf %x, %k : f32
        linalg.yield %p : f32
      } -> tensor<?xf32>
      parc.observe "n", %n {sharding = #parc.sharding<[{"dp", "mb"}]>} : tensor<?xf32>
      parc.yield %n, %h : tensor<?xf32>, tensor<?xf32>
    }
)mlir";

static const char *const lossAndSeed = R"mlir(
    %loss = linalg.reduce { arith.addf } ins(%y : tensor<?xf32>) outs(%zero : tensor<f32>) dimensions = [0]
    %of = arith.constant 1.0 : f32
    %count = tensor.splat %of : tensor<f32>
    %g0 = linalg.fill ins(%of : f32) outs(%y : tensor<?xf32>) -> tensor<?xf32>
)mlir";

static const char *const backwardStack = R"mlir(
    %dx = parc.stack @layers 0 to 3 reverse carry(%g0) each(%saved) : (tensor<?xf32>, !parc.layers<tensor<?xf32>>) -> (tensor<?xf32>) {
    ^bb0(%layer: index, %g: tensor<?xf32>, %h: tensor<?xf32>):
      %w = parc.load @w : tensor<f32>
      %dw = linalg.generic {indexing_maps = [#v, #v, #s], iterator_types = ["reduction"]}
          ins(%g, %h : tensor<?xf32>, tensor<?xf32>) outs(%zero : tensor<f32>) {
      ^bb0(%x: f32, %k: f32, %o: f32):
        %p = arith.mulf %x, %k : f32
        %r = arith.addf %o, %p : f32
        linalg.yield %r : f32
      } -> tensor<f32>
      parc.accumulate @w, %dw slot "grad" : tensor<f32>
      %n = linalg.generic {indexing_maps = [#v, #s, #v], iterator_types = ["parallel"]}
          ins(%g, %w : tensor<?xf32>, tensor<f32>) outs(%g : tensor<?xf32>) {
      ^bb0(%x: f32, %k: f32, %o: f32):
        %p = arith.mulf %x, %k : f32
        linalg.yield %p : f32
      } -> tensor<?xf32>
      parc.yield %n : tensor<?xf32>
    }
)mlir";

/// The update; `REDUCE`d where there are ranks.
static std::string update(bool ranks) {
  std::string text = R"mlir(
    %zero = arith.constant dense<0.0> : tensor<f32>
    TOTAL
    %norm = parc.stack @layers 0 to 3 reduce 1 : () -> (tensor<f32>) {
    ^bb0(%layer: index):
      %w = parc.load @w : tensor<f32>
      %part = parc.load @w slot "grad" : tensor<f32>
      GRAD
      parc.store @w, %g slot "grad" : tensor<f32>
      %s = arith.mulf %g, %lr : tensor<f32>
      %n = arith.subf %w, %s : tensor<f32>
      parc.store @w, %n : tensor<f32>
      %q = arith.mulf %g, %g : tensor<f32>
      parc.yield %q : tensor<f32>
    }
    NORM
    parc.yield %total, %squares : tensor<f32>, tensor<f32>)mlir";
  text = replaced(
      text, "TOTAL",
      ranks
          ? R"(%total = parc.all_reduce sum %loss over ["pp", "dp"] why "loss" : tensor<f32>)"
          : "%total = arith.addf %loss, %zero : tensor<f32>");
  text = replaced(
      text, "GRAD",
      ranks
          ? R"(%g = parc.all_reduce sum %part over ["dp"] why "gradient" : tensor<f32>)"
          : "%g = arith.addf %part, %zero : tensor<f32>");
  return replaced(
      text, "NORM",
      ranks
          ? R"(%squares = parc.all_reduce sum %norm over ["pp"] stages [0, 1] why "norm" : tensor<f32>)"
          : "%squares = arith.addf %norm, %zero : tensor<f32>");
}

static std::string oneRank() {
  return std::string(maps) + R"mlir(
  parc.param @w : tensor<f32> layers 3
  parc.step @train inputs ["tokens"] micro {
  ^bb0(%tokens: tensor<?x2xi64>):)mlir" +
         rowSums + forwardStack + lossAndSeed + backwardStack + R"mlir(
    parc.yield %loss, %count : tensor<f32>, tensor<f32>
  } scalars ["lr"] results ["loss", "squares"] update {
  ^bb0(%loss: tensor<f32>, %count: tensor<f32>, %lr: tensor<f32>):)mlir" +
         update(false) + "\n}";
}

static std::string twoStages(const std::string &rule, int microBatches) {
  std::string head = std::string(maps) + R"mlir(
  parc.mesh ["pp", "dp"] sizes [2, 2] order ["dp", "pp"]
  parc.param @w : tensor<f32> layers 3
  parc.schedule "RULE" micro_batches COUNT layers [@layers] counts [3] bounds [0, 2, 3]
)mlir";
  std::string ends = R"mlir(
  } update {
  ^bb0(%loss: tensor<f32>, %count: tensor<f32>, %lr: tensor<f32>):)mlir" +
                     update(true) + "\n}\n";
  std::string first = std::string(R"mlir(
  parc.role @first stages [0] inputs ["tokens"] scalars ["lr"] results ["loss", "squares"]
      attributes {input_shardings = [#parc.sharding<[{"dp", "mb"}, {}]>]} forward 1 {
  ^bb0(%tokens: tensor<?x2xi64>):)mlir") +
                      rowSums + forwardStack + R"mlir(
    parc.yield %y, %saved : tensor<?xf32>, !parc.layers<tensor<?xf32>>
  } backward 0 {
  ^bb0(%tokens: tensor<?x2xi64>, %g0: tensor<?xf32>, %saved: !parc.layers<tensor<?xf32>>):
    %zero = arith.constant dense<0.0> : tensor<f32>)mlir" +
                      backwardStack + R"mlir(
    parc.yield %zero, %zero : tensor<f32>, tensor<f32>)mlir" +
                      ends;
  std::string last = std::string(R"mlir(
  parc.role @last stages [1] inputs ["tokens"] scalars ["lr"] results ["loss", "squares"]
      attributes {input_shardings = [#parc.sharding<[{"dp", "mb"}, {}]>]} forward 0 {
  ^bb0(%tokens: tensor<?x2xi64>, %rows: tensor<?xf32>):)mlir") +
                     forwardStack + R"mlir(
    parc.yield %y, %saved : tensor<?xf32>, !parc.layers<tensor<?xf32>>
  } backward 1 {
  ^bb0(%tokens: tensor<?x2xi64>, %y: tensor<?xf32>, %saved: !parc.layers<tensor<?xf32>>):
    %zero = arith.constant dense<0.0> : tensor<f32>)mlir" +
                     lossAndSeed + backwardStack + R"mlir(
    parc.yield %dx, %loss, %count : tensor<?xf32>, tensor<f32>, tensor<f32>)mlir" +
                     ends;
  return replaced(replaced(head, "RULE", rule), "COUNT",
                  std::to_string(microBatches)) +
         first + last;
}

template <class T> static ParamStore<T> weights() {
  ParamStore<T> params;
  for (int64_t layer = 0; layer < 3; ++layer)
    params.set({"w", layer, "value"}, floats<T>({}, {double(layer + 2)}));
  return params;
}

template <class T> static StepInputs<T> tokens() {
  StepInputs<T> inputs;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 14; ++i)
    ids.push_back(i * i % 11);
  inputs.inputs["tokens"] = Tensor<T>::ofInts({7, 2}, ids);
  inputs.scalars["lr"] = 0.25;
  return inputs;
}

TYPED_TEST(Ranks, PipelineEqualsOneRank) {
  using T = TypeParam;
  TestModule oracle(oneRank());
  ASSERT_TRUE(oracle.module);
  ParamStore<T> expected = weights<T>();
  ModulePlan<T> plan(*oracle.module);
  auto step = runStep(*oracle.module->template getOps<StepOp>().begin(), plan,
                      expected, tokens<T>());
  ASSERT_TRUE(succeeded(step)) << oracle.errors;

  // Seven sequences on dp 2 times 3 micro-batches: parts of one and two.
  for (const char *rule : {"gpipe", "1f1b"}) {
    TestModule test(twoStages(rule, 3));
    ASSERT_TRUE(test.module);
    auto result = runRanks<T>(*test.module, weights<T>(), tokens<T>());
    ASSERT_TRUE(succeeded(result)) << test.errors;
    EXPECT_TRUE(result->replicaDifferences.empty())
        << result->replicaDifferences.front();
    // All numbers are small integers: exact in every domain.
    for (auto &[name, value] : step->results)
      EXPECT_TRUE(sameTensor(result->results.at(name), value)) << name;
    for (auto &[key, value] : expected.all()) {
      ASSERT_NE(result->params.find(key), nullptr) << key.text();
      EXPECT_TRUE(sameTensor(*result->params.find(key), value)) << key.text();
    }
    EXPECT_EQ(expected.all().size(), result->params.all().size());
    for (const char *name : {"n.0", "n.1", "n.2"})
      EXPECT_TRUE(
          sameTensor(result->observed.at(name), step->observed.at(name)))
          << name;
    // Ranks 0 and 1 are stage 0.
    std::vector<int64_t> peak = {3, 3, 3, 3};
    if (rule == StringRef("1f1b"))
      peak = {2, 2, 1, 1};
    EXPECT_EQ(result->peakInFlight, peak);
  }
}

TEST(RanksErrors, ReplicaCheckSeesAMissingReduction) {
  std::string text = twoStages("1f1b", 2);
  TestModule test(replaced(
      text,
      R"(%g = parc.all_reduce sum %part over ["dp"] why "gradient" : tensor<f32>)",
      R"(%g = parc.own %part over [] : tensor<f32>)"));
  ASSERT_TRUE(test.module);
  auto result = runRanks<Zp>(*test.module, weights<Zp>(), tokens<Zp>());
  ASSERT_TRUE(succeeded(result)) << test.errors;
  ASSERT_FALSE(result->replicaDifferences.empty());
  EXPECT_EQ(result->replicaDifferences.front(),
            "parameter @w[0].grad: rank 1 differs from rank 0, first at index "
            "scalar");
}

TEST(RanksErrors, AMissingRoleIsNamed) {
  TestModule test(R"mlir(
    parc.mesh ["pp"] sizes [2]
    parc.schedule "1f1b" micro_batches 1 layers [] counts [] bounds [0, 0, 0]
  )mlir");
  EXPECT_TRUE(failed(runRanks<double>(*test.module, {}, {})));
  EXPECT_NE(test.errors.find("expected a parc.role for stage 0, got none"),
            std::string::npos)
      << test.errors;
}
