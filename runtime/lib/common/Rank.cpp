//===- Rank.cpp - Context and view collectives of one rank ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The mesh's arithmetic, communicators by name, and packing around the raw
/// calls.
///
//===----------------------------------------------------------------------===//

#include "parc/rank.h"

#include "Device.h"

#include <algorithm>

namespace parc {

//===----------------------------------------------------------------------===//
// AnyView, Mesh
//===----------------------------------------------------------------------===//

int64_t AnyView::size() const {
  int64_t n = 1;
  for (int d = 0; d < rank; ++d)
    n *= dims[d];
  return n;
}

bool AnyView::contiguous() const {
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    if (dims[d] == 0)
      return true;
    if (dims[d] != 1 && strides[d] != stride)
      return false;
    stride *= dims[d];
  }
  return true;
}

AnyView AnyView::slice(int d, int64_t lo, int64_t n) const {
  AnyView v = *this;
  v.data = static_cast<char *>(data) + lo * strides[d] * int64_t(sizeOf(type));
  v.dims[d] = n;
  return v;
}

AnyView AnyView::packed(void *memory) const {
  AnyView v = *this;
  v.data = memory;
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    v.strides[d] = stride;
    stride *= dims[d];
  }
  return v;
}

int64_t Mesh::devices() const {
  int64_t n = 1;
  for (int64_t s : sizes)
    n *= s;
  return n;
}

int64_t Mesh::coordinate(int64_t rank, int axis) const {
  for (int a = int(sizes.size()) - 1; a > axis; --a)
    rank /= sizes[a];
  return rank % sizes[axis];
}

int Mesh::axis(const std::string &name) const {
  auto it = std::find(axes.begin(), axes.end(), name);
  return it == axes.end() ? -1 : int(it - axes.begin());
}

std::vector<int> Mesh::peers(int64_t rank,
                             const std::vector<std::string> &names) const {
  std::vector<int> result;
  for (int64_t other = 0; other < devices(); ++other) {
    bool same = true;
    for (int a = 0; a < int(axes.size()); ++a)
      if (std::find(names.begin(), names.end(), axes[a]) == names.end())
        same &= coordinate(other, a) == coordinate(rank, a);
    if (same)
      result.push_back(int(other));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Rank
//===----------------------------------------------------------------------===//

const DeviceOps &deviceOf(Backend backend) {
#ifdef PARC_CUDA
  if (backend == Backend::cuda)
    return cudaDevice();
#endif
  (void)backend;
  return hostDevice();
}

Rank::Rank(Endpoint &endpoint, Mesh mesh)
    : endpoint_(endpoint), mesh_(std::move(mesh)),
      pool_(*deviceOf(endpoint.backend()).memory) {
  if (mesh_.devices() != endpoint.worldSize())
    fail(Status(Code::InvalidArgument,
                "expected a mesh of " + std::to_string(endpoint.worldSize()) +
                    " ranks, got " + std::to_string(mesh_.devices())));
}

Rank::~Rank() {
  // Work in flight may still use the pool's blocks.
  endpoint_.synchronize().ignore();
  streaming_ = false;
  releaseStages();
  for (Flight &flight : flights_)
    release(flight.stages);
}

int64_t Rank::coord(const std::string &axis) const {
  int a = mesh_.axis(axis);
  return a < 0 ? 0 : mesh_.coordinate(id(), a);
}

Communicator *Rank::create(const std::string &name,
                           const std::vector<int> &members) {
  if (skip())
    return nullptr;
  Communicator *c = nullptr;
  fail(endpoint_.createCommunicator(name, members, c));
  if (c)
    comms_.push_back(c);
  return c;
}

Communicator *Rank::createOver(const std::vector<std::string> &axes) {
  std::string name;
  for (const std::string &axis : axes)
    name += (name.empty() ? "" : "+") + axis;
  return create(name, mesh_.peers(id(), axes));
}

Communicator *Rank::comm(const std::string &name) const {
  for (Communicator *c : comms_)
    if (c->name() == name)
      return c;
  return nullptr;
}

void Rank::copy(const AnyView &dst, const AnyView &src) {
  bool same = dst.rank == src.rank && dst.type == src.type;
  for (int d = 0; same && d < dst.rank; ++d)
    same = dst.dims[d] == src.dims[d];
  if (!check(same, "copy", "", "expected equal sizes and dtypes"))
    return;
  if (dst.size())
    fail(deviceOf(backend()).copy(stream(), dst, src));
}

void Rank::toHost(void *host, const void *device, size_t bytes) {
  if (bytes)
    fail(deviceOf(backend()).toHost(stream(), host, device, bytes));
}
void Rank::toDevice(void *device, const void *host, size_t bytes) {
  if (bytes)
    fail(deviceOf(backend()).toDevice(stream(), device, host, bytes));
}
void Rank::fillZero(void *device, size_t bytes) {
  if (bytes)
    fail(deviceOf(backend()).zero(stream(), device, bytes));
}

void Rank::synchronize() { fail(endpoint_.synchronize()); }

//===----------------------------------------------------------------------===//
// Collectives on views
//===----------------------------------------------------------------------===//

bool Rank::check(bool condition, const char *call, const char *label,
                 const std::string &text) {
  if (!condition)
    fail(Status(Code::InvalidArgument,
                std::string(call) + " '" + label + "': " + text));
  return condition;
}

void *Rank::stage(size_t bytes) {
  void *block = pool_.take(bytes);
  stages_.emplace_back(block, bytes);
  return block;
}

/// On a device the blocks go back while work is in flight: the pool is used
/// by this rank's one stream only, which keeps the order.
void Rank::release(Stages &stages) {
  for (auto &[block, bytes] : stages)
    pool_.give(block, bytes);
  stages.clear();
}

/// What a stream still uses goes back when that is waited for.
void Rank::releaseStages() {
  counts_.clear();
  if (!streaming_)
    release(stages_);
}

void Rank::copyAfter(const AnyView &dst, const AnyView &src) {
  if (grouping_)
    unpack_.emplace_back(dst, src);
  else
    copy(dst, src);
}

const int64_t *Rank::keep(std::vector<int64_t> counts) {
  counts_.push_back(std::move(counts));
  return counts_.back().data();
}

Ticket Rank::finish(Status status) {
  fail(std::move(status));
  if (!grouping_)
    releaseStages();
  return Ticket{++sequence_};
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

void Rank::create_streams(int count) {
  if (!skip())
    fail(endpoint_.createStreams(count));
}

void Rank::begin_stream(int stream) {
  if (skip() || !check(!streaming_, "begin_stream", "",
                       "expected the stream before to be ended"))
    return;
  fail(endpoint_.fork(stream));
  streaming_ = true;
}

Ticket Rank::end_stream() {
  if (!streaming_)
    return {};
  streaming_ = false;
  Flight flight;
  flight.sequence = ++sequence_;
  fail(endpoint_.mark(flight.event));
  flight.stages.swap(stages_);
  flights_.push_back(std::move(flight));
  return Ticket{sequence_};
}

void Rank::wait(Ticket ticket) {
  for (size_t i = 0; i < flights_.size(); ++i) {
    if (flights_[i].sequence != ticket.sequence)
      continue;
    fail(endpoint_.join(flights_[i].event));
    release(flights_[i].stages);
    flights_.erase(flights_.begin() + std::ptrdiff_t(i));
    return;
  }
}

Ticket Rank::all_reduce(const AnyView &view, Communicator &c, ReduceOp op,
                        const char *label) {
  if (skip())
    return {};
  AnyView flat = view;
  if (!view.contiguous()) {
    flat = view.packed(stage(view.size() * sizeOf(view.type)));
    copy(flat, view);
  }
  Status status =
      c.allReduce(flat.data, flat.data, view.size(), view.type, op, label);
  if (status.ok() && flat.data != view.data)
    copyAfter(view, flat);
  return finish(std::move(status));
}

/// The part of \p v on dimension \p d between two bounds.
static AnyView part(const AnyView &v, int d, const Bounds &bounds, int i) {
  return v.slice(d, bounds[i], bounds[i + 1] - bounds[i]);
}

/// Whether \p bounds divide \p size among \p parts.
static bool fits(const Bounds &bounds, int parts, int64_t size) {
  return int(bounds.size()) == parts + 1 && bounds.front() == 0 &&
         bounds.back() == size && std::is_sorted(bounds.begin(), bounds.end());
}

/// Elements of each part.
static std::vector<int64_t> countsOf(const AnyView &full, int d,
                                     const Bounds &bounds) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i + 1 < bounds.size(); ++i)
    counts.push_back(part(full, d, bounds, int(i)).size());
  return counts;
}

/// Whether the parts on \p d lie one after the other in a packed view.
static bool partsAreRuns(const AnyView &v, int d) {
  for (int k = 0; k < d; ++k)
    if (v.dims[k] != 1)
      return false;
  return v.contiguous();
}

static std::string sizesText(const AnyView &v) {
  std::string text;
  for (int d = 0; d < v.rank; ++d)
    text += (d ? "x" : "") + std::to_string(v.dims[d]);
  return text + " " + nameOf(v.type);
}

/// Whether \p v has the sizes of \p full, with \p n on dimension \p d.
static bool isPart(const AnyView &v, const AnyView &full, int d, int64_t n) {
  bool same = v.rank == full.rank && v.type == full.type;
  for (int k = 0; same && k < v.rank; ++k)
    same = v.dims[k] == (k == d ? n : full.dims[k]);
  return same;
}

Ticket Rank::all_gather(const AnyView &dst, const AnyView &src, Communicator &c,
                        int dim, const Bounds &bounds, const char *label) {
  if (skip())
    return {};
  int me = c.index();
  if (!check(fits(bounds, c.size(), dst.dims[dim]) &&
                 isPart(src, dst, dim, bounds[me + 1] - bounds[me]),
             "all_gather", label,
             "expected part " + std::to_string(me) + " of " + sizesText(dst) +
                 " on dimension " + std::to_string(dim) + ", got " +
                 sizesText(src)))
    return {};
  size_t width = sizeOf(dst.type);
  AnyView flat = src;
  if (!src.contiguous()) {
    flat = src.packed(stage(src.size() * width));
    copy(flat, src);
  }
  std::vector<int64_t> counts = countsOf(dst, dim, bounds);
  bool direct = partsAreRuns(dst, dim);
  char *gathered = static_cast<char *>(
      direct ? dst.data : stage(size_t(dst.size()) * width));
  Status status =
      c.allGather(flat.data, gathered, keep(counts), dst.type, label);
  for (int i = 0; status.ok() && !direct && i < c.size(); ++i) {
    AnyView to = part(dst, dim, bounds, i);
    copyAfter(to, to.packed(gathered));
    gathered += counts[i] * int64_t(width);
  }
  return finish(std::move(status));
}

Ticket Rank::reduce_scatter(const AnyView &dst, const AnyView &src,
                            Communicator &c, int dim, const Bounds &bounds,
                            ReduceOp op, const char *label) {
  if (skip())
    return {};
  int me = c.index();
  if (!check(fits(bounds, c.size(), src.dims[dim]) &&
                 isPart(dst, src, dim, bounds[me + 1] - bounds[me]),
             "reduce_scatter", label,
             "expected part " + std::to_string(me) + " of " + sizesText(src) +
                 " on dimension " + std::to_string(dim) + ", got " +
                 sizesText(dst)))
    return {};
  size_t width = sizeOf(src.type);
  std::vector<int64_t> counts = countsOf(src, dim, bounds);
  char *parts = static_cast<char *>(src.data);
  if (!partsAreRuns(src, dim)) {
    parts = static_cast<char *>(stage(size_t(src.size()) * width));
    char *to = parts;
    for (int i = 0; i < c.size(); ++i) {
      AnyView from = part(src, dim, bounds, i);
      copy(from.packed(to), from);
      to += counts[i] * int64_t(width);
    }
  }
  AnyView flat = dst.contiguous() ? dst : dst.packed(stage(dst.size() * width));
  Status status =
      c.reduceScatter(parts, flat.data, keep(counts), src.type, op, label);
  if (status.ok() && flat.data != dst.data)
    copyAfter(dst, flat);
  return finish(std::move(status));
}

Ticket Rank::all_to_all(const AnyView &dst, const AnyView &src, Communicator &c,
                        int splitDim, const Bounds &splitBounds, int concatDim,
                        const Bounds &concatBounds, const char *label) {
  if (skip())
    return {};
  int me = c.index(), n = c.size();
  bool sized = fits(splitBounds, n, src.dims[splitDim]) &&
               fits(concatBounds, n, dst.dims[concatDim]) &&
               splitDim != concatDim &&
               src.dims[concatDim] == concatBounds[me + 1] - concatBounds[me];
  if (sized) {
    AnyView expected = part(src, splitDim, splitBounds, me);
    sized = isPart(dst, expected, concatDim, concatBounds[n]);
  }
  if (!check(sized, "all_to_all", label,
             "expected sizes that exchange dimension " +
                 std::to_string(splitDim) + " for " +
                 std::to_string(concatDim) + ", got " + sizesText(src) +
                 " to " + sizesText(dst)))
    return {};
  size_t width = sizeOf(src.type);
  std::vector<int64_t> sent = countsOf(src, splitDim, splitBounds);
  std::vector<int64_t> received = countsOf(dst, concatDim, concatBounds);
  char *out = static_cast<char *>(stage(size_t(src.size()) * width));
  char *in = static_cast<char *>(stage(size_t(dst.size()) * width));
  char *cursor = out;
  for (int i = 0; i < n; ++i) {
    AnyView from = part(src, splitDim, splitBounds, i);
    copy(from.packed(cursor), from);
    cursor += sent[i] * int64_t(width);
  }
  Status status =
      c.allToAll(out, keep(sent), in, keep(received), src.type, label);
  for (int i = 0; status.ok() && i < n; ++i) {
    AnyView to = part(dst, concatDim, concatBounds, i);
    copyAfter(to, to.packed(in));
    in += received[i] * int64_t(width);
  }
  return finish(std::move(status));
}

namespace {
/// Rows that are used of a tensor, by the members that they go to or come from.
struct UsedRows {
  const AnyView &tensor;
  int dim;
  const Bounds &bounds;
  const std::vector<int64_t> &used;

  int64_t columns() const { return dim == 0 ? 1 : int64_t(bounds.size()) - 1; }
  /// Calls \p fn with each run of rows of one member, in order.
  template <class Fn> void forEachRun(int member, const Fn &fn) const {
    AnyView mine = part(tensor, dim, bounds, member);
    int64_t first = dim == 0 ? bounds[size_t(member)] : 0;
    for (int64_t i = 0; i < mine.dims[0]; ++i) {
      int64_t rows =
          used[size_t((first + i) * columns() + (dim == 0 ? 0 : member))];
      if (rows > 0)
        fn(mine.slice(0, i, 1).slice(1, 0, rows));
    }
  }
  /// Elements of each member.
  std::vector<int64_t> counts() const {
    std::vector<int64_t> result(bounds.size() - 1);
    for (size_t i = 0; i < result.size(); ++i)
      forEachRun(int(i), [&](const AnyView &run) { result[i] += run.size(); });
    return result;
  }
  /// One number a row and column, none larger than a part.
  bool fit() const {
    if (int64_t(used.size()) != tensor.dims[0] * columns())
      return false;
    for (size_t i = 0; i < used.size(); ++i) {
      size_t member = i % size_t(columns());
      int64_t most =
          dim == 0 ? tensor.dims[1] : bounds[member + 1] - bounds[member];
      if (used[i] < 0 || used[i] > most)
        return false;
    }
    return true;
  }
};
} // namespace

Ticket Rank::all_to_all_rows(const AnyView &dst, const AnyView &src,
                             Communicator &c, int splitDim,
                             const Bounds &splitBounds, int concatDim,
                             const Bounds &concatBounds,
                             const std::vector<int64_t> &sent,
                             const std::vector<int64_t> &received,
                             const char *label) {
  if (skip())
    return {};
  int n = c.size();
  UsedRows out{src, splitDim, splitBounds, sent};
  UsedRows in{dst, concatDim, concatBounds, received};
  bool sized = splitDim + concatDim == 1 && splitDim >= 0 && concatDim >= 0 &&
               src.rank >= 2 && dst.rank == src.rank && dst.contiguous() &&
               fits(splitBounds, n, src.dims[splitDim]) &&
               fits(concatBounds, n, dst.dims[concatDim]);
  if (!check(sized && out.fit() && in.fit(), "all_to_all_rows", label,
             "expected numbers of rows that fit " + sizesText(src) + " and " +
                 sizesText(dst) + " on dimensions " + std::to_string(splitDim) +
                 " and " + std::to_string(concatDim)))
    return {};
  size_t width = sizeOf(src.type);
  std::vector<int64_t> sends = out.counts(), receives = in.counts();
  auto bytes = [&](const std::vector<int64_t> &counts) {
    int64_t total = 0;
    for (int64_t count : counts)
      total += count;
    return size_t(total) * width;
  };
  char *from = static_cast<char *>(stage(bytes(sends)));
  char *to = static_cast<char *>(stage(bytes(receives)));
  char *cursor = from;
  for (int i = 0; i < n; ++i)
    out.forEachRun(i, [&](const AnyView &run) {
      copy(run.packed(cursor), run);
      cursor += size_t(run.size()) * width;
    });
  Status status =
      c.allToAll(from, sends.data(), to, receives.data(), src.type, label);
  fillZero(dst.data, size_t(dst.size()) * width);
  for (int i = 0; status.ok() && i < n; ++i)
    in.forEachRun(i, [&](const AnyView &run) {
      copy(run, run.packed(to));
      to += size_t(run.size()) * width;
    });
  return finish(std::move(status));
}

Ticket Rank::broadcast(const AnyView &view, Communicator &c, int root,
                       const char *label) {
  if (skip())
    return {};
  AnyView flat = view;
  if (!view.contiguous()) {
    flat = view.packed(stage(view.size() * sizeOf(view.type)));
    if (c.index() == root)
      copy(flat, view);
  }
  Status status = c.broadcast(flat.data, view.size(), view.type, root, label);
  if (status.ok() && flat.data != view.data)
    copyAfter(view, flat);
  return finish(std::move(status));
}

Ticket Rank::send(const AnyView &src, Communicator &c, int peer,
                  const char *label) {
  if (skip())
    return {};
  AnyView flat = src;
  if (!src.contiguous()) {
    flat = src.packed(stage(src.size() * sizeOf(src.type)));
    copy(flat, src);
  }
  return finish(c.send(flat.data, src.size(), src.type, peer, label));
}

Ticket Rank::recv(const AnyView &dst, Communicator &c, int peer,
                  const char *label) {
  if (skip())
    return {};
  AnyView flat = dst;
  if (!dst.contiguous()) {
    flat = dst.packed(stage(dst.size() * sizeOf(dst.type)));
    unpack_.emplace_back(dst, flat);
  }
  Status status = c.recv(flat.data, dst.size(), dst.type, peer, label);
  if (!grouping_ && status.ok())
    for (auto &[to, from] : unpack_)
      copy(to, from);
  if (!grouping_)
    unpack_.clear();
  return finish(std::move(status));
}

void Rank::group_start() {
  if (skip())
    return;
  fail(endpoint_.groupStart());
  grouping_ = ok();
}

void Rank::group_end() {
  if (!grouping_)
    return;
  grouping_ = false;
  // Closed even after a failure in between, so that the endpoint is left in
  // order; what was deferred is still matched by the partners.
  Status status = endpoint_.groupEnd();
  if (status.ok())
    for (auto &[to, from] : unpack_)
      copy(to, from);
  unpack_.clear();
  fail(std::move(status));
  releaseStages();
}

} // namespace parc
