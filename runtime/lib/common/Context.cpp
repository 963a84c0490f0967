//===- Context.cpp - What generated code sees of its rank -----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Coordinates, parameters' slots, communicators.
///
//===----------------------------------------------------------------------===//

#include "parc/staged.h"

namespace parc {

Context::Context(Rank &r, const Tables &tables)
    : r(r), store(r.pool()), tables(tables), params_(size_t(tables.numParams)) {
  const Mesh &mesh = r.mesh();
  for (int axis = 0; axis < tables.numAxes; ++axis)
    coordinates_.push_back(mesh.coordinate(r.id(), axis));
  if (tables.stageAxis >= 0)
    stage_ = coordinates_[size_t(tables.stageAxis)];
}

AnyValue Context::fromHost(DType type, const int64_t *sizes, int rank,
                           const void *data) {
  AnyValue value = AnyValue::make(store, type, sizes, rank);
  r.toDevice(value.data(), data, value.bytes());
  return value;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

int64_t Context::coordinateOf(int axis) const {
  return axis < tables.numAxes ? coordinates_[size_t(axis)] : microBatch_;
}

int64_t Context::sizeOfAxis(int axis) const {
  return axis < tables.numAxes ? tables.axisSizes[axis] : tables.microBatches;
}

int64_t Context::coordinate(const AxisList &axes) const {
  int64_t at = 0;
  for (int i = 0; i < axes.count; ++i)
    at = at * sizeOfAxis(axes.axes[i]) + coordinateOf(axes.axes[i]);
  return at;
}

int64_t Context::parts(const AxisList &axes) const {
  int64_t count = 1;
  for (int i = 0; i < axes.count; ++i)
    count *= sizeOfAxis(axes.axes[i]);
  return count;
}

int64_t Context::part_start(const AxisList &axes, int64_t size,
                            int64_t grain) const {
  return partStart(size, grain, parts(axes), coordinate(axes));
}

int64_t Context::part_size(const AxisList &axes, int64_t size,
                           int64_t grain) const {
  return partSize(size, grain, parts(axes), coordinate(axes));
}

Bounds Context::bounds(const AxisList &outer, const AxisList &axes,
                       int64_t size, int64_t grain) const {
  int64_t inner = parts(axes), all = parts(outer) * inner;
  int64_t first = coordinate(outer) * inner;
  Bounds result;
  for (int64_t i = 0; i <= inner; ++i)
    result.push_back(partStart(size, grain, all, first + i) -
                     partStart(size, grain, all, first));
  return result;
}

LayerRange Context::layers(int stack, int64_t begin, int64_t end) const {
  int64_t before = 0;
  for (int s = 0; s < stack; ++s)
    before += tables.stackCounts[s];
  int64_t first = std::max(begin, tables.bounds[stage_] - before);
  int64_t last = std::min(end, tables.bounds[stage_ + 1] - before);
  return {first, std::max(first, last)};
}

//===----------------------------------------------------------------------===//
// Experts' queues
//===----------------------------------------------------------------------===//

/// The number that the checkpoint gives a layer of a stack.
static int64_t modelLayer(const Tables &tables, int stack, int64_t layer) {
  for (int p = 0; p < tables.numParams; ++p)
    if (tables.params[p].stack == stack)
      return tables.params[p].layerBase + layer * tables.params[p].layerStride;
  return layer;
}

void Context::checkLoads() {
  for (const Load &load : loads_) {
    std::vector<int64_t> counts(size_t(load.counts.dim(0)));
    r.toHost(counts.data(), load.counts.data(), load.counts.bytes());
    for (size_t expert = 0; expert < counts.size(); ++expert) {
      if (counts[expert] <= load.limit)
        continue;
      std::string layer;
      if (load.stack >= 0)
        layer = " of layer " +
                std::to_string(modelLayer(tables, load.stack, load.layer));
      r.fail(Status(Code::Overflow,
                    "expert " + std::to_string(expert) + layer + " on rank " +
                        std::to_string(r.id()) + " got " +
                        std::to_string(counts[expert]) +
                        " tokens, its queue holds " +
                        std::to_string(load.limit),
                    "raise moe_buffer_factor"));
      break;
    }
  }
  loads_.clear();
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

DType Context::slotType(const ParamRow &row, int slot) const {
  bool isGradient = slot == tables.gradSlot || slot == tables.reducedSlot;
  return slot == 0 ? row.type : isGradient ? row.gradType : row.stateType;
}

void Context::allocate(int param, LayerRange layers) {
  const ParamRow &row = tables.params[param];
  Held &held = params_[size_t(param)];
  held.firstLayer = layers.begin;
  int64_t sizes[MaxRank], elements = 1;
  for (int d = 0; d < row.rank; ++d) {
    sizes[d] = part_size(row.dims[d].axes, row.dims[d].size, row.dims[d].grain);
    elements *= sizes[d];
  }
  for (int64_t layer = layers.begin; layer < layers.end; ++layer) {
    Values slots;
    for (int s = 0; s < tables.numSlots; ++s) {
      // Where nothing is cut the sum over ranks replaces the rank's own.
      bool unused = (s == tables.reducedSlot && !row.isFlat(s)) ||
                    (s == tables.masterSlot && !row.hasMaster());
      int64_t count = unused ? 0 : piece(param, s, elements).second;
      bool list = unused || row.isFlat(s);
      slots.push_back(AnyValue::make(
          store, slotType(row, s), list ? &count : sizes, list ? 1 : row.rank));
      r.fillZero(slots.back().data(), slots.back().bytes());
    }
    held.layers.push_back(std::move(slots));
  }
}

std::pair<int64_t, int64_t> Context::piece(int param, int slot,
                                           int64_t elements) const {
  const ParamRow &row = tables.params[param];
  if (!row.isFlat(slot))
    return {0, elements};
  return {part_start(row.flat, elements, 1), part_size(row.flat, elements, 1)};
}

bool Context::has(int param, int64_t layer) const {
  const Held &held = params_[size_t(param)];
  return layer >= held.firstLayer &&
         layer < held.firstLayer + int64_t(held.layers.size());
}

AnyView Context::slot(int param, int64_t layer, int slot) const {
  const Held &held = params_[size_t(param)];
  return held.layers[size_t(layer - held.firstLayer)][size_t(slot)].any();
}

void Context::keep(int param, int64_t layer, int s, const AnyValue &value) {
  AnyView to = slot(param, layer, s);
  if (to.data != value.data())
    pending_.push_back({to, value});
}

void Context::commit() {
  for (Pending &store : pending_)
    r.copy(store.to, store.from);
  pending_.clear();
}

void Context::clearSums() {
  for (Held &held : params_)
    for (Values &slots : held.layers)
      for (int s = 0; s < tables.numSlots; ++s)
        if (tables.sumSlots >> s & 1)
          r.fillZero(slots[size_t(s)].data(), slots[size_t(s)].bytes());
}

//===----------------------------------------------------------------------===//
// Communication
//===----------------------------------------------------------------------===//

/// The ranks that differ from this one on the row's axes only, in the order of
/// their coordinates on them, major to minor.
static std::vector<int> membersOf(const Rank &r, const Tables &tables,
                                  const GroupRow &row) {
  const Mesh &mesh = r.mesh();
  std::vector<int64_t> strides(size_t(tables.numAxes), 1);
  for (int axis = tables.numAxes - 2; axis >= 0; --axis)
    strides[size_t(axis)] =
        strides[size_t(axis) + 1] * tables.axisSizes[axis + 1];
  int64_t base = r.id(), count = 1;
  for (int i = 0; i < row.axes.count; ++i) {
    int axis = row.axes.axes[i];
    base -= mesh.coordinate(r.id(), axis) * strides[size_t(axis)];
    count *= tables.axisSizes[axis];
  }
  std::vector<int> members;
  for (int64_t index = 0; index < count; ++index) {
    int64_t rest = index, rank = base;
    for (int i = row.axes.count - 1; i >= 0; --i) {
      int axis = row.axes.axes[i];
      rank += rest % tables.axisSizes[axis] * strides[size_t(axis)];
      rest /= tables.axisSizes[axis];
    }
    int64_t stage =
        tables.stageAxis < 0 ? 0 : mesh.coordinate(rank, tables.stageAxis);
    const int64_t *end = row.stages + row.numStages;
    if (!row.stages || std::find(row.stages, end, stage) != end)
      members.push_back(int(rank));
  }
  return members;
}

void Context::createGroups() {
  for (int g = 0; g < tables.numGroups; ++g) {
    const GroupRow &row = tables.groups[g];
    std::vector<int> members = membersOf(r, tables, row);
    bool here =
        std::find(members.begin(), members.end(), r.id()) != members.end();
    if (!here || members.size() < 2) {
      groups_.push_back(nullptr);
      continue;
    }
    std::string name =
        std::string(row.name) + "#" +
        std::to_string(*std::min_element(members.begin(), members.end()));
    groups_.push_back(r.create(name, members));
  }
}

void Context::start(int stream, bool group) {
  stream_ = stream;
  r.begin_stream(stream);
  if (group)
    r.group_start();
}

Ticket Context::finish() { return r.end_stream(); }

void Context::drop(size_t index) {
  r.wait(detached_[index].ticket);
  detached_.erase(detached_.begin() + std::ptrdiff_t(index));
}

void Context::detach() {
  Detached made;
  made.stream = stream_;
  made.ticket = r.end_stream();
  made.held.swap(held_);
  detached_.push_back(std::move(made));
  // Of those that hold values, this one and the one before stay.
  size_t holding = 0;
  for (size_t i = detached_.size(); i-- > 0;)
    if (detached_[i].stream == stream_ && !detached_[i].held.empty() &&
        ++holding > 2)
      drop(i);
}

void Context::waitFor(int stream) {
  for (size_t i = detached_.size(); i-- > 0;)
    if (detached_[i].stream == stream)
      drop(i);
}

AnyValue Context::all_reduce(AnyValue value, int g, ReduceOp op,
                             const char *label) {
  if (!value.alone()) {
    AnyValue copy = like(value);
    r.copy(copy, value);
    value = std::move(copy);
  }
  r.wait(r.all_reduce(value, group(g), op, label));
  return value;
}

/// The view's sizes with another one in dimension \p dim.
static AnyView resized(AnyView view, int dim, int64_t size) {
  view.dims[dim] = size;
  return view;
}

void Context::all_reduce_to(const AnyView &to, const AnyView &value, int g,
                            ReduceOp op, const char *label) {
  if (to.data != value.data)
    r.copy(to, value);
  r.wait(r.all_reduce(to, group(g), op, label));
}

void Context::reduce_scatter_to(const AnyView &to, const AnyView &value, int g,
                                int dim, const Bounds &bounds, ReduceOp op,
                                const char *label) {
  r.wait(r.reduce_scatter(to, value, group(g), dim, bounds, op, label));
}

AnyValue Context::all_gather(const AnyView &value, int g, int dim,
                             const Bounds &bounds, const char *label) {
  AnyValue result = like(resized(value, dim, bounds.back()));
  r.wait(r.all_gather(result, value, group(g), dim, bounds, label));
  return result;
}

AnyValue Context::reduce_scatter(const AnyView &value, int g, int dim,
                                 const Bounds &bounds, ReduceOp op,
                                 const char *label) {
  size_t index = size_t(group(g).index());
  AnyValue result =
      like(resized(value, dim, bounds[index + 1] - bounds[index]));
  r.wait(r.reduce_scatter(result, value, group(g), dim, bounds, op, label));
  return result;
}

AnyValue Context::all_to_all(const AnyView &value, int g, int splitDim,
                             const Bounds &splitBounds, int concatDim,
                             const Bounds &concatBounds, const char *label) {
  size_t index = size_t(group(g).index());
  AnyView shape =
      resized(value, splitDim, splitBounds[index + 1] - splitBounds[index]);
  AnyValue result = like(resized(shape, concatDim, concatBounds.back()));
  r.wait(r.all_to_all(result, value, group(g), splitDim, splitBounds, concatDim,
                      concatBounds, label));
  return result;
}

/// The numbers of a matrix of i64, on the host.
static std::vector<int64_t> numbersOf(Rank &r, const AnyValue &value) {
  std::vector<int64_t> numbers(size_t(value.any().size()));
  if (!numbers.empty())
    r.toHost(numbers.data(), value.data(), value.bytes());
  return numbers;
}

AnyValue Context::all_to_all(const AnyView &value, int g, int splitDim,
                             const Bounds &splitBounds, int concatDim,
                             const Bounds &concatBounds, const char *label,
                             const AnyValue &sent, const AnyValue &received) {
  size_t index = size_t(group(g).index());
  AnyView shape =
      resized(value, splitDim, splitBounds[index + 1] - splitBounds[index]);
  AnyValue result = like(resized(shape, concatDim, concatBounds.back()));
  r.wait(r.all_to_all_rows(result, value, group(g), splitDim, splitBounds,
                           concatDim, concatBounds, numbersOf(r, sent),
                           numbersOf(r, received), label));
  return result;
}

AnyValue Context::shift(const AnyView &value, int g, int dim, int64_t hops,
                        const Bounds &bounds, const char *label) {
  Communicator &c = group(g);
  int64_t n = c.size(), me = c.index();
  auto part = size_t((me + 2 * n - 1 - hops % n) % n);
  AnyValue result = like(resized(value, dim, bounds[part + 1] - bounds[part]));
  bool alone = !r.grouping();
  if (alone)
    r.group_start();
  r.wait(r.send(value, c, int((me + 1) % n), label));
  r.wait(r.recv(result, c, int((me + n - 1) % n), label));
  if (alone)
    r.group_end();
  return result;
}

} // namespace parc
