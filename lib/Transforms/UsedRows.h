//===- UsedRows.h - Values of which some rows are used -------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Which values have rows that are zero for certain, and where the program
/// says how many are not (see QueueOpInterface).
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TRANSFORMS_USEDROWS_H
#define PARC_LIB_TRANSFORMS_USEDROWS_H

#include "parc/Analysis/Propagation.h"

namespace mlir::parc {

/// Follows used rows from the ops that make them.
class UsedRows {
public:
  explicit UsedRows(const Propagation &propagation)
      : propagation(propagation) {}

  /// A matrix of numbers, in the layout in which it is made; null for none.
  struct Numbers {
    Value value;
    int64_t balanced = 0;
  };

  /// The numbers of used rows of `value`, whose layout is written down; made on
  /// demand, behind the op that says them. Rows stay zero through ops that are
  /// linear in what has them.
  Numbers of(Value value, const AxisSizes &axes);

  /// Erases the numbers that nothing came to read.
  void eraseUnread();

  /// Where a step from `from` to `to` moves axes between the dimensions 0 and 1
  /// and does nothing else: the layouts of `numbers` before and after it.
  /// Nothing where it does something else, or the numbers are of finer parts.
  static std::optional<std::pair<ShardingAttr, ShardingAttr>>
  layoutsAround(Value numbers, ShardingAttr from, ShardingAttr to,
                const AxisSizes &axes);

private:
  Numbers find(Value value, const AxisSizes &axes);

  const Propagation &propagation;
  DenseMap<Value, Numbers> known;
  SmallVector<Operation *> made;
};

} // namespace mlir::parc

#endif // PARC_LIB_TRANSFORMS_USEDROWS_H
