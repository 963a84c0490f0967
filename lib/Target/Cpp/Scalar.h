//===- Scalar.h - Scalar arithmetic as C++ ----------------------------*- C++
//-*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Prints scalar ops: what is read once becomes part of the expression that
/// reads it, all else a constant of its own.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TARGET_CPP_SCALAR_H
#define PARC_LIB_TARGET_CPP_SCALAR_H

#include "Names.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>

namespace mlir::parc::cpp {

class ScalarPrinter {
public:
  /// Statements go to `os`, each line after `indent`; names of constants are
  /// `t0`, `t1` and so on. With `inLine` there are no statements.
  ScalarPrinter(raw_ostream &os, std::string indent, bool inLine = false)
      : os(os), indent(std::move(indent)), inLine(inLine) {}

  void name(Value value, const Twine &text) { names[value] = text.str(); }
  bool knows(Value value) const { return names.contains(value); }
  /// The expression of a value; parenthesised where it is no single word.
  std::string get(Value value) const { return names.lookup(value); }
  /// The same without outer parentheses.
  std::string bare(Value value) const;
  /// Prints one op. Ops without C++ are an error at the op.
  LogicalResult print(Operation *op);
  /// Gives `value` this expression, in line or as a constant.
  void define(Value value, const std::string &expression);

private:
  std::string expression(Operation *op);

  raw_ostream &os;
  std::string indent;
  bool inLine;
  llvm::DenseMap<Value, std::string> names;
  unsigned counter = 0;
};

} // namespace mlir::parc::cpp

#endif // PARC_LIB_TARGET_CPP_SCALAR_H
