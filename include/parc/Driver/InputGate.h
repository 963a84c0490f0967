//===- InputGate.h - Checks before parsing ----------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a text must pass before a recursive parser reads it: MLIR's and TOML's
/// parsers overflow the stack on deep nesting, and MLIR's attribute aliases
/// expand exponentially. One linear pass, no recursion.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_INPUTGATE_H
#define PARC_DRIVER_INPUTGATE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace mlir::parc::driver {

/// Why a text is not given to a parser, and where.
struct InputFault {
  std::string message;
  std::string help;
  unsigned line = 0, column = 0;
};

/// Bounds on MLIR text.
struct MLIRLimits {
  size_t bytes = size_t(64) << 20;
  unsigned depth = 256;
  /// Binary operators between two brackets (affine expressions recurse).
  unsigned operators = 10000;
  unsigned aliases = 10000;
  /// Nodes of one alias, and of all uses, when written out.
  uint64_t aliasNodes = 1000000;
  uint64_t allNodes = 20000000;
};

/// Empty where `text` may be parsed. Also refuses bytecode, NUL bytes and
/// resources (`dense_resource`), whose blobs nothing checks.
std::optional<InputFault> checkMLIRText(StringRef text,
                                        const MLIRLimits &limits = {});

/// The same for TOML: at most 1 MiB, 64 dotted parts of a key, 64 levels.
std::optional<InputFault> checkTOMLText(StringRef text);

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_INPUTGATE_H
