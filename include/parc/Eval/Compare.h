//===- Compare.h - Are two tensors equal? -----------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Comparison of results: relative in the reals, bit for bit in the exact
/// domain.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_EVAL_COMPARE_H
#define PARC_EVAL_COMPARE_H

#include "parc/Eval/Tensor.h"

#include <optional>

namespace mlir::parc::eval {

/// The norm of got - expected over the norm of expected; the norm of the
/// difference where expected is zero. Infinite for different shapes or kinds,
/// and where a NaN is on one side only. In the exact domain 0 or infinite.
template <class T>
double relativeDifference(const Tensor<T> &got, const Tensor<T> &expected);

/// The index of the first element that is not equal bit for bit; none where all
/// are. Both have one shape and kind, else the first index is all zeros.
template <class T>
std::optional<Shape> firstDifference(const Tensor<T> &got,
                                     const Tensor<T> &expected);

} // namespace mlir::parc::eval

#endif // PARC_EVAL_COMPARE_H
