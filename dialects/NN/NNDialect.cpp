//===- NNDialect.cpp - The nn dialect -------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Registration of the nn dialect, and its ops' generated code.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mlir::nn;

#include "NN/NNDialect.cpp.inc"

#define GET_OP_CLASSES
#include "NN/NNOps.cpp.inc"

void NNDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "NN/NNOps.cpp.inc"
      >();
}
