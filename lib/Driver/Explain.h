//===- Explain.h - Changes that send less ------------------------*- C++
//-*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What `parc explain` tries: small changes of the declaration, compiled as far
/// as needed to count what is sent.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_DRIVER_EXPLAIN_H
#define PARC_LIB_DRIVER_EXPLAIN_H

#include "parc/Driver/Compilation.h"

namespace mlir::parc::driver {

/// A change of the declaration, as flags.
struct Change {
  std::string text;
  std::vector<std::pair<std::string, std::string>> flags;
};

/// What a change does: bytes a step that the busiest rank sends, for the name
/// asked about and in all.
struct ChangeResult {
  Change change;
  double here = 0, all = 0;
};

/// The changes worth trying for collectives over `axes`: sp on or off, an axis
/// halved for another doubled, the other kinds of context parallelism, the
/// other stages of ZeRO, fewer micro-batches, no ep.
std::vector<Change> smallChanges(const Declaration &declaration,
                                 ArrayRef<std::string> axes);

/// Compiles the model under a change; nothing where that is illegal.
std::optional<ChangeResult> tryChange(const CommandLine &line,
                                      const Change &change, StringRef name);

} // namespace mlir::parc::driver

#endif // PARC_LIB_DRIVER_EXPLAIN_H
