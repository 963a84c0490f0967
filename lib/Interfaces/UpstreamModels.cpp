//===- UpstreamModels.cpp - parc's interfaces on upstream ops -------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Attaches all models when the dialects they belong to are loaded.
///
//===----------------------------------------------------------------------===//

#include "parc/Interfaces/UpstreamModels.h"
#include "Models.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;

/// Local ops and gradients are built from ops of all these dialects.
static void loadBuilt(MLIRContext *context) {
  context->loadDialect<arith::ArithDialect, linalg::LinalgDialect,
                       math::MathDialect, tensor::TensorDialect>();
}

void mlir::parc::registerUpstreamModels(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, linalg::LinalgDialect, math::MathDialect,
                  tensor::TensorDialect>();
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    loadBuilt(context);
    attachArithSharding(context);
    attachArithGradients(context);
  });
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    loadBuilt(context);
    attachMathSharding(context);
    attachMathGradients(context);
  });
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    loadBuilt(context);
    attachLinalgSharding(context);
    attachLinalgGradients(context);
  });
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    loadBuilt(context);
    attachTensorSharding(context);
    attachTensorGradients(context);
  });
}
