//===- StageCutTest.cpp - Tests of the stage cut --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The cut against exhaustive search, its tie-break and its errors.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/StageCut.h"

#include "gtest/gtest.h"

#include <functional>
#include <random>

using namespace mlir::parc;

namespace {

std::vector<int64_t> sizes(const StageCutProblem &problem) {
  std::string error;
  std::optional<StageCut> cut = cutStages(problem, error);
  EXPECT_TRUE(cut.has_value()) << error;
  if (!cut)
    return {};
  EXPECT_EQ(verifyCut(problem, *cut), std::nullopt);
  std::vector<int64_t> result;
  for (const StageRange &stage : cut->stages)
    result.push_back(stage.size());
  return result;
}

using Sizes = std::vector<int64_t>;

TEST(StageCut, KnownCuts) {
  EXPECT_EQ(sizes({{{3, 1}}, 2, 0, 0}), (Sizes{2, 1}));
  EXPECT_EQ(sizes({{{3, 1}}, 3, 0, 0}), (Sizes{1, 1, 1}));
  EXPECT_EQ(sizes({{{30, 1}}, 4, 0, 0}), (Sizes{8, 8, 7, 7}));
  EXPECT_EQ(sizes({{{10, 5}}, 1, 7, 7}), (Sizes{10}));
  // Embedding and head worth a layer each: 126 + 2 = 128 on 16.
  EXPECT_EQ(sizes({{{126, 4}}, 16, 4, 4}),
            (Sizes{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7}));
  // A head dearer than any stage leaves the last stage the least it may have.
  EXPECT_EQ(sizes({{{6, 1}}, 3, 0, 50}), (Sizes{3, 2, 1}));
  // Two classes of layers.
  EXPECT_EQ(sizes({{{2, 10}, {4, 5}}, 4, 0, 0}), (Sizes{1, 1, 2, 2}));
  EXPECT_EQ(sizes({{{5, 0}}, 2, 0, 0}).size(), 2u);
}

/// All cuts, ordered as cutStages promises.
Sizes bruteForce(const std::vector<int64_t> &costs, int64_t stages,
                 int64_t first, int64_t last) {
  Sizes best, current;
  std::pair<int64_t, int64_t> bestKey{INT64_MAX, INT64_MAX};
  std::function<void(size_t, int64_t, int64_t)> visit = [&](size_t begin,
                                                            int64_t most,
                                                            int64_t squares) {
    int64_t stage = current.size();
    if (stage == stages) {
      std::pair<int64_t, int64_t> key{most, squares};
      if (begin == costs.size() &&
          (key < bestKey || (key == bestKey && current > best))) {
        bestKey = key;
        best = current;
      }
      return;
    }
    int64_t cost = (stage == 0 ? first : 0) + (stage == stages - 1 ? last : 0);
    for (size_t end = begin + 1; end <= costs.size(); ++end) {
      cost += costs[end - 1];
      current.push_back(end - begin);
      visit(end, std::max(most, cost), squares + cost * cost);
      current.pop_back();
    }
  };
  visit(0, 0, 0);
  return best;
}

TEST(StageCut, EqualsExhaustiveSearch) {
  std::mt19937 random(7);
  for (int round = 0; round < 1500; ++round) {
    StageCutProblem problem;
    std::vector<int64_t> costs;
    for (int run = 0, runs = 1 + random() % 3; run < runs; ++run) {
      LayerRun layers{int64_t(1 + random() % 4), int64_t(random() % 9)};
      problem.layers.push_back(layers);
      costs.insert(costs.end(), layers.count, layers.cost);
    }
    problem.stages = 1 + random() % costs.size();
    problem.firstCost = random() % 12;
    problem.lastCost = random() % 12;
    EXPECT_EQ(sizes(problem), bruteForce(costs, problem.stages,
                                         problem.firstCost, problem.lastCost));
  }
}

TEST(StageCut, LargeModels) {
  for (int64_t stages : {1, 2, 16, 126}) {
    StageCutProblem problem{{{1000, 3'000'000'000'000}},
                            stages,
                            40'000'000'000'000,
                            90'000'000'000'000};
    EXPECT_EQ(int64_t(sizes(problem).size()), stages);
  }
  EXPECT_EQ(sizes({{{126, 1}}, 126, 0, 0}), Sizes(126, 1));
}

TEST(StageCut, StageOf) {
  std::string error;
  StageCut cut = *cutStages({{{5, 1}}, 2, 0, 0}, error);
  EXPECT_EQ(cut.maxCost(), 3);
  EXPECT_EQ(cut.stageOf(0), 0);
  EXPECT_EQ(cut.stageOf(2), 0);
  EXPECT_EQ(cut.stageOf(3), 1);
  EXPECT_EQ(cut.stageOf(4), 1);
}

TEST(StageCut, Errors) {
  auto error = [](const StageCutProblem &problem) {
    std::string text;
    EXPECT_FALSE(cutStages(problem, text).has_value());
    return text;
  };
  EXPECT_EQ(error({{{3, 1}}, 4, 0, 0}),
            "expected at least one layer for each of pp=4 stages, got 3 "
            "layers; use pp=3 or less");
  EXPECT_EQ(error({{}, 1, 0, 0}),
            "expected at least one layer for each of pp=1 stages, got 0 "
            "layers");
  EXPECT_EQ(error({{{3, 1}}, 0, 0, 0}),
            "expected at least one stage, got pp=0");
  EXPECT_EQ(error({{{3, 1}, {INT64_MAX, 1}}, 2, 0, 0}),
            "expected at most 2048 layers");
  EXPECT_EQ(error({{{4, INT64_MAX / 3}}, 2, 0, 0}),
            "cost of the model is beyond 2^62");
  EXPECT_EQ(error({{{4, 1}}, 2, INT64_MAX, INT64_MAX}),
            "cost of the model is beyond 2^62");
  EXPECT_EQ(error({{{4, -1}}, 2, 0, 0}),
            "expected layer counts and costs that are not negative");
}

TEST(StageCut, VerifierBites) {
  std::string error;
  StageCutProblem problem{{{6, 2}}, 3, 1, 1};
  StageCut good = *cutStages(problem, error);
  EXPECT_EQ(verifyCut(problem, good), std::nullopt);
  StageCut gap = good;
  gap.stages[1].begin++;
  EXPECT_TRUE(verifyCut(problem, gap));
  StageCut price = good;
  price.stages[2].cost--;
  EXPECT_TRUE(verifyCut(problem, price));
  StageCut shorter = good;
  shorter.stages.pop_back();
  EXPECT_TRUE(verifyCut(problem, shorter));
}

} // namespace
