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

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
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
    manager.addPass(createSlotTypes());
    manager.addPass(createDifferentiate());
    manager.addPass(nn::createAddOptimizer());
    return;
  case Phase::Sharded: {
    manager.addPass(createDecomposeComposites());
    if (options.balanced)
      manager.addPass(createBalanceSequence());
    ShardOptions shard;
    shard.microBatches = options.microBatches;
    shard.sequenceParallel = options.strategy.sequenceParallel;
    shard.contextKind = options.strategy.contextKind;
    shard.expertAxes = options.strategy.expertAxes;
    shard.zero = options.zero;
    shard.zeroAxes.assign(options.zeroAxes.begin(), options.zeroAxes.end());
    manager.addPass(createShard(shard));
    // Only now the form of every op is chosen, and with it what it sums.
    manager.addPass(createAccumulateTypes());
    VerifyShardedOptions check;
    check.microBatches = options.microBatches;
    manager.addPass(createVerifySharded(check));
    return;
  }
  case Phase::Local: {
    LocalOptions local;
    local.microBatches = options.microBatches;
    manager.addPass(createLocal(local));
    RingOptions ring;
    ring.microBatches = options.microBatches;
    ring.contract = options.contracts;
    manager.addPass(createRing(ring));
    VerifyLocalOptions check;
    check.microBatches = options.microBatches;
    manager.addPass(createVerifyLocal(check));
    return;
  }
  case Phase::Staged: {
    StageOptions stage;
    stage.microBatches = options.microBatches;
    stage.rule = options.rule;
    manager.addPass(createStage(stage));
    manager.addPass(createVerifyStaged());
    return;
  }
  case Phase::Scheduled:
    manager.addPass(createOverlap());
    manager.addPass(createVerifySchedule());
    return;
  case Phase::Runtime:
    manager.addPass(createParcToRT());
    manager.addPass(createVerifyRT());
    return;
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
    if (!manager.empty() && failed(manager.run(module)))
      return failure();
    if (done && failed(done(phase)))
      return failure();
  }
  return success();
}

namespace {
/// The options of the textual pipelines.
struct PhasePipelineOptions : public PassPipelineOptions<PhasePipelineOptions> {
  Option<int64_t> microBatches{
      *this, "micro-batches",
      llvm::cl::desc("micro-batches a step and replica"), llvm::cl::init(1)};
  Option<std::string> rule{*this, "rule", llvm::cl::desc("gpipe or 1f1b"),
                           llvm::cl::init("1f1b")};
  Option<bool> sequenceParallel{
      *this, "sequence-parallel",
      llvm::cl::desc("split what layers carry along the sequence over tp"),
      llvm::cl::init(false)};
  Option<int64_t> zero{*this, "zero", llvm::cl::desc("ZeRO's stage"),
                       llvm::cl::init(0)};
};
} // namespace

void mlir::parc::driver::registerPhasePipelines() {
  for (size_t last = static_cast<size_t>(Phase::Differentiated);
       last <= static_cast<size_t>(lastTextPhase()); ++last) {
    std::string name = ("parc-to-" + phaseNames()[last]).str();
    std::string text =
        ("from the model to the end of the phase '" + phaseNames()[last] + "'")
            .str();
    PassPipelineRegistration<PhasePipelineOptions>(
        name, text,
        [last](OpPassManager &manager, const PhasePipelineOptions &given) {
          PhaseOptions options;
          options.microBatches = given.microBatches;
          options.rule = given.rule;
          options.strategy.sequenceParallel = given.sequenceParallel;
          options.zero = given.zero;
          for (size_t phase = 0; phase <= last; ++phase)
            addPhasePasses(manager, static_cast<Phase>(phase), options);
        });
  }
}
