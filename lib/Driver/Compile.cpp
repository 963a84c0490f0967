//===- Compile.cpp - parc compile and parc import -------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `parc compile` and `parc import`.
///
//===----------------------------------------------------------------------===//

#include "RunData.h"

#include "parc/Driver/Compilation.h"
#include "parc/Driver/Output.h"
#include "parc/Driver/Version.h"
#include "parc/Import/Model.h"
#include "parc/Target/Cpp.h"

#include "Parc/Parc.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

/// Says that a failure left no file, and returns the code.
static int nothingWritten(Session &session, int code) {
  session.reporter.line("nothing written");
  return code;
}

//===----------------------------------------------------------------------===//
// import
//===----------------------------------------------------------------------===//

int mlir::parc::driver::runImport(Session &session) {
  Compilation compilation;
  int code = prepare(session, compilation, /*forDevices=*/false);
  if (code != kDone)
    return nothingWritten(session, code);
  const Word *output = session.line.flag("o");
  if (output && !writeOutputFile(output->text, compilation.model.irText,
                                 session.line.has("force"), output->place,
                                 session.reporter))
    return nothingWritten(session, kUsage);
  if (session.json) {
    llvm::json::Object object{{"model", compilation.describe()},
                              {"batch", compilation.declaration.batch.value},
                              {"seq", compilation.declaration.sequence.value},
                              {"layers", compilation.model.facts.layers}};
    session.out << llvm::formatv("{0:2}", llvm::json::Value(std::move(object)))
                << '\n';
    return kDone;
  }
  if (session.quiet)
    return kDone;
  if (compilation.model.config)
    session.out << summarizeConfig(*compilation.model.config);
  else
    reportLine(session.out, "model", compilation.describe());
  if (output)
    reportLine(session.out, "wrote",
               printable(output->text) + ": " +
                   bytesText(compilation.model.irText.size()));
  std::string next = output ? printable(output->text) : compilation.input.typed;
  session.out << "\nnext: parc " << next << " --mesh 2x2x2 -o out\n";
  return kDone;
}

//===----------------------------------------------------------------------===//
// compile
//===----------------------------------------------------------------------===//

/// Who holds which part of which parameter.
static std::string manifestText(Compilation &compilation) {
  llvm::json::Array parameters;
  for (const ValueLayout &layout : compilation.layouts.params) {
    llvm::json::Array shape, axes, local;
    for (const DimLayout &dim : layout.dims) {
      shape.push_back(dim.size);
      axes.push_back(llvm::json::Array(dim.axes));
      local.push_back(llvm::json::Array{dim.smallest(), dim.largest()});
    }
    llvm::json::Object object{{"symbol", layout.name},
                              {"dtype", layout.dtype},
                              {"shape", std::move(shape)},
                              {"axes", std::move(axes)},
                              {"local", std::move(local)}};
    if (layout.layers)
      object["layers"] = layout.layers;
    if (auto param = compilation.module().lookupSymbol<ParamOp>(layout.name))
      if (auto checkpoint = param.getCheckpoint())
        object["checkpoint"] = printable(checkpoint->getName());
    parameters.push_back(std::move(object));
  }
  return llvm::formatv("{0:2}\n", llvm::json::Value(llvm::json::Object{
                                      {"parc", versionText()},
                                      {"parameters", std::move(parameters)}}))
      .str();
}

/// Locations point to the model.mlir of the folder, wherever the model was read
/// from: the same plan gives the same bytes.
static void relocate(CommReport &comms, StringRef file) {
  std::string from = printable(file) + ":";
  for (CommRow &row : comms.rows) {
    if (StringRef(row.location).starts_with(from))
      row.location.replace(0, from.size(), "model.mlir:");
    for (std::string &origin : row.because) {
      if (size_t at = origin.find(" at " + from); at != std::string::npos)
        origin.replace(at + 4, from.size(), "model.mlir:");
      // The folder's plan has the rule on a line of its own choice.
      if (size_t at = origin.find(" at ");
          StringRef(origin).starts_with("the rule"))
        origin.resize(std::min(at, origin.size()));
    }
  }
}

/// Writes the C++ and the runtime's source.
static bool writeSources(Session &session, Compilation &compilation,
                         int64_t vocab, OutputFolder &folder) {
  const Declaration &declaration = compilation.declaration;
  CppOptions options;
  options.model = compilation.describe();
  // The architecture's name is of the config: the model's text gives the same
  // program.
  if (compilation.model.config)
    options.model = StringRef(options.model).split(", ").second.str();
  options.version = versionText().str();
  options.batch = declaration.batch.value;
  options.seq = declaration.sequence.value;
  options.vocab = std::max<int64_t>(vocab, 1);
  for (auto &[name, setting] : declaration.optimizer)
    options.hyper[name == "weight-decay" ? "weight_decay" : name] =
        setting.value;
  WriteFile write = [&](StringRef name, StringRef contents) {
    return folder.write(name, contents);
  };
  DiagnosticBridge bridge(&session.context, session.reporter, "model");
  if (failed(emitCpp(*compilation.runtime, options, write)))
    return false;
  std::string error;
  // The address of a function here finds the program's file.
  std::string self = llvm::sys::fs::getMainExecutable(
      nullptr, reinterpret_cast<void *>(&runCompile));
  if (copyRuntime(self, write, error))
    return true;
  if (!error.empty())
    session.reporter.error(Place(), error, "output");
  return false;
}

/// Writes everything that the output folder holds.
static bool writeProgram(Session &session, Compilation &compilation,
                         const CommReport &comms, int64_t vocab,
                         OutputFolder &folder) {
  return writeSources(session, compilation, vocab, folder) &&
         folder.write("model.mlir", compilation.model.irText) &&
         folder.write("plan.toml", planText(compilation.declaration)) &&
         folder.write("comms.json",
                      llvm::formatv("{0:2}\n", commsToJSON(comms, std::nullopt))
                          .str()) &&
         folder.write(kManifestName, manifestText(compilation));
}

/// --stop-after: prints the IR of a phase.
static int stopAfter(Session &session, const Word &word) {
  std::optional<Phase> phase = findPhase(word.text);
  if (!phase) {
    session.reporter.error(
        word.place, "unknown phase '" + printable(word.text) + "'", "phase");
    session.reporter.help("phases: " + llvm::join(phaseNames(), ", "));
    return nothingWritten(session, kUsage);
  }
  Compilation compilation;
  int code = prepare(session, compilation, /*forDevices=*/true);
  if (code == kDone)
    code = lower(session, compilation, *phase);
  if (code != kDone)
    return nothingWritten(session, code);
  std::string text;
  llvm::raw_string_ostream os(text);
  printModel(*phase == Phase::Runtime ? *compilation.runtime
                                      : compilation.module(),
             os);
  const Word *output = session.line.flag("o");
  if (!output) {
    session.out << text;
    return kDone;
  }
  text = kTextMarker.str() + ", phase " + phaseName(*phase).str() + "\n" + text;
  if (!writeOutputFile(output->text, text, session.line.has("force"),
                       output->place, session.reporter))
    return nothingWritten(session, kUsage);
  return kDone;
}

int mlir::parc::driver::runCompile(Session &session) {
  // The last phase is the folder.
  const Word *last = session.line.flag("stop-after");
  if (last && last->text != phaseName(Phase::Emitted))
    return stopAfter(session, *last);
  const Word *output = session.line.flag("o");
  std::string path = output ? output->text : "out";
  Place place = output ? output->place : Place{"", 0, 0, 1, ""};
  std::optional<OutputFolder> folder = OutputFolder::create(
      path, session.line.has("force"), place, session.reporter);
  if (!folder)
    return nothingWritten(session, kUsage);
  Compilation compilation;
  int code = prepare(session, compilation, /*forDevices=*/true);
  int64_t vocab = code == kDone ? vocabularyOf(compilation.module()) : 0;
  if (code == kDone)
    code = lower(session, compilation, Phase::Runtime);
  if (code != kDone)
    return nothingWritten(session, code);
  warnUneven(compilation.layouts, session.reporter);
  const Declaration &declaration = compilation.declaration;
  CommReport comms =
      collectComms(compilation.module(), compilation.layouts,
                   declaration.batch.value, declaration.microBatches.value);
  relocate(comms, compilation.model.irFile);
  if (!writeProgram(session, compilation, comms, vocab, *folder) ||
      !folder->commit())
    return nothingWritten(session, kUsage);
  if (session.json) {
    session.out << llvm::formatv("{0:2}\n", commsToJSON(comms, std::nullopt));
    return kDone;
  }
  if (session.quiet)
    return kDone;
  printSummary(session, compilation, comms, /*asThreads=*/false);
  reportLine(session.out, "wrote",
             printable(path) + ": " + std::to_string(folder->files()) +
                 " files, " + bytesText(static_cast<double>(folder->bytes())));
  std::string shown = printable(path);
  session.out << "\nnext: cmake -S " << shown << " -B " << shown
              << "/build && cmake --build " << shown << "/build\n      "
              << shown << "/build/train --steps 3\n";
  return kDone;
}
