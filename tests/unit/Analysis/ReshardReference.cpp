//===- ReshardReference.cpp - Shortest paths by brute force ---------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The whole graph of layouts, written for clearness and not for speed. Grains
/// are 1 here, and all partial values of one reduction.
///
//===----------------------------------------------------------------------===//

#include "ReshardTesting.h"

#include <algorithm>
#include <limits>
#include <set>

using namespace mlir::parc;
using namespace mlir::parc::testing;

static constexpr uint64_t kFar = std::numeric_limits<uint64_t>::max();

ReshardReference::ReshardReference(const TestMesh &mesh, const Sizes &shape,
                                   int64_t elementBytes,
                                   const ReshardCosts &costs)
    : mesh(mesh), shape(shape),
      elementBytes(static_cast<uint64_t>(elementBytes)), costs(costs),
      all(allLayouts(mesh, shape.size(), true)) {
  for (size_t number = 0; number < all.size(); ++number)
    numbers[text(all[number])] = number;
  for (size_t number = 0; number < all.size(); ++number)
    addEdges(number);
}

/// The bytes of the rank that holds most.
uint64_t ReshardReference::bytesOf(const ReshardLayout &layout) const {
  uint64_t bytes = elementBytes;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t parts = 1, most = 0;
    for (uint8_t axis : layout.dims[dim])
      parts *= mesh.sizes[axis];
    for (int64_t i = 0; i < parts; ++i)
      most =
          std::max(most, (i + 1) * shape[dim] / parts - i * shape[dim] / parts);
    bytes *= static_cast<uint64_t>(most);
  }
  return bytes;
}

/// Time and transfer, times the ranks. `kind`: R all-reduce, S reduce-scatter,
/// G all-gather, A all-to-all, anything else moves nothing.
ReshardReference::Length ReshardReference::lengthOf(const ReshardAxes &axes,
                                                    char kind, uint64_t before,
                                                    uint64_t after) const {
  if (std::string("RSGA").find(kind) == std::string::npos)
    return {0, 0};
  // The members of rank 0's group, and those of them on its node.
  uint64_t n = 0, s = 0, ranks = static_cast<uint64_t>(mesh.ranks());
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    bool member = true;
    for (size_t axis = 0; axis < mesh.sizes.size(); ++axis)
      member = member && (mesh.coordinate(rank, axis) == 0 ||
                          std::count(axes.begin(), axes.end(), axis));
    n += member;
    s += member && rank < mesh.nodeSize;
  }
  uint64_t bytes = kind == 'G' ? after : before, fast, slow;
  if (kind == 'A') {
    fast = ranks * bytes * (s - 1) / n;
    slow = ranks * bytes * (n - s) / n;
  } else {
    fast = ranks * bytes * (s - 1) / s;
    slow = ranks * bytes * (n - 1) / n - fast;
  }
  if (kind == 'R') {
    fast *= 2;
    slow *= 2;
  }
  uint64_t transfer = fast + slow * static_cast<uint64_t>(costs.slowdown);
  auto wait = static_cast<uint64_t>(
      (s == n ? costs.latencyInNodeNs : costs.latencyAcrossNs) *
      costs.fastBytesPerNs);
  return {transfer + wait * ranks, transfer};
}

void ReshardReference::addEdge(size_t from, const ReshardLayout &to,
                               const ReshardAxes &axes, char kind) {
  ReshardLayout sorted = to;
  std::sort(sorted.partial.begin(), sorted.partial.end());
  uint64_t before = bytesOf(all[from]), after = bytesOf(to);
  edges.push_back({from, numbers.at(text(sorted)),
                   lengthOf(axes, kind, before, after), before + after});
}

/// All lists of distinct elements of `set`, the empty one too.
static std::vector<ReshardAxes> listsOf(const ReshardAxes &set) {
  std::vector<ReshardAxes> lists = {{}};
  for (size_t at = 0; at < lists.size(); ++at)
    for (uint8_t axis : set) {
      ReshardAxes longer = lists[at];
      if (std::count(longer.begin(), longer.end(), axis))
        continue;
      longer.push_back(axis);
      lists.push_back(longer);
    }
  return lists;
}

static void erase(ReshardAxes &axes, const ReshardAxes &gone) {
  axes.erase(std::remove_if(axes.begin(), axes.end(),
                            [&](uint8_t axis) {
                              return std::count(gone.begin(), gone.end(), axis);
                            }),
             axes.end());
}

void ReshardReference::addEdges(size_t from) {
  const ReshardLayout layout = all[from];
  ReshardAxes free;
  for (uint8_t axis = 0; axis < mesh.sizes.size(); ++axis)
    free.push_back(axis);
  erase(free, layout.partial);
  for (const ReshardAxes &dim : layout.dims)
    erase(free, dim);
  for (const ReshardAxes &list : listsOf(layout.partial)) {
    ReshardLayout less = layout;
    erase(less.partial, list);
    addEdge(from, less, list, 'R');
    for (ReshardAxes &dim : less.dims) {
      dim.append(list.begin(), list.end());
      addEdge(from, less, list, 'S');
      dim.truncate(dim.size() - list.size());
    }
  }
  for (const ReshardAxes &list : listsOf(free)) {
    ReshardLayout more = layout;
    for (ReshardAxes &dim : more.dims) {
      dim.append(list.begin(), list.end());
      addEdge(from, more, list, '-');
      dim.truncate(dim.size() - list.size());
    }
  }
  for (size_t dim = 0; dim < layout.dims.size(); ++dim)
    for (size_t keep = 0; keep < layout.dims[dim].size(); ++keep) {
      ReshardLayout moved = layout;
      ReshardAxes minor(layout.dims[dim].begin() + keep,
                        layout.dims[dim].end());
      moved.dims[dim].truncate(keep);
      addEdge(from, moved, minor, 'G');
      for (size_t other = 0; other < layout.dims.size(); ++other) {
        if (other == dim)
          continue;
        moved.dims[other].append(minor.begin(), minor.end());
        addEdge(from, moved, minor, 'A');
        moved.dims[other] = layout.dims[other];
      }
    }
}

const std::vector<ReshardReference::Length> &
ReshardReference::lengths(size_t from, uint64_t limit) {
  auto [it, isNew] = found.try_emplace({from, limit});
  std::vector<Length> &best = it->second;
  if (!isNew)
    return best;
  best.assign(all.size(), {kFar, kFar});
  best[from] = {0, 0};
  for (bool changed = true; changed;) {
    changed = false;
    for (const Edge &edge : edges) {
      Length start = best[edge.from];
      if (start.first == kFar || edge.bytes > limit)
        continue;
      Length sum = {start.first + edge.length.first,
                    start.second + edge.length.second};
      if (sum < best[edge.to]) {
        best[edge.to] = sum;
        changed = true;
      }
    }
  }
  return best;
}

ReshardReference::Simple
ReshardReference::gatherAndSlice(const ReshardLayout &from,
                                 const ReshardLayout &to) const {
  Simple simple{{0, 0}, 0};
  ReshardLayout now = from;
  auto become = [&](const ReshardLayout &next, const ReshardAxes &axes,
                    char kind) {
    if (axes.empty())
      return;
    uint64_t before = bytesOf(now), after = bytesOf(next);
    Length length = lengthOf(axes, kind, before, after);
    simple.length.first += length.first;
    simple.length.second += length.second;
    simple.peak = std::max(simple.peak, before + after);
    now = next;
  };
  ReshardLayout next = now;
  ReshardAxes reduced = from.partial, owned = to.partial;
  erase(reduced, to.partial);
  erase(owned, from.partial);
  erase(next.partial, reduced);
  become(next, reduced, 'R');
  std::vector<size_t> kept;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    size_t same = 0;
    while (same < std::min(from.dims[dim].size(), to.dims[dim].size()) &&
           from.dims[dim][same] == to.dims[dim][same])
      ++same;
    kept.push_back(same);
    next.dims[dim].truncate(same);
    become(next,
           ReshardAxes(from.dims[dim].begin() + same, from.dims[dim].end()),
           'G');
  }
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    next.dims[dim] = to.dims[dim];
    become(next,
           ReshardAxes(to.dims[dim].begin() + kept[dim], to.dims[dim].end()),
           '-');
  }
  become(to, owned, '-');
  return simple;
}

/// Owning is the last move: some of the target's partial axes, for nothing.
ReshardReference::Length ReshardReference::lengthTo(size_t from, size_t to,
                                                    uint64_t limit) {
  const std::vector<Length> &best = lengths(from, limit);
  Length least = {kFar, kFar};
  for (const ReshardAxes &owned : listsOf(all[to].partial)) {
    ReshardLayout before = all[to];
    erase(before.partial, owned);
    least = std::min(least, best[numbers.at(text(before))]);
  }
  return least;
}

ReshardReference::Answer ReshardReference::length(size_t from, size_t to) {
  Simple simple = gatherAndSlice(all[from], all[to]);
  uint64_t limit = 2 * std::max(bytesOf(all[from]), bytesOf(all[to]));
  auto answer = [&](const Length &length, uint64_t peak) {
    return Answer{length.first, length.second, peak, simple.length.first,
                  simple.length.second};
  };
  if (simple.peak <= limit)
    return answer(lengthTo(from, to, limit), limit);
  Length small = lengthTo(from, to, limit);
  uint64_t patience =
      6 * static_cast<uint64_t>(costs.latencyAcrossNs * costs.fastBytesPerNs *
                                mesh.ranks());
  if (small.second <= simple.length.second &&
      small.first <= simple.length.second + patience)
    return answer(small, limit);
  return answer(lengthTo(from, to, simple.peak), simple.peak);
}
