//===- NNPasses.h - Passes of the nn dialect -----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Declarations of the nn dialect's passes; NNPasses.td is the reference.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNPASSES_H
#define PARC_DIALECTS_NN_NNPASSES_H

#include "NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::nn {

#define GEN_PASS_DECL
#include "NN/NNPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "NN/NNPasses.h.inc"

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNPASSES_H
