//===- BalanceSequence.cpp - Equal work under a causal mask ---------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Folds the step's inputs along the sequence, so that equal parts of it cost
/// causal attention the same.
///
//===----------------------------------------------------------------------===//

#include "Parc/FoldInterface.h"
#include "parc/Analysis/ClassGraph.h"
#include "parc/Transforms/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_BALANCESEQUENCE
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

namespace {

/// Folds the sequences of one module.
class SequenceFold {
public:
  SequenceFold(ModuleOp module, Propagation &propagation, int64_t parts)
      : module(module), graph(propagation), parts(parts) {
    for (StepOp step : module.getOps<StepOp>())
      for (Value input : step.getMicro().getArguments())
        forEachDim(input, [&](unsigned dim) {
          if (dim > 0)
            sequences.insert(graph.classOf(input, dim));
        });
  }

  void run();

private:
  static void forEachDim(Value value, function_ref<void(unsigned)> body) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    for (int64_t dim = 0; type && dim < type.getRank(); ++dim)
      body(dim);
  }
  bool isWorthIt();
  LogicalResult tellOps(int64_t folds);
  void markObserved();
  void foldInputs(StepOp step);

  ModuleOp module;
  ClassGraph graph;
  int64_t parts;
  const FoldDialectInterface *folder = nullptr;
  llvm::SmallSetVector<DimClass, 2> sequences;
};

} // namespace

/// True where an op takes a sequence whole and masks what comes later.
bool SequenceFold::isWorthIt() {
  return llvm::any_of(graph.ops(), [&](const ClassedOp &classed) {
    std::optional<Attribute> causal = classed.op->getInherentAttr("causal");
    if (!causal || !*causal)
      return false;
    for (auto [cls, factor] :
         llvm::zip(classed.classes, classed.factors->factors))
      if (!factor.splittable && sequences.contains(cls))
        return true;
    return false;
  });
}

/// Tells ops that go by the index along a sequence.
LogicalResult SequenceFold::tellOps(int64_t folds) {
  for (const ClassedOp &classed : graph.ops())
    for (auto [index, cls] : llvm::enumerate(classed.classes)) {
      const Factor &factor = classed.factors->factors[index];
      if (sequences.contains(cls) && (factor.needsOffset || factor.ordered) &&
          failed(cast<ShardableOpInterface>(classed.op)
                     .setFactorFold(index, folds)))
        return failure();
    }
  return success();
}

void SequenceFold::markObserved() {
  module.walk([&](ObserveOp observe) {
    if (!observe->getParentOfType<StepOp>().getMicro().isAncestor(
            observe->getParentRegion()))
      return;
    forEachDim(observe.getInput(), [&](unsigned dim) {
      if (sequences.contains(graph.classOf(observe.getInput(), dim)))
        observe.setFold(ArrayRef<int64_t>{static_cast<int64_t>(dim), parts});
    });
  });
}

void SequenceFold::foldInputs(StepOp step) {
  Block &block = step.getMicro().front();
  auto builder = OpBuilder::atBlockBegin(&block);
  for (BlockArgument input : block.getArguments()) {
    Value folded = input;
    SmallPtrSet<Operation *, 2> folds;
    forEachDim(input, [&](unsigned dim) {
      if (dim == 0)
        return;
      folded = folder->fold(builder, input.getLoc(), folded, dim, parts);
      folds.insert(folded.getDefiningOp());
    });
    input.replaceAllUsesExcept(folded, folds);
  }
}

void SequenceFold::run() {
  for (Dialect *dialect : module.getContext()->getLoadedDialects())
    if (auto *found = dialect->getRegisteredInterface<FoldDialectInterface>())
      folder = found;
  if (!folder || !isWorthIt())
    return;
  if (failed(tellOps(parts))) {
    // What was told before is taken back; the order stays natural.
    (void)tellOps(0);
    return;
  }
  markObserved();
  for (StepOp step : module.getOps<StepOp>()) {
    foldInputs(step);
    step->setAttr(kFoldAttr, Builder(module).getI64IntegerAttr(parts));
  }
}

namespace {
struct BalanceSequencePass
    : public parc::impl::BalanceSequenceBase<BalanceSequencePass> {
  using BalanceSequenceBase::BalanceSequenceBase;
  void runOnOperation() override {
    ModuleOp module = getOperation();
    AxisSizes axes(module, /*microBatches=*/1);
    int64_t parts = axes.product(axes.partsOf("cp", &getContext()));
    if (parts == 1)
      return;
    Propagation propagation(module, axes);
    if (failed(propagation.initialize()))
      return signalPassFailure();
    SequenceFold(module, propagation, parts).run();
  }
};
} // namespace
