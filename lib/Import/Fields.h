//===- Fields.h - Typed access to the fields of a config --------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads fields one by one, each with its type and range, and gathers what is
/// wrong so that a user sees all of it at once.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_IMPORT_FIELDS_H
#define PARC_LIB_IMPORT_FIELDS_H

#include "JsonSource.h"
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>

namespace mlir::parc {

/// The largest size that a dimension or a count may have: the product of two
/// fits in 2^62.
inline constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

/// Reads a config's fields. Every field asked for counts as known, present or
/// not. A faulty field reads as a harmless value; `report` tells of it.
class Fields {
public:
  explicit Fields(const JsonSource &source) : source(source) {}

  /// The value of a field; null where it is missing or JSON's null.
  const llvm::json::Value *get(StringRef path);

  /// A whole number from `least` to `most`. Without a default it is required.
  int64_t size(StringRef path, std::optional<int64_t> missing = std::nullopt,
               int64_t most = kMaxSize, int64_t least = 1);
  /// A finite number from `least` to `most`, both possible unless `open`.
  double number(StringRef path, std::optional<double> missing, double least,
                double most, bool open = false);
  bool boolean(StringRef path, bool missing);
  std::string string(StringRef path, StringRef missing);

  /// Whether the value is one of a JSON array of values; absence is. The
  /// fault names those.
  void requireOneOf(StringRef path, StringRef allowedJson);
  /// A fault where the field is missing, or null.
  void require(StringRef path);
  /// A fault where the field is missing; null is a value.
  void requireKey(StringRef path);
  /// The field is used, whether or not it has been read yet.
  void markKnown(StringRef path) { known.insert(path.str()); }
  /// The field changes nothing.
  void markHarmless(StringRef path) { harmless.insert(path.str()); }

  /// A fault at a field's value, or at its key where `atKey`. A field has one.
  void fault(StringRef path, const Twine &text, bool atKey = false);
  bool hasFault(StringRef path) const { return named.count(path); }
  bool hasFaults() const { return !faults.empty(); }

  /// Faults of fields that are not known but nearly spelt like one that is
  /// known and missing.
  void checkSpelling();
  /// Fields that are not known, in the file's order. A field below an unknown
  /// one, or below one read as a whole, is not listed.
  SmallVector<StringRef> getUnknown() const;
  /// Emits the first fault, in the text's order, as an error, the others as
  /// notes.
  LogicalResult report() const;

  const JsonSource &getSource() const { return source; }

private:
  struct Fault {
    size_t offset;
    std::string text;
  };
  void faultMissing(StringRef path);
  void faultType(StringRef path, const Twine &wanted);
  /// An unknown field whose name is near, and which no fault names yet.
  StringRef findMisspelt(StringRef path) const;

  bool isUnderstood(StringRef path) const {
    return known.count(path) || harmless.count(path);
  }

  const JsonSource &source;
  /// Sorted, so that suggestions are.
  std::set<std::string, std::less<>> known;
  std::set<std::string, std::less<>> harmless;
  std::set<std::string, std::less<>> named;
  SmallVector<Fault> faults;
};

} // namespace mlir::parc

#endif // PARC_LIB_IMPORT_FIELDS_H
