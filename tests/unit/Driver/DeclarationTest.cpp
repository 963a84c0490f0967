//===- DeclarationTest.cpp - The declaration ------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Defaults, precedence and checks of the declaration.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Declaration.h"
#include "gtest/gtest.h"

using namespace mlir::parc;
using namespace mlir::parc::driver;
using llvm::StringRef;

namespace {

class DeclarationTest : public testing::Test {
protected:
  std::optional<Declaration> resolve(std::vector<StringRef> flags,
                                     StringRef plan = "",
                                     bool forDevices = true) {
    errors.clear();
    Reporter reporter(os, false);
    flags.insert(flags.begin(), {"compile", "m.mlir"});
    auto line = CommandLine::parse(flags, reporter);
    if (!line)
      return std::nullopt;
    std::optional<PlanFile> file;
    if (!plan.empty())
      file = readPlan("plan.toml", plan, reporter);
    return DeclarationSource(*line, file).resolve(facts, forDevices, reporter);
  }
  void expectError(StringRef text) {
    EXPECT_NE(errors.find(text.str()), std::string::npos) << errors;
  }

  ModelFacts facts = [] {
    ModelFacts facts;
    facts.file = "config.json";
    facts.maxSequence = 131072;
    facts.layers = 32;
    return facts;
  }();
  std::string errors;
  llvm::raw_string_ostream os{errors};
};

TEST_F(DeclarationTest, Defaults) {
  auto d = resolve({"--mesh", "8x2x2"});
  ASSERT_TRUE(d) << errors;
  EXPECT_EQ(d->batch.value, 16);
  EXPECT_EQ(d->sequence.value, 8192);
  EXPECT_EQ(d->microBatches.value, 8);
  EXPECT_EQ(d->schedule.value, "1f1b");
  EXPECT_EQ(d->rankOrder.value, "tp-cp-dp-pp");
  EXPECT_EQ(d->optimizer.at("lr").value, 1e-2);
  EXPECT_EQ(d->batch.origin, Origin::Default);
  EXPECT_EQ(errors, "");
}

TEST_F(DeclarationTest, FlagBeatsPlanBeatsModel) {
  TextError error;
  facts.mesh = *Mesh::parse("tp=4", error);
  auto d = resolve({});
  ASSERT_TRUE(d) << errors;
  EXPECT_EQ(d->mesh.value.str(), "tp=4");
  EXPECT_EQ(d->mesh.origin, Origin::Model);
  d = resolve({}, "schema = 1\nmesh = \"2x1x1\"\nbatch = 6\n");
  ASSERT_TRUE(d) << errors;
  EXPECT_EQ(d->size("tp"), 2);
  EXPECT_EQ(d->mesh.origin, Origin::Plan);
  d = resolve({"--mesh", "1x1x2"}, "schema = 1\nmesh = \"2x1x1\"\nbatch = 6\n");
  ASSERT_TRUE(d) << errors;
  EXPECT_EQ(d->size("dp"), 2);
  EXPECT_EQ(d->batch.value, 6);
  EXPECT_EQ(originText(d->batch.origin, d->batch.place), "plan.toml:3");
}

TEST_F(DeclarationTest, MeshOfTheModelIsRowMajor) {
  TextError error;
  facts.mesh = *Mesh::parse("tp=2,pp=2,dp=4", error);
  auto d = resolve({});
  ASSERT_TRUE(d) << errors;
  // The last axis is the fastest.
  EXPECT_EQ(d->grid().strides()[2], 1);
  EXPECT_EQ(d->grid().strides()[0], 8);
}

TEST_F(DeclarationTest, PlanTextResolvesToItself) {
  auto d = resolve({"--mesh", "2x2x2", "--batch", "12", "--lr", "0.003"},
                   "schema = 1\n[rules]\n\"a.*\" = [[\"tp\"], []]\n");
  ASSERT_TRUE(d) << errors;
  auto again = resolve({}, planText(*d));
  ASSERT_TRUE(again) << errors;
  EXPECT_EQ(planText(*again), planText(*d));
  EXPECT_EQ(again->rules.size(), 1u);
}

TEST_F(DeclarationTest, BatchMustFill) {
  EXPECT_FALSE(
      resolve({"--mesh", "1x1x4", "--batch", "6", "--micro-batches", "2"}));
  expectError(
      "batch smaller than dp x micro-batches: 6 sequences for dp=4 x 2");
  EXPECT_FALSE(resolve({"--mesh", "1x1x4", "--batch", "3"}));
  expectError(
      "batch smaller than dp x micro-batches: 3 sequences for dp=4 x 1");
}

TEST_F(DeclarationTest, LegalButCostlyWarns) {
  EXPECT_TRUE(resolve({"--mesh", "1x1x4", "--batch", "10"}));
  EXPECT_NE(errors.find("batch 10 is no multiple"), std::string::npos);
  EXPECT_TRUE(resolve({"--mesh", "1x4x1", "--batch", "1"}));
  EXPECT_NE(errors.find("fewer micro-batches than stages"), std::string::npos);
  EXPECT_TRUE(resolve({"--mesh", "16x1x1"}));
  EXPECT_NE(errors.find("tp=16 reaches across nodes of 8"), std::string::npos);
  EXPECT_TRUE(resolve({"--mesh", "16x1x1"}, "", /*forDevices=*/false));
  EXPECT_EQ(errors, "");
  EXPECT_TRUE(resolve({"--mesh", "8x1x4", "--rank-order", "dp-tp-pp"}));
  EXPECT_NE(errors.find("reaches across nodes"), std::string::npos);
}

TEST_F(DeclarationTest, ExpertsTakeContextThenData) {
  facts.experts = 8;
  for (StringRef ep : {"2", "4", "8"})
    EXPECT_TRUE(resolve({"--mesh", "cp=4,dp=2", "--ep", ep})) << errors;
  facts.experts = 6;
  EXPECT_FALSE(resolve({"--mesh", "cp=4", "--ep", "4"}));
  expectError("experts are not a multiple of ep: 6 experts, ep=4");
  facts.experts = 0;
  EXPECT_FALSE(resolve({"--mesh", "cp=4", "--ep", "4"}));
  expectError("expert parallelism on a dense model");
}

struct Wrong {
  std::vector<StringRef> flags;
  StringRef error;
};

class WrongDeclaration : public DeclarationTest,
                         public testing::WithParamInterface<Wrong> {};

TEST_P(WrongDeclaration, IsExplained) {
  EXPECT_FALSE(resolve(GetParam().flags));
  EXPECT_NE(errors.find(GetParam().error.str()), std::string::npos) << errors;
}

INSTANTIATE_TEST_SUITE_P(
    Declaration, WrongDeclaration,
    testing::Values(
        Wrong{{"--mesh", "0x1x1"}, "expected a size of at least 1"},
        Wrong{{"--mesh", "8x16x4x2"}, "expected three sizes"},
        Wrong{{"--mesh", "tp=2,tp=2"}, "tp"},
        Wrong{{"--mesh", "tq=2"}, "unknown mesh axis 'tq'"},
        Wrong{{"--mesh", "1048576x1048576x1048576"}, "too"},
        Wrong{{"--sp"}, "sequence parallelism has nothing to attach to"},
        Wrong{{"--mesh", "tp=2,cp=2", "--cp-kind", "rng"},
              "did you mean 'ring'?"},
        Wrong{{"--mesh", "cp=2,dp=3", "--ep", "4"},
              "ep=4 does not divide the ranks that share a batch: cp=2, dp=3"},
        Wrong{{"--mesh", "tp=2,dp=2", "--ep", "2"}, "ep=2 with tp=2 needs sp"},
        Wrong{{"--mesh", "1x33x1"},
              "more stages than layers: pp=33, layers 32"},
        Wrong{{"--batch", "x"}, "expected a whole number for 'batch', got 'x'"},
        Wrong{{"--batch", "0"}, "expected 'batch' from 1"},
        Wrong{{"--seq", "-5"}, "expected 'seq' from 1"},
        Wrong{{"--micro-batches", "99999999999999999999"}, "whole number"},
        Wrong{{"--schedule", "1f2b"}, "did you mean '1f1b'?"},
        Wrong{{"--dtype", "f16"}, "unknown dtype 'f16'"},
        Wrong{{"--mesh", "2x1x2", "--rank-order", "tp-xp"}, "xp"},
        Wrong{{"--mesh", "2x1x2", "--rank-order", "tp"}, "dp"}));

} // namespace
