//===- RankContext.h - Where a program runs ---------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A rank's coordinate on the axes of the mesh and in micro-batches, its layers
/// of each stack, and the communicators it is a member of.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_EVAL_RANKCONTEXT_H
#define PARC_EVAL_RANKCONTEXT_H

#include "parc/comm.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringMap.h"

#include <functional>
#include <optional>

namespace mlir::parc::eval {

/// A coordinate among `size` of them.
struct Position {
  int64_t coordinate = 0;
  int64_t size = 1;
};

/// The part of a dimension that one coordinate holds.
struct Part {
  int64_t start = 0;
  int64_t size = 0;
};

/// Part `position` of `extent` elements in units of `grain`: bounds
/// grain * floor(i * u / P) with u = extent / grain. `extent` must be a
/// multiple of `grain`, which must be positive.
Part partOf(int64_t extent, int64_t grain, Position position);

/// What a program sees of the rank that runs it. Default constructed it is the
/// only rank, running all layers on the whole batch.
class RankContext {
public:
  /// Finds the communicator of the ranks that differ from this one in `axes`
  /// only, ordered by their coordinate on `axes`, major to minor; of those
  /// along the stage axis only `stages`, where given. Null where there is none.
  using FindCommunicator = std::function<::parc::Communicator *(
      ArrayAttr axes, std::optional<ArrayRef<int64_t>> stages)>;

  void setAxis(StringRef axis, Position position) { axes[axis] = position; }
  /// An axis that the mesh does not have has one coordinate.
  Position axis(StringRef name) const { return axes.lookup(name); }
  /// The position on several axes, the first one major.
  Position linear(ArrayAttr axes) const;

  /// Layers [first, second) of a stack are this rank's; all, where never set.
  void setLayers(StringRef stack, int64_t begin, int64_t end) {
    layers[stack] = {begin, end};
  }
  /// [begin, end) without the layers of other ranks.
  std::pair<int64_t, int64_t> ownLayers(StringRef stack, int64_t begin,
                                        int64_t end) const;

  FindCommunicator findCommunicator;
  /// This rank's number among all.
  int64_t number = 0;

private:
  llvm::StringMap<Position> axes;
  llvm::StringMap<std::pair<int64_t, int64_t>> layers;
};

} // namespace mlir::parc::eval

#endif // PARC_EVAL_RANKCONTEXT_H
