//===- Print.cpp - Pictures of schedules and groups -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Text and JSON of schedules and groups.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/Print.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

#include <numeric>

using namespace llvm;

namespace mlir::parc {
namespace {

constexpr size_t maxColumns = 100;

std::string plural(int64_t count, StringRef noun, StringRef ending = "s") {
  return std::to_string(count) + " " + noun.str() +
         (count == 1 ? "" : ending.str());
}

/// The slots that a schedule's picture shows: all, or some at both ends.
struct Window {
  int64_t slots, head, tail;

  Window(int64_t slots, int64_t fit, int64_t fitElided)
      : slots(slots), head(slots), tail(0) {
    if (slots <= fit)
      return;
    head = (fitElided + 1) / 2;
    tail = fitElided / 2;
  }
  bool elided() const { return head < slots; }
};

/// Names of the passes of one stage, by shown slot.
class Row {
public:
  Row(ArrayRef<ScheduledAction> actions, int64_t slot)
      : actions(actions), slot(slot) {}

  /// The pass that fills slot `index`, or a dot.
  std::string cell(int64_t index) const {
    int64_t time = index * slot;
    const auto *it =
        llvm::partition_point(actions, [&](const ScheduledAction &entry) {
          return entry.finish <= time;
        });
    return it != actions.end() && it->start <= time ? actionName(it->action)
                                                    : ".";
  }

private:
  ArrayRef<ScheduledAction> actions;
  int64_t slot;
};

/// Numbers separated by blanks in at most `width` columns, elided in the
/// middle.
std::string numberList(ArrayRef<int64_t> numbers, size_t width) {
  auto joined = [](ArrayRef<int64_t> part) {
    std::string text;
    for (int64_t number : part)
      text += (text.empty() ? "" : " ") + std::to_string(number);
    return text;
  };
  std::string all = joined(numbers);
  for (size_t keep = numbers.size() / 2; all.size() > width && keep > 1; --keep)
    all = joined(numbers.take_front(keep)) + " ... " +
          joined(numbers.take_back(keep - 1));
  return all;
}

void printRows(const Schedule &schedule, int64_t slot, raw_ostream &os) {
  const ScheduleProblem &problem = schedule.problem;
  // A cell is a blank and the widest name.
  size_t cell =
      actionName({ActionKind::Forward, problem.microBatches - 1}).size() + 1;
  size_t digits = std::to_string(problem.stages - 1).size();
  size_t title = sizeof("stage ") - 1 + digits + 1;
  const size_t ellipsis = 4;
  Window window(schedule.makespan() / slot, (maxColumns - title) / cell,
                (maxColumns - title - ellipsis) / cell);
  for (int64_t stage = 0; stage < problem.stages; ++stage) {
    Row row(schedule.stages[stage], slot);
    std::string line = "stage " + std::to_string(stage);
    line.resize(title, ' ');
    auto add = [&](int64_t index) {
      std::string name = row.cell(index);
      line += std::string(1, ' ') + name;
      line.append(cell - 1 - name.size(), ' ');
    };
    for (int64_t i = 0; i < window.head; ++i)
      add(i);
    if (window.elided())
      line += " ...";
    for (int64_t i = window.slots - window.tail; i < window.slots; ++i)
      add(i);
    os << StringRef(line).rtrim() << '\n';
  }
  if (window.elided())
    os << "(" << window.slots - window.head - window.tail << " of "
       << window.slots << " slots elided)\n";
}

SmallVector<int64_t> inFlightPeaks(const Schedule &schedule) {
  SmallVector<int64_t> peaks;
  for (int64_t stage = 0; stage < schedule.problem.stages; ++stage)
    peaks.push_back(schedule.peakInFlight(stage));
  return peaks;
}

/// Axes larger than one in rank order, each a set of its own, then the extra
/// sets.
SmallVector<SmallVector<size_t>>
groupSets(const RankGrid &grid, ArrayRef<SmallVector<size_t>> extraSets) {
  SmallVector<SmallVector<size_t>> sets;
  for (size_t axis : grid.order())
    if (grid.mesh().axes()[axis].size > 1)
      sets.push_back({axis});
  llvm::append_range(sets, extraSets);
  return sets;
}

std::string setName(const RankGrid &grid, ArrayRef<size_t> axes) {
  std::string name;
  for (size_t axis : axes)
    name += (name.empty() ? "" : "+") + grid.mesh().axes()[axis].name;
  return name;
}

} // namespace

void printSchedule(const Schedule &schedule, raw_ostream &os) {
  const ScheduleProblem &problem = schedule.problem;
  int64_t slot = std::gcd(problem.forwardCost, problem.backwardCost);
  os << "schedule " << schedule.rule << ", " << plural(problem.stages, "stage")
     << ", " << plural(problem.microBatches, "micro-batch", "es")
     << ", a forward takes " << plural(problem.forwardCost / slot, "slot")
     << ", a backward " << problem.backwardCost / slot << '\n';
  printRows(schedule, slot, os);
  Rational bubble = schedule.bubble();
  std::string line =
      "bubble " + bubble.str() + " = " + bubble.percent() + ", in flight ";
  os << line << numberList(inFlightPeaks(schedule), maxColumns - line.size())
     << '\n';
}

void printGroups(const RankGrid &grid, raw_ostream &os, int64_t rank,
                 ArrayRef<SmallVector<size_t>> extraSets) {
  os << "mesh " << grid.mesh().str() << " = " << plural(grid.devices(), "rank")
     << ", order " << grid.orderText() << " (fastest first)\n";
  auto sets = groupSets(grid, extraSets);
  if (sets.empty()) {
    os << "one rank, no groups\n";
    return;
  }
  size_t width = sizeof("axes") - 1;
  for (const auto &axes : sets)
    width = std::max(width, setName(grid, axes).size());
  os << left_justify("axes", width) << "    size  groups  ranks with rank "
     << rank << '\n';
  for (const auto &axes : sets) {
    RankGroup group = grid.group(rank, axes);
    os << left_justify(setName(grid, axes), width)
       << format("  %6lld  %6lld  ", (long long)group.size(),
                 (long long)grid.numGroups(axes))
       << group.str() << '\n';
  }
}

json::Value scheduleToJSON(const Schedule &schedule) {
  const ScheduleProblem &problem = schedule.problem;
  json::Array stages;
  for (const auto &actions : schedule.stages) {
    json::Array passes;
    for (const ScheduledAction &entry : actions)
      passes.push_back(json::Object{{"pass", actionName(entry.action)},
                                    {"start", entry.start}});
    stages.push_back(std::move(passes));
  }
  Rational bubble = schedule.bubble();
  return json::Object{
      {"schedule", schedule.rule},
      {"stages", problem.stages},
      {"micro_batches", problem.microBatches},
      {"forward_slots", problem.forwardCost},
      {"backward_slots", problem.backwardCost},
      {"makespan", schedule.makespan()},
      {"bubble", json::Object{{"numerator", bubble.numerator()},
                              {"denominator", bubble.denominator()}}},
      {"in_flight", json::Array(inFlightPeaks(schedule))},
      {"order", std::move(stages)}};
}

json::Value groupsToJSON(const RankGrid &grid, int64_t rank,
                         ArrayRef<SmallVector<size_t>> extraSets) {
  json::Object mesh, coordinate;
  SmallVector<int64_t, 4> place = grid.coordinate(rank);
  for (auto [index, axis] : llvm::enumerate(grid.mesh().axes())) {
    mesh[axis.name] = axis.size;
    coordinate[axis.name] = place[index];
  }
  json::Array groups;
  for (const auto &axes : groupSets(grid, extraSets)) {
    RankGroup group = grid.group(rank, axes);
    json::Array dims, names;
    for (RankGroup::Dim dim : group.dims)
      dims.push_back(json::Object{{"size", dim.size}, {"stride", dim.stride}});
    for (size_t axis : axes)
      names.push_back(grid.mesh().axes()[axis].name);
    groups.push_back(json::Object{{"axes", std::move(names)},
                                  {"size", group.size()},
                                  {"groups", grid.numGroups(axes)},
                                  {"first", group.first},
                                  {"dims", std::move(dims)},
                                  {"members", json::Array(group.members())}});
  }
  return json::Object{{"mesh", std::move(mesh)},
                      {"ranks", grid.devices()},
                      {"rank_order", grid.orderText()},
                      {"rank", rank},
                      {"coordinate", std::move(coordinate)},
                      {"groups", std::move(groups)}};
}

} // namespace mlir::parc
