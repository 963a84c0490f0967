//===- Driver.cpp - The tool as a function --------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the command line to a verb.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Driver.h"
#include "parc/Driver/Compilation.h"

using namespace mlir;
using namespace mlir::parc::driver;

/// Whether to colour; nothing after an error.
static std::optional<bool> readColor(const CommandLine &line, raw_ostream &err,
                                     Reporter &reporter) {
  const Word *word = line.flag("color");
  if (!word || word->text == "auto")
    return err.is_displayed();
  if (word->text == "always")
    return true;
  if (word->text == "never")
    return false;
  reporter.error(word->place,
                 "expected auto, always or never for '--color', got '" +
                     printable(word->text) + "'",
                 "usage");
  return std::nullopt;
}

static int dispatch(Session &session) {
  switch (session.line.verb) {
  case Verb::Compile:
    return runCompile(session);
  case Verb::Import:
    return runImport(session);
  case Verb::Run:
    return runRun(session);
  case Verb::Show:
    return runShow(session);
  case Verb::Explain:
    return runExplain(session);
  case Verb::Version:
    return runVersion(session);
  case Verb::Doctor:
    return runDoctor(session);
  case Verb::Help:
    session.out << helpText();
    return kDone;
  }
  return kInternal;
}

int mlir::parc::driver::runDriver(ArrayRef<StringRef> arguments,
                                  raw_ostream &out, raw_ostream &err) {
  Reporter reporter(err, err.is_displayed());
  if (arguments.empty()) {
    err << helpText();
    return kUsage;
  }
  std::optional<CommandLine> line = CommandLine::parse(arguments, reporter);
  if (!line) {
    err << "\nnext: parc --help\n";
    return kUsage;
  }
  std::optional<bool> color = readColor(*line, err, reporter);
  if (!color)
    return kUsage;
  reporter.setColor(*color);
  Session session(*line, reporter, out, err);
  return dispatch(session);
}
