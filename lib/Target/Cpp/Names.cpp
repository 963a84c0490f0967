//===- Names.cpp - Identifiers and literals
//-------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The sanitiser, the escaping function and exact numbers.
///
//===----------------------------------------------------------------------===//

#include "Names.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <cstdlib>

using namespace mlir;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// Identifiers
//===----------------------------------------------------------------------===//

/// Words of C++ and of what surrounds generated code.
static bool isReserved(StringRef word) {
  static const llvm::StringSet<> words = {
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor",
      "bool", "break", "case", "catch", "char", "char16_t", "char32_t",
      "char8_t", "class", "co_await", "co_return", "co_yield", "compl",
      "concept", "const", "const_cast", "consteval", "constexpr", "constinit",
      "continue", "decltype", "default", "delete", "do", "double",
      "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false",
      "final", "float", "for", "friend", "goto", "if", "import", "inline",
      "int", "int32_t", "int64_t", "uint32_t", "uint64_t", "int8_t", "int16_t",
      "long", "module", "mutable", "namespace", "new", "noexcept", "not",
      "not_eq", "nullptr", "operator", "or", "or_eq", "override", "private",
      "protected", "public", "register", "reinterpret_cast", "requires",
      "return", "short", "signed", "sizeof", "static", "static_assert",
      "static_cast", "struct", "switch", "template", "this", "thread_local",
      "throw", "true", "try", "typedef", "typeid", "typename", "union",
      "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while",
      "xor", "xor_eq",
      // Generated code and the runtime.
      "main", "std", "parc", "model", "math", "kernels", "c", "r", "s", "own",
      "layer", "saved", "sent", "received", "inputs", "sums", "scalars",
      "results", "constants", "at", "release", "contract", "accumulate",
      "addSum", "map", "reduce", "scatterAddRows", "Value", "Values", "Layers",
      "View", "In", "Rank", "Context", "Saved", "Constants", "Axis", "P",
      "Slot", "Stack", "Group", "Stream", "Ticket", "next", "AxisList", "Sum",
      "Max", "Min", "DType", "BFloat16", "ReduceOp", "forward", "backward",
      "update", "prepare", "linux", "unix", "NULL", "NAN", "INFINITY", "EOF",
      "assert", "errno", "stdin", "stdout", "stderr", "PARC_FN", "PARC_HD",
      "PARC_INLINE", "PARC_TRY", "HUGE_VAL", "HUGE_VALF", "numSlots", "tables",
      "roles", "i386", "signbit", "isnan", "isinf", "isfinite", "M_PI", "M_E",
      "BUFSIZ", "Inner", "Extents", "AnyValue", "AnyView", "Store", "Pool",
      "Status"};
  return words.contains(word);
}

std::string cpp::identifier(StringRef text) {
  std::string name;
  for (char ch : text.take_front(256)) {
    if (llvm::isAlnum(ch))
      name += ch;
    else if (!name.empty() && name.back() != '_')
      name += '_';
    if (name.size() == 48)
      break;
  }
  while (!name.empty() && name.back() == '_')
    name.pop_back();
  if (name.empty())
    return "v";
  if (llvm::isDigit(name[0]))
    name = "v_" + name;
  if (isReserved(name))
    name += "_v";
  return name;
}

std::string cpp::Scope::take(StringRef text) {
  std::string base = identifier(text), name = base;
  for (unsigned number = 2; !used.insert(name).second; ++number)
    name = base + "_" + std::to_string(number);
  return name;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string cpp::literal(StringRef text) {
  std::string result = "\"";
  for (char ch : text) {
    auto byte = static_cast<unsigned char>(ch);
    if (llvm::isPrint(ch) && ch != '"' && ch != '\\' && ch != '?') {
      result += ch;
      continue;
    }
    // An octal escape takes three digits at most, so nothing can join it.
    result += '\\';
    result += static_cast<char>('0' + (byte >> 6));
    result += static_cast<char>('0' + (byte >> 3 & 7));
    result += static_cast<char>('0' + (byte & 7));
  }
  return result + "\"";
}

std::string cpp::comment(StringRef text) {
  std::string result;
  for (char ch : text.take_front(90))
    result +=
        llvm::isPrint(ch) && ch != '\\' && ch != '?' && ch != '*' ? ch : '.';
  return result;
}

std::string cpp::place(Location loc) {
  std::string result;
  loc->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    // The folder holds the model under this name, wherever it was read from.
    result = "model.mlir:" + std::to_string(file.getLine()) + ":" +
             std::to_string(file.getColumn());
    return WalkResult::interrupt();
  });
  return result;
}

StringRef cpp::nameOf(Location loc) {
  StringRef result;
  loc->walk([&](Location inner) {
    auto name = dyn_cast<NameLoc>(inner);
    if (!name)
      return WalkResult::advance();
    result = name.getName().getValue();
    return WalkResult::interrupt();
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Numbers and types
//===----------------------------------------------------------------------===//

/// The shortest decimal text that reads back as the same number.
static std::string exact(double value, bool isFloat) {
  if (std::isnan(value))
    return "NAN";
  if (std::isinf(value))
    return std::string(value < 0 ? "-" : "") +
           (isFloat ? "HUGE_VALF" : "HUGE_VAL");
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (isFloat ? strtof(text, nullptr) == static_cast<float>(value)
                : strtod(text, nullptr) == value)
      break;
  }
  std::string result = text;
  if (result.find_first_of(".e") == std::string::npos)
    result += ".0";
  return isFloat ? result + "f" : result;
}

std::string cpp::number(Attribute value) {
  if (auto real = dyn_cast<FloatAttr>(value)) {
    APFloat wide = real.getValue();
    bool lossy = false;
    wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    bool isDouble = real.getType().isF64();
    std::string text = exact(wide.convertToDouble(), !isDouble);
    return real.getType().isBF16() ? "BFloat16(" + text + ")" : text;
  }
  auto integer = cast<IntegerAttr>(value);
  if (integer.getType().isInteger(1))
    return integer.getValue().isZero() ? "false" : "true";
  int64_t number = integer.getValue().getSExtValue();
  if (number == INT64_MIN)
    return "INT64_MIN";
  bool isWide = number > INT32_MAX || number < INT32_MIN;
  return std::to_string(number) + (isWide ? "LL" : "");
}

std::string cpp::scalarType(Type type) {
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isBF16())
    return "BFloat16";
  if (type.isIndex())
    return "int64_t";
  if (type.isInteger(1))
    return "bool";
  if (auto integer = dyn_cast<IntegerType>(type))
    for (unsigned width : {8, 16, 32, 64})
      if (integer.getWidth() == width)
        return "int" + std::to_string(width) + "_t";
  return "";
}

std::string cpp::dtype(Type type) {
  if (type.isF32())
    return "DType::f32";
  if (type.isF64())
    return "DType::f64";
  if (type.isBF16())
    return "DType::bf16";
  if (type.isInteger(32))
    return "DType::i32";
  return "DType::i64";
}

std::string cpp::shapeText(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return "";
  std::string text;
  for (int64_t size : tensor.getShape())
    text += (text.empty() ? "" : "x") +
            (ShapedType::isDynamic(size) ? "?" : std::to_string(size));
  Type element = tensor.getElementType();
  std::string name = element.isF32()    ? "f32"
                     : element.isF64()  ? "f64"
                     : element.isBF16() ? "bf16"
                                        : scalarType(element);
  return text.empty() ? name : text + " " + name;
}
