//===- Passes.h - Conversions between dialects ------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Declarations of the conversion passes; Passes.td is the reference.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_CONVERSION_PASSES_H
#define PARC_CONVERSION_PASSES_H

#include "RT/RT.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::parc {

#define GEN_PASS_DECL
#include "parc/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "parc/Conversion/Passes.h.inc"

} // namespace mlir::parc

#endif // PARC_CONVERSION_PASSES_H
