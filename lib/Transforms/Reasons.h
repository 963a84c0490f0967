//===- Reasons.h - Why data moves ------------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The reason that a change of layout carries through all later phases.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TRANSFORMS_REASONS_H
#define PARC_LIB_TRANSFORMS_REASONS_H

#include "parc/Analysis/Propagation.h"
#include "parc/Analysis/ReshardSearch.h"

namespace mlir::parc {

/// The reason to bring `operand` from one layout to another: `text`, the
/// value's name and type, and who placed the axes that move.
WhyAttr whyOf(OpOperand &operand, StringRef text, ShardingAttr from,
              ShardingAttr to, const Propagation &propagation);

/// Bytes that a rank sends once for a move over `over`: with n members and N
/// bytes of the whole that is reduced, gathered or scattered, or of the part
/// that is exchanged, all-reduce 2(n-1)/n N, the others (n-1)/n N.
int64_t ringBytes(ReshardMove move, int64_t elements, RankedTensorType type,
                  ArrayRef<StringAttr> over, const AxisSizes &axes);

/// The same for a value of `type` between two layouts, the largest part where
/// parts differ.
int64_t bytesOfMove(ReshardMove move, RankedTensorType type, ShardingAttr from,
                    ShardingAttr to, ArrayRef<StringAttr> over,
                    const AxisSizes &axes);

} // namespace mlir::parc

#endif // PARC_LIB_TRANSFORMS_REASONS_H
