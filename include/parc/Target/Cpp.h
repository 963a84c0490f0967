//===- Cpp.h - Programs as C++ ----------------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Prints a module of the runtime phase as the C++ sources of a trainer. It
/// chooses nothing: every op is one call.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TARGET_CPP_H
#define PARC_TARGET_CPP_H

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <map>
#include <string>

namespace mlir::parc {

/// What the program says of itself and the module does not.
struct CppOptions {
  /// One line: what was compiled, for comments and the README.
  std::string model;
  std::string version;
  int64_t batch = 1, seq = 1, vocab = 1;
  /// The optimizer's defaults by scalar name: lr, beta1, beta2, eps,
  /// weight_decay, clip.
  std::map<std::string, double> hyper;
};

/// Takes a file: its path in the folder and its contents; false stops.
using WriteFile = std::function<bool(StringRef, StringRef)>;

/// Writes README.md, CMakeLists.txt and src/. Errors name the op that has no
/// C++.
LogicalResult emitCpp(ModuleOp module, const CppOptions &options,
                      const WriteFile &write);

/// Writes the runtime's sources under runtime/: from the folder of the build,
/// or of the installation that the program at `executable` belongs to. False
/// where neither is there or `write` stops.
bool copyRuntime(StringRef executable, const WriteFile &write,
                 std::string &error);

} // namespace mlir::parc

#endif // PARC_TARGET_CPP_H
