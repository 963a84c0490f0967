//===- RoutingTest.cpp - Choice of experts against plain C++ --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.select_experts, nn.limit_experts, nn.balance_loss and routers against
/// what a reader of their descriptions would write.
///
//===----------------------------------------------------------------------===//

#include "ExpertsTesting.h"
#include "NN/NNExpertBuilders.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::test;
using eval::Zp;

template <class T> class Routing : public ::testing::Test {};
using Domains = ::testing::Types<float, double, Zp>;
TYPED_TEST_SUITE(Routing, Domains);

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

namespace {
struct Choice {
  int64_t experts, topK, groups, kept;
  bool twoBest;
};
} // namespace

/// The chosen of one row of scores, best first.
static std::vector<int64_t> chosen(ArrayRef<double> scores,
                                   const Choice &choice) {
  int64_t members = choice.experts / choice.groups;
  auto largest = [](ArrayRef<double> values) {
    std::vector<int64_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return values[a] > values[b];
    });
    return order;
  };
  std::vector<double> groupScores;
  for (int64_t group = 0; group < choice.groups; ++group) {
    ArrayRef<double> mine = scores.slice(group * members, members);
    std::vector<int64_t> best = largest(mine);
    groupScores.push_back(mine[best[0]] + (choice.twoBest ? mine[best[1]] : 0));
  }
  std::vector<int64_t> groups = largest(groupScores);
  groups.resize(choice.kept);
  std::vector<int64_t> result;
  for (int64_t expert : largest(scores))
    if (llvm::is_contained(groups, expert / members) &&
        int64_t(result.size()) < choice.topK)
      result.push_back(expert);
  return result;
}

TYPED_TEST(Routing, ChoosesTheLargestAmongTheBestGroups) {
  using T = TypeParam;
  const int64_t rows = 35;
  for (const Choice &choice :
       {Choice{8, 2, 1, 1, false}, Choice{8, 2, 4, 2, true},
        Choice{12, 5, 4, 3, false}, Choice{6, 6, 2, 2, true},
        Choice{7, 1, 1, 1, false}, Choice{9, 3, 3, 1, true}}) {
    int64_t experts = choice.experts;
    std::vector<double> scores = someNumbers(rows * experts, 9);
    std::vector<double> bias = someNumbers(experts, 4, 5);
    ExpertsModule module(
        llvm::formatv(
            "func.func @f(%x: tensor<5x7x{0}xf64>, %b: tensor<{0}xf64>) -> "
            "tensor<5x7x{1}xi64> {{\n%i = nn.select_experts %x bias %b top_k "
            "{1} groups {2} keep {3} score \"{4}\" : tensor<5x7x{0}xf64>, "
            "tensor<{0}xf64> -> tensor<5x7x{1}xi64>\nreturn %i : "
            "tensor<5x7x{1}xi64>\n}",
            experts, choice.topK, choice.groups, choice.kept,
            choice.twoBest ? "top2_sum" : "max")
            .str());
    auto results = module.call<T>(
        {floats<T>({5, 7, experts}, scores), floats<T>({experts}, bias)});
    ASSERT_EQ(results.size(), 1u) << module.errors;
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<double> sums;
      for (int64_t expert = 0; expert < experts; ++expert)
        sums.push_back(scores[row * experts + expert] + bias[expert]);
      std::vector<int64_t> got(results[0].ints() + row * choice.topK,
                               results[0].ints() + (row + 1) * choice.topK);
      EXPECT_EQ(got, chosen(sums, choice)) << "row " << row;
    }
  }
}

/// What is not a number is no expert, and stays in range.
TEST(Routing, NotANumberChoosesNothingOutOfRange) {
  ExpertsModule module(
      "func.func @f(%x: tensor<1x4xf64>) -> tensor<1x2xi64> {\n%i = "
      "nn.select_experts %x top_k 2 : tensor<1x4xf64> -> tensor<1x2xi64>\n"
      "return %i : tensor<1x2xi64>\n}");
  double nan = std::nan("");
  auto results =
      module.call<double>({floats<double>({1, 4}, {1, nan, 2, nan})});
  ASSERT_EQ(results.size(), 1u) << module.errors;
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_GE(results[0].ints()[i], -1);
    EXPECT_LT(results[0].ints()[i], 4);
  }
}

//===----------------------------------------------------------------------===//
// Capacity
//===----------------------------------------------------------------------===//

TYPED_TEST(Routing, CapacityDropsInGlobalOrder) {
  using T = TypeParam;
  const int64_t batch = 5, sequence = 6, choices = 2, experts = 4;
  std::vector<int64_t> ids = someIds(batch * sequence * choices, experts + 1);
  for (int64_t &id : ids)
    if (id == experts)
      id = -1;
  for (int64_t scope : {0, 1, 2})
    for (int64_t capacity : {1, 3, 100}) {
      ExpertsModule module(
          llvm::formatv("func.func @f(%i: tensor<5x6x2xi64>) -> "
                        "tensor<5x6x2xi64> {{\n%k = nn.limit_experts %i "
                        "capacity {0} scope {1} : tensor<5x6x2xi64>\nreturn %k "
                        ": tensor<5x6x2xi64>\n}",
                        capacity, scope)
              .str());
      auto results =
          module.call<T>({integers<T>({batch, sequence, choices}, ids)});
      ASSERT_EQ(results.size(), 1u) << module.errors;
      std::vector<int64_t> expected, load(experts, 0);
      int64_t perScope = scope ? scope * sequence * choices : ids.size();
      for (auto [index, id] : llvm::enumerate(ids)) {
        if (index % perScope == 0)
          load.assign(experts, 0);
        expected.push_back(id < 0 || load[id]++ >= capacity ? -1 : id);
      }
      EXPECT_EQ(std::vector<int64_t>(results[0].ints(),
                                     results[0].ints() + ids.size()),
                expected)
          << "capacity " << capacity << ", scope " << scope;
    }
}

//===----------------------------------------------------------------------===//
// Balance
//===----------------------------------------------------------------------===//

TEST(Routing, BalanceLossIsAsStated) {
  const int64_t batch = 3, sequence = 4, choices = 2, experts = 5;
  std::vector<int64_t> ids = someIds(batch * sequence * choices, experts);
  std::vector<double> scores = someNumbers(batch * sequence * experts, 9);
  for (bool bySequence : {true, false}) {
    ExpertsModule module(
        llvm::formatv(
            "func.func @f(%s: tensor<3x4x5xf64>, %i: tensor<3x4x2xi64>) -> "
            "tensor<f64> {{\n%l = nn.balance_loss %s, %i coefficient 0.25 "
            "scope {0} : tensor<3x4x5xf64>, tensor<3x4x2xi64> -> tensor<f64>\n"
            "return %l : tensor<f64>\n}",
            bySequence ? 1 : 0)
            .str());
    auto results = module.call<double>(
        {floats<double>({3, 4, 5}, scores), integers<double>({3, 4, 2}, ids)});
    ASSERT_EQ(results.size(), 1u) << module.errors;
    int64_t scopes = bySequence ? batch : 1;
    int64_t tokens = batch * sequence / scopes;
    double expected = 0;
    for (int64_t scope = 0; scope < scopes; ++scope)
      for (int64_t expert = 0; expert < experts; ++expert) {
        double fraction = 0, mean = 0;
        for (int64_t token = scope * tokens; token < (scope + 1) * tokens;
             ++token) {
          for (int64_t choice = 0; choice < choices; ++choice)
            fraction += ids[token * choices + choice] == expert;
          mean += scores[token * experts + expert];
        }
        fraction /= double(tokens * choices);
        mean /= double(tokens);
        expected += double(tokens) * 0.25 * experts * fraction * mean;
      }
    EXPECT_NEAR(results[0].asFloat(), expected, 1e-12 * std::abs(expected));
  }
}

//===----------------------------------------------------------------------===//
// Routers
//===----------------------------------------------------------------------===//

/// A function that routes its argument by `options`.
static void buildRouterFunction(ExpertsModule &module,
                                const nn::RouterOptions &options) {
  ImplicitLocOpBuilder b(UnknownLoc::get(&module.context), &module.context);
  b.setInsertionPointToEnd(module.module->getBody());
  module.module->lookupSymbol<func::FuncOp>("f").erase();
  auto type = RankedTensorType::get({2, 3, 8}, b.getF64Type());
  auto ids = RankedTensorType::get({2, 3, options.topK}, b.getI64Type());
  auto weights = RankedTensorType::get({2, 3, options.topK}, b.getF64Type());
  auto function =
      func::FuncOp::create(b, "f", b.getFunctionType({type}, {ids, weights}));
  b.setInsertionPointToEnd(function.addEntryBlock());
  nn::Routing routing = nn::buildRouter(b, function.getArgument(0), options);
  func::ReturnOp::create(b, ValueRange{routing.ids, routing.weights});
}

TEST(Routing, RouterWeightsAreThoseOfTheChosen) {
  std::vector<double> logits = someNumbers(6 * 8, 37);
  for (double &logit : logits)
    logit = logit / 10 - 1.5;
  for (bool sigmoid : {false, true})
    for (bool renormalise : {false, true}) {
      nn::RouterOptions options;
      options.score =
          sigmoid ? nn::RouterScore::Sigmoid : nn::RouterScore::Softmax;
      options.topK = 3;
      options.renormalise = renormalise;
      options.epsilon = sigmoid ? 1e-20 : 0;
      options.scale = sigmoid ? 2.5 : 1;
      options.groups = sigmoid ? 4 : 1;
      options.groupTopK = sigmoid ? 2 : 1;
      options.groupScore = sigmoid ? "top2_sum" : "max";
      ExpertsModule module;
      buildRouterFunction(module, options);
      auto results = module.call<double>({floats<double>({2, 3, 8}, logits)});
      ASSERT_EQ(results.size(), 2u) << module.errors;
      for (int64_t row = 0; row < 6; ++row) {
        std::vector<double> scores;
        double total = 0;
        for (int64_t expert = 0; expert < 8; ++expert) {
          double logit = logits[row * 8 + expert];
          scores.push_back(sigmoid ? 1 / (1 + std::exp(-logit))
                                   : std::exp(logit));
          total += scores.back();
        }
        for (double &score : scores)
          score /= sigmoid ? 1 : total;
        std::vector<int64_t> ids =
            chosen(scores, {8, 3, options.groups, options.groupTopK, sigmoid});
        double sum = 0;
        for (int64_t id : ids)
          sum += scores[id];
        for (int64_t i = 0; i < 3; ++i) {
          EXPECT_EQ(results[0].ints()[row * 3 + i], ids[i]);
          double expected =
              scores[ids[i]] / (renormalise ? sum : 1) * options.scale;
          EXPECT_NEAR(results[1].floats()[row * 3 + i], expected, 1e-14);
        }
      }
    }
}
