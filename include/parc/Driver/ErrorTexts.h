//===- ErrorTexts.h - Errors at length ---------------------------*- C++
//-*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The long form of every error and warning, by the short name that is printed
/// in brackets after its message: what `parc explain ERROR` says.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_ERRORTEXTS_H
#define PARC_DRIVER_ERRORTEXTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mlir::parc::driver {

/// One short name at length.
struct ErrorText {
  llvm::StringLiteral name;
  /// What the rule is, and why it is one.
  llvm::StringLiteral rule;
  /// Something that meets the error, and how it is put right.
  llvm::StringLiteral example, fix;
};

/// All, sorted by name.
llvm::ArrayRef<ErrorText> errorTexts();

/// Null for a name that no message has.
const ErrorText *findErrorText(llvm::StringRef name);

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_ERRORTEXTS_H
