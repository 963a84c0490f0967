//===- Decompose.cpp - Replaces ops by their definitions ------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Decomposition of ops into upstream ops, for all of them.
///
//===----------------------------------------------------------------------===//

#include "DecomposeUtils.h"
#include "parc/Transforms/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_DECOMPOSE
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

LogicalResult
mlir::parc::decomposeWhere(Operation *root,
                           function_ref<bool(Operation *)> condition) {
  // A definition may use ops that have one themselves.
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<DecomposableOpInterface> ops;
    root->walk([&](DecomposableOpInterface op) {
      if (condition(op))
        ops.push_back(op);
    });
    for (DecomposableOpInterface op : ops) {
      OpBuilder builder(op);
      FailureOr<SmallVector<Value>> values = op.decompose(builder);
      if (failed(values))
        return emitError(op->getLoc())
               << "'" << op->getName() << "' could not be decomposed";
      op->replaceAllUsesWith(*values);
      op->erase();
      changed = true;
    }
  }
  return success();
}

namespace {
struct DecomposePass : public parc::impl::DecomposeBase<DecomposePass> {
  void runOnOperation() override {
    if (failed(
            decomposeWhere(getOperation(), [](Operation *) { return true; })))
      signalPassFailure();
  }
};
} // namespace
