//===- NNTestModule.h - Programs for the tests of the nn ops ----*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A context with the dialects that nn ops become, and programs parsed in it.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TESTS_UNIT_NN_NNTESTMODULE_H
#define PARC_TESTS_UNIT_NN_NNTESTMODULE_H

#include "NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <string>

namespace mlir::nn::test {

/// One program of every op, on tensors of `element`; `dynamic` hides all sizes.
std::string everyOp(StringRef element, bool dynamic);

/// A context and a program in it.
struct Program {
  explicit Program(const std::string &text) : context(registry()) {
    context.loadAllAvailableDialects();
    module = parseSourceString<ModuleOp>(text, &context);
  }
  /// The first op of type `Op`.
  template <typename Op> Op first() {
    Op found;
    module->walk([&](Op op) {
      found = op;
      return WalkResult::interrupt();
    });
    return found;
  }
  static DialectRegistry registry() {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, NNDialect>();
    return registry;
  }
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace mlir::nn::test

#endif // PARC_TESTS_UNIT_NN_NNTESTMODULE_H
