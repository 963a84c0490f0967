//===- DecomposeComposites.cpp - Decomposes ops without factors -----------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Decomposition of the ops that propagation could not see through.
///
//===----------------------------------------------------------------------===//

#include "DecomposeUtils.h"
#include "parc/Transforms/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITES
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

namespace {
struct DecomposeCompositesPass
    : public parc::impl::DecomposeCompositesBase<DecomposeCompositesPass> {
  void runOnOperation() override {
    auto hasNoFactors = [](Operation *op) {
      return !isa<ShardableOpInterface>(op);
    };
    if (failed(decomposeWhere(getOperation(), hasNoFactors)))
      signalPassFailure();
  }
};
} // namespace
