//===- QueuesTest.cpp - Experts' queues against plain C++ -----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Tokens find a slot of their own, come back with their weights, and a queue
/// that is too short stops the program.
///
//===----------------------------------------------------------------------===//

#include "ExpertsTesting.h"

#include <set>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::test;
using eval::Zp;

template <class T> class Queues : public ::testing::Test {};
using Domains = ::testing::Types<float, double, Zp>;
TYPED_TEST_SUITE(Queues, Domains);

static constexpr const char *kRoundTrip = R"mlir(
func.func @f(%x: tensor<3x5x4xf64>, %ids: tensor<3x5x2xi64>, %w: tensor<3x5x2xf64>, %i: index, %n: index)
    -> (tensor<3x5x2xi64>, tensor<4x?x4xf64>, tensor<3x5x4xf64>, tensor<4x?x4xf64>, tensor<3x5x2xf64>) {
  %q, %slot = nn.dispatch %x, %ids from %i slots %n : tensor<3x5x4xf64>, tensor<3x5x2xi64> -> tensor<4x?x4xf64>, tensor<3x5x2xi64>
  %y = nn.combine %q, %ids, %slot weights %w from %i : tensor<4x?x4xf64>, tensor<3x5x2xi64>, tensor<3x5x2xi64>, tensor<3x5x2xf64> -> tensor<3x5x4xf64>
  %r = nn.fill_queues %x, %ids, %slot weights %w from %i slots %n : tensor<3x5x4xf64>, tensor<3x5x2xi64>, tensor<3x5x2xi64>, tensor<3x5x2xf64> -> tensor<4x?x4xf64>
  %d = nn.combine_weights_grad %r, %ids, %slot, %x from %i : tensor<4x?x4xf64>, tensor<3x5x2xi64>, tensor<3x5x2xi64>, tensor<3x5x4xf64> -> tensor<3x5x2xf64>
  return %slot, %q, %y, %r, %d : tensor<3x5x2xi64>, tensor<4x?x4xf64>, tensor<3x5x4xf64>, tensor<4x?x4xf64>, tensor<3x5x2xf64>
}
)mlir";

TYPED_TEST(Queues, EveryTokenHasItsSlotAndComesBack) {
  using T = TypeParam;
  using eval::Tensor;
  const int64_t experts = 4, tokens = 15, choices = 2, width = 4;
  const int64_t start = 7, slots = 13;
  std::vector<double> x = someNumbers(tokens * width, 50);
  std::vector<double> weights = someNumbers(tokens * choices, 9, 4);
  // Of the five numbers one is no expert, and one stands for a dropped choice.
  std::vector<int64_t> ids = someIds(tokens * choices, experts + 2);
  for (int64_t &id : ids)
    id = id == experts + 1 ? -1 : id;
  ExpertsModule module(kRoundTrip);
  auto results =
      module.call<T>({floats<T>({3, 5, 4}, x), integers<T>({3, 5, 2}, ids),
                      floats<T>({3, 5, 2}, weights), Tensor<T>::integer(start),
                      Tensor<T>::integer(slots)});
  ASSERT_EQ(results.size(), 5u) << module.errors;
  auto number = [](double value) {
    return eval::DomainOf<T>::fromDouble(value);
  };
  std::set<std::pair<int64_t, int64_t>> taken;
  std::vector<double> combined(tokens * width, 0);
  for (int64_t at = 0; at < tokens * choices; ++at) {
    int64_t slot = results[0].ints()[at], expert = ids[at];
    T product = results[4].floats()[at];
    if (expert < 0 || expert >= experts) {
      EXPECT_EQ(slot, -1);
      EXPECT_TRUE(product == number(0));
      continue;
    }
    ASSERT_GE(slot, start);
    ASSERT_LT(slot, start + slots);
    EXPECT_TRUE(taken.insert({expert, slot}).second) << "slot given twice";
    int64_t token = at / choices;
    double squares = 0;
    for (int64_t column = 0; column < width; ++column) {
      double value = x[token * width + column];
      int64_t place = (expert * slots + slot - start) * width + column;
      EXPECT_TRUE(results[1].floats()[place] == number(value));
      EXPECT_TRUE(results[3].floats()[place] == number(value * weights[at]));
      combined[token * width + column] += value * weights[at];
      squares += value * value * weights[at];
    }
    EXPECT_TRUE(product == number(squares));
  }
  for (auto [index, value] : llvm::enumerate(combined))
    EXPECT_TRUE(results[2].floats()[index] == number(value));
  // What nobody was given is zero.
  for (int64_t expert = 0; expert < experts; ++expert)
    for (int64_t slot = 0; slot < slots; ++slot)
      if (!taken.count({expert, slot + start})) {
        for (int64_t column = 0; column < width; ++column)
          EXPECT_TRUE(
              results[1].floats()[(expert * slots + slot) * width + column] ==
              number(0));
      }
}

TEST(Queues, OverflowNamesExpertRankAndRemedy) {
  ExpertsModule module(
      "func.func @f(%x: tensor<1x5x2xf64>, %i: tensor<1x5x1xi64>) -> "
      "tensor<1x5x1xi64> {\n%q, %s = nn.dispatch %x, %i : tensor<1x5x2xf64>, "
      "tensor<1x5x1xi64> -> tensor<4x3x2xf64>, tensor<1x5x1xi64>\nreturn %s : "
      "tensor<1x5x1xi64>\n}");
  std::vector<double> x(10, 1.0);
  EXPECT_TRUE(module
                  .call<double>({floats<double>({1, 5, 2}, x),
                                 integers<double>({1, 5, 1}, {2, 2, 0, 2, 2})},
                                /*rank=*/6)
                  .empty());
  EXPECT_EQ(module.errors,
            "expert 2 on rank 6 got 4 tokens, its queue holds 3; "
            "raise moe_buffer_factor\n");
}
