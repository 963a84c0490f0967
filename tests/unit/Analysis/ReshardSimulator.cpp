//===- ReshardSimulator.cpp - Paths carried out on numbers ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every rank has a box of the tensor and numbers in it. A step computes each
/// rank's new box from what the step says, not from the layouts, and takes its
/// numbers from the members of the rank's group.
///
//===----------------------------------------------------------------------===//

#include "ReshardTesting.h"

#include <algorithm>
#include <functional>

using namespace mlir::parc;
using namespace mlir::parc::testing;

namespace {

struct Held {
  Sizes low, high;
  std::vector<int64_t> numbers;

  bool contains(const Sizes &at) const {
    for (size_t dim = 0; dim < at.size(); ++dim)
      if (at[dim] < low[dim] || at[dim] >= high[dim])
        return false;
    return true;
  }
  int64_t &number(const Sizes &at) {
    int64_t index = 0;
    for (size_t dim = 0; dim < at.size(); ++dim)
      index = index * (high[dim] - low[dim]) + at[dim] - low[dim];
    return numbers[static_cast<size_t>(index)];
  }
};

class Simulator {
public:
  Simulator(const TestMesh &mesh, const ReshardProblem &problem, Reduction from,
            Reduction to)
      : mesh(mesh), problem(problem), from(from), to(to) {}

  std::string run(const ReshardPath &path);

private:
  void start();
  std::string apply(const ReshardStep &step);
  std::string check();
  int64_t place(int64_t rank, const ReshardAxes &axes) const;
  int64_t count(const ReshardAxes &axes) const;
  std::vector<int64_t> group(int64_t rank, const ReshardAxes &axes) const;
  /// Bounds of this rank's part of `dim` over `outer`, then `inner`.
  void cut(Held &held, int64_t rank, unsigned dim, const ReshardAxes &outer,
           const ReshardAxes &inner, int64_t grain) const;
  Held boxOf(int64_t rank, const ReshardLayout &layout) const;
  static void forEach(Held &held,
                      const std::function<void(const Sizes &)> &body);
  int64_t truth(const Sizes &at) const;
  static int64_t combine(Reduction kind, int64_t a, int64_t b);

  const TestMesh &mesh;
  const ReshardProblem &problem;
  Reduction from, to;
  std::vector<Held> ranks;
};

} // namespace

int64_t Simulator::combine(Reduction kind, int64_t a, int64_t b) {
  return kind == Reduction::Sum   ? a + b
         : kind == Reduction::Max ? std::max(a, b)
                                  : std::min(a, b);
}

int64_t Simulator::truth(const Sizes &at) const {
  int64_t value = 17;
  for (int64_t index : at)
    value = value * 31 + index * 7 + 3;
  return value % 100003;
}

int64_t Simulator::count(const ReshardAxes &axes) const {
  int64_t product = 1;
  for (uint8_t axis : axes)
    product *= mesh.sizes[axis];
  return product;
}

int64_t Simulator::place(int64_t rank, const ReshardAxes &axes) const {
  int64_t number = 0;
  for (uint8_t axis : axes)
    number = number * mesh.sizes[axis] + mesh.coordinate(rank, axis);
  return number;
}

std::vector<int64_t> Simulator::group(int64_t rank,
                                      const ReshardAxes &axes) const {
  std::vector<int64_t> members;
  for (int64_t other = 0; other < mesh.ranks(); ++other) {
    bool member = true;
    for (size_t axis = 0; axis < mesh.sizes.size(); ++axis)
      member = member &&
               (std::count(axes.begin(), axes.end(), axis) ||
                mesh.coordinate(rank, axis) == mesh.coordinate(other, axis));
    if (member)
      members.push_back(other);
  }
  return members;
}

void Simulator::forEach(Held &held,
                        const std::function<void(const Sizes &)> &body) {
  size_t rank = held.low.size();
  for (size_t dim = 0; dim < rank; ++dim)
    if (held.low[dim] == held.high[dim])
      return;
  Sizes at = held.low;
  while (true) {
    body(at);
    size_t dim = rank;
    while (dim > 0 && ++at[dim - 1] == held.high[dim - 1]) {
      at[dim - 1] = held.low[dim - 1];
      --dim;
    }
    if (dim == 0)
      return;
  }
}

void Simulator::cut(Held &held, int64_t rank, unsigned dim,
                    const ReshardAxes &outer, const ReshardAxes &inner,
                    int64_t grain) const {
  int64_t units = problem.shape[dim] / grain;
  int64_t parts = count(outer) * count(inner);
  int64_t mine = place(rank, outer) * count(inner) + place(rank, inner);
  held.low[dim] = mine * units / parts * grain;
  held.high[dim] = (mine + 1) * units / parts * grain;
}

static void makeNumbers(Held &held) {
  int64_t size = 1;
  for (size_t dim = 0; dim < held.low.size(); ++dim)
    size *= held.high[dim] - held.low[dim];
  held.numbers.assign(static_cast<size_t>(size), 0);
}

Held Simulator::boxOf(int64_t rank, const ReshardLayout &layout) const {
  Held held;
  held.low.assign(problem.shape.size(), 0);
  held.high.assign(problem.shape.begin(), problem.shape.end());
  for (unsigned dim = 0; dim < layout.dims.size(); ++dim)
    cut(held, rank, dim, layout.dims[dim], {}, layout.grains[dim]);
  makeNumbers(held);
  return held;
}

/// Where the value is partial every member has something else, and all of them
/// together make the truth.
void Simulator::start() {
  const ReshardAxes &partial = problem.from.partial;
  int64_t members = count(partial);
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    Held held = boxOf(rank, problem.from);
    int64_t mine = place(rank, partial);
    forEach(held, [&](const Sizes &at) {
      int64_t value = truth(at), chosen = value % members;
      if (from == Reduction::Sum && !partial.empty())
        value = mine == chosen ? value - (members - 1) * 1000 : 1000;
      else if (mine != chosen)
        value += (from == Reduction::Max ? -1 : 1) * (mine + 1) *
                 (partial.empty() ? 0 : 1);
      held.number(at) = value;
    });
    ranks.push_back(std::move(held));
  }
}

std::string Simulator::apply(const ReshardStep &step) {
  std::vector<Held> next;
  bool reduces = step.move == ReshardMove::AllReduce ||
                 step.move == ReshardMove::ReduceScatter;
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    Held held = ranks[static_cast<size_t>(rank)];
    std::vector<int64_t> members = {rank};
    switch (step.move) {
    case ReshardMove::AllReduce:
      members = group(rank, step.axes);
      break;
    case ReshardMove::ReduceScatter:
      members = group(rank, step.axes);
      [[fallthrough]];
    case ReshardMove::Slice:
      cut(held, rank, step.dim, step.outer, step.axes, step.grain);
      break;
    case ReshardMove::AllToAll:
      cut(held, rank, step.toDim, step.toOuter, step.axes, step.toGrain);
      [[fallthrough]];
    case ReshardMove::AllGather:
      members = group(rank, step.axes);
      cut(held, rank, step.dim, step.outer, {}, step.grain);
      break;
    case ReshardMove::Own:
      if (to == Reduction::Sum && place(rank, step.axes) != 0)
        std::fill(held.numbers.begin(), held.numbers.end(), 0);
      next.push_back(std::move(held));
      continue;
    }
    makeNumbers(held);
    bool missing = false;
    forEach(held, [&](const Sizes &at) {
      size_t givers = 0;
      for (int64_t member : members) {
        Held &other = ranks[static_cast<size_t>(member)];
        if (!other.contains(at))
          continue;
        int64_t value = other.number(at);
        held.number(at) =
            givers++ == 0 ? value : combine(from, held.number(at), value);
      }
      missing = missing || givers != (reduces ? members.size() : 1);
    });
    if (missing)
      return "a step of '" + text(ReshardPath{{step}, {}, 0, 0, false}) +
             "' does not find its elements";
    next.push_back(std::move(held));
  }
  ranks = std::move(next);
  return "";
}

std::string Simulator::check() {
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    Held expected = boxOf(rank, problem.to);
    Held &held = ranks[static_cast<size_t>(rank)];
    if (held.low != expected.low || held.high != expected.high)
      return "rank " + std::to_string(rank) + " has another box";
    bool wrong = false;
    std::vector<int64_t> members = group(rank, problem.to.partial);
    forEach(held, [&](const Sizes &at) {
      int64_t value = 0;
      for (int64_t member : members) {
        int64_t part = ranks[static_cast<size_t>(member)].number(at);
        value = member == members.front() ? part : combine(to, value, part);
      }
      wrong = wrong || value != truth(at);
    });
    if (wrong)
      return "rank " + std::to_string(rank) + " has wrong numbers";
  }
  return "";
}

std::string Simulator::run(const ReshardPath &path) {
  start();
  for (const ReshardStep &step : path.steps)
    if (std::string error = apply(step); !error.empty())
      return error;
  return check();
}

std::string mlir::parc::testing::simulate(const TestMesh &mesh,
                                          const ReshardProblem &problem,
                                          const ReshardPath &path,
                                          Reduction from, Reduction to) {
  return Simulator(mesh, problem, from, to).run(path);
}
