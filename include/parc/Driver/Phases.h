//===- Phases.h - The nine phases -------------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The nine phases, and the passes that lead from one to the next. Adding a
/// phase's passes is adding a case in Phases.cpp.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_PHASES_H
#define PARC_DRIVER_PHASES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/LLVM.h"
#include "parc/Analysis/Strategy.h"

#include <functional>
#include <optional>
#include <string>

namespace mlir::parc::driver {

enum class Phase {
  Model,
  Annotated,
  Differentiated,
  Sharded,
  Local,
  Staged,
  Scheduled,
  Runtime,
  Emitted,
};

/// The names of all phases, in order.
ArrayRef<StringRef> phaseNames();
StringRef phaseName(Phase phase);
std::optional<Phase> findPhase(StringRef name);
/// The last phase that is MLIR text.
Phase lastTextPhase();

/// What the passes need to know of the declaration.
struct PhaseOptions {
  int64_t microBatches = 1;
  /// gpipe or 1f1b.
  std::string rule = "1f1b";
  StrategyOptions strategy;
  /// Whether causal attention's work is balanced over cp.
  bool balanced = false;
  /// ZeRO's stage, and the axes it splits over (empty: all that it may).
  int64_t zero = 0;
  std::vector<std::string> zeroAxes;
  /// Ops on rings are what they mean, not how they run: for exact arithmetic.
  bool contracts = false;
};

/// Adds the passes that lead to `phase` from the one before it. `model` and
/// `annotated` have none: the driver makes them.
void addPhasePasses(OpPassManager &manager, Phase phase,
                    const PhaseOptions &options);

/// Runs the passes of the phases after `from` up to `to`; `done` is called
/// after each phase and stops the run where it fails.
LogicalResult runPhases(ModuleOp module, Phase from, Phase to,
                        const PhaseOptions &options,
                        std::function<LogicalResult(Phase)> done = nullptr);

/// Registers, for textual pipelines, one pipeline a phase: `parc-to-PHASE` runs
/// everything from the model to the end of the phase, its verifier included.
/// Options: `micro-batches`, `rule`.
void registerPhasePipelines();

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_PHASES_H
