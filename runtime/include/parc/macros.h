//===- macros.h - What g++ and nvcc spell differently -----------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The few words that differ between the host compiler and nvcc. Everything
/// else in the kernels is the same text for both.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_MACROS_H
#define PARC_MACROS_H

#ifdef __CUDACC__
/// A function that runs on both sides.
#define PARC_HD __host__ __device__
/// Begins a kernel lambda: `PARC_FN(int64_t i) { y(i) = x(i); }`.
#define PARC_FN [=] __device__
#else
#define PARC_HD
#define PARC_FN [=]
#endif

/// Kernels are worth nothing as calls.
#define PARC_INLINE inline __attribute__((always_inline))

#endif // PARC_MACROS_H
