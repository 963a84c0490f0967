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

#include <algorithm>
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

/// A box of a tensor, and which of a list's elements is its first.
struct ListBox {
  std::vector<int64_t> lo, size;
  int64_t offset = 0;
};

namespace detail {
inline void appendBoxes(const std::vector<int64_t> &shape, size_t dim,
                        int64_t first, int64_t count, ListBox at,
                        std::vector<ListBox> &boxes) {
  if (count == 0)
    return;
  if (dim == shape.size()) {
    boxes.push_back(at);
    return;
  }
  int64_t row = 1;
  for (size_t d = dim + 1; d < shape.size(); ++d)
    row *= shape[d];
  // Part of a row, whole rows, part of a row.
  while (count > 0) {
    int64_t skipped = first % row, rows = skipped ? 0 : count / row;
    int64_t taken = rows ? rows * row : std::min(count, row - skipped);
    ListBox box = at;
    box.lo[dim] = first / row;
    box.size[dim] = rows ? rows : 1;
    if (rows)
      boxes.push_back(box);
    else
      appendBoxes(shape, dim + 1, skipped, taken, box, boxes);
    first += taken;
    count -= taken;
    at.offset += taken;
  }
}
} // namespace detail

/// Elements \p first to \p first + \p count of a tensor of \p shape, in
/// row-major order, as boxes: at most two a dimension.
inline std::vector<ListBox> listBoxes(const std::vector<int64_t> &shape,
                                      int64_t first, int64_t count) {
  std::vector<ListBox> boxes;
  detail::appendBoxes(shape, 0, first, count,
                      ListBox{std::vector<int64_t>(shape.size(), 0), shape, 0},
                      boxes);
  return boxes;
}

} // namespace parc

#endif // PARC_PART_H
