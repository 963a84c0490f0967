//===- ReshardSearch.cpp - The cheapest way between layouts ---------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Dijkstra's algorithm on the graph of layouts, within a limit of memory.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/ReshardSearch.h"
#include "ReshardMoves.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir::parc;

/// How many network latencies a path may wait to keep the lower limit.
static constexpr uint64_t kLatenciesForMemory = 6;

static ReshardLength operator+(const ReshardLength &a, const ReshardLength &b) {
  return {llvm::SaturatingAdd(a.time, b.time),
          llvm::SaturatingAdd(a.transfer, b.transfer), a.steps + b.steps};
}

namespace {

/// Edges one after the other, and the states between them.
struct Walk {
  explicit Walk(const ReshardState &source) : states{source} {}

  void add(const ReshardGraph &graph, ReshardEdge edge) {
    ReshardState next;
    graph.follow(edge, states.back(), next);
    edges.push_back(edge);
    states.push_back(next);
  }
  ReshardPath path(const ReshardGraph &graph) const;

  llvm::SmallVector<ReshardEdge, 4> edges;
  llvm::SmallVector<ReshardState, 5> states;
};

/// The search in one limit.
class Search {
public:
  Search(const ReshardGraph &graph, uint64_t limit, uint64_t longest,
         size_t maxStates)
      : graph(graph), limit(limit), longest(longest), maxStates(maxStates) {}

  /// Nothing where no path is short enough, or the states were too many.
  std::optional<ReshardPath> run();

private:
  struct Node {
    ReshardState state;
    ReshardLength length;
    unsigned parent = 0;
    ReshardEdge edge;
    bool done = false;
  };
  /// A node to look at; the first found goes first among equals.
  struct Entry {
    ReshardLength length;
    unsigned node;
    bool operator<(const Entry &other) const {
      if (other.length < length)
        return true;
      return !(length < other.length) && other.node < node;
    }
  };

  void reach(unsigned parent, const ReshardEdge &edge,
             const ReshardState &state);
  void push(unsigned node);
  ReshardPath trace(unsigned node) const;

  const ReshardGraph &graph;
  uint64_t limit, longest;
  size_t maxStates;
  std::vector<Node> nodes;
  llvm::DenseMap<ReshardKey, unsigned> numbers;
  /// A heap, the shortest on top.
  std::vector<Entry> queue;
};

} // namespace

ReshardPath Walk::path(const ReshardGraph &graph) const {
  ReshardPath path;
  path.peakBytes = graph.bytesOf(states.front());
  for (auto [index, edge] : llvm::enumerate(edges)) {
    path.steps.push_back(graph.stepOf(edge, states[index], states[index + 1]));
    path.length = path.length + edge.length;
    path.bytesSent += edge.sent;
    path.peakBytes = std::max(path.peakBytes, edge.bytes);
  }
  return path;
}

//===----------------------------------------------------------------------===//
// Gather, then slice
//===----------------------------------------------------------------------===//

ReshardPath mlir::parc::gatherThenSlice(const ReshardProblem &problem,
                                        const ReshardCosts &costs) {
  ReshardGraph graph(problem, costs);
  Walk walk(graph.source());
  auto edgeOf = [](ReshardMove move, AxisWord axes, unsigned dim) {
    ReshardEdge edge;
    edge.move = move;
    edge.axes = axes;
    edge.dim = dim;
    return edge;
  };
  auto rank = static_cast<unsigned>(problem.shape.size());
  if (uint32_t axes = graph.toReduce())
    walk.add(graph, edgeOf(ReshardMove::AllReduce, axisWord(axes), 0));
  auto tail = [](const ReshardAxes &axes, unsigned kept) {
    return axisWord(llvm::ArrayRef(axes).drop_front(kept));
  };
  for (unsigned dim = 0; dim < rank; ++dim)
    if (AxisWord axes = tail(problem.from.dims[dim], graph.keptPrefix(dim)))
      walk.add(graph, edgeOf(ReshardMove::AllGather, axes, dim));
  for (unsigned dim = 0; dim < rank; ++dim)
    if (AxisWord axes = tail(problem.to.dims[dim], graph.keptPrefix(dim)))
      walk.add(graph, edgeOf(ReshardMove::Slice, axes, dim));
  if (uint32_t axes = graph.toOwn(walk.states.back()))
    walk.add(graph, edgeOf(ReshardMove::Own, axisWord(axes), 0));
  return walk.path(graph);
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

void Search::push(unsigned node) {
  queue.push_back({nodes[node].length, node});
  std::push_heap(queue.begin(), queue.end());
}

void Search::reach(unsigned parent, const ReshardEdge &edge,
                   const ReshardState &state) {
  if (edge.bytes > limit)
    return;
  ReshardLength length = nodes[parent].length + edge.length;
  if (length.time > longest)
    return;
  auto [it, isNew] = numbers.try_emplace(graph.keyOf(state),
                                         static_cast<unsigned>(nodes.size()));
  unsigned number = it->second;
  if (isNew)
    nodes.push_back({state, length, parent, edge, false});
  else if (nodes[number].done || !(length < nodes[number].length))
    return;
  Node &node = nodes[number];
  node.length = length;
  node.parent = parent;
  node.edge = edge;
  push(number);
}

ReshardPath Search::trace(unsigned node) const {
  llvm::SmallVector<ReshardEdge, 4> edges;
  for (; node != 0; node = nodes[node].parent)
    edges.push_back(nodes[node].edge);
  Walk walk(nodes.front().state);
  for (const ReshardEdge &edge : llvm::reverse(edges))
    walk.add(graph, edge);
  return walk.path(graph);
}

std::optional<ReshardPath> Search::run() {
  ReshardKey goal = graph.keyOf(graph.target());
  nodes.push_back({graph.source(), {}, 0, {}, false});
  numbers[graph.keyOf(nodes.front().state)] = 0;
  push(0);
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end());
    unsigned number = queue.back().node;
    queue.pop_back();
    if (nodes[number].done)
      continue;
    nodes[number].done = true;
    ReshardState state = nodes[number].state;
    if (graph.keyOf(state) == goal)
      return trace(number);
    if (nodes.size() > maxStates)
      return std::nullopt;
    graph.forEachMove(state,
                      [&](const ReshardEdge &edge, const ReshardState &next) {
                        reach(number, edge, next);
                      });
  }
  return std::nullopt;
}

/// The search on one graph; nothing where it looked at too many states.
static std::optional<ReshardPath> searchGraph(const ReshardGraph &graph,
                                              const ReshardPath &known,
                                              size_t maxStates) {
  uint64_t limit = llvm::SaturatingMultiply<uint64_t>(
      2,
      std::max(graph.bytesOf(graph.source()), graph.bytesOf(graph.target())));
  if (known.peakBytes > limit) {
    uint64_t patience =
        llvm::SaturatingMultiply(kLatenciesForMemory, graph.latencyAcross());
    uint64_t longest = llvm::SaturatingAdd(known.length.transfer, patience);
    std::optional<ReshardPath> small =
        Search(graph, limit, longest, maxStates).run();
    if (small && small->length.transfer <= known.length.transfer)
      return small;
    limit = known.peakBytes;
  }
  return Search(graph, limit, known.length.time, maxStates).run();
}

ReshardPath mlir::parc::searchReshard(const ReshardProblem &problem,
                                      const ReshardCosts &costs,
                                      size_t maxStates) {
  ReshardPath known = gatherThenSlice(problem, costs);
  if (known.steps.empty())
    return known;
  if (auto best = searchGraph(ReshardGraph(problem, costs), known, maxStates))
    return *best;
  auto best = searchGraph(ReshardGraph(problem, costs, true), known, maxStates);
  if (best)
    known = *best;
  known.capped = true;
  return known;
}
