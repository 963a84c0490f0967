//===- ReshardEquivalenceTest.cpp - Reshards as programs ------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Long chains of reshards between random layouts, lowered to collectives and
/// run on all ranks: every value on the way is the parameter it started from.
///
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "mlir/Parser/Parser.h"
#include "parc/Eval/Compare.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

namespace {

struct Chain {
  std::vector<int64_t> mesh, shape;
  /// The grain of the first dimension.
  int64_t grain = 1;
  std::string kind = "sum";
};

class Chains : public ::testing::TestWithParam<Chain> {};

std::string listText(ArrayRef<int64_t> sizes, StringRef separator) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : separator.str()) + std::to_string(size);
  return text;
}

std::string axesText(ArrayRef<char> axes) {
  std::string text;
  for (char axis : axes)
    text += std::string(text.empty() ? "" : ", ") + '"' + axis + '"';
  return text;
}

/// A random sharding; every other one is partial where it can be.
std::string randomSharding(const Chain &chain, std::mt19937 &random,
                           bool &partial) {
  SmallVector<SmallVector<char>> dims(chain.shape.size());
  SmallVector<char> rest, axes;
  for (size_t axis = 0; axis < chain.mesh.size(); ++axis)
    axes.push_back(static_cast<char>('a' + axis));
  for (size_t left = axes.size(); left > 1; --left)
    std::swap(axes[left - 1], axes[random() % left]);
  for (char axis : axes) {
    size_t at = random() % (dims.size() + 2);
    if (at < dims.size())
      dims[at].push_back(axis);
    else
      rest.push_back(axis);
  }
  std::string text = "#parc.sharding<[";
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    text += (dim ? ", {" : "{") + axesText(dims[dim]);
    if (dim == 0 && !dims[dim].empty() && chain.grain > 1)
      text += " : " + std::to_string(chain.grain);
    text += "}";
  }
  partial = !rest.empty() && random() % 2 == 0;
  text += "]";
  if (partial)
    text += ", partial " + chain.kind + " {" + axesText(rest) + "}";
  return text + ">";
}

/// A module in the sharded phase: a parameter, `count` reshards of it, and an
/// observation of each that is not partial.
std::string chainText(const Chain &chain, unsigned seed, int count) {
  std::mt19937 random(seed);
  std::string shape = listText(chain.shape, "x") + "xf64, ", body, axes;
  for (size_t axis = 0; axis < chain.mesh.size(); ++axis)
    axes += std::string(axes.empty() ? "\"" : ", \"") +
            static_cast<char>('a' + axis) + '"';
  bool partial = true;
  std::string first;
  while (partial)
    first = randomSharding(chain, random, partial);
  std::string type = "tensor<" + shape + first + ">";
  body = "  %v0 = parc.load @w : " + type + "\n";
  for (int i = 1; i <= count; ++i) {
    std::string next =
        "tensor<" + shape + randomSharding(chain, random, partial) + ">";
    std::string number = std::to_string(i);
    body += "  %v" + number + " = parc.reshard %v" + std::to_string(i - 1) +
            " why \"" + number + "\" : " + type + " -> " + next + "\n";
    if (!partial)
      body += "  parc.observe \"v" + number + "\", %v" + number + " : " + next +
              "\n";
    type = next;
  }
  const std::string scalar = "tensor<f64, #parc.sharding<[]>>";
  return "parc.mesh [" + axes + "] sizes [" + listText(chain.mesh, ", ") +
         "]\nparc.param @w : tensor<" + listText(chain.shape, "x") +
         "xf64> {sharding = " + first +
         "}\nparc.step @train inputs [] micro {\n" + body +
         "  %zero = arith.constant dense<0.0> : " + scalar +
         "\n  parc.yield %zero, %zero : " + scalar + ", " + scalar +
         "\n} results [\"loss\"] update {\n^bb0(%loss: " + scalar +
         ", %count: " + scalar + "):\n  parc.yield %loss : " + scalar + "\n}\n";
}

TEST_P(Chains, EveryValueIsTheParameter) {
  const Chain &chain = GetParam();
  Context context;
  Errors errors(context.mlir);
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::string text = chainText(chain, seed, 60);
    auto module =
        parseSourceString<ModuleOp>(text, ParserConfig(&context.mlir));
    ASSERT_TRUE(module) << errors.text << text;
    ASSERT_TRUE(succeeded(stage(*module, Plan()))) << errors.text << text;
    eval::ParamStore<Zp> params;
    std::vector<Zp> values;
    for (int64_t i = 0, n = eval::elementCount(chain.shape); i < n; ++i)
      values.push_back(Zp::fromResidue(static_cast<uint64_t>(i * i + 7)));
    auto whole = eval::Tensor<Zp>::ofFloats(chain.shape, values);
    params.set({"w", 0, "value"}, whole);
    auto result = eval::runRanks<Zp>(*module, params, {});
    ASSERT_TRUE(succeeded(result)) << errors.text << text;
    EXPECT_TRUE(result->replicaDifferences.empty())
        << result->replicaDifferences.front();
    EXPECT_GT(result->observed.size(), 20u);
    for (const auto &[name, value] : result->observed)
      ASSERT_FALSE(eval::firstDifference(value, whole)) << name << '\n' << text;
  }
}

std::vector<Chain> chains() {
  std::vector<Chain> all;
  for (std::vector<int64_t> mesh : std::vector<std::vector<int64_t>>{
           {2}, {3}, {4}, {2, 2}, {2, 3}, {2, 2, 2}})
    for (std::vector<int64_t> shape :
         std::vector<std::vector<int64_t>>{{5}, {8, 8}, {5, 7, 3}, {8, 4, 8}})
      for (const char *kind : {"sum", "max", "min"})
        if (kind == StringRef("sum") || shape.size() == 3)
          all.push_back({mesh, shape, 1, kind});
  all.push_back({{2, 3}, {10, 3, 4}, 2, "sum"});
  all.push_back({{2, 2, 2}, {12, 5}, 3, "sum"});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Meshes, Chains, ::testing::ValuesIn(chains()),
                         [](const auto &info) {
                           return "mesh" + listText(info.param.mesh, "x") +
                                  "_of_" + listText(info.param.shape, "_") +
                                  "_grain" + std::to_string(info.param.grain) +
                                  "_" + info.param.kind;
                         });

} // namespace
