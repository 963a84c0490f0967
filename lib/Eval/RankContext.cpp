//===- RankContext.cpp - Where a program runs -----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Coordinates and parts.
///
//===----------------------------------------------------------------------===//

#include "parc/Eval/RankContext.h"

#include "parc/part.h"

using namespace mlir;
using namespace mlir::parc::eval;

Part mlir::parc::eval::partOf(int64_t extent, int64_t grain,
                              Position position) {
  int64_t start =
      ::parc::partStart(extent, grain, position.size, position.coordinate);
  int64_t end =
      ::parc::partStart(extent, grain, position.size, position.coordinate + 1);
  return {start, end - start};
}

Position RankContext::linear(ArrayAttr names) const {
  Position result;
  for (auto name : names.getAsRange<StringAttr>()) {
    Position position = axis(name.getValue());
    result.coordinate = result.coordinate * position.size + position.coordinate;
    result.size *= position.size;
  }
  return result;
}

std::pair<int64_t, int64_t>
RankContext::ownLayers(StringRef stack, int64_t begin, int64_t end) const {
  auto found = layers.find(stack);
  if (found == layers.end())
    return {begin, end};
  int64_t first = std::max(begin, found->second.first);
  return {first, std::max(first, std::min(end, found->second.second))};
}
