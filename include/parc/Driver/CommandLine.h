//===- CommandLine.h - What was typed ---------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What was typed, taken apart: a verb, a model, flags with their places. The
/// parser is written by hand because llvm::cl's subcommands take no flag before
/// the verb and name no misspelt one.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_COMMANDLINE_H
#define PARC_DRIVER_COMMANDLINE_H

#include "parc/Driver/Report.h"
#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace mlir::parc::driver {

enum class Verb { Compile, Import, Run, Show, Explain, Version, Doctor, Help };

/// The name of a verb as it is typed.
StringRef verbName(Verb verb);

/// The topics of `parc show`.
ArrayRef<StringRef> showTopics();

/// A word of the command line that was given for something.
struct Word {
  std::string text;
  Place place;
};

/// A command line that was understood.
class CommandLine {
public:
  /// Reads the arguments that follow the program's name. Errors go to
  /// `reporter`: an unknown verb or flag (with the nearest name), a flag that
  /// the verb does not take, a missing value, a flag given twice, a missing or
  /// superfluous word.
  static std::optional<CommandLine> parse(ArrayRef<StringRef> arguments,
                                          Reporter &reporter);

  Verb verb = Verb::Help;
  /// The MODEL (or OUT) word; empty for verbs without one.
  Word model;
  /// Of `show`.
  std::string topic;
  /// The command line as it is quoted in messages.
  std::string echo;

  /// The flag `name` (without dashes, `o` for -o); null when not given.
  const Word *flag(StringRef name) const;
  bool has(StringRef name) const { return flag(name) != nullptr; }
  /// True for a flag that some verb takes.
  static bool hasFlag(StringRef name);
  /// Gives a flag as if it were typed; takes one away.
  void set(StringRef name, StringRef text) {
    given[name.str()] = {text.str(), Place()};
  }
  void unset(StringRef name) { given.erase(name.str()); }
  /// All flags, in the order of their names.
  const std::map<std::string, Word> &flags() const { return given; }

private:
  friend class CommandLineParser;
  std::map<std::string, Word> given;

public:
  /// Of `explain`: what in the model; empty where `model` is an error's name.
  Word name;
};

/// At most 45 lines.
StringRef helpText();

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_COMMANDLINE_H
