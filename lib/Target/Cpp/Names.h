//===- Names.h - Identifiers and literals -----------------------------*- C++
//-*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The only ways from a model's text into C++: identifiers come out of one
/// sanitiser, text goes through one escaping function, comments hold what the
/// sanitiser passes, numbers are exact.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TARGET_CPP_NAMES_H
#define PARC_LIB_TARGET_CPP_NAMES_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace mlir::parc::cpp {

/// Letters, digits and single underscores of `text`; begins with a letter, at
/// most 48 characters, no keyword, no word of the generated code.
std::string identifier(StringRef text);

/// Unique identifiers of one scope.
class Scope {
public:
  /// `identifier(text)`, with a number where it is taken.
  std::string take(StringRef text);

private:
  llvm::StringSet<> used;
};

/// A string literal of any bytes, in printable ASCII.
std::string literal(StringRef text);
/// `text` for a comment: printable ASCII without backslashes, stars before
/// slashes and question marks, at most 90 characters.
std::string comment(StringRef text);
/// `file:line:column` of a location for a comment; empty where there is none.
std::string place(Location loc);
/// The name that a location gives a value; empty where it gives none.
StringRef nameOf(Location loc);

/// An exact literal of a number of this type.
std::string number(Attribute value);
/// `float`, `double`, `BFloat16`, `int64_t`, `bool`.
std::string scalarType(Type type);
/// `DType::f32`, and so on.
std::string dtype(Type type);
/// `4x16x32 f32`, with ? for what the start decides.
std::string shapeText(Type type);

} // namespace mlir::parc::cpp

#endif // PARC_LIB_TARGET_CPP_NAMES_H
