//===- rank.h - What one rank holds -----------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The context of one rank: its coordinates, communicators, memory pool and
/// stream, and the collectives on views. A failure is latched: the first one
/// is kept in status(), and every later communication is skipped, so that
/// generated code reads straight and checks once a step.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_RANK_H
#define PARC_RANK_H

#include "parc/comm.h"
#include "parc/part.h"
#include "parc/tensor.h"

#include <memory>
#include <string>
#include <vector>

namespace parc {

/// A view whose element type is known at run time only.
struct AnyView {
  void *data = nullptr;
  DType type = DType::f32;
  int rank = 0;
  int64_t dims[MaxRank] = {};
  int64_t strides[MaxRank] = {};

  AnyView() = default;
  template <class T>
  AnyView(const View<T> &v)
      : data(const_cast<std::remove_const_t<T> *>(v.data)),
        type(DTypeOf<T>::value), rank(v.rank) {
    for (int d = 0; d < MaxRank; ++d) {
      dims[d] = v.dims[d];
      strides[d] = v.strides[d];
    }
  }
  template <class T> AnyView(const Tensor<T> &t) : AnyView(t.view()) {}

  int64_t size() const;
  bool contiguous() const;
  AnyView slice(int d, int64_t lo, int64_t n) const;
  /// Row-major over other memory, with this view's sizes.
  AnyView packed(void *memory) const;
};

/// The axes of a mesh, outermost first as ranks are counted: the last axis
/// varies fastest.
struct Mesh {
  std::vector<std::string> axes;
  std::vector<int64_t> sizes;

  int64_t devices() const;
  /// Coordinate of \p rank on axis number \p axis.
  int64_t coordinate(int64_t rank, int axis) const;
  /// Number of the axis of this name, or -1.
  int axis(const std::string &name) const;
  /// Members that share all coordinates with \p rank but those of the named
  /// axes, in rank order: the communicator over these axes.
  std::vector<int> peers(int64_t rank,
                         const std::vector<std::string> &axes) const;
};

/// Stands for what was issued on a stream: pass it to Rank::wait before a
/// result is read or a source overwritten.
struct [[nodiscard]] Ticket {
  int64_t sequence = 0;
};

/// One rank of a running program.
class Rank {
public:
  Rank(Endpoint &endpoint, Mesh mesh);
  Rank(const Rank &) = delete;
  Rank &operator=(const Rank &) = delete;
  ~Rank();

  int id() const { return endpoint_.rank(); }
  int worldSize() const { return endpoint_.worldSize(); }
  Backend backend() const { return endpoint_.backend(); }
  Endpoint &endpoint() { return endpoint_; }
  const Mesh &mesh() const { return mesh_; }
  /// This rank's coordinate on an axis; 0 on an axis the mesh lacks.
  int64_t coord(const std::string &axis) const;

  /// Creates the communicator over these axes ("tp+dp" as a name), collective
  /// on its members. Call in the same order on all ranks.
  Communicator *createOver(const std::vector<std::string> &axes);
  /// The same from an explicit list.
  Communicator *create(const std::string &name,
                       const std::vector<int> &members);
  /// The communicator of that name, or null.
  Communicator *comm(const std::string &name) const;

  Pool &pool() { return pool_; }
  /// The CUDA stream of all work of this rank; null on the host.
  void *stream() const { return endpoint_.stream(); }

  /// The first failure, or success.
  const Status &status() const { return status_; }
  void fail(Status status) { status_.update(std::move(status)); }
  bool ok() const { return status_.ok(); }

  /// dst = src, element by element; sizes are equal, strides are free.
  void copy(const AnyView &dst, const AnyView &src);
  /// Between this rank's memory and host memory, contiguous, blocking.
  void toHost(void *host, const void *device, size_t bytes);
  void toDevice(void *device, const void *host, size_t bytes);
  void fillZero(void *device, size_t bytes);

  /// \name Collectives on views
  /// Dimension \p dim of the full view is divided at \p bounds (size() + 1
  /// numbers, part.h). A view that is not contiguous is packed on the way.
  /// \{
  Ticket all_reduce(const AnyView &view, Communicator &c, ReduceOp op,
                    const char *label);
  Ticket all_gather(const AnyView &dst, const AnyView &src, Communicator &c,
                    int dim, const Bounds &bounds, const char *label);
  Ticket reduce_scatter(const AnyView &dst, const AnyView &src, Communicator &c,
                        int dim, const Bounds &bounds, ReduceOp op,
                        const char *label);
  /// src holds this rank's part of \p concatDim and all of \p splitDim; dst
  /// all of \p concatDim and this rank's part of \p splitDim.
  Ticket all_to_all(const AnyView &dst, const AnyView &src, Communicator &c,
                    int splitDim, const Bounds &splitBounds, int concatDim,
                    const Bounds &concatBounds, const char *label);
  /// The same between dimensions 0 and 1, of rows of which only some are used:
  /// of what goes to a member, the first ones of each index of dimension 0.
  /// Only these are sent; what is not filled in \p dst becomes zero. \p sent
  /// and
  /// \p received are their numbers, in host memory, row-major: an index of
  /// dimension 0 of src (of dst) each row, and a column a member where the
  /// members' parts are of dimension 1, else one column. What a member sends
  /// must be what the other one expects; neither can find out by itself.
  Ticket
  all_to_all_rows(const AnyView &dst, const AnyView &src, Communicator &c,
                  int splitDim, const Bounds &splitBounds, int concatDim,
                  const Bounds &concatBounds, const std::vector<int64_t> &sent,
                  const std::vector<int64_t> &received, const char *label);
  Ticket broadcast(const AnyView &view, Communicator &c, int root,
                   const char *label);
  Ticket send(const AnyView &src, Communicator &c, int peer, const char *label);
  Ticket recv(const AnyView &dst, Communicator &c, int peer, const char *label);
  void group_start();
  void group_end();
  bool grouping() const { return grouping_; }
  /// \}

  /// \name Streams
  /// \{
  /// Makes streams 1 to \p count - 1 beside the compute stream, 0.
  void create_streams(int count);
  /// What follows is issued on \p stream, after what was issued before.
  void begin_stream(int stream);
  /// What follows is issued on the compute stream again.
  Ticket end_stream();
  /// The compute stream waits; a ticket that was waited for is no wait. The
  /// memory that the call used on the way goes back to the pool.
  void wait(Ticket ticket);
  /// \}

  /// Blocks until all work issued by this rank is done.
  void synchronize();

private:
  Ticket finish(Status status);
  bool skip() const { return !status_.ok(); }
  bool check(bool condition, const char *call, const char *label,
             const std::string &text);
  using Stages = std::vector<std::pair<void *, size_t>>;
  /// What was issued on a stream and not waited for.
  struct Flight {
    int64_t sequence = 0;
    int event = -1;
    Stages stages;
  };
  void *stage(size_t bytes);
  void release(Stages &stages);
  void releaseStages();
  /// dst = src once the call is done: at the end of its group.
  void copyAfter(const AnyView &dst, const AnyView &src);
  /// Keeps the numbers until the call is done.
  const int64_t *keep(std::vector<int64_t> counts);

  Endpoint &endpoint_;
  Mesh mesh_;
  Pool pool_;
  Status status_;
  std::vector<Communicator *> comms_;
  Stages stages_;                                   ///< Until the call ends.
  std::vector<std::pair<AnyView, AnyView>> unpack_; ///< At the group's end.
  std::vector<std::vector<int64_t>> counts_;        ///< The same.
  std::vector<Flight> flights_;
  bool grouping_ = false, streaming_ = false;
  int64_t sequence_ = 0;
};

} // namespace parc

#endif // PARC_RANK_H
