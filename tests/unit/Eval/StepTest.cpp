//===- StepTest.cpp - Steps and stacks on one rank ------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Stacks in both directions with per-layer values and sums; steps on several
/// micro-batches; what a step does when it is given the wrong things.
///
//===----------------------------------------------------------------------===//

#include "TestModule.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::eval;

template <class T> class Steps : public ::testing::Test {};
using Domains = ::testing::Types<float, double, Zp>;
TYPED_TEST_SUITE(Steps, Domains);

namespace {

/// Loss: the sum over tokens x of x * w[0] * w[1] * w[2], whose gradient with
/// respect to w[l] is the sum of x times the other two.
constexpr const char *model = R"mlir(
  parc.param @w : tensor<f32> layers 3 {std = 0.1 : f64}
  parc.param @bias : tensor<2xf32> {std = 0.1 : f64}
  parc.step @train inputs ["tokens"] micro {
  ^bb0(%tokens: tensor<?x2xi64>):
    %zero = arith.constant dense<0.0> : tensor<f32>
    %one = arith.constant dense<1.0> : tensor<f32>
    %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
        ins(%tokens : tensor<?x2xi64>) outs(%zero : tensor<f32>) {
    ^bb0(%t: i64, %acc: f32):
      %f = arith.sitofp %t : i64 to f32
      %a = arith.addf %acc, %f : f32
      linalg.yield %a : f32
    } -> tensor<f32>
    %y, %saved = parc.stack @layers 0 to 3 carry(%sum) : (tensor<f32>) -> (tensor<f32>, !parc.layers<tensor<f32>>) {
    ^bb0(%layer: index, %h: tensor<f32>):
      %w = parc.load @w : tensor<f32>
      %n = arith.mulf %h, %w : tensor<f32>
      parc.yield %n, %h : tensor<f32>, tensor<f32>
    }
    %dx, %layers = parc.stack @layers 0 to 3 reverse reduce 1 carry(%one) each(%saved) : (tensor<f32>, !parc.layers<tensor<f32>>) -> (tensor<f32>, tensor<f32>) {
    ^bb0(%layer: index, %g: tensor<f32>, %h: tensor<f32>):
      %w = parc.load @w : tensor<f32>
      %dw = arith.mulf %g, %h : tensor<f32>
      parc.accumulate @w, %dw slot "grad" : tensor<f32>
      %dh = arith.mulf %g, %w : tensor<f32>
      %i = arith.index_cast %layer : index to i64
      %fi = arith.sitofp %i : i64 to f32
      %t = tensor.from_elements %fi : tensor<f32>
      parc.yield %dh, %t : tensor<f32>, tensor<f32>
    }
    parc.observe "tokens", %tokens : tensor<?x2xi64>
    parc.yield %y, %layers : tensor<f32>, tensor<f32>
  } scalars ["lr"] results ["loss", "old"] update {
  ^bb0(%loss: tensor<f32>, %count: tensor<f32>, %lr: tensor<f32>):
    %zero = arith.constant dense<0.0> : tensor<f32>
    %norm = parc.stack @layers 0 to 3 reduce 1 : () -> (tensor<f32>) {
    ^bb0(%layer: index):
      %w = parc.load @w : tensor<f32>
      %g = parc.load @w slot "grad" : tensor<f32>
      %s = arith.mulf %g, %lr : tensor<f32>
      %n = arith.subf %w, %s : tensor<f32>
      parc.store @w, %n : tensor<f32>
      %again = parc.load @w : tensor<f32>
      parc.yield %again : tensor<f32>
    }
    parc.yield %loss, %norm : tensor<f32>, tensor<f32>
  }
)mlir";

template <class T> struct Fixture {
  TestModule test{model};
  ParamStore<T> params;
  StepInputs<T> inputs;
  FailureOr<StepResult<T>> result = failure();

  Fixture() {
    for (int64_t layer = 0; layer < 3; ++layer)
      params.set({"w", layer, "value"}, floats<T>({}, {double(layer + 2)}));
    inputs.inputs["tokens"] = Tensor<T>::ofInts({3, 2}, {1, 2, 3, 4, 5, 6});
    inputs.scalars["lr"] = 0.5;
  }
  void run(int64_t microBatches = 1) {
    auto step = *test.module->template getOps<StepOp>().begin();
    ModulePlan<T> plan(*test.module);
    result = runStep(step, plan, params, inputs, microBatches);
  }
  Tensor<T> slot(int64_t layer, const char *name) {
    Tensor<T> *found = params.find({"w", layer, name});
    return found ? *found : Tensor<T>();
  }
};

} // namespace

TYPED_TEST(Steps, MicroBatchesAddUp) {
  using T = TypeParam;
  // Three sequences on two micro-batches: parts of one and two.
  for (int64_t microBatches : {1, 2, 3}) {
    Fixture<T> run;
    run.run(microBatches);
    ASSERT_TRUE(succeeded(run.result)) << run.test.errors;
    EXPECT_TRUE(
        sameTensor(run.result->results.at("loss"), floats<T>({}, {21 * 24})));
    // Stores take effect at the end of the step: loads saw the old values.
    EXPECT_TRUE(sameTensor(run.result->results.at("old"), floats<T>({}, {9})));
    for (int64_t layer = 0; layer < 3; ++layer) {
      double gradient = 21.0 * 24 / double(layer + 2);
      EXPECT_TRUE(
          sameTensor(run.slot(layer, "grad"), floats<T>({}, {gradient})));
      EXPECT_TRUE(
          sameTensor(run.slot(layer, "value"),
                     floats<T>({}, {double(layer + 2) - 0.5 * gradient})));
    }
    // Sums over layers 0, 1, 2, once a micro-batch.
    EXPECT_TRUE(sameTensor(run.result->sums[1],
                           floats<T>({}, {3.0 * double(microBatches)})));
    EXPECT_TRUE(sameTensor(run.result->observed.at("tokens"),
                           run.inputs.inputs["tokens"]));
  }
}

TYPED_TEST(Steps, GradientsStartAtZeroEachStep) {
  using T = TypeParam;
  Fixture<T> run;
  run.inputs.scalars["lr"] = 0;
  run.run();
  run.run();
  ASSERT_TRUE(succeeded(run.result)) << run.test.errors;
  EXPECT_TRUE(sameTensor(run.slot(0, "grad"), floats<T>({}, {21 * 12})));
}

TEST(StepErrors, MissingParameter) {
  Fixture<double> run;
  run.params = {};
  run.run();
  EXPECT_TRUE(failed(run.result));
  EXPECT_NE(run.test.errors.find("needs parameter @w of layer 0"),
            std::string::npos)
      << run.test.errors;
  ASSERT_FALSE(run.test.lines.empty());
}

TEST(StepErrors, MissingInputAndScalar) {
  Fixture<double> run;
  run.inputs.scalars.clear();
  run.run();
  EXPECT_TRUE(failed(run.result));
  EXPECT_NE(run.test.errors.find("needs scalar 'lr', got none"),
            std::string::npos)
      << run.test.errors;
  run.inputs.inputs.clear();
  run.run();
  EXPECT_NE(run.test.errors.find("needs input 'tokens', got none"),
            std::string::npos)
      << run.test.errors;
}

TEST(StepErrors, WrongInputShape) {
  Fixture<double> run;
  run.inputs.inputs["tokens"] = Tensor<double>::ofInts({3}, {1, 2, 3});
  run.run();
  EXPECT_TRUE(failed(run.result));
  EXPECT_NE(run.test.errors.find("expected shape ?x2, got 3"),
            std::string::npos)
      << run.test.errors;
}

TEST(StepErrors, WrongParameterShape) {
  Fixture<double> run;
  run.params.set({"w", 1, "value"}, floats<double>({2}, {1, 2}));
  run.run();
  EXPECT_TRUE(failed(run.result));
  EXPECT_NE(run.test.errors.find(
                "result of 'parc.load': expected shape scalar, got 2"),
            std::string::npos)
      << run.test.errors;
}

TEST(Coordinates, PartsAndOwners) {
  TestModule test(R"mlir(
    func.func @f(%x: tensor<f32>) -> (index, index, index, tensor<f32>) {
      %start = parc.part_start ["dp", "tp"] of 97
      %size = parc.part_size ["tp"] of 97
      %grain = parc.part_start ["tp"] of 15 grain 5
      %own = parc.own %x over ["dp", "tp"] : tensor<f32>
      return %start, %size, %grain, %own : index, index, index, tensor<f32>
    })mlir");
  RankContext rank;
  rank.setAxis("dp", {1, 3});
  rank.setAxis("tp", {1, 2});
  auto results = test.call<double>({floats<double>({}, {7})}, rank);
  ASSERT_EQ(results.size(), 4u) << test.errors;
  EXPECT_EQ(results[0].asInt(), 3 * 97 / 6);
  EXPECT_EQ(results[1].asInt(), 97 - 48);
  EXPECT_EQ(results[2].asInt(), 5);
  EXPECT_EQ(results[3].asFloat(), 0);
  rank.setAxis("dp", {0, 3});
  rank.setAxis("tp", {0, 2});
  results = test.call<double>({floats<double>({}, {7})}, rank);
  ASSERT_EQ(results.size(), 4u) << test.errors;
  EXPECT_EQ(results[3].asFloat(), 7);
}

TEST(Coordinates, CollectivesNeedOtherRanks) {
  TestModule test(R"mlir(
    func.func @f(%x: tensor<f32>) -> tensor<f32> {
      %y = parc.all_reduce sum %x over ["tp"] why "test" : tensor<f32>
      return %y : tensor<f32>
    })mlir");
  RankContext rank;
  // One coordinate: nothing to do.
  auto results = test.call<double>({floats<double>({}, {7})}, rank);
  ASSERT_EQ(results.size(), 1u) << test.errors;
  EXPECT_EQ(results[0].asFloat(), 7);
  rank.setAxis("tp", {1, 2});
  EXPECT_TRUE(test.call<double>({floats<double>({}, {7})}, rank).empty());
  EXPECT_NE(test.errors.find("needs other ranks"), std::string::npos)
      << test.errors;
}
