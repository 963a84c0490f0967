//===- TestModule.h - Textual modules in evaluator tests --------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Parses a module and runs its functions, keeping the errors as text.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TEST_UNIT_EVAL_TESTMODULE_H
#define PARC_TEST_UNIT_EVAL_TESTMODULE_H

#include "parc/Eval/Compare.h"
#include "parc/Eval/Step.h"

#include "Parc/Parc.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace mlir::parc::eval {

/// A parsed module with everything the evaluator loads, and its diagnostics.
class TestModule {
public:
  explicit TestModule(StringRef text)
      : handler(&context, [this](Diagnostic &diagnostic) {
          errors += diagnostic.str() + "\n";
          if (auto loc = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
            lines.push_back(loc.getLine());
          return success();
        }) {
    context.loadDialect<ParcDialect, arith::ArithDialect, func::FuncDialect,
                        linalg::LinalgDialect, math::MathDialect,
                        tensor::TensorDialect>();
    module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    EXPECT_TRUE(module) << errors;
  }

  /// Runs `func.func @f` on one rank; empty after an error.
  template <class T>
  std::vector<Tensor<T>> call(std::vector<Tensor<T>> arguments,
                              RankContext rank = {}) {
    std::vector<Tensor<T>> results;
    if (!module)
      return results;
    ModulePlan<T> plan(*module);
    ParamStore<T> params;
    Interpreter<T> interpreter(plan, params, rank);
    llvm::SmallVector<RuntimeValue<T>> values(arguments.begin(),
                                              arguments.end());
    auto function = module->lookupSymbol<func::FuncOp>("f");
    auto run = interpreter.run(function.getBody().front(), values);
    if (succeeded(run))
      for (auto &value : *run)
        results.push_back(value.tensor);
    return results;
  }

  MLIRContext context;
  std::string errors;
  std::vector<unsigned> lines;
  OwningOpRef<ModuleOp> module;

private:
  ScopedDiagnosticHandler handler;
};

/// A float tensor of exact values.
template <class T>
Tensor<T> floats(ArrayRef<int64_t> shape, std::vector<double> values) {
  std::vector<T> converted;
  for (double value : values)
    converted.push_back(DomainOf<T>::fromDouble(value));
  return Tensor<T>::ofFloats(shape, converted);
}

/// Elements 1, 2, 3, ... each divided by `scale`.
template <class T> Tensor<T> ramp(ArrayRef<int64_t> shape, double scale = 1) {
  std::vector<double> values;
  for (int64_t i = 0, n = elementCount(shape); i < n; ++i)
    values.push_back(double(i + 1) / scale);
  return floats<T>(shape, values);
}

template <class T>
::testing::AssertionResult sameTensor(const Tensor<T> &got,
                                      const Tensor<T> &expected,
                                      double tolerance = 0) {
  if (got.shape() != expected.shape())
    return ::testing::AssertionFailure()
           << "shape " << shapeText(got.shape()) << " instead of "
           << shapeText(expected.shape());
  if (relativeDifference(got, expected) <= tolerance)
    return ::testing::AssertionSuccess();
  auto failure = ::testing::AssertionFailure()
                 << "differs by " << relativeDifference(got, expected) << ":";
  for (int64_t i = 0, n = std::min<int64_t>(got.size(), 12); i < n; ++i) {
    if (got.isInt())
      failure << " " << got.ints()[i] << "/" << expected.ints()[i];
    else
      failure << " " << DomainOf<T>::toDouble(got.floats()[i]) << "/"
              << DomainOf<T>::toDouble(expected.floats()[i]);
  }
  return failure;
}

} // namespace mlir::parc::eval

#endif // PARC_TEST_UNIT_EVAL_TESTMODULE_H
