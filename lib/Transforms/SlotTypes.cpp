//===- SlotTypes.cpp - What gradients and state are kept in ---------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The default of mixed precision: whatever is added up over micro-batches,
/// ranks or steps is kept in at least f32 (arXiv:1710.03740, section 3.1).
///
//===----------------------------------------------------------------------===//

#include "parc/Transforms/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_SLOTTYPES
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

namespace {
struct SlotTypesPass : public parc::impl::SlotTypesBase<SlotTypesPass> {
  void runOnOperation() override {
    Builder builder(&getContext());
    auto wide = TypeAttr::get(builder.getF32Type());
    for (ParamOp param : getOperation().getOps<ParamOp>()) {
      if (param.getSlotTypes() ||
          param.getTensorType().getElementTypeBitWidth() >= 32)
        continue;
      NamedAttribute slots[] = {builder.getNamedAttr(kGradientSlot, wide),
                                builder.getNamedAttr(kStateLayout, wide)};
      param.setSlotTypesAttr(builder.getDictionaryAttr(slots));
    }
  }
};
} // namespace
