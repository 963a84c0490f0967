//===- Strategy.cpp - The built-in strategy -------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Seeds of data, context, expert and sequence parallelism. Tensor parallelism
/// is searched for, in TensorSearch.cpp.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/Strategy.h"
#include "ContextChoice.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

using namespace mlir;
using namespace mlir::parc;

namespace {

/// Places the axes of one module.
class Planner {
public:
  Planner(ModuleOp module, Propagation &propagation, const AxisSizes &axes,
          const StrategyOptions &options)
      : module(module), propagation(propagation), axes(axes), options(options),
        graph(propagation) {}

  LogicalResult run();

private:
  /// The parts of an axis that no constraint of the module places.
  Axes freeParts(StringRef axis) {
    Axes parts = axes.partsOf(axis, module.getContext());
    bool taken = llvm::any_of(parts, [&](StringAttr part) {
      return propagation.isConstrained(part.getValue());
    });
    return taken ? Axes() : parts;
  }
  void findSequences();
  void placeBatch(StepOp step);
  void placeSequence();
  LogicalResult placeExperts();
  LogicalResult placeCarried();
  LogicalResult placeContext();

  ModuleOp module;
  Propagation &propagation;
  const AxisSizes &axes;
  const StrategyOptions &options;
  ClassGraph graph;
  /// Classes of the inputs' dimensions but the batch.
  SmallVector<DimClass> sequences;
  /// All classes of the inputs' dimensions.
  SmallVector<DimClass> data;
};

} // namespace

static bool isBatch(StepOp step, Value input) {
  auto size = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getDimSize(0);
  };
  return size(input) == size(step.getMicro().getArgument(0));
}

void Planner::findSequences() {
  for (StepOp step : module.getOps<StepOp>())
    for (Value input : step.getMicro().getArguments())
      for (int64_t dim = 0,
                   rank = cast<RankedTensorType>(input.getType()).getRank();
           dim < rank; ++dim) {
        DimClass cls = graph.classOf(input, dim);
        if (llvm::is_contained(data, cls))
          continue;
        data.push_back(cls);
        if (dim > 0)
          sequences.push_back(cls);
      }
}

/// The batch is split over replicas, and over micro-batches within them.
void Planner::placeBatch(StepOp step) {
  Axes split = freeParts("dp");
  if (axes.of(kMicroBatchAxis) > 1 &&
      !propagation.isConstrained(kMicroBatchAxis))
    split.push_back(StringAttr::get(module.getContext(), kMicroBatchAxis));
  for (Value input : step.getMicro().getArguments())
    if (isBatch(step, input))
      for (StringAttr axis : split) {
        StringRef whole = wholeAxis(axis);
        propagation.setOrigin(whole + (whole == kMicroBatchAxis
                                           ? " takes the batch in turns"
                                           : " splits the batch"));
        propagation.place(input, 0, axis);
      }
}

/// All that has a sequence is split along it, but the inputs themselves: they
/// are small, and every rank can read them.
void Planner::placeSequence() {
  Axes split = freeParts("cp");
  if (split.empty())
    return;
  propagation.setOrigin("cp splits the sequence");
  for (StringAttr axis : split)
    propagation.addDataAxis(axis);
  llvm::SmallDenseSet<unsigned> inputs;
  for (StepOp step : module.getOps<StepOp>())
    for (Value input : step.getMicro().getArguments())
      inputs.insert(propagation.rowOf(input));
  for (DimClass cls : sequences)
    for (auto [value, dim] : graph.members(cls))
      if (!inputs.contains(propagation.rowOf(value)))
        for (StringAttr axis : split)
          propagation.place(value, dim, axis);
}

/// True for a factor that picks a weight out of a parameter and is kept by the
/// result of a contraction: the experts of a layer.
static bool selectsWeights(const ClassedOp &classed, unsigned factor) {
  auto has = [&](const ValueFactors &dims, unsigned index) {
    return llvm::any_of(dims, [&](const DimFactors &dim) {
      return llvm::is_contained(dim, index);
    });
  };
  bool inParameter = false, inOther = false;
  auto dest = dyn_cast<DestinationStyleOpInterface>(classed.op);
  for (auto [use, dims] :
       llvm::zip(classed.op->getOpOperands(), classed.factors->operands)) {
    if (!has(dims, factor) || (dest && dest.isDpsInit(&use)))
      continue;
    auto load = use.get().getDefiningOp<LoadOp>();
    (load && load.getSlot() == "value" ? inParameter : inOther) = true;
  }
  if (!inParameter || !inOther || !has(classed.factors->results[0], factor))
    return false;
  for (unsigned other = 0; other < classed.classes.size(); ++other)
    if (classed.classes[other] != kNoClass &&
        !has(classed.factors->results[0], other))
      return true;
  return false;
}

LogicalResult Planner::placeExperts() {
  Axes split;
  for (const std::string &axis : options.expertAxes) {
    split.push_back(StringAttr::get(module.getContext(), axis));
    if (!axes.has(axis))
      return emitError(module.getLoc())
             << "the mesh has no axis '" << axis << "' for experts";
  }
  if (split.empty())
    return success();
  llvm::SmallSetVector<DimClass, 2> classes;
  for (const ClassedOp &classed : graph.ops())
    for (auto [factor, cls] : llvm::enumerate(classed.classes))
      if (cls != kNoClass && classed.factors->factors[factor].splittable &&
          selectsWeights(classed, factor))
        classes.insert(cls);
  if (classes.empty())
    return emitError(module.getLoc())
           << "nothing to split over experts: the model has no layer that "
              "chooses among weights; leave out 'ep'";
  propagation.setOrigin("ep splits the experts");
  for (DimClass cls : classes)
    graph.place(cls, split);
  for (StringAttr axis : split)
    propagation.keep(axis);
  return success();
}

/// Sequence parallelism: what layers hand on is split along the sequence.
LogicalResult Planner::placeCarried() {
  if (!options.sequenceParallel)
    return success();
  Axes split = axes.partsOf("tp", module.getContext());
  if (split.empty())
    return emitError(module.getLoc())
           << "sequence parallelism splits activations over tp, expected tp of "
              "at least 2, got 1; give the mesh tp or leave out 'sp'";
  bool any = false;
  propagation.setOrigin("sp splits the sequence of what layers carry over tp");
  module.walk([&](StackOp stack) {
    if (!stack->getParentOfType<StepOp>().getMicro().isAncestor(
            stack->getParentRegion()))
      return;
    for (Value carried : stack.getCarryArguments())
      for (int64_t dim = 0,
                   rank = cast<RankedTensorType>(carried.getType()).getRank();
           dim < rank; ++dim)
        if (llvm::is_contained(sequences, graph.classOf(carried, dim))) {
          for (StringAttr axis : split)
            propagation.place(carried, dim, axis);
          any = true;
        }
  });
  if (!any)
    return emitError(module.getLoc())
           << "sequence parallelism found no layers that carry a sequence";
  return success();
}

/// How the ops that need a sequence whole run: on the gathered whole, which
/// falls out; on a ring (arXiv:2310.01889); or with another dimension split
/// over the sequence's axes instead (Ulysses, arXiv:2309.14509).
LogicalResult Planner::placeContext() {
  Axes context = freeParts("cp");
  if (context.empty())
    return success();
  ContextKind kind = options.contextKind;
  if (kind == ContextKind::Auto) {
    ContextChoice choice =
        chooseContext({graph, propagation, sequences, data, context, axes});
    kind = choice.kind;
    module->setAttr(kContextAttr,
                    StringAttr::get(module.getContext(), choice.why));
  }
  if (kind == ContextKind::Ulysses)
    propagation.setOrigin("cp exchanges the sequence for heads (ulysses)");
  else if (kind == ContextKind::Ring)
    propagation.setOrigin("cp passes keys and values around (ring)");
  for (const ClassedOp &classed : graph.ops()) {
    if (kind == ContextKind::Ulysses &&
        failed(exchangeHeadsOf(classed, propagation, sequences, data, context,
                               axes)))
      return failure();
    if (kind == ContextKind::Ring && needsWhole(classed, sequences, data) &&
        failed(putOnRing(classed, propagation, sequences, context)))
      return failure();
  }
  propagation.spread();
  return success();
}

LogicalResult Planner::run() {
  findSequences();
  for (StepOp step : module.getOps<StepOp>())
    placeBatch(step);
  placeSequence();
  if (failed(placeExperts()))
    return failure();
  propagation.spread();
  Axes tensor = freeParts("tp");
  if (!tensor.empty()) {
    placeTensor(module, propagation, graph, tensor, axes);
    propagation.spread();
  }
  if (failed(placeCarried()))
    return failure();
  propagation.spread();
  return placeContext();
}

LogicalResult mlir::parc::applyStrategy(ModuleOp module,
                                        Propagation &propagation,
                                        const AxisSizes &axes,
                                        const StrategyOptions &options) {
  return Planner(module, propagation, axes, options).run();
}
