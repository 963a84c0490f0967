//===- JsonSource.cpp - JSON that knows where it is written ---------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// LLVM's JSON values have no places, so a second walk over the text, which
/// is known to be well formed by then, notes the offset of each key.
///
//===----------------------------------------------------------------------===//

#include "JsonSource.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::parc;

static constexpr int kMaxDepth = 32;

/// Short enough for one line.
static std::string shorten(StringRef text) {
  constexpr size_t longest = 60;
  return text.size() <= longest ? text.str()
                                : (text.take_front(longest) + "...").str();
}

namespace {
/// Walks well-formed JSON and notes its keys.
class KeyScanner {
public:
  KeyScanner(StringRef text, std::vector<JsonKey> &keys)
      : text(text), keys(keys) {}

  void scan() { scanValue(""); }

  /// The index in `keys` of the first key that its object has twice.
  std::optional<size_t> twice;

private:
  void skipSpace() {
    at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
  }

  /// The decoded string at the cursor, which then stands behind it.
  std::string scanString() {
    size_t begin = at++;
    while (at < text.size() && text[at] != '"')
      at += text[at] == '\\' ? 2 : 1;
    ++at;
    llvm::Expected<llvm::json::Value> decoded =
        llvm::json::parse(text.slice(begin, at));
    if (!decoded) {
      llvm::consumeError(decoded.takeError());
      return text.slice(begin, at).str();
    }
    return decoded->getAsString().value_or("").str();
  }

  void scanObject(const std::string &prefix) {
    llvm::StringSet<> seen;
    for (++at, skipSpace(); at < text.size() && text[at] != '}'; skipSpace()) {
      size_t keyOffset = at;
      std::string key = scanString();
      skipSpace();
      ++at; // the colon
      skipSpace();
      keys.push_back({prefix + key, keyOffset, at});
      if (!seen.insert(key).second && !twice)
        twice = keys.size() - 1;
      scanValue(prefix + key + ".");
      skipComma();
    }
    ++at;
  }

  void scanArray(const std::string &prefix) {
    for (++at, skipSpace(); at < text.size() && text[at] != ']'; skipSpace()) {
      scanValue(prefix);
      skipComma();
    }
    ++at;
  }

  void skipComma() {
    skipSpace();
    if (at < text.size() && text[at] == ',')
      ++at;
  }

  void scanValue(const std::string &prefix) {
    skipSpace();
    if (at >= text.size())
      return;
    if (text[at] == '{')
      return scanObject(prefix);
    if (text[at] == '[')
      return scanArray(prefix);
    if (text[at] == '"')
      return void(scanString());
    at = std::min(text.find_first_of(",]} \t\r\n", at), text.size());
  }

  StringRef text;
  std::vector<JsonKey> &keys;
  size_t at = 0;
};
} // namespace

/// The offset of the bracket that nests too deep; npos where none does.
static size_t findTooDeep(StringRef text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth)
        return i;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return StringRef::npos;
}

/// Takes the place out of a parse error, "[line:column, byte=n]: Message".
static void emitParseError(MLIRContext *context, StringRef file,
                           llvm::Error error) {
  std::string all = llvm::toString(std::move(error));
  auto [place, message] = StringRef(all).split("]: ");
  unsigned line = 1, column = 0;
  place.consume_front("[");
  place.consumeInteger(10, line);
  place.consume_front(":");
  place.consumeInteger(10, column);
  std::string text = message.str();
  if (!text.empty())
    text[0] = llvm::toLower(text[0]);
  emitError(FileLineColLoc::get(context, file, line, column + 1))
      << "not JSON: " << text;
}

FailureOr<JsonSource> JsonSource::parse(MLIRContext *context, StringRef text,
                                        StringRef file, size_t maxBytes) {
  if (text.size() > maxBytes) {
    emitError(FileLineColLoc::get(context, file, 1, 1))
        << "expected at most " << maxBytes << " bytes, got " << text.size();
    return failure();
  }
  JsonSource source(context, text, file);
  size_t deep = findTooDeep(text);
  if (deep != StringRef::npos) {
    emitError(source.locate(deep))
        << "expected JSON nested at most " << kMaxDepth << " deep";
    return failure();
  }
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value) {
    emitParseError(context, file, value.takeError());
    return failure();
  }
  if (!value->getAsObject()) {
    emitError(source.startLocation())
        << "expected a JSON object, got " << quoteJson(*value);
    return failure();
  }
  source.value = std::move(*value);
  KeyScanner scanner(source.text, source.keys);
  scanner.scan();
  if (scanner.twice) {
    const JsonKey &key = source.keys[*scanner.twice];
    emitError(source.locate(key.keyOffset))
        << "field '" << key.path << "' is given twice; remove one";
    return failure();
  }
  return source;
}

const JsonKey *JsonSource::find(StringRef path) const {
  for (const JsonKey &key : keys)
    if (key.path == path)
      return &key;
  return nullptr;
}

size_t JsonSource::keyOffset(StringRef path) const {
  const JsonKey *key = find(path);
  return key ? key->keyOffset : 0;
}

size_t JsonSource::valueOffset(StringRef path) const {
  const JsonKey *key = find(path);
  return key ? key->valueOffset : 0;
}

std::string JsonSource::quote(StringRef path) const {
  const JsonKey *key = find(path);
  if (!key)
    return "none";
  StringRef rest = StringRef(text).drop_front(key->valueOffset);
  if (rest.starts_with("{"))
    return "an object";
  if (rest.starts_with("["))
    return "an array";
  size_t end = 1;
  if (rest.starts_with("\"")) {
    while (end < rest.size() && rest[end] != '"')
      end += rest[end] == '\\' ? 2 : 1;
    ++end;
  } else {
    end = rest.find_first_of(",]} \t\r\n");
  }
  return shorten(rest.take_front(end));
}

Location JsonSource::locate(size_t offset) const {
  StringRef before = StringRef(text).take_front(offset);
  unsigned line = static_cast<unsigned>(before.count('\n')) + 1;
  size_t lineStart = before.rfind('\n');
  size_t column =
      lineStart == StringRef::npos ? offset + 1 : offset - lineStart;
  return FileLineColLoc::get(context, file, line,
                             static_cast<unsigned>(column));
}

std::string mlir::parc::quoteJson(const llvm::json::Value &value) {
  if (value.getAsObject())
    return "an object";
  if (value.getAsArray())
    return "an array";
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return shorten(text);
}
