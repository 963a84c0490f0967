//===- gemm.h - Strided batched matrix products -----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[batch.., m, n] (+)= A[batch.., m, k] * B[batch.., k, n] for views with any
/// strides; a transposed operand is a permuted view. Float and double go to
/// the library (OpenBLAS, cuBLASLt), on a device bf16 too; an operand is copied
/// only where neither of its inner dimensions has unit stride. Every other type
/// is computed by a plain loop on the host, residues exactly. Products of bf16
/// are accumulated in float, and may be given in it.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_GEMM_H
#define PARC_GEMM_H

#include "parc/rank.h"

namespace parc {

/// The product of views of one rank and type; of bf16, C may be f32. Batch
/// strides may be 0 in A and B. With k = 0 the result is zero, or unchanged
/// when accumulating. C must not overlap A or B.
void gemm(Rank &r, const AnyView &c, const AnyView &a, const AnyView &b,
          bool accumulate = false);

/// Threads that the host's matrix library uses for one rank; 1 at start.
void setGemmThreads(int threads);

} // namespace parc

#endif // PARC_GEMM_H
