//===- InputGateTest.cpp - The gate ---------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What passes the gate and what does not.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/InputGate.h"
#include "gtest/gtest.h"

using namespace mlir::parc::driver;
using llvm::StringRef;

namespace {

std::string check(StringRef text) {
  auto fault = checkMLIRText(text);
  return fault ? fault->message : "";
}

TEST(InputGate, OrdinaryTextPasses) {
  EXPECT_EQ(
      check("#map = affine_map<(d0) -> (d0 + 1)>\n"
            "func.func @f(%a: tensor<4x!parc.layers<f32>>) -> i1 { // [[[\n"
            "  %0 = \"x.y\"() {s = \"((((\"} : () -> i1\n}\n"),
      "");
}

TEST(InputGate, DepthCountsOutsideStringsAndComments) {
  std::string deep(300, '[');
  EXPECT_NE(check("x = " + deep), "");
  EXPECT_EQ(check("// " + deep), "");
  EXPECT_EQ(check("\"" + deep + "\""), "");
  EXPECT_NE(check("!a = " + std::string(300, '<')), "");
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += "tuple<";
  EXPECT_NE(check(text), "");
}

TEST(InputGate, DepthHasAPlace) {
  auto fault = checkMLIRText("a\n  " + std::string(257, '('));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->line, 2u);
  EXPECT_EQ(fault->column, 259u);
  EXPECT_EQ(fault->message, "nested deeper than 256 levels");
}

TEST(InputGate, ArrowsAreNoBrackets) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += "() -> () ";
  EXPECT_EQ(check(text), "");
}

TEST(InputGate, AliasExpansionIsBounded) {
  std::string text = "#a0 = [1]\n";
  for (int i = 1; i < 40; ++i)
    text += "#a" + std::to_string(i) + " = [#a" + std::to_string(i - 1) +
            ", #a" + std::to_string(i - 1) + "]\n";
  EXPECT_NE(check(text).find("aliases grow beyond"), std::string::npos);
  std::string chain = "#a0 = [1]\n";
  for (int i = 1; i < 1000; ++i)
    chain +=
        "#a" + std::to_string(i) + " = [#a" + std::to_string(i - 1) + "]\n";
  EXPECT_EQ(check(chain), "");
}

TEST(InputGate, LongExpressionsAreRefused) {
  std::string text = "affine_map<(d0) -> (d0";
  for (int i = 0; i < 20000; ++i)
    text += " + 1";
  EXPECT_NE(check(text + ")>"), "");
  text = "affine_map<(d0) -> (d0";
  for (int i = 0; i < 20000; ++i)
    text += " mod 7";
  EXPECT_NE(check(text + ")>"), "");
}

TEST(InputGate, OtherFormsAreRefused) {
  EXPECT_NE(check(StringRef("ML\xefR\x01", 5)), "");
  EXPECT_NE(check(StringRef("a\0b", 3)), "");
  EXPECT_NE(check("x = dense_resource<w> : tensor<4xf32>"), "");
  MLIRLimits limits;
  limits.bytes = 8;
  EXPECT_TRUE(checkMLIRText("123456789", limits));
}

TEST(InputGate, UnfinishedTokensEnd) {
  EXPECT_EQ(check("\"abc"), "");
  EXPECT_EQ(check("\"abc\\"), "");
  EXPECT_EQ(check("// abc"), "");
  EXPECT_EQ(check("#"), "");
  EXPECT_FALSE(checkTOMLText("a = \"\\"));
  EXPECT_FALSE(checkTOMLText("a = '''"));
  EXPECT_FALSE(checkTOMLText("#"));
}

} // namespace
