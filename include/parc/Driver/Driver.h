//===- Driver.h - The tool as a function ------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The tool as a function: arguments in, two streams and an exit code out.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_DRIVER_H
#define PARC_DRIVER_DRIVER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::parc::driver {

/// Runs parc on the arguments that follow the program's name. Results go to
/// `out`, diagnostics to `err`. Returns an ExitCode.
int runDriver(llvm::ArrayRef<llvm::StringRef> arguments, llvm::raw_ostream &out,
              llvm::raw_ostream &err);

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_DRIVER_H
