//===- ModelTest.h - Fixture of the upstream models' tests -------*- C++
//-*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses small functions and writes factors and IR as text to compare.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TESTS_UNIT_INTERFACES_MODELTEST_H
#define PARC_TESTS_UNIT_INTERFACES_MODELTEST_H

#include "Parc/Parc.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "parc/Interfaces/UpstreamModels.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

namespace mlir::parc::test {

/// Factors as text: "4 6! 8@ 5max ; (0)(1) (1)() -> (0) ; {0,1}". `!` marks an
/// unsplittable factor, `@` one that needs its offset.
inline std::string toString(const OpFactors &factors) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto printValue = [&](const ValueFactors &dims) {
    os << ' ';
    if (dims.empty())
      os << '.';
    for (const DimFactors &dim : dims) {
      os << '(';
      llvm::interleaveComma(dim, os);
      os << ')';
    }
  };
  llvm::interleave(
      factors.factors, os,
      [&](const Factor &factor) {
        if (ShapedType::isDynamic(factor.size))
          os << '?';
        else
          os << factor.size;
        os << (factor.splittable ? "" : "!") << (factor.needsOffset ? "@" : "");
        if (factor.reduction != ReductionKind::Sum)
          os << stringifyReductionKind(factor.reduction);
      },
      " ");
  os << " ;";
  llvm::for_each(factors.operands, printValue);
  os << " ->";
  llvm::for_each(factors.results, printValue);
  os << " ;";
  for (ArrayRef<unsigned> set : factors.linear) {
    os << " {";
    llvm::interleaveComma(set, os);
    os << '}';
  }
  return text;
}

class ModelTest : public ::testing::Test {
protected:
  ModelTest() {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, ParcDialect>();
    registerUpstreamModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Parses `body` as the body of @f(`args`) and returns the first op that has
  /// the attribute `test`.
  Operation *parse(StringRef args, StringRef body) {
    std::string text =
        ("func.func @f(" + args + ") {\n" + body + "\n  return\n}\n").str();
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module) {
      ADD_FAILURE() << "can't parse:\n" << text;
      return nullptr;
    }
    Operation *found = nullptr;
    module->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!found && op->hasAttr("test"))
        found = op;
    });
    EXPECT_TRUE(found) << "no op has the attribute `test`";
    return found;
  }

  /// The factors of the marked op as text; "failure" where it has none.
  std::string factors(StringRef args, StringRef body) {
    auto op = dyn_cast_or_null<ShardableOpInterface>(parse(args, body));
    if (!op)
      return "no interface";
    FailureOr<OpFactors> result = op.getFactors();
    return failed(result) ? "failure" : toString(*result);
  }

  /// The IR of the function without locations, after verification.
  std::string print() {
    EXPECT_TRUE(succeeded(verify(*module)));
    std::string text;
    llvm::raw_string_ostream os(text);
    module->print(os);
    return text;
  }

  static bool contains(StringRef text, StringRef part) {
    return text.contains(part);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace mlir::parc::test

#endif // PARC_TESTS_UNIT_INTERFACES_MODELTEST_H
