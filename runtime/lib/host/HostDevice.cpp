//===- HostDevice.cpp - Memory and matrix products on the host ------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Strided copies, and OpenBLAS.
///
//===----------------------------------------------------------------------===//

#include "../common/Device.h"
#include "parc/gemm.h"

#include <algorithm>
#include <cblas.h>
#include <cstring>

// Absent where the BLAS is not OpenBLAS, which then keeps its own default.
extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace parc {

static void applyThreads(int threads) {
  if (openblas_set_num_threads)
    openblas_set_num_threads(threads);
}

/// Many ranks share the machine: one thread each until told otherwise.
static void singleThreadOnce() {
  static const bool done = (applyThreads(1), true);
  (void)done;
}

void setGemmThreads(int threads) {
  singleThreadOnce(); // so that the first product does not undo this
  applyThreads(threads);
}

namespace {

template <class W>
void copyLoop(W *dst, const W *src, const AnyView &d, const AnyView &s,
              int dim) {
  if (dim == d.rank) {
    *dst = *src;
    return;
  }
  int64_t n = d.dims[dim], to = d.strides[dim], from = s.strides[dim];
  if (dim + 1 == d.rank) {
    if (to == 1 && from == 1)
      memmove(dst, src, size_t(n) * sizeof(W));
    else
      for (int64_t i = 0; i < n; ++i)
        dst[i * to] = src[i * from];
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    copyLoop(dst + i * to, src + i * from, d, s, dim + 1);
}

Status copyHost(void *, const AnyView &dst, const AnyView &src) {
  size_t width = sizeOf(dst.type);
  if (dst.contiguous() && src.contiguous()) {
    memmove(dst.data, src.data, size_t(dst.size()) * width);
    return Status();
  }
  if (width == 2)
    copyLoop(static_cast<uint16_t *>(dst.data),
             static_cast<const uint16_t *>(src.data), dst, src, 0);
  else if (width == 4)
    copyLoop(static_cast<uint32_t *>(dst.data),
             static_cast<const uint32_t *>(src.data), dst, src, 0);
  else
    copyLoop(static_cast<uint64_t *>(dst.data),
             static_cast<const uint64_t *>(src.data), dst, src, 0);
  return Status();
}

Status copyBytes(void *, void *to, const void *from, size_t bytes) {
  memcpy(to, from, bytes);
  return Status();
}

Status zeroBytes(void *, void *to, size_t bytes) {
  memset(to, 0, bytes);
  return Status();
}

void call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
          const float *a, int lda, const float *b, int ldb, float beta,
          float *c, int ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, c,
              ldc);
}
void call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
          const double *a, int lda, const double *b, int ldb, double beta,
          double *c, int ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1.0, a, lda, b, ldb, beta, c,
              ldc);
}

template <class T>
void multiply(const Product &p, T *c, const T *a, const T *b) {
  MatrixLayout lc = matrixLayout(p.c), la = matrixLayout(p.a),
               lb = matrixLayout(p.b);
  auto flag = [](bool t) { return t ? CblasTrans : CblasNoTrans; };
  T beta = p.accumulate ? T(1) : T(0);
  int m = int(p.m()), n = int(p.n()), k = int(p.k());
  int lda = int(la.leading), ldb = int(lb.leading), ldc = int(lc.leading);
  if (!lc.transposed)
    call(flag(la.transposed), flag(lb.transposed), m, n, k, a, lda, b, ldb,
         beta, c, ldc);
  else // C^T = B^T A^T
    call(flag(!lb.transposed), flag(!la.transposed), n, m, k, b, ldb, a, lda,
         beta, c, ldc);
}

template <class T>
void batch(const Product &p, int d, T *c, const T *a, const T *b) {
  if (d == p.c.rank - 2)
    return multiply(p, c, a, b);
  for (int64_t i = 0; i < p.c.dims[d]; ++i)
    batch(p, d + 1, c + i * p.c.strides[d], a + i * p.a.strides[d],
          b + i * p.b.strides[d]);
}

template <class T> void clear(const AnyView &v, int d, T *data) {
  if (d == v.rank) {
    *data = T(0);
    return;
  }
  for (int64_t i = 0; i < v.dims[d]; ++i)
    clear(v, d + 1, data + i * v.strides[d]);
}

template <class T> Status gemmTyped(const Product &p) {
  T *c = static_cast<T *>(p.c.data);
  // The library leaves C alone where k is 0.
  if (p.k() == 0) {
    if (!p.accumulate)
      clear(p.c, 0, c);
    return Status();
  }
  constexpr int64_t limit = INT32_MAX;
  if (std::max({p.m(), p.n(), p.k(), matrixLayout(p.a).leading,
                matrixLayout(p.b).leading, matrixLayout(p.c).leading}) > limit)
    return Status(Code::Unsupported,
                  "gemm: expected sizes and strides below 2^31");
  batch(p, 0, c, static_cast<const T *>(p.a.data),
        static_cast<const T *>(p.b.data));
  return Status();
}

Status gemmHost(Rank &, const Product &p) {
  singleThreadOnce();
  return p.c.type == DType::f32 ? gemmTyped<float>(p) : gemmTyped<double>(p);
}

bool hasGemmHost(DType type) {
  return type == DType::f32 || type == DType::f64;
}

} // namespace

const DeviceOps &hostDevice() {
  static const DeviceOps ops = {&hostMemory(), copyHost, copyBytes,  copyBytes,
                                zeroBytes,     gemmHost, hasGemmHost};
  return ops;
}

} // namespace parc
