//===- Retype.h - Another batch, another element type -----------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Changes what a written program leaves open: its batch and its element type.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_DRIVER_RETYPE_H
#define PARC_LIB_DRIVER_RETYPE_H

#include "mlir/IR/BuiltinOps.h"
#include "parc/Driver/Declaration.h"

namespace mlir::parc::driver {

/// What a program is to become.
struct Retype {
  int64_t batch = 0;
  int64_t sequence = 0;
  ElementKind dtype = ElementKind::F32;
};

/// Rewrites types so that the step takes `change.batch` sequences and computes
/// in `change.dtype`. Which dimensions are the batch is found through the ops'
/// factors. Fails with an error where the sequence would change, where f32 or
/// f64 would become bf16 (which needs the casts that only import writes), and
/// where a constant holds one value a sequence.
LogicalResult retype(ModuleOp module, const ModelFacts &facts,
                     const Retype &change);

} // namespace mlir::parc::driver

#endif // PARC_LIB_DRIVER_RETYPE_H
