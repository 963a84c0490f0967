//===- Fields.cpp - Typed access to the fields of a config ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What each kind of field accepts, and how its faults read.
///
//===----------------------------------------------------------------------===//

#include "Fields.h"
#include "Nearest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace mlir::parc;

/// How many edits make a name another one rather than a misspelling.
static constexpr unsigned kMisspelt = 2;
/// Shorter names are too much alike to guess at.
static constexpr size_t kShortName = 6;

static StringRef parentOf(StringRef path) {
  size_t dot = path.rfind('.');
  return dot == StringRef::npos ? StringRef() : path.take_front(dot);
}

const llvm::json::Value *Fields::get(StringRef path) {
  known.insert(path.str());
  const llvm::json::Object *object = &source.root();
  StringRef name = path;
  for (size_t dot = name.find('.'); dot != StringRef::npos;
       dot = name.find('.')) {
    object = object->getObject(name.take_front(dot));
    if (!object)
      return nullptr;
    name = name.drop_front(dot + 1);
  }
  const llvm::json::Value *value = object->get(name);
  return value && !value->getAsNull() ? value : nullptr;
}

void Fields::fault(StringRef path, const Twine &text, bool atKey) {
  if (!named.insert(path.str()).second)
    return;
  size_t offset = atKey ? source.keyOffset(path) : source.valueOffset(path);
  faults.push_back({offset, text.str()});
}

void Fields::faultType(StringRef path, const Twine &wanted) {
  fault(path, "field '" + path + "': expected " + wanted + ", got " +
                  source.quote(path));
}

StringRef Fields::findMisspelt(StringRef path) const {
  SmallVector<StringRef> unknown;
  for (const JsonKey &key : source.getKeys())
    if (!isUnderstood(key.path) && !named.count(key.path) &&
        parentOf(key.path) == parentOf(path))
      unknown.push_back(key.path);
  return findNearest(path, unknown, kMisspelt);
}

void Fields::require(StringRef path) {
  if (!get(path))
    faultMissing(path);
}

void Fields::requireKey(StringRef path) {
  if (!source.find(path))
    faultMissing(path);
}

void Fields::faultMissing(StringRef path) {
  StringRef misspelt = findMisspelt(path);
  if (misspelt.empty()) {
    // A field that is missing from a table is one fault of the table's.
    named.insert(path.str());
    faults.push_back(
        {source.find(path) ? source.valueOffset(path)
                           : source.valueOffset(parentOf(path)),
         ("expected field '" + path + "', got " + source.quote(path)).str()});
    return;
  }
  fault(misspelt,
        "expected field '" + path + "', got '" + misspelt + "'; rename it",
        /*atKey=*/true);
}

int64_t Fields::size(StringRef path, std::optional<int64_t> missing,
                     int64_t most, int64_t least) {
  const llvm::json::Value *value = get(path);
  if (!value) {
    if (!missing)
      faultMissing(path);
    return missing.value_or(1);
  }
  std::optional<int64_t> size = value->getAsInteger();
  if (size && *size >= least && *size <= most)
    return *size;
  faultType(path, "a whole number from " + Twine(least) + " to " + Twine(most));
  return 1;
}

double Fields::number(StringRef path, std::optional<double> missing,
                      double least, double most, bool open) {
  const llvm::json::Value *value = get(path);
  if (!value) {
    if (!missing)
      faultMissing(path);
    return missing.value_or(most);
  }
  std::optional<double> number = value->getAsNumber();
  bool good = number && std::isfinite(*number) &&
              (open ? *number > least && *number < most
                    : *number >= least && *number <= most);
  if (good)
    return *number;
  faultType(path,
            llvm::formatv(open ? "a number between {0} and {1}, both excluded"
                               : "a number from {0} to {1}",
                          llvm::json::Value(least), llvm::json::Value(most))
                .str());
  return missing.value_or(most);
}

bool Fields::boolean(StringRef path, bool missing) {
  const llvm::json::Value *value = get(path);
  if (!value)
    return missing;
  if (std::optional<bool> boolean = value->getAsBoolean())
    return *boolean;
  faultType(path, "true or false");
  return missing;
}

std::string Fields::string(StringRef path, StringRef missing) {
  const llvm::json::Value *value = get(path);
  if (!value)
    return missing.str();
  if (std::optional<StringRef> string = value->getAsString())
    return string->str();
  faultType(path, "a string");
  return missing.str();
}

void Fields::requireOneOf(StringRef path, StringRef allowedJson) {
  const llvm::json::Value *value = get(path);
  if (!value)
    return;
  llvm::Expected<llvm::json::Value> allowed = llvm::json::parse(allowedJson);
  llvm::json::Value list = cantFail(std::move(allowed));
  const llvm::json::Array &values = *list.getAsArray();
  if (llvm::is_contained(values, *value))
    return;
  SmallVector<std::string> quoted;
  for (const llvm::json::Value &one : values)
    quoted.push_back(quoteJson(one));
  faultType(path, llvm::join(quoted, " or ") + " (others are not supported)");
}

void Fields::checkSpelling() {
  for (const JsonKey &key : source.getKeys()) {
    StringRef path = key.path;
    if (isUnderstood(path) || named.count(path) || path.size() < kShortName)
      continue;
    SmallVector<StringRef> absent;
    for (StringRef field : known)
      if (!source.find(field) && parentOf(field) == parentOf(path))
        absent.push_back(field);
    StringRef nearest = findNearest(path, absent, kMisspelt);
    if (!nearest.empty())
      fault(path,
            "unknown field '" + path + "'; did you mean '" + nearest + "'?",
            /*atKey=*/true);
  }
}

SmallVector<StringRef> Fields::getUnknown() const {
  SmallVector<StringRef> unknown;
  for (const JsonKey &key : source.getKeys()) {
    StringRef parent = parentOf(key.path);
    bool parentRead = parent.empty();
    for (StringRef field : known)
      parentRead |= !parent.empty() && parentOf(field) == parent;
    if (parentRead && !isUnderstood(key.path))
      unknown.push_back(key.path);
  }
  return unknown;
}

LogicalResult Fields::report() const {
  if (faults.empty())
    return success();
  SmallVector<Fault> sorted(faults);
  llvm::stable_sort(sorted, [](const Fault &a, const Fault &b) {
    return a.offset < b.offset;
  });
  InFlightDiagnostic error = emitError(source.locate(sorted.front().offset))
                             << sorted.front().text;
  for (const Fault &other : ArrayRef(sorted).drop_front())
    error.attachNote(source.locate(other.offset)) << other.text;
  return failure();
}
