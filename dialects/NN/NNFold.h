//===- NNFold.h - The dialect folds sequences -----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Registration of nn.fold with those who do not know the dialect.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNFOLD_H
#define PARC_DIALECTS_NN_NNFOLD_H

namespace mlir::nn {

class NNDialect;

/// Gives the dialect its FoldDialectInterface.
void addFoldInterface(NNDialect &dialect);

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNFOLD_H
