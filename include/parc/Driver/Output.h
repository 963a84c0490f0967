//===- Output.h - Files and folders, whole or not ---------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Outputs appear whole or not at all: a file or folder is written beside its
/// place under another name, then renamed. What parc did not make is replaced
/// only by force.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_OUTPUT_H
#define PARC_DRIVER_OUTPUT_H

#include "parc/Driver/Report.h"

#include <optional>

namespace mlir::parc::driver {

/// A folder in the making. Without `commit` nothing of it stays.
class OutputFolder {
public:
  /// Checks `path` and makes the temporary folder. Errors point to `place`: a
  /// path that is something else than a folder, a folder that parc did not make
  /// (unless `force`), a place that cannot be written.
  static std::optional<OutputFolder>
  create(StringRef path, bool force, const Place &place, Reporter &reporter);
  OutputFolder(OutputFolder &&other) noexcept;
  OutputFolder &operator=(OutputFolder &&) = delete;
  ~OutputFolder();

  /// Where files are written meanwhile.
  StringRef path() const { return temporary; }
  /// Writes a file; `name` may have folders in it, which are made.
  bool write(StringRef name, StringRef contents);
  /// Puts the folder in its place. What was there goes only when that worked.
  bool commit();

  size_t files() const { return numFiles; }
  uint64_t bytes() const { return numBytes; }

private:
  OutputFolder(std::string target, const Place &place, Reporter &reporter)
      : target(std::move(target)), place(place), reporter(&reporter) {}
  bool fail(const Twine &message);

  std::string target, temporary;
  Place place;
  Reporter *reporter;
  size_t numFiles = 0;
  uint64_t numBytes = 0;
};

/// The file whose presence says that parc made a folder.
inline constexpr StringLiteral kManifestName = "manifest.json";
/// The first line of MLIR text that parc writes.
inline constexpr StringLiteral kTextMarker = "// Written by parc";

/// Writes one file whole. An existing one is replaced if it begins with
/// `kTextMarker`, else by force only.
bool writeOutputFile(StringRef path, StringRef contents, bool force,
                     const Place &place, Reporter &reporter);

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_OUTPUT_H
