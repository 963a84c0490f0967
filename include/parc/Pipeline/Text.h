//===- Text.h - Located text errors and quoting -----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the parsers of short command line texts (meshes, rank orders) report:
/// a message with the byte range it is about, so that the driver can put a
/// caret. Also safe quoting of user text and the nearest known name.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_PIPELINE_TEXT_H
#define PARC_PIPELINE_TEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace mlir::parc {

/// An error in a short text.
struct TextError {
  /// Lower-case fragment without a full stop.
  std::string message;
  /// How to fix it; may be empty.
  std::string help;
  /// First byte of the offending part; equals the text's size at its end.
  size_t offset = 0;
  /// Bytes of the offending part; 0 where something is missing.
  size_t length = 0;
};

/// `text` in single quotes, other bytes than printable ASCII escaped, cut
/// after 40 bytes.
std::string quoted(llvm::StringRef text);

/// The name in `known` nearest to `text`, or an empty string when none is
/// near enough to be what was meant. The first wins among equals.
llvm::StringRef nearestName(llvm::StringRef text,
                            llvm::ArrayRef<llvm::StringRef> known);

} // namespace mlir::parc

#endif // PARC_PIPELINE_TEXT_H
