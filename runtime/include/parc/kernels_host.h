//===- kernels_host.h - Kernel templates compiled by g++ --------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The host side of kernels.h: nested loops whose innermost one is marked
/// independent for the vectoriser.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_KERNELS_HOST_H
#define PARC_KERNELS_HOST_H

#ifndef PARC_KERNELS_H
#error "include parc/kernels.h"
#endif

namespace parc {
namespace detail {

template <int N, int D, class F, class... I>
PARC_INLINE void mapLoop(const Extents<N> &e, const F &f, I... i) {
  if constexpr (D == N) {
    f(i...);
  } else if constexpr (D + 1 == N) {
    const int64_t n = e.n[D];
#pragma omp simd
    for (int64_t k = 0; k < n; ++k)
      f(i..., k);
  } else {
    for (int64_t k = 0; k < e.n[D]; ++k)
      mapLoop<N, D + 1>(e, f, i..., k);
  }
}

/// Plain nest, no promise to the vectoriser.
template <int N, int D, class F, class... I>
PARC_INLINE void nest(const Extents<N> &e, const F &f, I... i) {
  if constexpr (D == N) {
    f(i...);
  } else {
    for (int64_t k = 0; k < e.n[D]; ++k)
      nest<N, D + 1>(e, f, i..., k);
  }
}

/// acc over n values; sums and extrema of numbers are vectorised.
template <class Acc, class C, class F>
PARC_INLINE Acc reduceLine(Acc acc, int64_t n, const C &combine, const F &f) {
  constexpr bool number = std::is_arithmetic_v<Acc>;
  if constexpr (number && std::is_same_v<C, Sum>) {
#pragma omp simd reduction(+ : acc)
    for (int64_t k = 0; k < n; ++k)
      acc += Acc(f(k));
  } else if constexpr (number && std::is_same_v<C, Max>) {
#pragma omp simd reduction(max : acc)
    for (int64_t k = 0; k < n; ++k) {
      Acc v = f(k);
      acc = acc > v ? acc : v;
    }
  } else if constexpr (number && std::is_same_v<C, Min>) {
#pragma omp simd reduction(min : acc)
    for (int64_t k = 0; k < n; ++k) {
      Acc v = f(k);
      acc = acc < v ? acc : v;
    }
  } else {
    for (int64_t k = 0; k < n; ++k)
      acc = combine(acc, Acc(f(k)));
  }
  return acc;
}

/// Reduction loops below one parallel index; the innermost one is a line.
template <int N, int D, class Acc, class C, class F, class... I>
PARC_INLINE void reduceNest(Acc &acc, const Extents<N> &e, const C &combine,
                            const F &f, I... i) {
  if constexpr (D == N) {
    acc = combine(acc, Acc(f(i...)));
  } else if constexpr (D + 1 == N) {
    acc =
        reduceLine(acc, e.n[D], combine, [&](int64_t k) { return f(i..., k); });
  } else {
    for (int64_t k = 0; k < e.n[D]; ++k)
      reduceNest<N, D + 1>(acc, e, combine, f, i..., k);
  }
}

/// Accumulators of a tile of the innermost parallel index, reductions outside.
template <int NP, int NR, int D, class Acc, class C, class F, class S,
          class... I>
PARC_INLINE void reduceTiles(const Extents<NP> &par, const Extents<NR> &red,
                             const Acc &init, const C &combine, const F &f,
                             const S &store, I... i) {
  if constexpr (D + 1 < NP) {
    for (int64_t k = 0; k < par.n[D]; ++k)
      reduceTiles<NP, NR, D + 1>(par, red, init, combine, f, store, i..., k);
  } else {
    constexpr int64_t Tile = 512;
    Acc acc[Tile];
    for (int64_t base = 0; base < par.n[D]; base += Tile) {
      const int64_t n = std::min(Tile, par.n[D] - base);
      for (int64_t k = 0; k < n; ++k)
        acc[k] = init;
      nest<NR, 0>(red, [&](auto... j) {
#pragma omp simd
        for (int64_t k = 0; k < n; ++k)
          acc[k] = combine(acc[k], Acc(f(i..., base + k, j...)));
      });
      for (int64_t k = 0; k < n; ++k)
        store(i..., base + k, acc[k]);
    }
  }
}

} // namespace detail

/// Runs \p f once for every index of \p extents.
template <int N, class F> void map(Rank &, Extents<N> extents, F f) {
  detail::mapLoop<N, 0>(extents, f);
}

/// For every parallel index, combines f(parallel..., reduction...) over all
/// reduction indices, beginning with \p init, its neutral element, and calls
/// store(parallel..., result). \p Order says which innermost index runs
/// through contiguous memory. The order of combination is fixed, but is not
/// the textual one.
template <int NP, int NR, Inner Order = Inner::reduction, class Acc, class C,
          class F, class S>
void reduce(Rank &, Extents<NP> par, Extents<NR> red, Acc init, C combine, F f,
            S store) {
  if constexpr (Order == Inner::parallel && NP > 0) {
    detail::reduceTiles<NP, NR, 0>(par, red, init, combine, f, store);
  } else {
    detail::nest<NP, 0>(par, [&](auto... i) {
      Acc acc = init;
      detail::reduceNest<NR, 0>(acc, red, combine, f, i...);
      store(i..., acc);
    });
  }
}

/// table(ids(i) - first, :) += src(i, :), skipping rows that are not here. In
/// the order of i, so the sums are the same every time. Terms are added in the
/// table's type.
template <class T, class S, class Id>
void scatterAddRows(Rank &, View<T> table, In<S> src, View<Id> ids,
                    int64_t first) {
  const int64_t cols = src.dims[1];
  for (int64_t i = 0; i < src.dims[0]; ++i) {
    const int64_t row = int64_t(ids(i)) - first;
    if (row < 0 || row >= table.dims[0])
      continue;
#pragma omp simd
    for (int64_t j = 0; j < cols; ++j)
      table(row, j) = T(table(row, j) + T(src(i, j)));
  }
}

} // namespace parc

#endif // PARC_KERNELS_HOST_H
