//===- part.h - How a size is divided among parts ---------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one partition rule: part i of n units on P parts holds the units from
/// floor(i*n/P) to floor((i+1)*n/P). Bounds nest when P is itself a product,
/// no two parts differ by more than one unit, and there is no remainder part.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_PART_H
#define PARC_PART_H

#include "parc/macros.h"

#include <cstdint>
#include <vector>

namespace parc {

/// First unit of part \p i of \p units on \p parts; i == parts gives the end.
PARC_HD constexpr int64_t partStart(int64_t units, int64_t parts, int64_t i) {
  return int64_t((unsigned __int128)i * (unsigned __int128)units /
                 (unsigned __int128)parts);
}

/// First element of part \p i when only whole grains (a head, an expert) of
/// \p grain elements may be parted. \p size must be a multiple of \p grain.
PARC_HD constexpr int64_t partStart(int64_t size, int64_t grain, int64_t parts,
                                    int64_t i) {
  return grain * partStart(size / grain, parts, i);
}

/// Elements in part \p i.
PARC_HD constexpr int64_t partSize(int64_t size, int64_t grain, int64_t parts,
                                   int64_t i) {
  return partStart(size, grain, parts, i + 1) -
         partStart(size, grain, parts, i);
}

/// The bounds of all parts: parts + 1 numbers, the first 0, the last the size.
using Bounds = std::vector<int64_t>;

inline Bounds partBounds(int64_t size, int64_t grain, int64_t parts) {
  Bounds b(parts + 1);
  for (int64_t i = 0; i <= parts; ++i)
    b[i] = partStart(size, grain, parts, i);
  return b;
}

} // namespace parc

#endif // PARC_PART_H
