//===- Doctor.cpp - parc doctor and parc version --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `parc doctor` and `parc version`.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Compilation.h"
#include "parc/Driver/Version.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace mlir::parc::driver;

StringRef mlir::parc::driver::versionText() { return PARC_VERSION; }

namespace {
/// Something that parc can use.
struct Finding {
  StringRef name;
  /// What was found; empty: nothing.
  std::string found;
  /// What works, or what does not without it.
  std::string meaning;
};
} // namespace

static std::string findProgram(StringRef name, ArrayRef<StringRef> folders) {
  if (auto path = llvm::sys::findProgramByName(name))
    return *path;
  if (auto path = llvm::sys::findProgramByName(name, folders))
    return *path;
  return "";
}

static std::string findLibrary(ArrayRef<const char *> names) {
  for (const char *name : names) {
    std::string error;
    if (llvm::sys::DynamicLibrary::getPermanentLibrary(name, &error).isValid())
      return name;
  }
  return "";
}

/// What OpenBLAS says of itself, where it is the BLAS in this process.
static std::string openBlas() {
  void *symbol = llvm::sys::DynamicLibrary::SearchForAddressOfSymbol(
      "openblas_get_config");
  if (!symbol)
    return "";
  auto *config = reinterpret_cast<const char *(*)()>(symbol);
  return printable(config());
}

static std::string device() {
  return llvm::sys::fs::exists("/dev/nvidia0") ? "/dev/nvidia0" : "";
}

static SmallVector<Finding> findings() {
  SmallVector<Finding> list;
  auto add = [&](StringRef name, std::string found, StringRef with,
                 StringRef without) {
    std::string meaning = (found.empty() ? without : with).str();
    list.push_back({name, std::move(found), std::move(meaning)});
  };
  add("MLIR", LLVM_VERSION_STRING, "compiles models", "");
  // Loaded or not, the library says so in the process's symbols.
  llvm::sys::DynamicLibrary::LoadLibraryPermanently(nullptr);
  add("OpenBLAS", openBlas(), "matrix products of parc run and host programs",
      "another BLAS does the matrix products");
  add("C++ compiler", findProgram("c++", {}), "builds emitted programs",
      "emitted programs cannot be built here");
  add("CMake", findProgram("cmake", {}), "builds emitted programs",
      "emitted programs cannot be built here");
  add("CUDA toolkit", findProgram("nvcc", {"/usr/local/cuda/bin"}),
      "builds emitted programs for GPUs",
      "all works but the build for GPUs (PARC_BACKEND=cuda)");
  add("NCCL", findLibrary({"libnccl.so.2", "libnccl.so"}),
      "emitted programs talk between GPUs",
      "host programs work; GPUs of one program cannot talk");
  add("GPU", device(), "emitted programs run here",
      "parc run and host programs work on the CPU");
  return list;
}

int mlir::parc::driver::runDoctor(Session &session) {
  SmallVector<Finding> list = findings();
  if (session.json) {
    llvm::json::Object object{{"parc", versionText()}};
    for (const Finding &finding : list)
      object[finding.name] = finding.found.empty()
                                 ? llvm::json::Value(nullptr)
                                 : llvm::json::Value(finding.found);
    session.out << llvm::formatv("{0:2}\n",
                                 llvm::json::Value(std::move(object)));
    return kDone;
  }
  session.out << "parc " << versionText() << '\n';
  for (const Finding &finding : list) {
    std::string name = finding.name.str();
    name.resize(14, ' ');
    std::string found =
        finding.found.empty() ? std::string("not found") : finding.found;
    found = shortened(found, 32);
    found.resize(std::max<size_t>(found.size() + 2, 35), ' ');
    session.out << name << found << finding.meaning << '\n';
  }
  session.out << "\nnext: parc run MODEL --mesh 2x2x2     # needs none of the "
                 "GPU parts\n";
  return kDone;
}

int mlir::parc::driver::runVersion(Session &session) {
  if (session.json)
    session.out << llvm::formatv(
        "{0:2}\n",
        llvm::json::Value(llvm::json::Object{{"parc", versionText()},
                                             {"mlir", LLVM_VERSION_STRING}}));
  else
    session.out << "parc " << versionText() << ", MLIR " << LLVM_VERSION_STRING
                << '\n';
  return kDone;
}
