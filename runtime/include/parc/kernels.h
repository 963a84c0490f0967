//===- kernels.h - Templates of all generated kernels -----------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The few shapes of loop that generated kernels are made of. A body is a
/// lambda that begins with PARC_FN and captures views by value; g++ and nvcc
/// compile the same text. On the host the innermost loop is vectorised, which
/// asserts that iterations are independent: a body writes only elements that
/// belong to its own indices.
///
///   map<2>(r, {rows, cols}, PARC_FN(int64_t i, int64_t j) {
///     y.unit(i, j) = x.unit(i, j) * g.unit(j);
///   });
///   reduce<1, 1>(r, {rows}, {cols}, 0.0f, Sum(),
///     PARC_FN(int64_t i, int64_t j) { return x.unit(i, j) * x.unit(i, j); },
///     PARC_FN(int64_t i, float sum) { s(i) = sum; });
///
//===----------------------------------------------------------------------===//

#ifndef PARC_KERNELS_H
#define PARC_KERNELS_H

#include "parc/macros.h"
#include "parc/math.h"
#include "parc/rank.h"

#include <algorithm>
#include <type_traits>

namespace parc {

/// Loop extents, outermost first.
template <int N> struct Extents {
  int64_t n[N ? N : 1];

  PARC_HD int64_t total() const {
    int64_t t = 1;
    for (int d = 0; d < N; ++d)
      t *= n[d];
    return t;
  }
};

/// \name Combiners that the host vectorises
/// \{
struct Sum {
  template <class T> PARC_HD PARC_INLINE T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <class T> PARC_HD PARC_INLINE T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct Min {
  template <class T> PARC_HD PARC_INLINE T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
/// \}

/// Which innermost index runs through contiguous memory in a reduction.
enum class Inner { reduction, parallel };

} // namespace parc

#ifdef __CUDACC__
#include "parc/kernels_cuda.h"
#else
#include "parc/kernels_host.h"
#endif

namespace parc {

/// dst(i, :) = table(ids(i) - first, :), or 0 where that row is not here: the
/// forward of a vocabulary-parallel embedding.
template <class T, class Id>
void gatherRows(Rank &r, View<T> dst, In<T> table, View<Id> ids,
                int64_t first) {
  int64_t rows = table.dims[0];
  map<2>(
      r, {dst.dims[0], dst.dims[1]}, PARC_FN(int64_t i, int64_t j) {
        int64_t row = int64_t(ids(i)) - first;
        bool here = row >= 0 && row < rows;
        dst(i, j) = here ? table(here ? row : 0, j) : T(0);
      });
}

} // namespace parc

#endif // PARC_KERNELS_H
