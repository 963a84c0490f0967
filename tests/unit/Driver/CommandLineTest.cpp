//===- CommandLineTest.cpp - Command lines --------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Verbs, flags, places, and what is said of a line that is not understood.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/CommandLine.h"
#include "gtest/gtest.h"

using namespace mlir::parc::driver;
using llvm::StringRef;

namespace {

/// The outcome of parsing one command line.
struct Parsed {
  std::optional<CommandLine> line;
  std::string errors;
};

Parsed parse(std::initializer_list<StringRef> arguments) {
  Parsed result;
  llvm::raw_string_ostream os(result.errors);
  Reporter reporter(os, false);
  result.line = CommandLine::parse(llvm::ArrayRef(arguments), reporter);
  return result;
}

TEST(CommandLine, FlagsStandAnywhere) {
  for (auto arguments : {std::initializer_list<StringRef>{
                             "--mesh", "2x1x1", "run", "m.mlir", "--steps=3"},
                         {"run", "--steps", "3", "m.mlir", "--mesh=2x1x1"}}) {
    Parsed parsed = parse(arguments);
    ASSERT_TRUE(parsed.line) << parsed.errors;
    EXPECT_EQ(parsed.line->verb, Verb::Run);
    EXPECT_EQ(parsed.line->model.text, "m.mlir");
    EXPECT_EQ(parsed.line->flag("mesh")->text, "2x1x1");
    EXPECT_EQ(parsed.line->flag("steps")->text, "3");
  }
}

TEST(CommandLine, BareFormCompiles) {
  Parsed parsed = parse({"some/model.mlir", "-o", "out"});
  ASSERT_TRUE(parsed.line) << parsed.errors;
  EXPECT_EQ(parsed.line->verb, Verb::Compile);
  EXPECT_EQ(parsed.line->flag("o")->text, "out");
}

TEST(CommandLine, StandardInputIsAModel) {
  Parsed parsed = parse({"show", "comms", "-"});
  ASSERT_TRUE(parsed.line) << parsed.errors;
  EXPECT_EQ(parsed.line->topic, "comms");
  EXPECT_EQ(parsed.line->model.text, "-");
}

TEST(CommandLine, NegativeNumbersAreValues) {
  Parsed parsed = parse({"run", "m.mlir", "--lr", "-1"});
  ASSERT_TRUE(parsed.line) << parsed.errors;
  EXPECT_EQ(parsed.line->flag("lr")->text, "-1");
}

TEST(CommandLine, PlacesPointIntoTheEcho) {
  Parsed parsed = parse({"gpt3-175b/config.json", "--mesh", "8x16x4"});
  ASSERT_TRUE(parsed.line) << parsed.errors;
  const Word *mesh = parsed.line->flag("mesh");
  EXPECT_EQ(parsed.line->echo.substr(mesh->place.column - 1), "8x16x4");
  EXPECT_EQ(mesh->place.length, 6u);
}

TEST(CommandLine, EchoQuotesLikeAShell) {
  Parsed parsed = parse({"a b/c.mlir", "--mesh", "1x1x1"});
  ASSERT_TRUE(parsed.line) << parsed.errors;
  EXPECT_EQ(parsed.line->echo, "parc 'a b/c.mlir' --mesh 1x1x1");
  const Word *mesh = parsed.line->flag("mesh");
  EXPECT_EQ(parsed.line->echo.substr(mesh->place.column - 1), "1x1x1");
  EXPECT_EQ(parsed.line->echo.substr(parsed.line->model.place.column - 1, 3),
            "a b");
}

/// Command lines that are not understood, and what is said.
struct Wrong {
  std::vector<StringRef> arguments;
  StringRef error, help;
};

class WrongLine : public testing::TestWithParam<Wrong> {};

TEST_P(WrongLine, IsExplained) {
  std::string errors;
  llvm::raw_string_ostream os(errors);
  Reporter reporter(os, false);
  EXPECT_FALSE(CommandLine::parse(GetParam().arguments, reporter));
  EXPECT_NE(errors.find(GetParam().error.str()), std::string::npos) << errors;
  EXPECT_NE(errors.find(GetParam().help.str()), std::string::npos) << errors;
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, WrongLine,
    testing::Values(
        Wrong{{"m.mlir", "--mseh", "1x1x1"},
              "unknown flag '--mseh'",
              "did you mean '--mesh'?"},
        Wrong{{"m.mlir", "-mesh", "1x1x1"},
              "unknown flag '-mesh'",
              "did you mean '--mesh'?"},
        Wrong{{"m.mlir", "--zzzzzz"}, "unknown flag '--zzzzzz'", "--help"},
        Wrong{{"comple", "m.mlir"},
              "unknown verb 'comple'",
              "did you mean 'parc compile'?"},
        Wrong{{"m.mlir", "--mesh"}, "needs a value, got nothing", ""},
        Wrong{{"m.mlir", "--mesh", "--sp"}, "needs a value, got '--sp'", ""},
        Wrong{{"m.mlir", "--json=yes"}, "takes no value", ""},
        Wrong{{"m.mlir", "--mesh=1x1x1", "--mesh=1x1x1"}, "given twice", ""},
        Wrong{{"compile", "m.mlir", "--steps", "3"},
              "'parc compile' takes no '--steps'",
              "flag of: run"},
        Wrong{{"compile"}, "expected a model", "config.json"},
        Wrong{{"run", "a.mlir", "b.mlir"}, "unexpected argument 'b.mlir'", ""},
        Wrong{{"show"}, "expected what to show", "comms"},
        Wrong{{"show", "com", "m.mlir"}, "cannot show 'com'", "comms"},
        Wrong{{"version", "m.mlir"}, "unexpected argument", ""}));

TEST(CommandLine, HelpFitsAScreen) {
  EXPECT_LE(helpText().count('\n'), 45u);
  llvm::SmallVector<StringRef> lines;
  helpText().split(lines, '\n');
  for (StringRef line : lines)
    EXPECT_LE(line.size(), 100u) << line.str();
}

} // namespace
