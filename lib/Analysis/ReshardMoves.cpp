//===- ReshardMoves.cpp - Layouts as states, moves between them -----------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Which moves a layout allows, where they lead, and what they cost.
///
//===----------------------------------------------------------------------===//

#include "ReshardMoves.h"
#include "parc/Pipeline/Part.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::parc;
using llvm::ArrayRef;
using llvm::SaturatingAdd;
using llvm::SaturatingMultiply;

/// Above this many axes those that stay where they are never move on the way.
static constexpr size_t kAxesToMoveFreely = 4;
/// The longest list of axes that one move adds to a dimension, where there are
/// many axes.
static constexpr size_t kLongestList = 3;

int64_t mlir::parc::membersInNode(int64_t size, int64_t stride,
                                  int64_t nodeSize) {
  int64_t most = std::clamp<int64_t>(nodeSize / std::max<int64_t>(stride, 1), 1,
                                     std::max<int64_t>(size, 1));
  while (size % most)
    --most;
  return most;
}

/// True where parts of a dimension have the same bounds in either grain.
static bool sameBounds(int64_t extent, int64_t parts, int64_t grain,
                       int64_t other) {
  if (grain == other || parts == 1)
    return true;
  GrainedDim a{extent, grain}, b{extent, other};
  if (a.isEven(parts) && b.isEven(parts))
    return true;
  for (int64_t index = 1; index < parts; ++index)
    if (a.start(parts, index) != b.start(parts, index))
      return false;
  return true;
}

AxisWord mlir::parc::axisWord(uint32_t mask) {
  AxisWord word = 0;
  for (AxisWord axis = 0; mask; ++axis, mask >>= 1)
    if (mask & 1)
      word = word << 4 | (axis + 1);
  return word;
}

AxisWord mlir::parc::axisWord(ArrayRef<uint8_t> axes) {
  AxisWord word = 0;
  for (uint8_t axis : axes)
    word = word << 4 | (axis + 1u);
  return word;
}

static uint32_t maskOf(AxisWord word) {
  uint32_t mask = 0;
  for (; word; word >>= 4)
    mask |= 1u << ((word & 15) - 1);
  return mask;
}

static unsigned lengthOf(AxisWord word) {
  return (llvm::bit_width(word) + 3) / 4;
}

static ReshardAxes listOf(AxisWord word) {
  ReshardAxes axes;
  for (unsigned at = lengthOf(word); at-- > 0;)
    axes.push_back(static_cast<uint8_t>((word >> 4 * at & 15) - 1));
  return axes;
}

/// `major`, then `minor`.
static AxisWord joined(AxisWord major, AxisWord minor) {
  return major << 4 * lengthOf(minor) | minor;
}

static int64_t productOf(const ReshardProblem &problem,
                         ArrayRef<uint8_t> axes) {
  int64_t result = 1;
  for (uint8_t axis : axes)
    result *= problem.axes[axis].size;
  return result;
}

unsigned mlir::parc::commonReshardPrefix(const ReshardProblem &problem,
                                         unsigned dim) {
  ArrayRef<uint8_t> have = problem.from.dims[dim], want = problem.to.dims[dim];
  unsigned length = 0;
  while (length < have.size() && length < want.size() &&
         have[length] == want[length])
    ++length;
  while (length &&
         !sameBounds(problem.shape[dim],
                     productOf(problem, have.take_front(length)),
                     problem.from.grains[dim], problem.to.grains[dim]))
    --length;
  return length;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

ReshardGraph::ReshardGraph(const ReshardProblem &problem,
                           const ReshardCosts &costs, bool directed)
    : problem(problem), costs(costs),
      sharedStay(directed || problem.axes.size() > kAxesToMoveFreely),
      directed(directed),
      partialOfSource(maskOf(axisWord(problem.from.partial))),
      partialOfTarget(maskOf(axisWord(problem.to.partial))) {
  for (auto [number, axis] : llvm::enumerate(problem.axes)) {
    if (axis.inTime)
      timeAxes |= 1u << number;
    else
      ranks *= static_cast<uint64_t>(axis.size);
  }
  for (unsigned dim = 0; dim < problem.shape.size(); ++dim)
    kept.push_back(commonReshardPrefix(problem, dim));
  targetKey = keyOf(target());
}

ReshardState ReshardGraph::source() const {
  ReshardState state;
  state.partial = partialOfSource;
  state.targetKind = problem.sameKind;
  for (unsigned dim = 0; dim < rank(); ++dim) {
    state.dims[dim] = axisWord(problem.from.dims[dim]);
    normalise(state, dim);
  }
  return state;
}

ReshardState ReshardGraph::target() const {
  ReshardState state;
  for (unsigned dim = 0; dim < rank(); ++dim)
    state.dims[dim] = axisWord(problem.to.dims[dim]);
  state.partial = partialOfTarget;
  state.targetGrain = (1u << rank()) - 1;
  return state;
}

ReshardKey ReshardGraph::keyOf(const ReshardState &state) const {
  uint64_t lists = 0;
  for (unsigned dim = 0; dim < rank(); ++dim)
    lists = joined(lists, state.dims[dim]) << 4;
  return {lists, static_cast<uint64_t>(state.partial) << 32 |
                     state.targetGrain << 1 |
                     static_cast<uint64_t>(state.targetKind)};
}

int64_t ReshardGraph::product(AxisWord axes) const {
  int64_t result = 1;
  for (; axes; axes >>= 4)
    result *= problem.axes[(axes & 15) - 1].size;
  return result;
}

int64_t ReshardGraph::grainOf(const ReshardState &state, unsigned dim) const {
  return state.targetGrain >> dim & 1 ? problem.to.grains[dim]
                                      : problem.from.grains[dim];
}

void ReshardGraph::normalise(ReshardState &state, unsigned dim) const {
  if (sameBounds(problem.shape[dim], product(state.dims[dim]),
                 problem.from.grains[dim], problem.to.grains[dim]))
    state.targetGrain |= 1u << dim;
}

int64_t ReshardGraph::largestPart(const ReshardState &state,
                                  unsigned dim) const {
  if (!state.dims[dim])
    return problem.shape[dim];
  int64_t grain = grainOf(state, dim);
  return maxPartSize(problem.shape[dim] / grain, product(state.dims[dim])) *
         grain;
}

uint64_t ReshardGraph::bytesOf(const ReshardState &state) const {
  auto bytes = static_cast<uint64_t>(problem.elementBytes);
  for (unsigned dim = 0; dim < rank(); ++dim)
    bytes = SaturatingMultiply(bytes,
                               static_cast<uint64_t>(largestPart(state, dim)));
  return bytes;
}

uint32_t ReshardGraph::replicated(const ReshardState &state) const {
  uint32_t used = state.partial;
  for (AxisWord dim : state.dims)
    used |= maskOf(dim);
  return ~used & ((1u << problem.axes.size()) - 1);
}

uint32_t ReshardGraph::toReduce() const {
  return problem.sameKind ? partialOfSource & ~partialOfTarget
                          : partialOfSource;
}

uint32_t ReshardGraph::toOwn(const ReshardState &state) const {
  return state.targetKind ? partialOfTarget & ~state.partial : partialOfTarget;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

uint64_t ReshardGraph::latencyAcross() const {
  return SaturatingMultiply(ranks, static_cast<uint64_t>(costs.latencyAcrossNs *
                                                         costs.fastBytesPerNs));
}

/// See ReshardCosts for the formulas; all are multiplied by the ranks.
void ReshardGraph::price(ReshardEdge &edge, uint64_t before,
                         uint64_t after) const {
  edge.bytes = SaturatingAdd(before, after);
  edge.length.steps = 1;
  ReshardMove move = edge.move;
  if (move == ReshardMove::Slice || move == ReshardMove::Own)
    return;
  uint64_t members = 1, inNode = 1;
  for (AxisWord axes = edge.axes; axes; axes >>= 4) {
    const ReshardAxis &axis = problem.axes[(axes & 15) - 1];
    members *= static_cast<uint64_t>(axis.size);
    inNode *= static_cast<uint64_t>(axis.inNode);
  }
  uint64_t bytes = move == ReshardMove::AllGather ? after : before;
  uint64_t twice = move == ReshardMove::AllReduce ? 2 : 1, fast, slow;
  if (move == ReshardMove::AllToAll) {
    fast = ranks / members * (inNode - 1);
    slow = ranks / members * (members - inNode);
  } else {
    fast = ranks / inNode * (inNode - 1);
    slow = ranks / members * (members / inNode - 1);
  }
  uint64_t weight = fast + slow * static_cast<uint64_t>(costs.slowdown);
  edge.length.transfer = SaturatingMultiply(twice * weight, bytes);
  bool inside = inNode == members;
  uint64_t latency = SaturatingMultiply(
      ranks, static_cast<uint64_t>(
                 (inside ? costs.latencyInNodeNs : costs.latencyAcrossNs) *
                 costs.fastBytesPerNs));
  edge.length.time = SaturatingAdd(edge.length.transfer, latency);
  auto n = static_cast<double>(members);
  edge.sent =
      static_cast<double>(twice) * (n - 1) / n * static_cast<double>(bytes);
}

double mlir::parc::reshardNanoseconds(const ReshardProblem &problem,
                                      const ReshardCosts &costs,
                                      const ReshardLength &length) {
  double ranks = 1;
  for (const ReshardAxis &axis : problem.axes)
    if (!axis.inTime)
      ranks *= static_cast<double>(axis.size);
  return static_cast<double>(length.time) / ranks /
         static_cast<double>(costs.fastBytesPerNs);
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

void ReshardGraph::follow(ReshardEdge &edge, const ReshardState &from,
                          ReshardState &to) const {
  to = from;
  uint32_t mask = maskOf(edge.axes);
  auto add = [&](unsigned dim) {
    // A dimension that was whole is cut as the target is.
    if (!to.dims[dim])
      to.targetGrain |= 1u << dim;
    to.dims[dim] = joined(to.dims[dim], edge.axes);
    normalise(to, dim);
  };
  auto remove = [&](unsigned dim) {
    to.dims[dim] >>= 4 * lengthOf(edge.axes);
    normalise(to, dim);
  };
  switch (edge.move) {
  case ReshardMove::AllReduce:
    to.partial &= ~mask;
    break;
  case ReshardMove::ReduceScatter:
    to.partial &= ~mask;
    add(edge.dim);
    break;
  case ReshardMove::Slice:
    add(edge.dim);
    break;
  case ReshardMove::AllGather:
    remove(edge.dim);
    break;
  case ReshardMove::AllToAll:
    remove(edge.dim);
    add(edge.toDim);
    break;
  case ReshardMove::Own:
    to.partial |= mask;
    to.targetKind = true;
    break;
  }
  price(edge, bytesOf(from), bytesOf(to));
}

ReshardStep ReshardGraph::stepOf(const ReshardEdge &edge,
                                 const ReshardState &from,
                                 const ReshardState &to) const {
  ReshardStep step;
  step.move = edge.move;
  step.axes = listOf(edge.axes);
  step.dim = edge.dim;
  step.toDim = edge.toDim;
  bool removes =
      edge.move == ReshardMove::AllGather || edge.move == ReshardMove::AllToAll;
  if (edge.move == ReshardMove::AllReduce || edge.move == ReshardMove::Own)
    return step;
  step.outer = listOf((removes ? to : from).dims[edge.dim]);
  step.grain = grainOf(removes ? from : to, edge.dim);
  if (edge.move == ReshardMove::AllToAll) {
    step.toOuter = listOf(from.dims[edge.toDim]);
    step.toGrain = grainOf(to, edge.toDim);
  }
  return step;
}

void ReshardGraph::visitMove(ReshardMove move, AxisWord axes, unsigned dim,
                             unsigned toDim, const ReshardState &state,
                             Visit visit) const {
  ReshardState next;
  ReshardEdge edge;
  edge.move = move;
  edge.axes = axes;
  edge.dim = dim;
  edge.toDim = toDim;
  follow(edge, state, next);
  visit(edge, next);
}

void ReshardGraph::forEachList(uint32_t set, AxisWord start,
                               llvm::function_ref<void(AxisWord)> body) const {
  if (sharedStay && lengthOf(start) == kLongestList)
    return;
  for (uint32_t rest = set; rest; rest &= rest - 1) {
    uint32_t axis = rest & -rest;
    AxisWord list = joined(start, axisWord(axis));
    body(list);
    forEachList(set & ~axis, list, body);
  }
}

bool ReshardGraph::mayAdd(const ReshardState &state, unsigned dim,
                          AxisWord axes) const {
  if (!directed)
    return true;
  AxisWord list = joined(state.dims[dim], axes);
  AxisWord wanted = axisWord(problem.to.dims[dim]);
  unsigned length = lengthOf(list), full = lengthOf(wanted);
  return length <= full && wanted >> 4 * (full - length) == list;
}

void ReshardGraph::reduceMoves(const ReshardState &state, Visit visit) const {
  uint32_t partial = state.partial & ~timeAxes;
  if (sharedStay)
    partial &= toReduce();
  if (!problem.sameKind && state.targetKind)
    return;
  for (uint32_t some = partial; some; some = (some - 1) & partial)
    visitMove(ReshardMove::AllReduce, axisWord(some), 0, 0, state, visit);
  for (unsigned dim = 0; dim < rank(); ++dim)
    forEachList(partial, 0, [&](AxisWord list) {
      if (mayAdd(state, dim, list))
        visitMove(ReshardMove::ReduceScatter, list, dim, 0, state, visit);
    });
}

void ReshardGraph::splitMoves(const ReshardState &state, Visit visit) const {
  uint32_t free = replicated(state);
  for (unsigned dim = 0; dim < rank(); ++dim)
    forEachList(free, 0, [&](AxisWord list) {
      if (mayAdd(state, dim, list))
        visitMove(ReshardMove::Slice, list, dim, 0, state, visit);
    });
}

void ReshardGraph::joinMoves(const ReshardState &state, Visit visit) const {
  for (unsigned dim = 0; dim < rank(); ++dim) {
    AxisWord all = state.dims[dim], minor = 0;
    unsigned length = lengthOf(all);
    unsigned stay = sharedStay ? std::min(length, kept[dim]) : 0;
    for (unsigned count = 1; count <= length - stay; ++count) {
      minor = all & ~AxisWord(0) >> (64 - 4 * count);
      if (maskOf(minor) & timeAxes)
        break;
      visitMove(ReshardMove::AllGather, minor, dim, 0, state, visit);
      for (unsigned toDim = 0; toDim < rank(); ++toDim)
        if (toDim != dim && mayAdd(state, toDim, minor))
          visitMove(ReshardMove::AllToAll, minor, dim, toDim, state, visit);
    }
  }
}

/// Owning is the last move. Earlier it would let a sum include axes that hold
/// copies, as the model of hierarchical collectives makes the sum cheaper then.
void ReshardGraph::ownMove(const ReshardState &state, Visit visit) const {
  uint32_t axes = toOwn(state);
  if (!axes || (axes & ~replicated(state)) ||
      (!state.targetKind && state.partial))
    return;
  ReshardState next = state;
  next.partial |= axes;
  next.targetKind = true;
  if (keyOf(next) == targetKey)
    visitMove(ReshardMove::Own, axisWord(axes), 0, 0, state, visit);
}

void ReshardGraph::forEachMove(const ReshardState &state, Visit visit) const {
  ownMove(state, visit);
  splitMoves(state, visit);
  reduceMoves(state, visit);
  joinMoves(state, visit);
}
