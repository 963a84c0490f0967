//===- Casts.h - Floats as other floats -------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Conversion of tensors and scalars between float types.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_INTERFACES_CASTS_H
#define PARC_INTERFACES_CASTS_H

#include "mlir/IR/Builders.h"

namespace mlir::parc {

/// A tensor or scalar of floats with elements of type `element`: itself, or
/// widened or rounded by one op.
Value withElements(OpBuilder &builder, Location loc, Value value, Type element);

} // namespace mlir::parc

#endif // PARC_INTERFACES_CASTS_H
