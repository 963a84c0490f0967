//===- kernels_cuda.h - Kernel templates compiled by nvcc -------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The device side of kernels.h: a thread an element for maps, a block a
/// result for reductions over contiguous memory, a thread a result otherwise.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_KERNELS_CUDA_H
#define PARC_KERNELS_CUDA_H

#ifndef PARC_KERNELS_H
#error "include parc/kernels.h"
#endif

#include <cuda_runtime.h>
#include <utility>

namespace parc {
namespace detail {

constexpr int Threads = 256;

/// Blocks for \p items threads' work; kernels stride over what is left.
/// At least one: a rank may hold no element, and an empty grid is an error.
inline unsigned blocksFor(int64_t items) {
  int64_t blocks = (items + Threads - 1) / Threads;
  return unsigned(std::clamp<int64_t>(blocks, 1, 1 << 20));
}

/// Latches a launch failure in the rank.
inline void checkLaunch(Rank &r) {
  cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess)
    r.fail(Status(Code::DeviceError,
                  std::string("kernel launch: ") + cudaGetErrorString(error)));
}

/// Whether a kernel may be launched: not after a failure, nor on a host rank,
/// whose memory the device does not see.
inline bool ready(Rank &r) {
  if (r.backend() != Backend::cuda)
    r.fail(Status(Code::Unsupported,
                  "kernels compiled by nvcc run on ranks of the cuda backend "
                  "only",
                  "build with -DPARC_BACKEND=host, or use World::launch"));
  return r.ok();
}

inline cudaStream_t streamOf(Rank &r) {
  return static_cast<cudaStream_t>(r.stream());
}

/// Row-major index of a linear position.
template <int N>
__device__ void unflatten(const Extents<N> &e, int64_t at, int64_t *index) {
#pragma unroll
  for (int d = N - 1; d >= 0; --d) {
    index[d] = at % e.n[d];
    at /= e.n[d];
  }
}

template <class F, size_t... K>
__device__ auto callAt(const F &f, const int64_t *i,
                       std::index_sequence<K...>) {
  return f(i[K]...);
}
template <class S, class Acc, size_t... K>
__device__ void storeAt(const S &store, const int64_t *i, Acc acc,
                        std::index_sequence<K...>) {
  store(i[K]..., acc);
}

template <int N, class F>
__global__ void mapKernel(Extents<N> e, int64_t total, F f) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < total;
       at += step) {
    int64_t index[N ? N : 1];
    unflatten<N>(e, at, index);
    callAt(f, index, std::make_index_sequence<N>());
  }
}

/// A block a result.
template <int NP, int NR, class Acc, class C, class F, class S>
__global__ void reduceBlocks(Extents<NP> par, int64_t results, Extents<NR> red,
                             int64_t length, Acc init, C combine, F f,
                             S store) {
  __shared__ alignas(alignof(Acc)) unsigned char raw[sizeof(Acc) * Threads];
  Acc *scratch = reinterpret_cast<Acc *>(raw);
  for (int64_t p = blockIdx.x; p < results; p += gridDim.x) {
    int64_t index[NP + NR + 1];
    unflatten<NP>(par, p, index);
    Acc acc = init;
    for (int64_t q = threadIdx.x; q < length; q += Threads) {
      unflatten<NR>(red, q, index + NP);
      acc = combine(acc,
                    Acc(callAt(f, index, std::make_index_sequence<NP + NR>())));
    }
    scratch[threadIdx.x] = acc;
    __syncthreads();
    for (int half = Threads / 2; half > 0; half /= 2) {
      if (threadIdx.x < half)
        scratch[threadIdx.x] =
            combine(scratch[threadIdx.x], scratch[threadIdx.x + half]);
      __syncthreads();
    }
    if (threadIdx.x == 0)
      storeAt(store, index, scratch[0], std::make_index_sequence<NP>());
    __syncthreads();
  }
}

/// A thread a result.
template <int NP, int NR, class Acc, class C, class F, class S>
__global__ void reduceThreads(Extents<NP> par, int64_t results, Extents<NR> red,
                              int64_t length, Acc init, C combine, F f,
                              S store) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t p = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; p < results;
       p += step) {
    int64_t index[NP + NR + 1];
    unflatten<NP>(par, p, index);
    Acc acc = init;
    for (int64_t q = 0; q < length; ++q) {
      unflatten<NR>(red, q, index + NP);
      acc = combine(acc,
                    Acc(callAt(f, index, std::make_index_sequence<NP + NR>())));
    }
    storeAt(store, index, acc, std::make_index_sequence<NP>());
  }
}

/// A block a position; the first position of each row adds all of them, in
/// order, so the sums are the same every time.
template <class T, class S, class Id>
__global__ void scatterAddKernel(View<T> table, View<const S> src, View<Id> ids,
                                 int64_t first) {
  for (int64_t i = blockIdx.x; i < src.dims[0]; i += gridDim.x) {
    int64_t row = int64_t(ids(i)) - first;
    bool mine = row >= 0 && row < table.dims[0];
    int earlier = 0;
    for (int64_t k = threadIdx.x; mine && k < i; k += Threads)
      earlier |= int64_t(ids(k)) - first == row;
    if (__syncthreads_or(earlier) || !mine)
      continue;
    for (int64_t k = i; k < src.dims[0]; ++k) {
      if (int64_t(ids(k)) - first != row)
        continue;
      for (int64_t j = threadIdx.x; j < src.dims[1]; j += Threads)
        table(row, j) = T(table(row, j) + T(src(k, j)));
    }
  }
}

} // namespace detail

template <int N, class F> void map(Rank &r, Extents<N> extents, F f) {
  int64_t total = extents.total();
  if (total == 0 || !detail::ready(r))
    return;
  detail::mapKernel<N>
      <<<detail::blocksFor(total), detail::Threads, 0, detail::streamOf(r)>>>(
          extents, total, f);
  detail::checkLaunch(r);
}

template <int NP, int NR, Inner Order = Inner::reduction, class Acc, class C,
          class F, class S>
void reduce(Rank &r, Extents<NP> par, Extents<NR> red, Acc init, C combine, F f,
            S store) {
  int64_t results = par.total(), length = red.total();
  if (results == 0 || !detail::ready(r))
    return;
  if (Order == Inner::parallel)
    detail::reduceThreads<NP, NR><<<detail::blocksFor(results), detail::Threads,
                                    0, detail::streamOf(r)>>>(
        par, results, red, length, init, combine, f, store);
  else
    detail::reduceBlocks<NP, NR>
        <<<unsigned(std::clamp<int64_t>(results, 1, 1 << 20)), detail::Threads,
           0, detail::streamOf(r)>>>(par, results, red, length, init, combine,
                                     f, store);
  detail::checkLaunch(r);
}

template <class T, class S, class Id>
void scatterAddRows(Rank &r, View<T> table, In<S> src, View<Id> ids,
                    int64_t first) {
  if (src.size() == 0 || !detail::ready(r))
    return;
  detail::scatterAddKernel<T, S, Id>
      <<<unsigned(std::clamp<int64_t>(src.dims[0], 1, 1 << 20)),
         detail::Threads, 0, detail::streamOf(r)>>>(table, src, ids, first);
  detail::checkLaunch(r);
}

} // namespace parc

#endif // PARC_KERNELS_CUDA_H
