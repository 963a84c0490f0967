//===- comm.h - Ranks, communicators, collectives ---------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Communication between ranks, with NCCL's rules on every backend: a send is
/// not buffered, a collective returns when all members have joined, and all
/// members make the same calls in the same order. On the host the ranks are
/// threads, and what would hang on GPUs fails with the names of the calls that
/// wait for each other.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_COMM_H
#define PARC_COMM_H

#include "parc/dtype.h"
#include "parc/status.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace parc {

enum class ReduceOp : uint8_t { sum, max, min };

constexpr const char *nameOf(ReduceOp op) {
  return op == ReduceOp::sum ? "sum" : op == ReduceOp::max ? "max" : "min";
}

enum class Backend : uint8_t { host, cuda };

/// One rank's handle on a group of ranks. Counts are elements. `index` and
/// `peer` number the members in the order of the list, as NCCL does; messages
/// speak of global ranks. Zero counts are legal and still join. Labels name
/// the call for the watchdog and are not compared; they must live until the
/// call returns.
class Communicator {
public:
  virtual ~Communicator();

  const std::string &name() const { return name_; }
  const std::vector<int> &members() const { return members_; }
  int size() const { return int(members_.size()); }
  /// This rank's position in the list of members.
  int index() const { return index_; }

  /// ncclAllReduce. In place where src == dst. The order of summation is that
  /// of the members on the host, so every rank gets the same bits.
  virtual Status allReduce(const void *src, void *dst, int64_t count, DType t,
                           ReduceOp op, const char *label) = 0;
  /// Member i gives counts[i] elements; dst holds all of them in order. In
  /// place where src is its own part of dst.
  virtual Status allGather(const void *src, void *dst, const int64_t *counts,
                           DType t, const char *label) = 0;
  /// Each member gives all sum(counts) elements; member i keeps the counts[i]
  /// reduced elements of part i. In place where dst is its own part of src.
  virtual Status reduceScatter(const void *src, void *dst,
                               const int64_t *counts, DType t, ReduceOp op,
                               const char *label) = 0;
  /// Member i sends sendCounts[j] elements to j, and gets recvCounts[j] from
  /// j; both lie in the order of the members. Never in place.
  virtual Status allToAll(const void *src, const int64_t *sendCounts, void *dst,
                          const int64_t *recvCounts, DType t,
                          const char *label) = 0;
  /// ncclBroadcast in place from member \p root.
  virtual Status broadcast(void *data, int64_t count, DType t, int root,
                           const char *label) = 0;
  /// Returns when the peer has taken the data: nothing is buffered.
  virtual Status send(const void *src, int64_t count, DType t, int peer,
                      const char *label) = 0;
  virtual Status recv(void *dst, int64_t count, DType t, int peer,
                      const char *label) = 0;

protected:
  Communicator(std::string name, std::vector<int> members, int index)
      : name_(std::move(name)), members_(std::move(members)), index_(index) {}

private:
  std::string name_;
  std::vector<int> members_;
  int index_;
};

/// One rank's access to the world. Owned by World; used by one thread.
class Endpoint {
public:
  virtual ~Endpoint();
  virtual int rank() const = 0;
  virtual int worldSize() const = 0;
  virtual Backend backend() const = 0;

  /// Joins the creation of a communicator: every member calls this with the
  /// same name and list, in one global order. The world owns the result.
  virtual Status createCommunicator(const std::string &name,
                                    const std::vector<int> &members,
                                    Communicator *&out) = 0;

  /// The calls between the two progress together, on any number of
  /// communicators; collectives of one communicator keep their order. groupEnd
  /// returns when all are done. Counts and buffers must live until then.
  virtual Status groupStart() = 0;
  virtual Status groupEnd() = 0;

  /// \name Streams
  /// Stream 0 is the compute stream. On the host there is none: what is issued
  /// is done when the call returns, so that ranks meet in the order of issue.
  /// \{
  /// Makes streams 1 to \p count - 1, once.
  virtual Status createStreams(int count) {
    (void)count;
    return Status();
  }
  /// What follows is issued on \p stream, after what the compute stream has
  /// now.
  virtual Status fork(int stream) {
    (void)stream;
    return Status();
  }
  /// What follows is issued on the compute stream again. \p event stands for
  /// the end of what was issued since fork; -1 where there is nothing to wait
  /// for.
  virtual Status mark(int &event) {
    event = -1;
    return Status();
  }
  /// The compute stream waits for the event, which is then free again.
  virtual Status join(int event) {
    (void)event;
    return Status();
  }
  /// \}

  /// Blocks until all that was issued on this rank's streams is done.
  virtual Status synchronize() = 0;
  /// The CUDA stream that calls are issued on now; null on the host.
  virtual void *stream() const { return nullptr; }
};

struct WorldOptions {
  /// The watchdog stops a world in which no rank issues a call for this long
  /// while some rank waits. Provable deadlocks are reported at once.
  double timeoutSeconds = 60;
};

/// A set of ranks that run the same function.
class World {
public:
  /// Runs \p body once a rank, each on a thread of this process, on the host
  /// backend. Returns the failure that came first, with the rank's number, or
  /// success when all bodies succeeded. When a rank fails, those that wait are
  /// released with Code::Stopped; nothing hangs.
  static Status run(int ranks, const std::function<Status(Endpoint &)> &body,
                    const WorldOptions &options = {});

  /// The same on the backend this library was built for. With cuda, a process
  /// started by torchrun, mpirun or srun runs its own rank only; a process
  /// started alone runs all ranks as threads, one a visible GPU.
  static Status launch(int ranks, const std::function<Status(Endpoint &)> &body,
                       const WorldOptions &options = {});
};

} // namespace parc

#endif // PARC_COMM_H
