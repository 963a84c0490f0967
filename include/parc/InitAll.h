//===- InitAll.h - Registers what parc has -------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Explicit registration, so that embedders choose what they load.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_INITALL_H
#define PARC_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::parc {

/// Inserts parc's dialects, the upstream dialects that models use, and the
/// interfaces that parc attaches to upstream ops.
void registerAllDialects(DialectRegistry &registry);

/// Registers parc's passes and named pipelines for textual pipelines.
void registerAllPasses();

} // namespace mlir::parc

#endif // PARC_INITALL_H
