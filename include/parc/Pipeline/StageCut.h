//===- StageCut.h - Layers to pipeline stages -------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Cuts a chain of layers into contiguous pipeline stages so that the dearest
/// stage is as cheap as possible, with the cost of what stands before the first
/// layer (embedding) and after the last (norm, head) counted on their stages.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_PIPELINE_STAGECUT_H
#define PARC_PIPELINE_STAGECUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mlir::parc {

/// `count` consecutive layers of equal cost. Costs are in any one unit (FLOPs).
struct LayerRun {
  int64_t count = 0;
  int64_t cost = 0;
};

/// What is to be cut.
struct StageCutProblem {
  llvm::SmallVector<LayerRun> layers;
  int64_t stages = 1;
  /// Added to the first stage (embedding).
  int64_t firstCost = 0;
  /// Added to the last stage (final norm, head, loss).
  int64_t lastCost = 0;

  static constexpr int64_t maxLayers = 2048;

  /// Empty when the problem can be solved, else the error: more stages than
  /// layers, negative counts or costs, too many layers, a sum beyond 2^62.
  std::optional<std::string> check() const;
  int64_t numLayers() const;
};

/// The layers [begin, end) of a stage and its cost, extras included.
struct StageRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t cost = 0;

  int64_t size() const { return end - begin; }
};

/// One range a stage, in order; the ranges cover all layers.
struct StageCut {
  llvm::SmallVector<StageRange> stages;

  int64_t maxCost() const;
  /// The stage that holds `layer`.
  int64_t stageOf(int64_t layer) const;
};

/// Solves the problem exactly: least possible maximum; among those cuts the
/// least sum of squared costs (the most even); among those the one whose early
/// stages are longest. Every stage has a layer. `error` is set on failure.
/// Cost: about O(L^2) for L layers of similar costs.
std::optional<StageCut> cutStages(const StageCutProblem &problem,
                                  std::string &error);

/// Empty when `cut` covers the problem's layers in order with correct costs and
/// no empty stage, else what is wrong. Does not test optimality.
std::optional<std::string> verifyCut(const StageCutProblem &problem,
                                     const StageCut &cut);

} // namespace mlir::parc

#endif // PARC_PIPELINE_STAGECUT_H
