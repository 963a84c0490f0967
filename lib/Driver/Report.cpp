//===- Report.cpp - Errors in one form ------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Printing of located messages, and the way from MLIR's diagnostics to them.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Report.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::parc::driver;

/// Columns of a terminal line that a quoted line may fill.
static constexpr size_t kColumns = 98;

Place Place::at(size_t offset, size_t newLength) const {
  Place moved = *this;
  moved.column += static_cast<unsigned>(offset);
  moved.length = newLength;
  return moved;
}

std::string mlir::parc::driver::printable(StringRef text) {
  std::string result;
  for (unsigned char c : text) {
    if (llvm::isPrint(c))
      result += static_cast<char>(c);
    else
      result += "\\x" + llvm::utohexstr(c, true, 2);
  }
  return result;
}

std::string mlir::parc::driver::shortened(StringRef text, size_t width) {
  if (text.size() <= width)
    return text.str();
  return (text.take_front(width - 3).rtrim() + "...").str();
}

std::string mlir::parc::driver::withCommas(int64_t number) {
  std::string text = std::to_string(number);
  size_t first = number < 0 ? 1 : 0;
  for (size_t at = text.size(); at > first + 3;)
    text.insert(at -= 3, ",");
  return text;
}

std::string mlir::parc::driver::bytesText(double bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format(unit ? "%.1f " : "%.0f ", bytes) << units[unit];
  return text;
}

//===----------------------------------------------------------------------===//
// Reporter
//===----------------------------------------------------------------------===//

void Reporter::addSource(StringRef name, StringRef text) {
  sources[name.str()] = text.str();
}

Place Reporter::placeIn(StringRef file, unsigned line, unsigned column) const {
  Place place{file.str(), line, column, 1, ""};
  auto found = sources.find(file.str());
  if (found == sources.end() || line == 0)
    return place;
  StringRef rest = found->second;
  for (unsigned i = 1; i < line && !rest.empty(); ++i)
    rest = rest.split('\n').second;
  place.text = rest.split('\n').first.rtrim('\r').str();
  StringRef token = StringRef(place.text)
                        .drop_front(std::min<size_t>(column ? column - 1 : 0,
                                                     place.text.size()));
  size_t length = 0;
  while (length < token.size() &&
         (llvm::isAlnum(token[length]) ||
          StringRef("_.$%@#!\"-").contains(token[length])))
    ++length;
  place.length = std::max<size_t>(length, 1);
  return place;
}

/// Shows the line of `place` and underlines it; a long line is cut to a window
/// around the place.
void Reporter::caret(const Place &place) {
  if (place.text.empty() || place.column == 0)
    return;
  StringRef text = place.text;
  size_t begin = 0, column = std::min<size_t>(place.column - 1, text.size());
  if (column + place.length > kColumns - 2) {
    begin = column > 40 ? column - 40 : 0;
    text = text.drop_front(begin);
    column -= begin;
  }
  bool cut = text.size() > kColumns - 2;
  text = text.take_front(kColumns - 2);
  std::string shown;
  for (unsigned char c : text)
    shown += llvm::isPrint(c) ? static_cast<char>(c) : (c == '\t' ? ' ' : '?');
  if (begin)
    shown.replace(0, std::min<size_t>(3, shown.size()), "...");
  if (cut)
    shown.replace(shown.size() - 3, 3, "...");
  os << "  " << shown << '\n';
  size_t length = std::max<size_t>(place.length, 1);
  length = std::min(length, std::max<size_t>(text.size(), column + 1) - column);
  os.indent(static_cast<unsigned>(column + 2));
  if (color)
    os.changeColor(raw_ostream::GREEN);
  os << '^' << std::string(length - 1, '~');
  if (color)
    os.resetColor();
  os << '\n';
}

void Reporter::head(const Place &place, StringRef severity,
                    raw_ostream::Colors tint, const Twine &message,
                    StringRef name) {
  if (place.valid()) {
    if (color)
      os.changeColor(raw_ostream::CYAN);
    os << printable(place.file) << ':' << place.line << ':' << place.column
       << ": ";
    if (color)
      os.resetColor();
  } else if (!place.file.empty()) {
    os << printable(place.file) << ": ";
  }
  if (color)
    os.changeColor(tint, /*Bold=*/true);
  os << severity << ": ";
  if (color)
    os.resetColor();
  // A diagnostic may quote IR over several lines; the first says what is wrong.
  std::string text = message.str();
  os << printable(StringRef(text).split('\n').first);
  if (!name.empty())
    os << " [" << name << ']';
  os << '\n';
  if (place.valid())
    caret(place);
}

void Reporter::error(const Place &place, const Twine &message, StringRef name) {
  muted = errors++ != 0;
  if (!muted)
    head(place, "error", raw_ostream::RED, message, name);
}

void Reporter::warning(const Place &place, const Twine &message,
                       StringRef name) {
  muted = errors != 0;
  if (muted)
    return;
  ++warnings;
  head(place, "warning", raw_ostream::YELLOW, message, name);
}

void Reporter::note(const Twine &message) { note(Place(), message); }

void Reporter::note(const Place &place, const Twine &message) {
  if (!muted)
    head(place, "note", raw_ostream::BLUE, message, "");
}

void Reporter::help(const Twine &message) {
  if (!muted)
    head(Place(), "help", raw_ostream::BLUE, message, "");
}

void Reporter::line(const Twine &message) { os << message << '\n'; }

//===----------------------------------------------------------------------===//
// MLIR's diagnostics
//===----------------------------------------------------------------------===//

DiagnosticBridge::DiagnosticBridge(MLIRContext *context, Reporter &reporter,
                                   StringRef name)
    : reporter(reporter), name(name), handler(context, [this](Diagnostic &d) {
        report(d);
        return success();
      }) {}

Place DiagnosticBridge::place(Location location) const {
  FileLineColLoc found;
  location->walk([&](Location part) {
    if (auto file = dyn_cast<FileLineColLoc>(part)) {
      found = file;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (!found)
    return Place();
  return reporter.placeIn(found.getFilename(), found.getLine(),
                          found.getColumn());
}

void DiagnosticBridge::report(Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  Place where = place(diagnostic.getLocation());
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    // MLIR's text names a flag of mlir-opt.
    if (StringRef(text).contains("unregistered dialect")) {
      reporter.error(where, "op of an unknown dialect", name);
      reporter.help("dialects: arith, func, linalg, math, nn, parc, tensor");
      break;
    }
    reporter.error(where, text, name);
    break;
  case DiagnosticSeverity::Warning:
    reporter.warning(where, text, name);
    break;
  case DiagnosticSeverity::Note:
  case DiagnosticSeverity::Remark:
    reporter.note(where, text);
    break;
  }
  for (Diagnostic &note : diagnostic.getNotes()) {
    std::string noteText = note.str();
    // A pass says how to fix something in a note that begins so.
    if (StringRef(noteText).starts_with("help: "))
      reporter.help(StringRef(noteText).drop_front(6));
    else if (!StringRef(noteText).starts_with("see current operation"))
      reporter.note(place(note.getLocation()), noteText);
  }
}
