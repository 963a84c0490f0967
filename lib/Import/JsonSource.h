//===- JsonSource.h - JSON that knows where it is written -------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A JSON object with the place of every key, so that a diagnostic can point
/// at it. Hostile text (too long, too deep, keys twice) is refused before it
/// is read.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_IMPORT_JSONSOURCE_H
#define PARC_LIB_IMPORT_JSONSOURCE_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace mlir::parc {

/// A key of an object, however deep.
struct JsonKey {
  /// The keys that lead to it, with dots between.
  std::string path;
  size_t keyOffset;
  size_t valueOffset;
};

/// A JSON text whose outermost value is an object.
class JsonSource {
public:
  /// Reads `text`. Emits an error at its place in `file` if it is longer than
  /// `maxBytes`, nested deeper than 32, not JSON, not an object, or has a key
  /// twice.
  static FailureOr<JsonSource> parse(MLIRContext *context, StringRef text,
                                     StringRef file, size_t maxBytes = 4 << 20);

  const llvm::json::Object &root() const { return *value.getAsObject(); }

  /// All keys as written, outermost first at each place.
  ArrayRef<JsonKey> getKeys() const { return keys; }
  /// Null where there is no such key.
  const JsonKey *find(StringRef path) const;

  /// The place of a key, or of its value; the start where it is missing.
  Location keyLocation(StringRef path) const { return locate(keyOffset(path)); }
  Location valueLocation(StringRef path) const {
    return locate(valueOffset(path));
  }
  /// A value as a diagnostic quotes it: as written, and short; an object or
  /// an array by its kind. "none" where the key is missing.
  std::string quote(StringRef path) const;
  Location startLocation() const { return locate(0); }

  /// The offset of a key or of its value; 0 where it is missing.
  size_t keyOffset(StringRef path) const;
  size_t valueOffset(StringRef path) const;
  /// The line and column of an offset, both from 1.
  Location locate(size_t offset) const;

private:
  JsonSource(MLIRContext *context, StringRef text, StringRef file)
      : context(context), text(text), file(file), value(nullptr) {}

  MLIRContext *context;
  std::string text, file;
  llvm::json::Value value;
  std::vector<JsonKey> keys;
};

/// A value that is not written in a text, quoted alike.
std::string quoteJson(const llvm::json::Value &value);

} // namespace mlir::parc

#endif // PARC_LIB_IMPORT_JSONSOURCE_H
