//===- UpstreamModels.h - parc's interfaces on upstream ops ------*- C++
//-*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// External models that give linalg, arith, math and tensor ops their factors
/// and their gradients.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_INTERFACES_UPSTREAMMODELS_H
#define PARC_INTERFACES_UPSTREAMMODELS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::parc {

/// Attaches ShardableOpInterface and DifferentiableOpInterface to the upstream
/// ops that parc understands, when their dialects are loaded:
///  - linalg structured ops, from their indexing maps and bodies;
///  - elementwise arith and math ops, and arith.constant;
///  - tensor.empty, expand_shape, collapse_shape, extract_slice, insert_slice.
/// An op that is not covered has no interface, or fails with a located error.
void registerUpstreamModels(DialectRegistry &registry);

} // namespace mlir::parc

#endif // PARC_INTERFACES_UPSTREAMMODELS_H
