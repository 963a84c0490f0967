//===- Text.cpp - Quoting and nearest names -------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Quoting of user text and nearest names, for error messages.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/Text.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace mlir::parc {

std::string quoted(StringRef text) {
  constexpr size_t shown = 40;
  std::string result;
  raw_string_ostream os(result);
  os << '\'';
  printEscapedString(text.take_front(shown), os);
  if (text.size() > shown)
    os << "...";
  os << '\'';
  return result;
}

StringRef nearestName(StringRef text, ArrayRef<StringRef> known) {
  // A third of the letters may be wrong: enough for a slip, too little for
  // another word. Very long texts are no slips, and the distance is quadratic.
  if (text.size() > 64)
    return {};
  std::string lower = text.lower();
  unsigned limit = std::max<unsigned>(1, text.size() / 3);
  StringRef best;
  unsigned bestDistance = limit + 1;
  for (StringRef name : known) {
    unsigned distance = StringRef(lower).edit_distance(name, true, limit);
    if (distance < bestDistance) {
      bestDistance = distance;
      best = name;
    }
  }
  return best;
}

} // namespace mlir::parc
