//===- json.h - A small strict JSON reader ----------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads JSON (RFC 8259) from untrusted bytes: depth and size are bounded,
/// duplicate keys and anything after the value are errors, numbers that are
/// integers of 64 bits stay exact.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_JSON_H
#define PARC_JSON_H

#include "parc/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parc {
namespace json {

struct Value {
  enum class Kind { null, boolean, integer, number, string, array, object };

  Kind kind = Kind::null;
  bool boolean = false;
  int64_t integer = 0; ///< Kind::integer only.
  double number = 0;   ///< Both kinds of numbers.
  std::string string;
  std::vector<Value> array;
  std::vector<std::pair<std::string, Value>> object; ///< In textual order.

  bool isObject() const { return kind == Kind::object; }
  bool isArray() const { return kind == Kind::array; }
  bool isString() const { return kind == Kind::string; }
  bool isInteger() const { return kind == Kind::integer; }
  /// The member of that name, or null.
  const Value *get(std::string_view key) const;
};

constexpr int DefaultDepth = 32;

/// Errors name the byte offset: "at byte 17: expected ':', got '}'".
Status parse(std::string_view text, Value &out, int maxDepth = DefaultDepth);

/// A JSON string literal, quotes included.
std::string quote(std::string_view text);

} // namespace json
} // namespace parc

#endif // PARC_JSON_H
