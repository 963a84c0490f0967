//===- Json.cpp - A small strict JSON reader ------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Recursive descent with a depth counter.
///
//===----------------------------------------------------------------------===//

#include "parc/json.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace parc {
namespace json {

const Value *Value::get(std::string_view key) const {
  for (const auto &[name, value] : object)
    if (name == key)
      return &value;
  return nullptr;
}

namespace {

class Parser {
public:
  Parser(std::string_view text, int depth) : text(text), depthLeft(depth) {}

  Status document(Value &out) {
    PARC_TRY(value(out));
    space();
    return at < text.size() ? expected("the end") : Status();
  }

private:
  Status expected(const std::string &what) const {
    std::string got = "the end";
    if (at < text.size()) {
      unsigned char c = text[at];
      char hex[16];
      std::snprintf(hex, sizeof hex, "byte 0x%02x", c);
      got = c >= 0x20 && c < 0x7f ? std::string("'") + char(c) + "'" : hex;
    }
    return Status(Code::BadFile, "at byte " + std::to_string(at) +
                                     ": expected " + what + ", got " + got);
  }
  void space() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' ||
                                text[at] == '\t' || text[at] == '\r'))
      ++at;
  }
  bool take(char c) {
    space();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  Status word(std::string_view w) {
    if (text.substr(at, w.size()) != w)
      return expected("a value");
    at += w.size();
    return Status();
  }

  Status value(Value &out) {
    space();
    if (at >= text.size())
      return expected("a value");
    switch (text[at]) {
    case '{':
      return nested(out, &Parser::object);
    case '[':
      return nested(out, &Parser::array);
    case '"':
      out.kind = Value::Kind::string;
      return string(out.string);
    case 't':
    case 'f':
      out.kind = Value::Kind::boolean;
      out.boolean = text[at] == 't';
      return word(out.boolean ? "true" : "false");
    case 'n':
      return word("null");
    default:
      return number(out);
    }
  }

  Status nested(Value &out, Status (Parser::*rule)(Value &)) {
    if (depthLeft == 0)
      return Status(Code::BadFile,
                    "at byte " + std::to_string(at) + ": nested too deeply");
    --depthLeft;
    ++at;
    PARC_TRY((this->*rule)(out));
    ++depthLeft;
    return Status();
  }

  Status array(Value &out) {
    out.kind = Value::Kind::array;
    if (take(']'))
      return Status();
    do {
      out.array.emplace_back();
      PARC_TRY(value(out.array.back()));
    } while (take(','));
    return take(']') ? Status() : expected("',' or ']'");
  }

  Status object(Value &out) {
    out.kind = Value::Kind::object;
    if (take('}'))
      return Status();
    do {
      space();
      std::string key;
      PARC_TRY(string(key));
      if (!take(':'))
        return expected("':'");
      out.object.emplace_back(std::move(key), Value());
      PARC_TRY(value(out.object.back().second));
    } while (take(','));
    if (!take('}'))
      return expected("',' or '}'");
    return unique(out);
  }

  static Status unique(const Value &out) {
    std::vector<std::string_view> keys;
    for (const auto &entry : out.object)
      keys.push_back(entry.first);
    std::sort(keys.begin(), keys.end());
    auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end())
      return Status();
    return Status(Code::BadFile, "duplicate name " + quote(*twice));
  }

  Status string(std::string &out) {
    if (at >= text.size() || text[at] != '"')
      return expected("'\"'");
    ++at;
    while (at < text.size() && text[at] != '"') {
      if (static_cast<unsigned char>(text[at]) < 0x20)
        return expected("no control character in a string");
      if (text[at] == '\\')
        PARC_TRY(escape(out));
      else
        out += text[at++];
    }
    if (at >= text.size())
      return expected("'\"'");
    ++at;
    return Status();
  }

  Status hex4(uint32_t &out) {
    out = 0;
    for (int i = 0; i < 4; ++i, ++at) {
      char c = at < text.size() ? text[at] : 0;
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
      if (digit < 0)
        return expected("four hexadecimal digits");
      out = out * 16 + uint32_t(digit);
    }
    return Status();
  }

  Status unicode(std::string &out) {
    uint32_t code;
    PARC_TRY(hex4(code));
    if (code >= 0xd800 && code < 0xdc00) {
      uint32_t low = 0;
      if (text.substr(at, 2) != "\\u")
        return expected("the second half of a surrogate pair");
      at += 2;
      PARC_TRY(hex4(low));
      if (low < 0xdc00 || low >= 0xe000)
        return expected("the second half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      return expected("the first half of a surrogate pair before");
    }
    if (code < 0x80) {
      out += char(code);
      return Status();
    }
    int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const int lead[] = {0, 0xc0, 0xe0, 0xf0};
    out += char(lead[tail] | (code >> (6 * tail)));
    while (tail--)
      out += char(0x80 | ((code >> (6 * tail)) & 0x3f));
    return Status();
  }

  Status escape(std::string &out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    ++at;
    char c = at < text.size() ? text[at] : 0;
    if (c == 'u') {
      ++at;
      return unicode(out);
    }
    for (int i = 0; from[i]; ++i)
      if (c == from[i]) {
        ++at;
        out += to[i];
        return Status();
      }
    return expected("an escape");
  }

  bool digits() {
    size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9')
      ++at;
    return at > begin;
  }

  Status number(Value &out) {
    size_t begin = at;
    bool whole = true;
    if (text[at] == '-')
      ++at;
    bool zero = at < text.size() && text[at] == '0';
    size_t first = at;
    if (!digits())
      return expected("a value");
    if (zero && at > first + 1) {
      at = first + 1;
      return expected("no digit after a leading 0");
    }
    if (at < text.size() && text[at] == '.') {
      ++at;
      whole = false;
      if (!digits())
        return expected("a digit");
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
      ++at;
      whole = false;
      if (at < text.size() && (text[at] == '+' || text[at] == '-'))
        ++at;
      if (!digits())
        return expected("a digit");
    }
    std::string spelling(text.substr(begin, at - begin));
    out.number = std::strtod(spelling.c_str(), nullptr);
    out.kind = Value::Kind::number;
    errno = 0;
    long long integer = whole ? std::strtoll(spelling.c_str(), nullptr, 10) : 0;
    if (whole && errno == 0) {
      out.kind = Value::Kind::integer;
      out.integer = integer;
    }
    return Status();
  }

  std::string_view text;
  size_t at = 0;
  int depthLeft;
};

} // namespace

Status parse(std::string_view text, Value &out, int maxDepth) {
  out = Value();
  return Parser(text, maxDepth).document(out);
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    char buffer[8];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(buffer, sizeof buffer, "\\u%04x", c);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

} // namespace json
} // namespace parc
