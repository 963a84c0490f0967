//===- DecomposeUtils.h - Decomposition by condition ---------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the two decomposition passes share.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TRANSFORMS_DECOMPOSEUTILS_H
#define PARC_LIB_TRANSFORMS_DECOMPOSEUTILS_H

#include "mlir/IR/Operation.h"

namespace mlir::parc {

/// Decomposes every op under `root` for which `condition` holds, again and
/// again until there is none. Emits an error where an op cannot be decomposed.
LogicalResult decomposeWhere(Operation *root,
                             function_ref<bool(Operation *)> condition);

} // namespace mlir::parc

#endif // PARC_LIB_TRANSFORMS_DECOMPOSEUTILS_H
