//===- Version.h - The version ----------------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The version of parc.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_VERSION_H
#define PARC_DRIVER_VERSION_H

#include "llvm/ADT/StringRef.h"

namespace mlir::parc::driver {

/// "0.1.0".
llvm::StringRef versionText();

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_VERSION_H
