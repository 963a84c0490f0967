//===- StageCut.cpp - Layers to pipeline stages ---------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The exact cut: the least feasible maximum by bisection over a greedy test,
/// then a dynamic program over the few cuts that meet it.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/StageCut.h"

#include "llvm/ADT/Twine.h"

#include <algorithm>

using namespace llvm;

namespace mlir::parc {
namespace {

// Sums of squares of costs up to 2^62 need 124 bits.
__extension__ typedef unsigned __int128 Square;

constexpr int64_t maxTotal = int64_t(1) << 62;

/// The problem with prefix sums of layer costs.
struct Chain {
  explicit Chain(const StageCutProblem &problem)
      : stages(problem.stages), first(problem.firstCost),
        last(problem.lastCost), prefix{0} {
    for (LayerRun run : problem.layers)
      for (int64_t i = 0; i < run.count; ++i)
        prefix.push_back(prefix.back() + run.cost);
  }

  int64_t layers() const { return prefix.size() - 1; }
  /// Cost of layers [begin, end) as stage `stage`.
  int64_t cost(int64_t stage, int64_t begin, int64_t end) const {
    int64_t cost = prefix[end] - prefix[begin];
    return cost + (stage == 0 ? first : 0) + (stage == stages - 1 ? last : 0);
  }
  /// One past the last layer that `stage` may take: later stages need one each.
  int64_t limit(int64_t stage) const { return layers() - (stages - 1 - stage); }

  int64_t stages, first, last;
  SmallVector<int64_t> prefix;
};

/// Whether a cut with every stage at most `bound` exists. Taking as much as
/// fits on each stage is optimal: a suffix of a chain that can be cut can be
/// cut too, as long as it has a layer for each stage.
bool feasible(const Chain &chain, int64_t bound) {
  int64_t begin = 0;
  for (int64_t stage = 0; stage < chain.stages; ++stage) {
    int64_t end = begin + 1, limit = chain.limit(stage);
    if (stage == chain.stages - 1)
      end = limit;
    if (chain.cost(stage, begin, end) > bound)
      return false;
    while (end < limit && chain.cost(stage, begin, end + 1) <= bound)
      ++end;
    begin = end;
  }
  return true;
}

int64_t leastMaximum(const Chain &chain) {
  int64_t low = 0, high = chain.prefix.back() + chain.first + chain.last;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (feasible(chain, middle))
      high = middle;
    else
      low = middle + 1;
  }
  return high;
}

/// Ends of the stages of the most even cut with maximum `bound`. From the last
/// stage back, best[b] is the least sum of squares when a stage begins at b.
SmallVector<int64_t> evenestEnds(const Chain &chain, int64_t bound) {
  const Square none = ~Square(0);
  int64_t layers = chain.layers();
  auto square = [](int64_t cost) { return Square(cost) * Square(cost); };
  std::vector<Square> best(layers + 1, none), next(layers + 1, none);
  next[layers] = 0;
  std::vector<std::vector<uint16_t>> choice(chain.stages);
  for (int64_t stage = chain.stages - 1; stage >= 0; --stage) {
    bool isLast = stage == chain.stages - 1;
    std::fill(best.begin(), best.end(), none);
    choice[stage].assign(layers + 1, 0);
    int64_t lastBegin = stage == 0 ? 0 : chain.limit(stage) - 1;
    for (int64_t begin = stage; begin <= lastBegin; ++begin) {
      for (int64_t end = isLast ? layers : begin + 1; end <= chain.limit(stage);
           ++end) {
        int64_t cost = chain.cost(stage, begin, end);
        if (cost > bound)
          break;
        if (next[end] == none)
          continue;
        // Ties go to the later end: longer early stages.
        if (Square sum = next[end] + square(cost); sum <= best[begin]) {
          best[begin] = sum;
          choice[stage][begin] = end;
        }
      }
    }
    std::swap(best, next);
  }
  SmallVector<int64_t> ends;
  for (int64_t stage = 0, begin = 0; stage < chain.stages; ++stage)
    ends.push_back(begin = choice[stage][begin]);
  return ends;
}

} // namespace

int64_t StageCutProblem::numLayers() const {
  int64_t total = 0;
  for (LayerRun run : layers)
    total += run.count;
  return total;
}

std::optional<std::string> StageCutProblem::check() const {
  if (stages < 1)
    return "expected at least one stage, got pp=" + std::to_string(stages);
  if (firstCost < 0 || lastCost < 0)
    return std::string("expected costs that are not negative");
  if (firstCost > maxTotal || lastCost > maxTotal - firstCost)
    return std::string("cost of the model is beyond 2^62");
  int64_t count = 0, room = maxTotal - firstCost - lastCost;
  for (LayerRun run : layers) {
    if (run.count < 0 || run.cost < 0)
      return std::string("expected layer counts and costs that are not "
                         "negative");
    if (run.count > maxLayers - count)
      return "expected at most " + std::to_string(maxLayers) + " layers";
    count += run.count;
    if (run.cost != 0 && run.count > room / run.cost)
      return std::string("cost of the model is beyond 2^62");
    room -= run.count * run.cost;
  }
  if (stages <= count)
    return std::nullopt;
  std::string text =
      "expected at least one layer for each of pp=" + std::to_string(stages) +
      " stages, got " + std::to_string(count) +
      (count == 1 ? " layer" : " layers");
  if (count > 0)
    text += "; use pp=" + std::to_string(count) + " or less";
  return text;
}

int64_t StageCut::maxCost() const {
  int64_t cost = 0;
  for (const StageRange &stage : stages)
    cost = std::max(cost, stage.cost);
  return cost;
}

int64_t StageCut::stageOf(int64_t layer) const {
  auto it = std::upper_bound(
      stages.begin(), stages.end(), layer,
      [](int64_t layer, const StageRange &stage) { return layer < stage.end; });
  return it - stages.begin();
}

std::optional<StageCut> cutStages(const StageCutProblem &problem,
                                  std::string &error) {
  if (std::optional<std::string> wrong = problem.check()) {
    error = *wrong;
    return std::nullopt;
  }
  Chain chain(problem);
  StageCut cut;
  int64_t begin = 0;
  for (int64_t end : evenestEnds(chain, leastMaximum(chain))) {
    int64_t stage = cut.stages.size();
    cut.stages.push_back({begin, end, chain.cost(stage, begin, end)});
    begin = end;
  }
  return cut;
}

std::optional<std::string> verifyCut(const StageCutProblem &problem,
                                     const StageCut &cut) {
  if (int64_t(cut.stages.size()) != problem.stages)
    return "expected " + std::to_string(problem.stages) + " stages, got " +
           std::to_string(cut.stages.size());
  Chain chain(problem);
  int64_t begin = 0;
  for (int64_t stage = 0; stage < problem.stages; ++stage) {
    StageRange range = cut.stages[stage];
    std::string name = "stage " + std::to_string(stage);
    if (range.begin != begin || range.end <= begin ||
        range.end > chain.layers())
      return name + " does not continue the stage before it";
    if (range.cost != chain.cost(stage, range.begin, range.end))
      return name + " has a wrong cost";
    begin = range.end;
  }
  if (begin != chain.layers())
    return std::string("layers after the last stage");
  return std::nullopt;
}

} // namespace mlir::parc
