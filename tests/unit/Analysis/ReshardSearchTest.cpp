//===- ReshardSearchTest.cpp - All pairs of layouts -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The search against brute force, and its paths against the numbers they have
/// to deliver.
///
//===----------------------------------------------------------------------===//

#include "ReshardTesting.h"

#include "gtest/gtest.h"

using namespace mlir::parc;
using namespace mlir::parc::testing;

namespace {

struct Case {
  TestMesh mesh;
  Sizes shape;
};

class AllPairs : public ::testing::TestWithParam<Case> {};

/// Costs under which bytes count and latencies do not.
ReshardCosts withoutLatency() {
  ReshardCosts costs;
  costs.latencyInNodeNs = costs.latencyAcrossNs = 0;
  return costs;
}

void expectShortest(const Case &test, const ReshardCosts &costs) {
  ReshardReference reference(test.mesh, test.shape, 4, costs);
  const std::vector<ReshardLayout> &layouts = reference.layouts();
  for (size_t from = 0; from < layouts.size(); ++from)
    for (size_t to = 0; to < layouts.size(); ++to) {
      ReshardProblem problem =
          makeProblem(test.mesh, test.shape, layouts[from], layouts[to]);
      ReshardPath path = searchReshard(problem, costs);
      ReshardReference::Answer best = reference.length(from, to);
      std::string where =
          text(layouts[from]) + " -> " + text(layouts[to]) + ": " + text(path);
      ASSERT_EQ(path.length.time, best.time) << where;
      ASSERT_EQ(path.length.transfer, best.transfer) << where;
      ASSERT_LE(path.peakBytes, best.peakLimit) << where;
      ASSERT_FALSE(path.capped) << where;
      ReshardPath simple = gatherThenSlice(problem, costs);
      ASSERT_EQ(simple.length.time, best.simpleTime) << where;
      // A path that is longer moves less and takes less memory.
      ASSERT_LE(path.peakBytes, std::max(simple.peakBytes, best.peakLimit));
      if (path.length.time > simple.length.time) {
        ASSERT_LE(path.length.transfer, simple.length.transfer) << where;
        ASSERT_LT(path.peakBytes, simple.peakBytes) << where;
      }
      // Numbers: the path of many states is that of few.
      if ((from * 7 + to) % 5 == 0 || layouts.size() < 40) {
        ASSERT_EQ(
            simulate(test.mesh, problem, path, Reduction::Sum, Reduction::Sum),
            "")
            << where;
        ASSERT_EQ(simulate(test.mesh, problem, simple, Reduction::Sum,
                           Reduction::Sum),
                  "")
            << where << " by " << text(simple);
      }
    }
}

TEST_P(AllPairs, ShortestByBytes) {
  expectShortest(GetParam(), withoutLatency());
}

TEST_P(AllPairs, ShortestByTime) { expectShortest(GetParam(), {}); }

std::vector<Case> cases() {
  std::vector<Case> all;
  std::vector<TestMesh> meshes = {{{2}},       {{3}},       {{4}, 2},
                                  {{2, 2}, 2}, {{2, 3}, 3}, {{2, 2, 2}, 4}};
  for (const TestMesh &mesh : meshes)
    for (const Sizes &shape : {Sizes{5}, Sizes{8}, Sizes{5, 7}, Sizes{8, 8},
                               Sizes{5, 7, 3}, Sizes{8, 8, 8}})
      all.push_back({mesh, shape});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Meshes, AllPairs, ::testing::ValuesIn(cases()),
                         [](const auto &info) {
                           std::string name = info.param.mesh.text() + "_of";
                           for (int64_t size : info.param.shape)
                             name += "_" + std::to_string(size);
                           return "mesh" + name;
                         });

/// Every pair of reductions: the numbers are right.
TEST(ReshardSearch, MaximaMinimaAndSums) {
  TestMesh mesh{{2, 3}};
  Sizes shape = {5, 4};
  std::vector<ReshardLayout> layouts = allLayouts(mesh, shape.size(), true);
  for (Reduction first : {Reduction::Sum, Reduction::Max, Reduction::Min})
    for (Reduction last : {Reduction::Sum, Reduction::Max, Reduction::Min})
      for (const ReshardLayout &from : layouts)
        for (const ReshardLayout &to : layouts) {
          ReshardProblem problem = makeProblem(mesh, shape, from, to);
          problem.sameKind =
              first == last || from.partial.empty() || to.partial.empty();
          Reduction used = from.partial.empty() ? last : first;
          for (const ReshardPath &path :
               {searchReshard(problem, {}), gatherThenSlice(problem, {}),
                searchReshard(problem, withoutLatency())})
            ASSERT_EQ(simulate(mesh, problem, path, used,
                               to.partial.empty() ? used : last),
                      "")
                << text(from) << " -> " << text(to) << ": " << text(path);
        }
}

/// Dimensions whose grain changes: only bounds that agree are kept.
TEST(ReshardSearch, GrainsChange) {
  TestMesh mesh{{2, 3}};
  for (const Sizes &shape : {Sizes{12, 4}, Sizes{8, 5}})
    for (int64_t before : {1, 2, 4})
      for (int64_t after : {1, 2, 4})
        for (ReshardLayout from : allLayouts(mesh, 2, true))
          for (ReshardLayout to : allLayouts(mesh, 2, true)) {
            from.grains[0] = from.dims[0].empty() ? 1 : before;
            to.grains[0] = to.dims[0].empty() ? 1 : after;
            ReshardProblem problem = makeProblem(mesh, shape, from, to);
            for (const ReshardPath &path :
                 {searchReshard(problem, withoutLatency()),
                  gatherThenSlice(problem, {})})
              ASSERT_EQ(
                  simulate(mesh, problem, path, Reduction::Sum, Reduction::Sum),
                  "")
                  << before << " to " << after << ", " << text(from) << " -> "
                  << text(to) << ": " << text(path);
          }
}

ReshardLayout layoutOf(std::vector<ReshardAxes> dims,
                       ReshardAxes partial = {}) {
  ReshardLayout layout;
  layout.grains.assign(dims.size(), 1);
  layout.dims.assign(dims.begin(), dims.end());
  layout.partial = std::move(partial);
  return layout;
}

/// BR-17: (y, -, x) to (-, (x, y), -) is two all-to-alls, and no rank ever
/// holds more than twice its part.
TEST(ReshardSearch, TwoAxesMoveWithoutReplication) {
  TestMesh mesh{{4, 2}};
  ReshardProblem problem = makeProblem(
      mesh, {16, 16, 16}, layoutOf({{1}, {}, {0}}), layoutOf({{}, {0, 1}, {}}));
  ReshardPath path = searchReshard(problem, {});
  EXPECT_EQ(text(path), "all_to_all {a} dim 2 to 1; all_to_all {b} dim 0 to 1");
  uint64_t part = 16 * 16 * 16 * 4 / 8;
  EXPECT_EQ(path.peakBytes, 2 * part);
  EXPECT_EQ(path.bytesSent, 0.75 * part + 0.5 * part);
  EXPECT_EQ(simulate(mesh, problem, path, Reduction::Sum, Reduction::Sum), "");
}

/// BR-12, BR-13b: every extent on every number of parts, empty ones included,
/// comes back whole.
TEST(ReshardSearch, UnevenRoundTrips) {
  for (int64_t extent = 0; extent <= 17; ++extent)
    for (int64_t parts = 2; parts <= 8; ++parts) {
      TestMesh mesh{{parts}};
      for (bool back : {false, true}) {
        ReshardLayout split = layoutOf({{0}, {}}), whole = layoutOf({{}, {}});
        ReshardProblem problem = makeProblem(
            mesh, {extent, 3}, back ? split : whole, back ? whole : split);
        ReshardPath path = searchReshard(problem, {});
        EXPECT_EQ(text(path),
                  back ? "all_gather {a} dim 0" : "slice {a} dim 0");
        EXPECT_EQ(simulate(mesh, problem, path, Reduction::Sum, Reduction::Sum),
                  "")
            << extent << " on " << parts;
      }
    }
}

/// BR-16: a sum over both axes, wanted split over one and whole over the other,
/// is reduced over both. Where bytes matter, scattered first.
TEST(ReshardSearch, PartialValueToAMixedLayout) {
  TestMesh mesh{{2, 2}};
  for (int64_t rows : {6, 1 << 14}) {
    ReshardProblem problem =
        makeProblem(mesh, {rows, 1 << (rows > 6 ? 10 : 2)},
                    layoutOf({{}, {}}, {0, 1}), layoutOf({{0}, {}}));
    ReshardPath path = searchReshard(problem, {});
    EXPECT_EQ(text(path), rows > 6 ? "reduce_scatter {a} dim 0; all_reduce {b}"
                                   : "all_reduce {ab}; slice {a} dim 0");
    if (rows == 6) {
      EXPECT_EQ(simulate(mesh, problem, path, Reduction::Sum, Reduction::Sum),
                "");
    }
  }
}

/// An all-to-all keeps the axes that it does not move.
TEST(ReshardSearch, OneAxisLeavesOthersAlone) {
  TestMesh mesh{{2, 2, 3}};
  ReshardProblem problem = makeProblem(
      mesh, {8, 12, 5}, layoutOf({{}, {0, 1}, {2}}), layoutOf({{1}, {0}, {2}}));
  EXPECT_EQ(text(searchReshard(problem, {})), "all_to_all {b} dim 1 to 0");
}

/// Nothing is sent over micro-batches, and what lies above them stays.
TEST(ReshardSearch, TimeIsNotSentOver) {
  TestMesh mesh{{2, 2, 2}};
  ReshardProblem problem = makeProblem(mesh, {8, 8}, layoutOf({{0, 1}, {2}}),
                                       layoutOf({{0, 1, 2}, {}}));
  problem.axes[1].inTime = true;
  EXPECT_EQ(text(searchReshard(problem, {})), "all_to_all {c} dim 1 to 0");
  problem.from = layoutOf({{}, {}}, {2});
  problem.to = layoutOf({{1}, {}});
  EXPECT_EQ(text(searchReshard(problem, withoutLatency())),
            "slice {b} dim 0; all_reduce {c}");
}

/// The slow link decides: a scatter in the node comes before a sum between
/// nodes, and what fits in a node is not sent out of it.
TEST(ReshardSearch, LinksDecide) {
  TestMesh mesh{{2, 4}, 4};
  ReshardProblem problem = makeProblem(
      mesh, {64, 64}, layoutOf({{}, {}}, {0, 1}), layoutOf({{1}, {}}));
  EXPECT_EQ(text(searchReshard(problem, withoutLatency())),
            "reduce_scatter {b} dim 0; all_reduce {a}");
  // One sum over both axes is as cheap as any three steps.
  problem.to = layoutOf({{}, {}});
  EXPECT_EQ(text(searchReshard(problem, withoutLatency())), "all_reduce {ab}");
  EXPECT_EQ(text(searchReshard(problem, {})), "all_reduce {ab}");
}

/// Six axes: those that stay are not touched. A search that is cut short looks
/// for direct ways, and cut shorter gathers and slices.
TEST(ReshardSearch, ManyAxesAndNoStates) {
  TestMesh mesh{{2, 2, 2, 2, 2, 2}};
  ReshardProblem problem =
      makeProblem(mesh, {64, 64, 64}, layoutOf({{0, 1, 2}, {3, 4}, {5}}),
                  layoutOf({{0, 1, 5}, {3, 4, 2}, {}}));
  ReshardPath path = searchReshard(problem, withoutLatency());
  EXPECT_EQ(text(path), "all_to_all {c} dim 0 to 1; all_to_all {f} dim 2 to 0");
  EXPECT_EQ(simulate(mesh, problem, path, Reduction::Sum, Reduction::Sum), "");
  // All axes move, each to the dimension before.
  problem.from = layoutOf({{0, 1}, {2, 3}, {4, 5}});
  problem.to = layoutOf({{2, 3}, {4, 5}, {0, 1}});
  ReshardPath direct = searchReshard(problem, {}, 100);
  EXPECT_TRUE(direct.capped);
  EXPECT_LT(direct.length.time, gatherThenSlice(problem, {}).length.time);
  EXPECT_EQ(simulate(mesh, problem, direct, Reduction::Sum, Reduction::Sum),
            "");
  ReshardPath capped = searchReshard(problem, {}, 1);
  EXPECT_TRUE(capped.capped);
  EXPECT_EQ(text(capped), text(gatherThenSlice(problem, {})));
}

} // namespace
