//===- Output.cpp - Files and folders, whole or not -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Temporary names, checks, renames.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Output.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <tuple>

using namespace mlir;
using namespace mlir::parc::driver;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// What stands at a path, links not followed.
static fs::file_type typeAt(StringRef where) {
  fs::file_status status;
  if (fs::status(where, status, /*follow=*/false))
    return fs::file_type::file_not_found;
  return status.type();
}

/// A name beside `target` that nothing has: `.NAME.KIND-XXXXXX`.
static std::string besideModel(StringRef target, StringRef kind) {
  SmallString<128> model(path::parent_path(target));
  path::append(model, "." + path::filename(target) + "." + kind + "-%%%%%%%%");
  return model.str().str();
}

static bool isEmptyFolder(StringRef where) {
  std::error_code code;
  return fs::directory_iterator(where, code) == fs::directory_iterator() &&
         !code;
}

/// True where the manifest is one that parc writes.
static bool madeByParc(StringRef folder) {
  SmallString<128> manifest(folder);
  path::append(manifest, kManifestName);
  auto buffer = llvm::MemoryBuffer::getFile(manifest);
  return buffer && (*buffer)->getBuffer().contains("\"parc\"");
}

OutputFolder::OutputFolder(OutputFolder &&other) noexcept
    : target(std::move(other.target)), temporary(std::move(other.temporary)),
      place(std::move(other.place)), reporter(other.reporter),
      numFiles(other.numFiles), numBytes(other.numBytes) {
  other.temporary.clear();
}

OutputFolder::~OutputFolder() {
  // What cannot be removed is named as temporary; there is nobody to tell.
  if (!temporary.empty())
    std::ignore = fs::remove_directories(temporary);
}

bool OutputFolder::fail(const Twine &message) {
  reporter->error(place, message, "output");
  return false;
}

std::optional<OutputFolder> OutputFolder::create(StringRef target, bool force,
                                                 const Place &place,
                                                 Reporter &reporter) {
  SmallString<128> absolute(target.rtrim('/'));
  if (std::error_code code = fs::make_absolute(absolute)) {
    reporter.error(place,
                   "cannot use '" + printable(target) + "': " + code.message(),
                   "output");
    return std::nullopt;
  }
  OutputFolder folder(absolute.str().str(), place, reporter);
  std::string shown = "'" + printable(target) + "'";
  switch (typeAt(absolute)) {
  case fs::file_type::file_not_found:
    break;
  case fs::file_type::directory_file:
    if (force || isEmptyFolder(absolute) || madeByParc(absolute))
      break;
    folder.fail("the folder " + shown + " was not made by parc");
    reporter.help("--force replaces it, with all that is in it");
    return std::nullopt;
  case fs::file_type::symlink_file:
    folder.fail(shown + " is a symbolic link");
    reporter.help("name the folder itself");
    return std::nullopt;
  default:
    folder.fail("expected a folder at " + shown + ", found a file");
    return std::nullopt;
  }
  SmallString<128> temporary;
  for (int attempt = 0; attempt < 16; ++attempt) {
    fs::createUniquePath(besideModel(folder.target, "new"), temporary,
                         /*MakeAbsolute=*/false);
    std::error_code code =
        fs::create_directory(temporary, /*IgnoreExisting=*/false);
    if (!code) {
      folder.temporary = temporary.str().str();
      return folder;
    }
    if (code == std::errc::file_exists)
      continue;
    folder.fail("cannot write " + shown + ": " + code.message());
    return std::nullopt;
  }
  folder.fail("cannot write " + shown + ": no free name beside it");
  return std::nullopt;
}

bool OutputFolder::write(StringRef name, StringRef contents) {
  SmallString<128> file(temporary);
  path::append(file, name);
  if (std::error_code code = fs::create_directories(path::parent_path(file)))
    return fail("cannot make a folder for '" + name + "': " + code.message());
  std::error_code code;
  llvm::raw_fd_ostream os(file, code, fs::CD_CreateNew);
  if (!code) {
    os << contents;
    os.close();
    code = os.error();
    os.clear_error();
  }
  if (code)
    return fail("cannot write '" + name + "': " + code.message());
  ++numFiles;
  numBytes += contents.size();
  return true;
}

bool OutputFolder::commit() {
  std::string old;
  if (typeAt(target) == fs::file_type::directory_file) {
    SmallString<128> aside;
    fs::createUniquePath(besideModel(target, "old"), aside,
                         /*MakeAbsolute=*/false);
    old = aside.str().str();
    if (std::error_code code = fs::rename(target, old))
      return fail("cannot replace '" + printable(target) +
                  "': " + code.message());
  }
  if (std::error_code code = fs::rename(temporary, target)) {
    if (!old.empty())
      std::ignore = fs::rename(old, target);
    return fail("cannot write '" + printable(target) + "': " + code.message());
  }
  temporary.clear();
  if (!old.empty())
    std::ignore = fs::remove_directories(old);
  return true;
}

bool mlir::parc::driver::writeOutputFile(StringRef target, StringRef contents,
                                         bool force, const Place &place,
                                         Reporter &reporter) {
  std::string shown = "'" + printable(target) + "'";
  auto fail = [&](const Twine &message) {
    reporter.error(place, message, "output");
    return false;
  };
  fs::file_type type = typeAt(target);
  if (type == fs::file_type::directory_file)
    return fail("expected a file at " + shown + ", found a folder");
  if (type == fs::file_type::symlink_file)
    return fail(shown + " is a symbolic link");
  if (type == fs::file_type::regular_file && !force) {
    auto buffer = llvm::MemoryBuffer::getFile(target);
    if (!buffer || !(*buffer)->getBuffer().starts_with(kTextMarker)) {
      fail("the file " + shown + " was not written by parc");
      reporter.help("--force replaces it");
      return false;
    }
  } else if (type != fs::file_type::file_not_found &&
             type != fs::file_type::regular_file) {
    return fail("expected a file at " + shown + ", found a device");
  }
  SmallString<128> temporary;
  int descriptor = -1;
  if (std::error_code code = fs::createUniqueFile(besideModel(target, "new"),
                                                  descriptor, temporary))
    return fail("cannot write " + shown + ": " + code.message());
  llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  os << contents;
  os.close();
  std::error_code code = os.error();
  os.clear_error();
  if (!code)
    code = fs::rename(temporary, target);
  if (!code)
    return true;
  std::ignore = fs::remove(temporary);
  return fail("cannot write " + shown + ": " + code.message());
}
