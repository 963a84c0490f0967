//===- AccumulateTypes.cpp - What sums are added up in --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes down, on each op that sums and gives the sum in a narrow type, the
/// type that the terms are added up in.
///
//===----------------------------------------------------------------------===//

#include "parc/Transforms/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_ACCUMULATETYPES
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

namespace {
struct AccumulateTypesPass
    : public parc::impl::AccumulateTypesBase<AccumulateTypesPass> {
  void runOnOperation() override {
    auto wide = TypeAttr::get(Float32Type::get(&getContext()));
    for (StepOp step : getOperation().getOps<StepOp>())
      step.walk([&](Operation *op) {
        if (!op->hasAttr(kAccumulateAttr) && sumsNarrow(op))
          op->setAttr(kAccumulateAttr, wide);
      });
  }
};
} // namespace
