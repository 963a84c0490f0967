//===- InputGate.cpp - Checks before parsing ------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The linear scans.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/InputGate.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::parc::driver;

static InputFault fault(StringRef text, size_t offset, const Twine &message,
                        const Twine &help = "") {
  StringRef before = text.take_front(offset);
  size_t lineStart = before.rfind('\n');
  lineStart = lineStart == StringRef::npos ? 0 : lineStart + 1;
  return {message.str(), help.str(),
          static_cast<unsigned>(before.count('\n') + 1),
          static_cast<unsigned>(offset - lineStart + 1)};
}

static bool isNameByte(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$' || c == '-';
}

namespace {

/// Scans MLIR text.
class MLIRGate {
public:
  MLIRGate(StringRef text, const MLIRLimits &limits)
      : text(text), limits(limits) {}

  std::optional<InputFault> run();

private:
  void skipString();
  std::optional<InputFault> bracket(char c);
  std::optional<InputFault> name();
  std::optional<InputFault> alias();
  void finishAlias();
  std::optional<InputFault> operatorAt(size_t at);

  StringRef text;
  const MLIRLimits &limits;
  size_t at = 0;
  unsigned depth = 0, angles = 0, operators = 0;
  /// Only blanks since the line's begin.
  bool lineStart = true;
  /// Sizes of the aliases defined so far, written out.
  llvm::StringMap<uint64_t> sizes;
  std::string current;
  uint64_t currentSize = 0, total = 0;
};

} // namespace

void MLIRGate::skipString() {
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    if (text[at] == '\\')
      ++at;
}

std::optional<InputFault> MLIRGate::bracket(char c) {
  operators = 0;
  if (c == '>') {
    angles -= angles != 0;
  } else if (c == '<') {
    ++angles;
  } else if (c == '(' || c == '[' || c == '{') {
    ++depth;
  } else {
    depth -= depth != 0;
    // An unclosed angle inside a closed bracket was an operator.
    if (depth == 0)
      angles = 0;
  }
  if (depth + angles > limits.depth)
    return fault(text, at,
                 "nested deeper than " + Twine(limits.depth) + " levels",
                 "flatten the nesting; no model needs it");
  return std::nullopt;
}

std::optional<InputFault> MLIRGate::operatorAt(size_t where) {
  if (++operators > limits.operators)
    return fault(text, where,
                 "an expression of more than " + Twine(limits.operators) +
                     " operators");
  return std::nullopt;
}

void MLIRGate::finishAlias() {
  if (!current.empty())
    sizes[current] = currentSize;
  current.clear();
}

/// At `#` or `!`: a use of an alias, or at a line's begin its definition.
std::optional<InputFault> MLIRGate::alias() {
  size_t begin = at++;
  while (at < text.size() && isNameByte(text[at]))
    ++at;
  StringRef name = text.slice(begin, at);
  bool defines = lineStart && depth == 0 &&
                 text.substr(at).ltrim(" \t").starts_with("=") &&
                 !text.substr(at).ltrim(" \t").starts_with("==");
  --at;
  if (defines) {
    finishAlias();
    current = name.str();
    currentSize = 1;
    if (sizes.size() >= limits.aliases)
      return fault(text, begin,
                   "more than " + Twine(limits.aliases) + " aliases");
    return std::nullopt;
  }
  auto found = sizes.find(name);
  uint64_t size = found == sizes.end() ? 1 : found->second;
  currentSize += size;
  total += size;
  if ((!current.empty() && currentSize > limits.aliasNodes) ||
      total > limits.allNodes)
    return fault(
        text, begin,
        "aliases grow beyond " +
            Twine(current.empty() ? limits.allNodes : limits.aliasNodes) +
            " nodes when written out",
        "an alias that uses another twice doubles its size");
  return std::nullopt;
}

std::optional<InputFault> MLIRGate::name() {
  size_t begin = at;
  while (at < text.size() && isNameByte(text[at]) &&
         !text.substr(at).starts_with("->"))
    ++at;
  StringRef word = text.slice(begin, at);
  --at;
  if (word == "dense_resource")
    return fault(
        text, begin, "expected values, got a resource",
        "keep weights in a safetensors file; see 'parc run --weights'");
  if (word == "mod" || word == "floordiv" || word == "ceildiv")
    return operatorAt(begin);
  return std::nullopt;
}

std::optional<InputFault> MLIRGate::run() {
  if (text.size() > limits.bytes)
    return fault(text, 0,
                 "expected at most " + Twine(limits.bytes >> 20) +
                     " MiB of text, got " + Twine(text.size() >> 20) + " MiB",
                 "keep weights in a safetensors file");
  if (text.starts_with("ML\xefR"))
    return fault(text, 0, "expected MLIR text, got bytecode",
                 "print it as text with mlir-opt");
  if (size_t nul = text.find('\0'); nul != StringRef::npos)
    return fault(text, nul, "expected text, got a NUL byte");
  for (; at < text.size(); ++at) {
    char c = text[at];
    std::optional<InputFault> found;
    if (c == '\n') {
      lineStart = true;
      if (depth == 0)
        finishAlias();
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r')
      continue;
    if (c == '"') {
      skipString();
    } else if (text.substr(at).starts_with("//")) {
      at = std::min(text.find('\n', at), text.size()) - 1;
      continue;
    } else if (text.substr(at).starts_with("->") ||
               text.substr(at).starts_with(">=") ||
               text.substr(at).starts_with("<=")) {
      ++at;
    } else if (StringRef("()[]{}<>").contains(c)) {
      found = bracket(c);
    } else if (c == '#' || c == '!') {
      found = alias();
    } else if (llvm::isAlpha(c) || c == '_') {
      found = name();
    } else if (c == '+' || c == '*' || c == '-') {
      found = operatorAt(at);
    }
    if (found)
      return found;
    lineStart = false;
  }
  return std::nullopt;
}

std::optional<InputFault>
mlir::parc::driver::checkMLIRText(StringRef text, const MLIRLimits &limits) {
  return MLIRGate(text, limits).run();
}

std::optional<InputFault> mlir::parc::driver::checkTOMLText(StringRef text) {
  constexpr unsigned maxParts = 64, maxDepth = 64;
  if (text.size() > (size_t(1) << 20))
    return fault(text, 0,
                 "expected at most 1 MiB of TOML, got " +
                     Twine(text.size() >> 10) + " KiB");
  unsigned depth = 0, dots = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size()) - 1;
    } else if (c == '"' || c == '\'') {
      StringRef triple = text.substr(at, 3);
      bool isTriple = triple.size() == 3 && triple[1] == c && triple[2] == c;
      size_t end = at + (isTriple ? 3 : 1);
      while (end < text.size() &&
             !(isTriple ? text.substr(end, 3) == triple : text[end] == c) &&
             (isTriple || text[end] != '\n'))
        end += c == '"' && text[end] == '\\' ? 2 : 1;
      at = std::min(end + (isTriple ? 2 : 0), text.size());
    } else if (c == '\n' || c == '=' || c == ',') {
      dots = 0;
    } else if (c == '.' && ++dots >= maxParts) {
      return fault(text, at,
                   "a key of more than " + Twine(maxParts) + " parts");
    } else if (c == '[' || c == '{') {
      if (++depth > maxDepth)
        return fault(text, at,
                     "nested deeper than " + Twine(maxDepth) + " levels");
    } else if (c == ']' || c == '}') {
      depth -= depth != 0;
    }
  }
  return std::nullopt;
}
