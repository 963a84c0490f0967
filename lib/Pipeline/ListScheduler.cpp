//===- ListScheduler.cpp - One scheduler for every rule -------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A list scheduler over the graph of data dependencies and a rule's
/// happens-before relation.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/Schedule.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

using namespace llvm;

namespace mlir::parc {
namespace {

/// Actions as numbers, with the edges from each to those that wait for it.
struct ActionGraph {
  ActionGraph(const ScheduleProblem &problem) : problem(problem) {}

  uint32_t size() const { return problem.stages * 2 * problem.microBatches; }
  uint32_t id(int64_t stage, Action action) const {
    return (stage * 2 + int64_t(action.kind)) * problem.microBatches +
           action.microBatch;
  }
  int64_t stage(uint32_t id) const { return id / (2 * problem.microBatches); }
  Action action(uint32_t id) const {
    return {ActionKind(id / problem.microBatches % 2),
            int64_t(id % problem.microBatches)};
  }

  /// Calls `edge(before, after)` for every dependency; false when the rule
  /// names an action that does not exist.
  bool forEachEdge(const ScheduleRule &rule,
                   function_ref<void(uint32_t, uint32_t)> edge) const;
  bool build(const ScheduleRule &rule);

  const ScheduleProblem &problem;
  std::vector<uint32_t> successors;
  /// successors[begin[i]] to successors[begin[i + 1]] wait for i.
  std::vector<uint32_t> begin;
  std::vector<uint32_t> missing;
};

bool ActionGraph::forEachEdge(
    const ScheduleRule &rule,
    function_ref<void(uint32_t, uint32_t)> edge) const {
  SmallVector<Action> before;
  for (uint32_t after = 0; after < size(); ++after) {
    int64_t here = stage(after);
    Action todo = action(after);
    bool forward = todo.kind == ActionKind::Forward;
    int64_t source = forward ? here - 1 : here + 1;
    if (source >= 0 && source < problem.stages)
      edge(id(source, todo), after);
    if (!forward)
      edge(id(here, {ActionKind::Forward, todo.microBatch}), after);
    before.clear();
    rule.before(problem, here, todo, before);
    for (Action needed : before) {
      if (needed.microBatch < 0 || needed.microBatch >= problem.microBatches)
        return false;
      edge(id(here, needed), after);
    }
  }
  return true;
}

bool ActionGraph::build(const ScheduleRule &rule) {
  begin.assign(size() + 1, 0);
  missing.assign(size(), 0);
  if (!forEachEdge(rule, [&](uint32_t before, uint32_t after) {
        ++begin[before + 1];
        ++missing[after];
      }))
    return false;
  for (uint32_t i = 0; i < size(); ++i)
    begin[i + 1] += begin[i];
  successors.resize(begin.back());
  std::vector<uint32_t> fill(begin.begin(), begin.end() - 1);
  return forEachEdge(rule, [&](uint32_t before, uint32_t after) {
    successors[fill[before]++] = after;
  });
}

template <typename T>
using MinHeap = std::priority_queue<T, std::vector<T>, std::greater<T>>;

/// The actions of a stage whose dependencies are all scheduled.
struct StageQueue {
  /// By the time they may start, then by preference.
  MinHeap<std::tuple<int64_t, uint64_t, uint32_t>> pending;
  /// May start once the stage is free; by preference.
  MinHeap<std::pair<uint64_t, uint32_t>> available;
  int64_t free = 0;

  bool empty() const { return pending.empty() && available.empty(); }
  /// Earliest time at which the stage can start something.
  int64_t nextStart() const {
    if (!available.empty())
      return free;
    return std::max(free, std::get<0>(pending.top()));
  }
};

class ListScheduler {
public:
  ListScheduler(ActionGraph &graph)
      : graph(graph), queues(graph.problem.stages), ready(graph.size(), 0) {}

  /// Fills `stages`; false when actions remain that can never start.
  bool run(std::vector<std::vector<ScheduledAction>> &stages) {
    for (uint32_t id = 0; id < graph.size(); ++id)
      if (graph.missing[id] == 0)
        release(id);
    uint32_t done = 0;
    while (!events.empty()) {
      auto [start, stage] = events.top();
      events.pop();
      // Entries are never removed; one that was overtaken is skipped.
      StageQueue &queue = queues[stage];
      if (queue.empty() || queue.nextStart() != start)
        continue;
      stages[stage].push_back(startNext(queue, start));
      ++done;
      if (!queue.empty())
        events.push({queue.nextStart(), stage});
    }
    return done == graph.size();
  }

private:
  /// Backward before forward, then by micro-batch.
  uint64_t preference(uint32_t id) const {
    Action action = graph.action(id);
    return (uint64_t(action.kind == ActionKind::Forward) << 32) |
           uint64_t(action.microBatch);
  }

  void release(uint32_t id) {
    int64_t stage = graph.stage(id);
    queues[stage].pending.push({ready[id], preference(id), id});
    events.push({queues[stage].nextStart(), stage});
  }

  /// No action released later can start before `start`, as costs are positive
  /// and starts are taken in ascending order.
  ScheduledAction startNext(StageQueue &queue, int64_t start) {
    while (!queue.pending.empty() &&
           std::get<0>(queue.pending.top()) <= start) {
      auto [time, rank, id] = queue.pending.top();
      queue.pending.pop();
      queue.available.push({rank, id});
    }
    uint32_t id = queue.available.top().second;
    queue.available.pop();
    Action action = graph.action(id);
    int64_t finish = start + (action.kind == ActionKind::Forward
                                  ? graph.problem.forwardCost
                                  : graph.problem.backwardCost);
    queue.free = finish;
    for (uint32_t i = graph.begin[id]; i < graph.begin[id + 1]; ++i) {
      uint32_t next = graph.successors[i];
      ready[next] = std::max(ready[next], finish);
      if (--graph.missing[next] == 0)
        release(next);
    }
    return {action, start, finish};
  }

  ActionGraph &graph;
  std::vector<StageQueue> queues;
  std::vector<int64_t> ready;
  MinHeap<std::pair<int64_t, int64_t>> events;
};

} // namespace

std::optional<Schedule> buildSchedule(const ScheduleProblem &problem,
                                      const ScheduleRule &rule,
                                      std::string &error) {
  if (std::optional<std::string> wrong = problem.check()) {
    error = *wrong;
    return std::nullopt;
  }
  ActionGraph graph(problem);
  if (!graph.build(rule)) {
    error = "schedule rule '" + rule.name().str() +
            "' names a micro-batch that does not exist";
    return std::nullopt;
  }
  Schedule schedule{problem, rule.name().str(), {}};
  schedule.stages.resize(problem.stages);
  for (auto &actions : schedule.stages)
    actions.reserve(2 * problem.microBatches);
  if (!ListScheduler(graph).run(schedule.stages)) {
    error = "schedule rule '" + rule.name().str() +
            "' orders passes in a circle with their data dependencies";
    return std::nullopt;
  }
  return schedule;
}

} // namespace mlir::parc
