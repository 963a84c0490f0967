//===- Scalar.cpp - Scalar arithmetic as C++
//------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One table of operators and functions, and the few ops that need more.
///
//===----------------------------------------------------------------------===//

#include "Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::cpp;

/// True for an expression in one pair of parentheses.
static bool isWrapped(StringRef text) {
  if (!text.starts_with("(") || !text.ends_with(")"))
    return false;
  int depth = 0;
  for (auto [index, ch] : llvm::enumerate(text)) {
    depth += ch == '(' ? 1 : ch == ')' ? -1 : 0;
    if (depth == 0 && index + 1 < text.size())
      return false;
  }
  return true;
}

std::string ScalarPrinter::bare(Value value) const {
  std::string text = get(value);
  return isWrapped(text) ? text.substr(1, text.size() - 2) : text;
}

/// `uint64_t` for a signed integer type's wrapping arithmetic.
static std::string unsignedType(Type type) {
  if (type.isInteger(1))
    return "bool";
  return "u" + scalarType(type);
}

static StringRef floatOperator(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("arith.addf", "+")
      .Case("arith.subf", "-")
      .Case("arith.mulf", "*")
      .Case("arith.divf", "/")
      .Default("");
}

/// Integer operators that wrap around.
static StringRef wrappingOperator(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("arith.addi", "+")
      .Case("arith.subi", "-")
      .Case("arith.muli", "*")
      .Case("arith.shli", "<<")
      .Case("arith.shrui", ">>")
      .Case("arith.divui", "/")
      .Case("arith.remui", "%")
      .Default("");
}

static StringRef plainOperator(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("arith.andi", "&")
      .Case("arith.ori", "|")
      .Case("arith.xori", "^")
      .Case("arith.divsi", "/")
      .Case("arith.remsi", "%")
      .Case("arith.shrsi", ">>")
      .Default("");
}

static StringRef functionName(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("math.exp", "math::exp")
      .Case("math.log", "math::log")
      .Case("math.tanh", "math::tanh")
      .Case("math.erf", "math::erf")
      .Case("math.sin", "math::sin")
      .Case("math.cos", "math::cos")
      .Case("math.sqrt", "math::sqrt")
      .Case("math.rsqrt", "math::rsqrt")
      .Case("math.absf", "math::absf")
      .Case("math.powf", "math::pow")
      .Case("math.floor", "math::floor")
      .Case("math.ceil", "math::ceil")
      .Cases({"arith.maximumf", "arith.maxnumf", "arith.maxsi"}, "Max()")
      .Cases({"arith.minimumf", "arith.minnumf", "arith.minsi"}, "Min()")
      .Default("");
}

static std::string compareFloats(arith::CmpFPredicate predicate,
                                 const std::string &a, const std::string &b) {
  auto op = [&](StringRef text) {
    return "(" + a + " " + text.str() + " " + b + ")";
  };
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return "false";
  case P::AlwaysTrue:
    return "true";
  case P::OEQ:
    return op("==");
  case P::OGT:
    return op(">");
  case P::OGE:
    return op(">=");
  case P::OLT:
    return op("<");
  case P::OLE:
    return op("<=");
  case P::UNE:
    return op("!=");
  case P::ONE:
    return "(" + a + " < " + b + " || " + a + " > " + b + ")";
  case P::UEQ:
    return "(!(" + a + " < " + b + " || " + a + " > " + b + "))";
  case P::UGT:
    return "(!" + op("<=") + ")";
  case P::UGE:
    return "(!" + op("<") + ")";
  case P::ULT:
    return "(!" + op(">=") + ")";
  case P::ULE:
    return "(!" + op(">") + ")";
  case P::ORD:
    return "(" + a + " == " + a + " && " + b + " == " + b + ")";
  case P::UNO:
    return "(" + a + " != " + a + " || " + b + " != " + b + ")";
  }
  return "";
}

static std::string compareIntegers(arith::CmpIOp op, std::string a,
                                   std::string b) {
  StringRef sign;
  bool isUnsigned = false;
  using P = arith::CmpIPredicate;
  switch (op.getPredicate()) {
  case P::eq:
    sign = "==";
    break;
  case P::ne:
    sign = "!=";
    break;
  case P::ult:
    isUnsigned = true;
    [[fallthrough]];
  case P::slt:
    sign = "<";
    break;
  case P::ule:
    isUnsigned = true;
    [[fallthrough]];
  case P::sle:
    sign = "<=";
    break;
  case P::ugt:
    isUnsigned = true;
    [[fallthrough]];
  case P::sgt:
    sign = ">";
    break;
  case P::uge:
    isUnsigned = true;
    [[fallthrough]];
  case P::sge:
    sign = ">=";
    break;
  }
  if (isUnsigned) {
    std::string type = unsignedType(op.getLhs().getType());
    a = type + "(" + a + ")";
    b = type + "(" + b + ")";
  }
  return "(" + a + " " + sign.str() + " " + b + ")";
}

std::string ScalarPrinter::expression(Operation *op) {
  StringRef name = op->getName().getStringRef();
  Type type = op->getResult(0).getType();
  std::string to = scalarType(type);
  if (to.empty())
    return "";
  SmallVector<std::string> args;
  for (Value operand : op->getOperands()) {
    std::string text = get(operand);
    if (text.empty())
      return "";
    // bf16 is storage; arithmetic on it happens in float.
    args.push_back(operand.getType().isBF16() && name != "arith.select"
                       ? "float(" + bare(operand) + ")"
                       : text);
  }
  auto rounded = [&](const std::string &text) {
    return type.isBF16() ? "BFloat16(" + text + ")" : text;
  };
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return number(constant.getValue());
  if (StringRef sign = floatOperator(name); !sign.empty())
    return rounded("(" + args[0] + " " + sign.str() + " " + args[1] + ")");
  if (StringRef sign = wrappingOperator(name); !sign.empty()) {
    bool plain = type.isIndex() && name != "arith.shrui" &&
                 name != "arith.divui" && name != "arith.remui";
    if (plain)
      return "(" + args[0] + " " + sign.str() + " " + args[1] + ")";
    std::string wide = unsignedType(type);
    return to + "(" + wide + "(" + args[0] + ") " + sign.str() + " " + wide +
           "(" + args[1] + "))";
  }
  if (StringRef sign = plainOperator(name); !sign.empty())
    return type.isInteger(1) || type.isIndex() || type.isInteger(64) ||
                   type.isInteger(32)
               ? "(" + args[0] + " " + sign.str() + " " + args[1] + ")"
               : to + "(" + args[0] + " " + sign.str() + " " + args[1] + ")";
  if (StringRef function = functionName(name); !function.empty()) {
    std::string text = function.str() + "(";
    // A literal has a type of its own.
    bool typed = isa<arith::MaxSIOp, arith::MinSIOp>(op);
    for (auto [index, arg] : llvm::enumerate(args))
      text += (index ? ", " : "") + (typed ? to + "(" + arg + ")"
                                     : isWrapped(arg)
                                         ? arg.substr(1, arg.size() - 2)
                                         : arg);
    return rounded(text + ")");
  }
  if (isa<arith::NegFOp>(op))
    return rounded("(-" + args[0] + ")");
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return compareFloats(compare.getPredicate(), args[0], args[1]);
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compareIntegers(compare, args[0], args[1]);
  if (isa<arith::SelectOp>(op))
    return "(" + args[0] + " ? " + args[1] + " : " + args[2] + ")";
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::FPToSIOp,
          arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(op)) {
    std::string arg = isWrapped(args[0]) ? args[0] : "(" + args[0] + ")";
    // There is no way from an integer to bf16 but through float.
    if (type.isBF16())
      return "BFloat16(float" + arg + ")";
    return to + arg;
  }
  if (isa<arith::ExtUIOp, arith::UIToFPOp, arith::IndexCastUIOp>(op)) {
    std::string from = op->getOperand(0).getType().isIndex()
                           ? "uint64_t"
                           : unsignedType(op->getOperand(0).getType());
    return rounded((type.isBF16() ? "float" : to) + "(" + from + "(" + args[0] +
                   "))");
  }
  if (isa<arith::MaxUIOp, arith::MinUIOp>(op)) {
    std::string wide = unsignedType(type);
    return to + (isa<arith::MaxUIOp>(op) ? "(Max()(" : "(Min()(") + wide + "(" +
           args[0] + "), " + wide + "(" + args[1] + ")))";
  }
  if (isa<math::FmaOp>(op))
    return rounded("(" + args[0] + " * " + args[1] + " + " + args[2] + ")");
  if (isa<math::FPowIOp>(op))
    return rounded("math::pow(" + args[0] + ", " +
                   (type.isBF16() ? "float" : to) + "(" + args[1] + "))");
  return "";
}

void ScalarPrinter::define(Value value, const std::string &text) {
  bool isWord =
      !StringRef(text).contains('(') && !StringRef(text).contains(' ');
  bool once = value.hasOneUse() && value.use_begin()->getOwner()->getBlock() ==
                                       value.getDefiningOp()->getBlock();
  if (isWord || inLine || value.use_empty() || (once && text.size() < 60)) {
    names[value] = text;
    return;
  }
  std::string name = "t" + std::to_string(counter++);
  os << indent << "const " << scalarType(value.getType()) << ' ' << name
     << " = "
     << (isWrapped(text) ? StringRef(text).drop_front().drop_back()
                         : StringRef(text))
     << ";\n";
  names[value] = name;
}

LogicalResult ScalarPrinter::print(Operation *op) {
  if (isa<arith::MulUIExtendedOp, arith::MulSIExtendedOp>(op)) {
    Type type = op->getResult(0).getType();
    bool isSigned = isa<arith::MulSIExtendedOp>(op);
    if (!type.isInteger(32) && !type.isInteger(64))
      return op->emitError()
             << "'" << op->getName() << "' has no C++ for " << type;
    std::string wide = type.isInteger(64)
                           ? (isSigned ? "__int128" : "(unsigned __int128)")
                           : (isSigned ? "int64_t" : "uint64_t");
    std::string narrow = isSigned ? scalarType(type) : unsignedType(type);
    std::string a = narrow + "(" + get(op->getOperand(0)) + ")";
    std::string b = narrow + "(" + get(op->getOperand(1)) + ")";
    std::string to = scalarType(type);
    std::string factor = wide[0] == '(' ? wide + a : wide + "(" + a + ")";
    define(op->getResult(0), to + "(" + unsignedType(type) + "(" + a + ") * " +
                                 unsignedType(type) + "(" + b + "))");
    define(op->getResult(1), to + "(" + factor + " * " + b + " >> " +
                                 std::to_string(type.getIntOrFloatBitWidth()) +
                                 ")");
    return success();
  }
  std::string text = op->getNumResults() == 1 ? expression(op) : "";
  if (text.empty())
    return op->emitError() << "'" << op->getName()
                           << "' has no counterpart in the runtime's C++";
  define(op->getResult(0), text);
  return success();
}
