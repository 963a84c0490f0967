//===- Nearest.h - The nearest of some names --------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds the name that a misspelt one was meant to be.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_IMPORT_NEAREST_H
#define PARC_LIB_IMPORT_NEAREST_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::parc {

/// The candidate with the least edit distance to `name`, the first of those
/// equally near; empty where none is within a third of the name's length.
StringRef findNearest(StringRef name, ArrayRef<StringRef> candidates);

/// The same, within `most` edits.
StringRef findNearest(StringRef name, ArrayRef<StringRef> candidates,
                      unsigned most);

} // namespace mlir::parc

#endif // PARC_LIB_IMPORT_NEAREST_H
