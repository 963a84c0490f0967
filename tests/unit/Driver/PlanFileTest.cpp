//===- PlanFileTest.cpp - Plans -------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Plans: values with places, and what is wrong with a plan.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/PlanFile.h"
#include "gtest/gtest.h"

using namespace mlir::parc::driver;
using llvm::StringRef;

namespace {

std::optional<PlanFile> read(StringRef text, std::string &errors) {
  llvm::raw_string_ostream os(errors);
  Reporter reporter(os, false);
  return readPlan("plan.toml", text, reporter);
}

TEST(PlanFile, KeysHavePlaces) {
  std::string errors;
  auto plan =
      read("schema = 1\nmesh = \"2x2x2\"\nbatch = 4\nlr = 0.5\n", errors);
  ASSERT_TRUE(plan) << errors;
  EXPECT_EQ(plan->keys.at("mesh").text, "2x2x2");
  EXPECT_EQ(plan->keys.at("mesh").place.line, 2u);
  EXPECT_EQ(plan->keys.at("mesh").place.column, 9u);
  EXPECT_EQ(plan->keys.at("batch").text, "4");
  EXPECT_EQ(plan->keys.at("lr").text, "0.5");
}

TEST(PlanFile, RulesMayBeDotted) {
  std::string errors;
  auto plan = read("schema = 1\n[rules]\nq = [[\"tp\"], []]\n"
                   "model.embed.weight = [[], [\"tp\", \"dp\"]]\n"
                   "\"layers.*.up\" = [[\"tp\"]]\n",
                   errors);
  ASSERT_TRUE(plan) << errors;
  ASSERT_EQ(plan->rules.size(), 3u);
  std::map<std::string, std::vector<std::vector<std::string>>> rules;
  for (const ShardingRule &rule : plan->rules)
    rules[rule.pattern] = rule.dims;
  using Dims = std::vector<std::vector<std::string>>;
  EXPECT_EQ(rules.at("q"), (Dims{{"tp"}, {}}));
  EXPECT_EQ(rules.at("model.embed.weight"), (Dims{{}, {"tp", "dp"}}));
  EXPECT_EQ(rules.at("layers.*.up"), (Dims{{"tp"}}));
}

struct Wrong {
  StringRef text, error;
};

class WrongPlan : public testing::TestWithParam<Wrong> {};

TEST_P(WrongPlan, IsExplained) {
  std::string errors;
  EXPECT_FALSE(read(GetParam().text, errors));
  EXPECT_NE(errors.find(GetParam().error.str()), std::string::npos) << errors;
}

INSTANTIATE_TEST_SUITE_P(
    PlanFile, WrongPlan,
    testing::Values(
        Wrong{"mesh = \"1x1x1\"\n",
              "plan.toml:1:1: error: expected 'schema = 1'"},
        Wrong{"schema = 2\n",
              "plan.toml:1:10: error: expected schema 1, got 2"},
        Wrong{"schema = \"1\"\n",
              "expected an integer for 'schema', got a string"},
        Wrong{"schema = 1\nmash = \"1x1x1\"\n",
              "plan.toml:2:1: error: unknown key 'mash' [unknown-key]"},
        Wrong{"schema = 1\nmash = \"1x1x1\"\n", "did you mean 'mesh'?"},
        Wrong{"schema = 1\nbatch = \"4\"\n",
              "plan.toml:2:9: error: expected an integer for 'batch', got a "
              "string"},
        Wrong{"schema = 1\nbatch = 4.5\n", "got a float"},
        Wrong{"schema = 1\nmesh = 8\n",
              "expected a string for 'mesh', got an integer"},
        Wrong{"schema = 1\nlr = \"x\"\n", "expected a number for 'lr'"},
        Wrong{"schema = 1\nrules = 3\n", "expected a table for 'rules'"},
        Wrong{"schema = 1\n[rules]\nq = \"tp\"\n",
              "plan.toml:3:5: error: expected an array of the axes"},
        Wrong{"schema = 1\n[rules]\nq = [\"tp\"]\n", "an array of axis names"},
        Wrong{"schema = 1\n[rules]\nq = [[1]]\n", "expected an axis name"},
        Wrong{"schema = 1\nschema = 1\n", "plan.toml:2:"},
        Wrong{"schema = \n", "plan.toml:1:"}));

TEST(PlanFile, HostileDepthIsRefusedBeforeParsing) {
  std::string errors;
  std::string dotted = "a";
  for (int i = 0; i < 200000; ++i)
    dotted += ".a";
  EXPECT_FALSE(read(dotted + " = 1\n", errors));
  EXPECT_NE(errors.find("a key of more than 64 parts"), std::string::npos);
  errors.clear();
  EXPECT_FALSE(read("a = " + std::string(100000, '['), errors));
  EXPECT_NE(errors.find("nested deeper than 64 levels"), std::string::npos);
}

} // namespace
