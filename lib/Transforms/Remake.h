//===- Remake.h - Values made again elsewhere -------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Copies of what is cheaper to make again than to keep.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TRANSFORMS_REMAKE_H
#define PARC_LIB_TRANSFORMS_REMAKE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::parc {

/// Makes `value`, the result of an op, again at the builder's position, with
/// all that it is made of, once in `mapping`.
inline Value remake(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    remake(builder, operand, mapping);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

} // namespace mlir::parc

#endif // PARC_LIB_TRANSFORMS_REMAKE_H
