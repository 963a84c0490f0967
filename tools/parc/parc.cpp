//===- parc.cpp - The command line tool -----------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// main() of the command line tool; all else is ParcDriver.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Driver.h"

#include "llvm/ADT/SmallVector.h"

int main(int argc, char **argv) {
  llvm::SmallVector<llvm::StringRef> arguments(argv + (argc > 0), argv + argc);
  return mlir::parc::driver::runDriver(arguments, llvm::outs(), llvm::errs());
}
