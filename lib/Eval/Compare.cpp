//===- Compare.cpp - Are two tensors equal? -------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Norms and first differences.
///
//===----------------------------------------------------------------------===//

#include "parc/Eval/Compare.h"

using namespace mlir::parc::eval;

template <class T>
std::optional<Shape>
mlir::parc::eval::firstDifference(const Tensor<T> &got,
                                  const Tensor<T> &expected) {
  if (got.shape() != expected.shape() || got.isInt() != expected.isInt())
    return Shape(expected.rank(), 0);
  int64_t at = got.visit([&](auto kind) {
    using E = decltype(kind);
    const E *a = got.template data<E>(), *b = expected.template data<E>();
    for (int64_t i = 0, n = got.size(); i < n; ++i)
      if (std::memcmp(&a[i], &b[i], sizeof(E)) != 0)
        return i;
    return int64_t(-1);
  });
  if (at < 0)
    return std::nullopt;
  Shape index;
  for (int64_t stride : rowMajorStrides(got.shape())) {
    index.push_back(at / stride);
    at %= stride;
  }
  return index;
}

template <class T>
double mlir::parc::eval::relativeDifference(const Tensor<T> &got,
                                            const Tensor<T> &expected) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (got.shape() != expected.shape() || got.isInt() != expected.isInt())
    return infinite;
  if (DomainOf<T>::exact || got.isInt())
    return firstDifference(got, expected) ? infinite : 0.0;
  double difference = 0, norm = 0;
  for (int64_t i = 0, n = got.size(); i < n; ++i) {
    double a = DomainOf<T>::toDouble(got.floats()[i]),
           b = DomainOf<T>::toDouble(expected.floats()[i]);
    if (a == b || (std::isnan(a) && std::isnan(b)))
      a = b = std::isfinite(b) ? b : 0.0;
    if (std::isnan(a) || std::isnan(b))
      return infinite;
    difference += (a - b) * (a - b);
    norm += b * b;
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

#define PARC_INSTANTIATE(T)                                                    \
  template double mlir::parc::eval::relativeDifference(const Tensor<T> &,      \
                                                       const Tensor<T> &);     \
  template std::optional<Shape> mlir::parc::eval::firstDifference(             \
      const Tensor<T> &, const Tensor<T> &);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
