//===- LinalgRaising.h - Named ops out of generic ones -----------*- C++
//-*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Turns the generic op that a gradient rule made into the named op that it is.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_INTERFACES_LINALGRAISING_H
#define PARC_LIB_INTERFACES_LINALGRAISING_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::parc {

/// True where linalg.contract accepts the maps (two factors, then the result):
/// at least one loop is contracted, every loop is in the result or in both
/// factors.
bool isContraction(ArrayRef<AffineMap> maps);

/// True where `sum` is `argument 2 + argument 0 * argument 1` of `block`, in
/// any order of the commutative operands; with `allowCasts`, extensions of the
/// arguments count as them.
bool matchProductSum(Block *block, Value sum, bool allowCasts);

/// Drops the inputs that the body of `op` (one result) does not read, and
/// replaces it by linalg.contract, reduce, broadcast or transpose, or by its
/// input, where it is one of these. Returns the result.
Value raiseGeneric(OpBuilder &builder, linalg::GenericOp op);

/// Erases an unused op and the init that only it wrote onto.
void eraseWithInit(linalg::GenericOp op);

} // namespace mlir::parc

#endif // PARC_LIB_INTERFACES_LINALGRAISING_H
