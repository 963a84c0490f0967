//===- Gemm.cpp - Validation and packing of matrix products ---------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What all backends share: sizes are checked, layouts that no library takes
/// are packed, and the types no library knows are computed by a loop.
///
//===----------------------------------------------------------------------===//

#include "parc/gemm.h"

#include "Device.h"

#include <algorithm>
#include <type_traits>

namespace parc {

MatrixLayout matrixLayout(const AnyView &v) {
  int64_t rows = v.dims[v.rank - 2], cols = v.dims[v.rank - 1];
  int64_t rowStep = v.strides[v.rank - 2], colStep = v.strides[v.rank - 1];
  // A dimension of size 1 has no step worth speaking of.
  bool unitCols = colStep == 1 || cols <= 1;
  bool unitRows = rowStep == 1 || rows <= 1;
  if (unitCols && (rows <= 1 || rowStep >= std::max<int64_t>(cols, 1)))
    return {false, rows <= 1 ? std::max<int64_t>(cols, 1) : rowStep, true};
  if (unitRows && (cols <= 1 || colStep >= std::max<int64_t>(rows, 1)))
    return {true, cols <= 1 ? std::max<int64_t>(rows, 1) : colStep, true};
  return {false, 0, false};
}

static std::string sizesText(const AnyView &v) {
  std::string text;
  for (int d = 0; d < v.rank; ++d)
    text += (d ? "x" : "") + std::to_string(v.dims[d]);
  return text + " " + nameOf(v.type);
}

static bool agree(const AnyView &c, const AnyView &a, const AnyView &b) {
  bool typed =
      a.type == b.type &&
      (c.type == a.type || (c.type == DType::f32 && a.type == DType::bf16));
  if (c.rank < 2 || c.rank != a.rank || c.rank != b.rank || !typed)
    return false;
  int m = c.rank - 2, n = c.rank - 1;
  for (int d = 0; d < m; ++d)
    if (c.dims[d] != a.dims[d] || c.dims[d] != b.dims[d])
      return false;
  return c.dims[m] == a.dims[m] && c.dims[n] == b.dims[n] &&
         a.dims[n] == b.dims[m];
}

/// One matrix by a plain loop; \p acc is a row of accumulators.
template <class C, class T, class A>
static void multiplyPlain(const Product &p, C *c, const T *a, const T *b,
                          std::vector<A> &acc) {
  int i1 = p.c.rank - 2, i2 = p.c.rank - 1;
  int64_t n = p.n();
  for (int64_t i = 0; i < p.m(); ++i) {
    C *row = c + i * p.c.strides[i1];
    for (int64_t j = 0; j < n; ++j)
      acc[j] = p.accumulate ? A(row[j * p.c.strides[i2]]) : A(0);
    for (int64_t k = 0; k < p.k(); ++k) {
      A x = A(a[i * p.a.strides[i1] + k * p.a.strides[i2]]);
      const T *line = b + k * p.b.strides[i1];
      for (int64_t j = 0; j < n; ++j)
        acc[j] += x * A(line[j * p.b.strides[i2]]);
    }
    for (int64_t j = 0; j < n; ++j)
      row[j * p.c.strides[i2]] = C(acc[j]);
  }
}

/// Every matrix of the batch, outermost dimension first.
template <class C, class T, class A>
static void forBatch(const Product &p, int d, C *c, const T *a, const T *b,
                     std::vector<A> &acc) {
  if (d == p.c.rank - 2)
    return multiplyPlain(p, c, a, b, acc);
  for (int64_t i = 0; i < p.c.dims[d]; ++i)
    forBatch(p, d + 1, c + i * p.c.strides[d], a + i * p.a.strides[d],
             b + i * p.b.strides[d], acc);
}

static void gemmPlain(const Product &p) {
  dispatch(p.a.type, [&](auto zero) {
    using T = decltype(zero);
    using A = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;
    std::vector<A> acc(p.n());
    auto run = [&](auto *c) {
      forBatch(p, 0, c, static_cast<const T *>(p.a.data),
               static_cast<const T *>(p.b.data), acc);
    };
    if constexpr (std::is_same_v<T, BFloat16>)
      if (p.c.type == DType::f32)
        return run(static_cast<float *>(p.c.data));
    run(static_cast<T *>(p.c.data));
  });
}

/// A packed copy of \p v in pool memory where its layout is not direct.
static AnyView directView(Rank &r, const AnyView &v, void *&block) {
  block = nullptr;
  if (matrixLayout(v).direct || v.size() == 0)
    return v;
  block = r.pool().take(size_t(v.size()) * sizeOf(v.type));
  return v.packed(block);
}

void gemm(Rank &r, const AnyView &c, const AnyView &a, const AnyView &b,
          bool accumulate) {
  if (!agree(c, a, b))
    return r.fail(Status(Code::InvalidArgument,
                         "gemm: expected C[.., m, n], A[.., m, k], "
                         "B[.., k, n] of one dtype, or A and B of bf16 and C "
                         "of f32, got " +
                             sizesText(c) + ", " + sizesText(a) + ", " +
                             sizesText(b)));
  const DeviceOps &device = deviceOf(r.backend());
  if (c.size() == 0)
    return;
  if (!device.hasGemm(a.type)) {
    if (r.backend() != Backend::host)
      return r.fail(Status(Code::Unsupported,
                           std::string("gemm: dtype ") + nameOf(a.type) +
                               " is available on the host only"));
    return gemmPlain({c, a, b, accumulate});
  }
  void *packed[3];
  AnyView a2 = directView(r, a, packed[0]), b2 = directView(r, b, packed[1]),
          c2 = directView(r, c, packed[2]);
  if (packed[0])
    r.copy(a2, a);
  if (packed[1])
    r.copy(b2, b);
  if (packed[2] && accumulate)
    r.copy(c2, c);
  r.fail(device.gemm(r, {c2, a2, b2, accumulate}));
  if (packed[2])
    r.copy(c, c2);
  const AnyView *views[3] = {&a, &b, &c};
  for (int i = 0; i < 3; ++i)
    if (packed[i])
      r.pool().give(packed[i],
                    size_t(views[i]->size()) * sizeOf(views[i]->type));
}

} // namespace parc
