//===- RefineMesh.h - Axes split into sub-axes ----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An axis that must be used in parts (key heads on more ranks than heads,
/// experts on some of the ranks of dp) becomes several axes of the mesh:
/// `dp.0`, `dp.1` from major to minor. Layouts name the parts.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_ANALYSIS_REFINEMESH_H
#define PARC_ANALYSIS_REFINEMESH_H

#include "Parc/Parc.h"
#include "parc/Analysis/Strategy.h"

namespace mlir::parc {

/// Splits `axis` of the module's mesh so that its minor-most parts have `inner`
/// ranks together. Fails, and changes nothing, where `inner` divides neither
/// the axis nor fits to the cuts it has. An axis that is absent has size 1.
LogicalResult splitAxis(ModuleOp module, StringRef axis, int64_t inner);

/// Splits `axes`, which will cut one dimension after the other, where a nested
/// cut of some op's dimension (DimCut::Nested) needs their parts.
void refineForNestedCuts(ModuleOp module, ArrayRef<StringRef> axes);

/// The minor-most parts of `axis` that have `inner` ranks together.
SmallVector<std::string> innerParts(ModuleOp module, StringRef axis,
                                    int64_t inner);

} // namespace mlir::parc

#endif // PARC_ANALYSIS_REFINEMESH_H
