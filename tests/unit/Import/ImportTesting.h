//===- ImportTesting.h - What the tests of import share ---------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Collects diagnostics as text, so that a test compares all of what a user
/// would see, the place included.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TESTS_UNIT_IMPORT_IMPORTTESTING_H
#define PARC_TESTS_UNIT_IMPORT_IMPORTTESTING_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>
#include <string>

namespace mlir::parc {

/// "9:3: error: text" for each diagnostic and note, a line each.
class Collected {
public:
  explicit Collected(MLIRContext &context)
      : handler(&context, [this](Diagnostic &diagnostic) {
          add(diagnostic);
          for (Diagnostic &note : diagnostic.getNotes())
            add(note);
          return success();
        }) {}

  std::string text;

private:
  void add(Diagnostic &diagnostic) {
    llvm::raw_string_ostream os(text);
    if (auto place = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
      os << place.getLine() << ":" << place.getColumn() << ": ";
    switch (diagnostic.getSeverity()) {
    case DiagnosticSeverity::Error:
      os << "error: ";
      break;
    case DiagnosticSeverity::Warning:
      os << "warning: ";
      break;
    default:
      os << "note: ";
    }
    os << diagnostic.str() << "\n";
  }

  ScopedDiagnosticHandler handler;
};

/// The config.json of a model in tests/models.
inline std::string readTestConfig(StringRef name) {
  auto buffer = llvm::MemoryBuffer::getFile(
      (PARC_TEST_MODELS "/" + name + "/config.json").str());
  EXPECT_TRUE(static_cast<bool>(buffer)) << name.str();
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// `text` with its one occurrence of `from` replaced.
inline std::string edit(StringRef text, StringRef from, StringRef to) {
  EXPECT_EQ(text.count(from), 1u) << from.str();
  auto [before, after] = text.split(from);
  return (before + to + after).str();
}

} // namespace mlir::parc

#endif // PARC_TESTS_UNIT_IMPORT_IMPORTTESTING_H
