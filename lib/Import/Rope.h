//===- Rope.h - Rotary positions of a config --------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads the rotary fields, in both spellings.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_IMPORT_ROPE_H
#define PARC_LIB_IMPORT_ROPE_H

#include "Fields.h"
#include "parc/Import/Config.h"

namespace mlir::parc {

/// `rope_theta` and `rope_scaling`, or `rope_parameters` with both, of a model
/// that is made for `maxPositions`.
RopeConfig readRope(Fields &fields, int64_t maxPositions);

} // namespace mlir::parc

#endif // PARC_LIB_IMPORT_ROPE_H
