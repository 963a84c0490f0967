//===- Strategy.h - The built-in strategy --------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Places the axes of the usual kinds of parallelism from the model's own
/// structure. All that follows from these seeds is propagation's.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_ANALYSIS_STRATEGY_H
#define PARC_ANALYSIS_STRATEGY_H

#include "parc/Analysis/Propagation.h"

namespace mlir::parc {

/// How attention meets keys of a sequence that is split.
/// `Auto`: what moves the fewest bytes of those that the model allows.
enum class ContextKind { AllGather, Ulysses, Ring, Auto };

/// The module's attribute that says why `Auto` chose as it did.
constexpr StringLiteral kContextAttr = "parc.context";

/// What the planner decided beyond the mesh.
struct StrategyOptions {
  /// What the layers carry is split along the sequence over `tp` too
  /// (arXiv:2205.05198).
  bool sequenceParallel = false;
  ContextKind contextKind = ContextKind::AllGather;
  /// Axes (of the refined mesh) that split the experts, major to minor.
  SmallVector<std::string> expertAxes;
};

/// Seeds layouts:
/// - the batch dimension of the step's inputs on `dp` and `mb`;
/// - the inputs' other dimensions, the sequence, on `cp`, wherever they occur;
/// - dimensions that select among weights in a contraction (experts) on the
///   expert axes;
/// - on `tp` the classes of dimensions that split the most work of ops that
///   read a parameter, for the fewest bytes reduced. A class is all dimensions
///   that factors connect; it is legal if no op needs it whole and no op would
///   be split twice. For a transformer this is Megatron-LM's layout
///   (arXiv:1909.08053): heads, the feed-forward width, the vocabulary;
/// - with sequence parallelism the sequence of what stacks carry on `tp`.
///
/// Fails with an error where an option has nothing to attach to.
LogicalResult applyStrategy(ModuleOp module, Propagation &propagation,
                            const AxisSizes &axes,
                            const StrategyOptions &options);

} // namespace mlir::parc

#endif // PARC_ANALYSIS_STRATEGY_H
