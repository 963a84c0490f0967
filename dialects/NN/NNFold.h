//===- NNFold.h - The order of the sequence -------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Folding for those who do not see the dialect's ops.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNFOLD_H
#define PARC_DIALECTS_NN_NNFOLD_H

#include "mlir/IR/Builders.h"

namespace mlir::nn {

/// `input`, a tensor of integers, folded along `dim` for `parts` parts by an op
/// of its own (nn.fold).
Value fold(OpBuilder &builder, Location loc, Value input, int64_t dim,
           int64_t parts);

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNFOLD_H
