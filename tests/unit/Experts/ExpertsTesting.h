//===- ExpertsTesting.h - Runs programs of expert ops -----------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A function of nn ops, decomposed and evaluated in any number domain.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TESTS_UNIT_EXPERTS_EXPERTSTESTING_H
#define PARC_TESTS_UNIT_EXPERTS_EXPERTSTESTING_H

#include "NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "parc/Eval/Interpreter.h"
#include "parc/Transforms/Passes.h"

#include <gtest/gtest.h>

namespace mlir::parc::test {

/// `func.func @f` of nn ops; what is reported is kept in `errors`.
class ExpertsModule {
public:
  explicit ExpertsModule(StringRef text = "func.func @f() { return }")
      : handler(&context, [this](Diagnostic &diagnostic) {
          errors += diagnostic.str() + "\n";
          return success();
        }) {
    context.loadDialect<ParcDialect, nn::NNDialect, arith::ArithDialect,
                        func::FuncDialect, linalg::LinalgDialect,
                        math::MathDialect, tensor::TensorDialect>();
    module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    EXPECT_TRUE(module) << errors;
  }

  /// Decomposes and runs `f`; empty after an error.
  template <class T>
  std::vector<eval::Tensor<T>> call(std::vector<eval::Tensor<T>> arguments,
                                    int64_t rank = 0) {
    std::vector<eval::Tensor<T>> results;
    PassManager manager(&context);
    manager.addPass(createDecompose());
    if (!module || failed(manager.run(*module))) {
      ADD_FAILURE() << errors;
      return results;
    }
    eval::ModulePlan<T> plan(*module);
    eval::ParamStore<T> params;
    eval::RankContext context;
    context.number = rank;
    eval::Interpreter<T> interpreter(plan, params, context);
    llvm::SmallVector<eval::RuntimeValue<T>> values(arguments.begin(),
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
  OwningOpRef<ModuleOp> module;

private:
  ScopedDiagnosticHandler handler;
};

template <class T>
eval::Tensor<T> floats(ArrayRef<int64_t> shape, ArrayRef<double> values) {
  std::vector<T> converted;
  for (double value : values)
    converted.push_back(eval::DomainOf<T>::fromDouble(value));
  return eval::Tensor<T>::ofFloats(shape, converted);
}

template <class T>
eval::Tensor<T> integers(ArrayRef<int64_t> shape, ArrayRef<int64_t> values) {
  return eval::Tensor<T>::ofInts(shape, values.vec());
}

/// `count` small numbers, many of them equal, that no pattern orders.
inline std::vector<double> someNumbers(int64_t count, int64_t range,
                                       int64_t seed = 1) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(
        double((i * i * 7 + i * (3 + seed) + seed) % 101 % range));
  return numbers;
}

inline std::vector<int64_t> someIds(int64_t count, int64_t range,
                                    int64_t seed = 1) {
  std::vector<int64_t> ids;
  for (double number : someNumbers(count, range, seed))
    ids.push_back(int64_t(number));
  return ids;
}

} // namespace mlir::parc::test

#endif // PARC_TESTS_UNIT_EXPERTS_EXPERTSTESTING_H
