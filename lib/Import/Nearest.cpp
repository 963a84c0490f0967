//===- Nearest.cpp - The nearest of some names ----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Edit distance over a list of candidates.
///
//===----------------------------------------------------------------------===//

#include "Nearest.h"
#include <algorithm>

using namespace mlir;

StringRef parc::findNearest(StringRef name, ArrayRef<StringRef> candidates,
                            unsigned most) {
  StringRef nearest;
  unsigned best = most + 1;
  for (StringRef candidate : candidates) {
    unsigned distance =
        name.edit_distance(candidate, /*AllowReplacements=*/true, most);
    if (distance >= best)
      continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

StringRef parc::findNearest(StringRef name, ArrayRef<StringRef> candidates) {
  return findNearest(
      name, candidates,
      std::max<unsigned>(1, static_cast<unsigned>(name.size()) / 3));
}
