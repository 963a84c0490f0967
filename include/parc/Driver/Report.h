//===- Report.h - Errors in one form ----------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How parc speaks to its user: errors in one form wherever they come from (the
/// command line, a plan, a model, a pass), each with its place, the text there
/// and a caret. One primary error; what follows it is dropped.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_REPORT_H
#define PARC_DRIVER_REPORT_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <string>

namespace mlir::parc::driver {

/// What a process ends with.
enum ExitCode : int {
  kDone = 0,
  /// The model or the declaration is wrong.
  kWrong = 1,
  /// The command line is not understood, or a file is not there.
  kUsage = 2,
  /// The partitioned program does not compute what the model computes.
  kNotEqual = 4,
  /// parc's own fault.
  kInternal = 70,
};

/// A place in a text. Line and column count from one; line 0 is no place.
struct Place {
  std::string file;
  unsigned line = 0;
  unsigned column = 0;
  /// Bytes to underline.
  size_t length = 1;
  /// The text of the line, for the caret; may be empty.
  std::string text;

  bool valid() const { return line != 0; }
  /// The place `offset` bytes further on the same line.
  Place at(size_t offset, size_t length) const;
};

/// `text` with everything but printable ASCII escaped.
std::string printable(StringRef text);

/// `text`, or as much of it as `width` columns hold with "..." at the end.
std::string shortened(StringRef text, size_t width);

/// 1234567 as "1,234,567".
std::string withCommas(int64_t number);

/// Bytes in the unit that reads best: "12 B", "36.0 KiB", "448.0 MiB".
std::string bytesText(double bytes);

/// Prints diagnostics in the house style.
class Reporter {
public:
  Reporter(raw_ostream &os, bool color) : os(os), color(color) {}

  void setColor(bool on) { color = on; }
  /// Makes a text known, so that places in it can be shown.
  void addSource(StringRef name, StringRef text);
  /// The place in a known text; without text when the file is unknown.
  Place placeIn(StringRef file, unsigned line, unsigned column) const;

  /// The first error is printed, later ones are dropped with their notes.
  /// `name` is the error's short name.
  void error(const Place &place, const Twine &message, StringRef name);
  void warning(const Place &place, const Twine &message, StringRef name);
  /// Belongs to the error or warning before it.
  void note(const Twine &message);
  void note(const Place &place, const Twine &message);
  /// How to fix it.
  void help(const Twine &message);
  /// A plain line below an error: what was or was not written.
  void line(const Twine &message);

  bool hadError() const { return errors != 0; }
  unsigned numWarnings() const { return warnings; }

private:
  void head(const Place &place, StringRef severity, raw_ostream::Colors tint,
            const Twine &message, StringRef name);
  void caret(const Place &place);

  raw_ostream &os;
  bool color;
  bool muted = false;
  unsigned errors = 0, warnings = 0;
  std::map<std::string, std::string> sources;
};

/// While it lives, MLIR's diagnostics of a context go to a reporter. `name` is
/// the short name that its errors get.
class DiagnosticBridge {
public:
  DiagnosticBridge(MLIRContext *context, Reporter &reporter, StringRef name);

private:
  void report(Diagnostic &diagnostic);
  Place place(Location location) const;

  Reporter &reporter;
  std::string name;
  ScopedDiagnosticHandler handler;
};

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_REPORT_H
