//===- Passes.h - Passes of the engine -----------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Declarations of the engine's passes; Passes.td is the reference.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TRANSFORMS_PASSES_H
#define PARC_TRANSFORMS_PASSES_H

#include "Parc/Parc.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "parc/Analysis/Strategy.h"

namespace mlir::parc {

/// On a step: its inputs were folded for so many parts (`nn.fold`).
constexpr StringLiteral kFoldAttr = "parc.fold";

/// On an op on a ring: for each operand with a part on each of its ranks, the
/// reason to meet them all; a unit for others. From `parc-shard` to
/// `parc-ring`.
constexpr StringLiteral kRingReasonsAttr = "parc.ring_reasons";

#define GEN_PASS_DECL
#include "parc/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "parc/Transforms/Passes.h.inc"

} // namespace mlir::parc

#endif // PARC_TRANSFORMS_PASSES_H
