//===- Compilation.h - A model through the phases ---------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A model on its way through the phases, and what the verbs share.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_COMPILATION_H
#define PARC_DRIVER_COMPILATION_H

#include "parc/Driver/Comms.h"
#include "parc/Driver/ContextWork.h"
#include "parc/Driver/Declaration.h"
#include "parc/Driver/Layouts.h"
#include "parc/Driver/ModelInput.h"
#include "parc/Driver/Phases.h"

namespace mlir::parc::driver {

/// One run of the tool.
struct Session {
  Session(const CommandLine &line, Reporter &reporter, raw_ostream &out,
          raw_ostream &err);

  const CommandLine &line;
  Reporter &reporter;
  raw_ostream &out, &err;
  bool quiet, verbose, json;
  MLIRContext context;
};

/// Sizes that a file of inputs brings.
struct DataShape {
  int64_t batch = 0, sequence = 0;
  Place place;
};

/// A model, its declaration, and how far it has come.
struct Compilation {
  ModelInput input;
  LoadedModel model;
  Declaration declaration;
  Phase phase = Phase::Model;
  /// Of the sharded phase.
  LayoutReport layouts;
  /// How cp shares attention; none without cp.
  std::optional<ContextWork> contextWork;
  /// Keep a copy of the differentiated phase: the unpartitioned program.
  bool keepUnpartitioned = false;
  OwningOpRef<ModuleOp> unpartitioned;
  /// Keep a second program for exact arithmetic where the first one cannot run
  /// in it: what ops on rings mean instead of how they run. It is lowered to
  /// the staged phase; null where there are none.
  bool keepExact = false;
  OwningOpRef<ModuleOp> exact;

  /// The runtime phase, where it was asked for; `module` stays scheduled.
  OwningOpRef<ModuleOp> runtime;

  ModuleOp module() { return *model.module; }
  /// The partitioned program that exact arithmetic can run.
  ModuleOp exactModule() { return exact ? *exact : module(); }
  /// Architecture where known, layers, parameters, element type.
  std::string describe() const;
  /// The layers of each stage, from the staged phase's table.
  std::vector<int64_t> layersPerStage();
};

/// Opens MODEL and its plan, resolves the declaration and makes the module.
/// `forDevices`: see DeclarationSource::resolve. Returns an exit code.
int prepare(Session &session, Compilation &compilation, bool forDevices,
            const DataShape *data = nullptr);

/// Runs the phases up to `to`; --dump-phases is obeyed. Returns an exit code.
int lower(Session &session, Compilation &compilation, Phase to);

/// A line of a report: `word`, `text` from column 10 on, and `aside` from
/// column 60 on.
void reportLine(raw_ostream &os, StringRef word, const Twine &text,
                const Twine &aside = "");

/// Runs of equal numbers: "2+1", "8 x 14, 7 x 2".
std::string listText(ArrayRef<int64_t> numbers);

/// "33.3 %": the idle share of a pipeline, (p-1)/(m+p-1).
std::string bubbleText(int64_t stages, int64_t microBatches);

/// The lines on model, plan, mesh, stages, schedule and comms.
void printSummary(Session &session, Compilation &compilation,
                  const CommReport &comms, bool asThreads);

/// \name The verbs; each returns an exit code
/// \{
int runCompile(Session &session);
int runImport(Session &session);
int runRun(Session &session);
int runShow(Session &session);
int runExplain(Session &session);
int runDoctor(Session &session);
int runVersion(Session &session);
/// \}

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_COMPILATION_H
