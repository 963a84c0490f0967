//===- NNRandom.h - Counter-based random decisions in IR --------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Random decisions as a function of seed, site, stream and element index, in
/// plain i64 arithmetic: the generator of the runtime's random.h.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNRANDOM_H
#define PARC_DIALECTS_NN_NNRANDOM_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::nn {

/// The key of one stream: `chain(chain(seed, site), stream)`, an i64. `seed` is
/// a scalar i64 tensor; `stream` an index or null, which is 0.
Value randomKey(ImplicitLocOpBuilder &b, Value seed, int64_t site,
                Value stream);

/// Whether the element with global index `index` (an index) stays when elements
/// are dropped with probability `rate`: an i1.
Value keepsElement(ImplicitLocOpBuilder &b, Value key, Value index,
                   double rate);

/// The row-major index of `indices` (index values) in a box of `sizes`.
Value rowMajorIndex(ImplicitLocOpBuilder &b, ValueRange indices,
                    ArrayRef<OpFoldResult> sizes);

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNRANDOM_H
