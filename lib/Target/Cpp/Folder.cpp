//===- Folder.cpp - The emitted folder
//------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// README, CMakeLists.txt, main, and the copy of the runtime.
///
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::cpp;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

static std::string cmakeText(const ProgramNames &names) {
  std::string text = "# Builds the trainer: -DPARC_BACKEND=host or cuda.\n"
                     "cmake_minimum_required(VERSION 3.20)\n"
                     "project(train LANGUAGES CXX)\n"
                     "include(runtime/cmake/Backend.cmake)\n"
                     "add_subdirectory(runtime)\n"
                     "parc_add_program(train src/main.cpp";
  for (rt::RoleOp role : names.roles)
    text +=
        "\n  src/stage_" + names.roleNames.at(role.getSymName().str()) + ".cpp";
  return text + ")\n";
}

static std::string mainText() {
  return "// Flags, data, checkpoints and the step line: see "
         "runtime/README.md.\n#include \"tables.h\"\n\n"
         "int main(int argc, char **argv) {\n"
         "  parc::StagedProgram program(model::tables, model::roles);\n"
         "  return parc::trainMain(program, argc, argv);\n}\n";
}

static std::string readmeText(const ProgramNames &names,
                              const CppOptions &options) {
  rt::MeshOp mesh = names.mesh;
  int64_t ranks = 1;
  std::string sizes;
  for (auto [axis, size] :
       llvm::zip(mesh.getAxes().getAsRange<StringAttr>(), mesh.getSizes())) {
    ranks *= size;
    sizes += (sizes.empty() ? "" : " x ") + names.axisNames.at(axis.str()) +
             "=" + std::to_string(size);
  }
  std::string count = std::to_string(ranks);
  return "# A trainer for " + count + (ranks == 1 ? " rank" : " ranks") +
         "\n\n" + comment(options.model) + "; " + sizes +
         ", slowest first. Made by parc " + comment(options.version) +
         ".\n\n## On this machine, all ranks as threads\n\n"
         "    cmake -S . -B build && cmake --build build\n"
         "    build/train --steps 3\n\n"
         "Needs a C++17 compiler, CMake and OpenBLAS.\n\n"
         "## On " +
         count + (ranks == 1 ? " GPU\n\n" : " GPUs\n\n") +
         "    cmake -S . -B build -DPARC_BACKEND=cuda && cmake --build build\n"
         "    srun -n " +
         count +
         " build/train --data tokens.bin\n\n"
         "One process a GPU: " +
         count + (ranks == 1 ? " process" : " processes") +
         ". Needs the CUDA toolkit, and NCCL at run time.\n\n"
         "## Flags\n\n"
         "`--steps N --data tokens.bin --weights FILE --inputs FILE --save "
         "FILE --lr X --seed N`;\n`--help` lists all. The batch is " +
         std::to_string(options.batch) + " sequences of " +
         std::to_string(options.seq) +
         " tokens.\n\n"
         "## What is here\n\n"
         "| file | holds |\n|---|---|\n"
         "| src/tables.h | mesh, communicators, parameters, schedule |\n"
         "| src/stage_*.cpp | forward, backward and update of the stages of "
         "one role |\n"
         "| src/main.cpp | the program |\n"
         "| runtime/ | what it links; its README says more |\n"
         "| model.mlir, plan.toml | what was compiled |\n"
         "| comms.json | every collective: reason, place, bytes |\n";
}

LogicalResult mlir::parc::emitCpp(ModuleOp module, const CppOptions &options,
                                  const WriteFile &write) {
  FailureOr<ProgramNames> names = ProgramNames::of(module);
  if (failed(names))
    return failure();
  names->batch = options.batch;
  names->seq = options.seq;
  FailureOr<std::string> tables = printTables(*names, options);
  if (failed(tables))
    return failure();
  if (!write("README.md", readmeText(*names, options)) ||
      !write("CMakeLists.txt", cmakeText(*names)) ||
      !write("src/main.cpp", mainText()) || !write("src/tables.h", *tables))
    return failure();
  for (rt::RoleOp role : names->roles) {
    FailureOr<std::string> text = printStage(*names, role, options);
    if (failed(text) ||
        !write("src/stage_" + names->roleNames.at(role.getSymName().str()) +
                   ".cpp",
               *text))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The runtime
//===----------------------------------------------------------------------===//

/// The runtime's source: beside the installed program, else of the build.
static std::string runtimeSource(StringRef executable) {
  SmallString<256> real;
  if (!fs::real_path(executable, real)) {
    SmallString<256> shared(path::parent_path(path::parent_path(real)));
    path::append(shared, "share", "parc", "runtime");
    if (fs::is_directory(shared))
      return shared.str().str();
  }
  return fs::is_directory(PARC_RUNTIME_SOURCE) ? PARC_RUNTIME_SOURCE : "";
}

bool mlir::parc::copyRuntime(StringRef executable, const WriteFile &write,
                             std::string &error) {
  std::string root = runtimeSource(executable);
  if (root.empty()) {
    error = "the runtime's source is neither beside the program nor where it "
            "was built";
    return false;
  }
  std::vector<std::string> files;
  std::error_code code;
  for (fs::recursive_directory_iterator at(root, code), end; at != end && !code;
       at.increment(code)) {
    StringRef relative = StringRef(at->path()).drop_front(root.size() + 1);
    if (!relative.starts_with("test/") && relative != "test" &&
        fs::is_regular_file(at->path()))
      files.push_back(relative.str());
  }
  if (code) {
    error = "cannot read the runtime's source: " + code.message();
    return false;
  }
  llvm::sort(files);
  for (const std::string &file : files) {
    auto buffer = llvm::MemoryBuffer::getFile(root + "/" + file);
    if (!buffer) {
      error = "cannot read '" + file + "' of the runtime";
      return false;
    }
    if (!write("runtime/" + file, (*buffer)->getBuffer()))
      return false;
  }
  return true;
}
