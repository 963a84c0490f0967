//===- main.cpp - How long a reshard search takes -------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Searches all pairs of layouts, partial ones included, and prints the mean
/// and the largest processor time of a search. Exit status 1 where a pair of
/// rank 3 on 2x2x2 takes more than a millisecond.
///
//===----------------------------------------------------------------------===//

#include "ReshardTesting.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

using namespace mlir::parc;
using namespace mlir::parc::testing;

namespace {

double now() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 +
         static_cast<double>(time.tv_nsec) * 1e-3;
}

struct Times {
  double mean = 0, most = 0;
  size_t pairs = 0, capped = 0;
};

/// Every `stride`th pair; the shortest of three runs, as other programs also
/// use the processor's caches.
Times measure(const TestMesh &mesh, const Sizes &shape, size_t stride) {
  std::vector<ReshardLayout> layouts = allLayouts(mesh, shape.size(), true);
  Times times;
  double sum = 0;
  for (size_t pair = 0; pair < layouts.size() * layouts.size();
       pair += stride) {
    ReshardProblem problem =
        makeProblem(mesh, shape, layouts[pair / layouts.size()],
                    layouts[pair % layouts.size()]);
    double best = 1e30;
    bool capped = false;
    for (int run = 0; run < 3; ++run) {
      double start = now();
      capped = searchReshard(problem, {}).capped;
      best = std::min(best, now() - start);
    }
    sum += best;
    times.most = std::max(times.most, best);
    times.capped += capped;
    ++times.pairs;
  }
  times.mean = sum / static_cast<double>(times.pairs);
  return times;
}

} // namespace

int main() {
  struct Row {
    TestMesh mesh;
    Sizes shape;
    size_t stride;
  };
  const Row rows[] = {
      {{{2, 2}}, {1024, 1024, 1024}, 1},
      {{{2, 2, 2}}, {5, 7, 3}, 1},
      {{{2, 2, 2}}, {8, 8, 8}, 5},
      {{{2, 2, 2}}, {8192, 8192, 64}, 5},
      {{{2, 2, 2}, 2}, {8192, 8192, 64}, 5},
      {{{2, 2, 2, 2}}, {8192, 8192, 64}, 4001},
      {{{2, 2, 2, 2, 2}}, {8192, 8192, 64}, 400009},
  };
  std::printf("%-10s %-15s %8s %9s %9s %7s\n", "mesh", "shape", "pairs",
              "mean us", "most us", "capped");
  bool slow = false;
  for (const Row &row : rows) {
    Times times = measure(row.mesh, row.shape, row.stride);
    std::string shape;
    for (int64_t size : row.shape)
      shape += (shape.empty() ? "" : "x") + std::to_string(size);
    std::printf("%-10s %-15s %8zu %9.1f %9.1f %7zu\n", row.mesh.text().c_str(),
                shape.c_str(), times.pairs, times.mean, times.most,
                times.capped);
    slow = slow || (row.mesh.sizes.size() == 3 && times.most > 1000);
  }
  return slow ? 1 : 0;
}
