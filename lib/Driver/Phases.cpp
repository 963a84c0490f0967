//===- Phases.cpp - The nine phases ---------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The table of phases.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Phases.h"
#include "NN/NNPasses.h"
#include "parc/Conversion/Passes.h"
#include "parc/Transforms/Passes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

ArrayRef<StringRef> mlir::parc::driver::phaseNames() {
  static const StringRef names[] = {"model",     "annotated", "differentiated",
                                    "sharded",   "local",     "staged",
                                    "scheduled", "runtime",   "emitted"};
  return names;
}

StringRef mlir::parc::driver::phaseName(Phase phase) {
  return phaseNames()[static_cast<size_t>(phase)];
}

std::optional<Phase> mlir::parc::driver::findPhase(StringRef name) {
  const auto *found = llvm::find(phaseNames(), name);
  if (found == phaseNames().end())
    return std::nullopt;
  return static_cast<Phase>(found - phaseNames().begin());
}

Phase mlir::parc::driver::lastTextPhase() { return Phase::Runtime; }

void mlir::parc::driver::addPhasePasses(OpPassManager &manager, Phase phase,
                                        const PhaseOptions &options) {
  switch (phase) {
  case Phase::Model:
  case Phase::Annotated:
    return;
  case Phase::Differentiated:
    manager.addPass(createDifferentiate());
    manager.addPass(nn::createAddOptimizer());
    return;
  case Phase::Sharded: {
    manager.addPass(createDecomposeComposites());
    ShardOptions shard;
    shard.microBatches = options.microBatches;
    manager.addPass(createShard(shard));
    VerifyShardedOptions check;
    check.microBatches = options.microBatches;
    manager.addPass(createVerifySharded(check));
    return;
  }
  case Phase::Local: {
    LocalOptions local;
    local.microBatches = options.microBatches;
    manager.addPass(createLocal(local));
    return;
  }
  case Phase::Staged: {
    StageOptions stage;
    stage.microBatches = options.microBatches;
    stage.rule = options.rule;
    manager.addPass(createStage(stage));
    return;
  }
  case Phase::Runtime:
    manager.addPass(createParcToRT());
    manager.addPass(createVerifyRT());
    return;
  case Phase::Scheduled:
  case Phase::Emitted:
    return;
  }
}

LogicalResult
mlir::parc::driver::runPhases(ModuleOp module, Phase from, Phase to,
                              const PhaseOptions &options,
                              std::function<LogicalResult(Phase)> done) {
  for (auto index = static_cast<size_t>(from) + 1;
       index <= static_cast<size_t>(to); ++index) {
    auto phase = static_cast<Phase>(index);
    PassManager manager(module.getContext());
    addPhasePasses(manager, phase, options);
    if (manager.size() != 0 && failed(manager.run(module)))
      return failure();
    if (done && failed(done(phase)))
      return failure();
  }
  return success();
}
