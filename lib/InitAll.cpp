//===- InitAll.cpp - Registers what parc has ------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Explicit registration of dialects, interfaces and passes.
///
//===----------------------------------------------------------------------===//

#include "parc/InitAll.h"
#include "NN/NN.h"
#include "NN/NNPasses.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "parc/Conversion/Passes.h"
#include "parc/Interfaces/UpstreamModels.h"
#include "parc/Transforms/Passes.h"

void mlir::parc::registerAllDialects(DialectRegistry &registry) {
  registry.insert<ParcDialect, nn::NNDialect, arith::ArithDialect,
                  func::FuncDialect, linalg::LinalgDialect, math::MathDialect,
                  rt::RTDialect, tensor::TensorDialect>();
  registerUpstreamModels(registry);
}

void mlir::parc::registerAllPasses() {
  registerParcConversionPasses();
  registerParcTransformsPasses();
  nn::registerParcNNPasses();
}
