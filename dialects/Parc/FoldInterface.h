//===- FoldInterface.h - Who can fold a sequence --------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A dialect that has an op which folds a dimension (see `nn.fold`) says so.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_PARC_FOLDINTERFACE_H
#define PARC_DIALECTS_PARC_FOLDINTERFACE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectInterface.h"

namespace mlir::parc {

/// Builds an op that folds tensors of integers.
class FoldDialectInterface
    : public DialectInterface::Base<FoldDialectInterface> {
public:
  using Base::Base;

  /// `input` folded along `dim` for `parts` parts, by an op of its own.
  virtual Value fold(OpBuilder &builder, Location loc, Value input, int64_t dim,
                     int64_t parts) const = 0;
};

} // namespace mlir::parc

#endif // PARC_DIALECTS_PARC_FOLDINTERFACE_H
