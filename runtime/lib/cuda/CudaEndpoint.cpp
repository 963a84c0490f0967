//===- CudaEndpoint.cpp - NCCL behind the public calls --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Uneven counts are groups of NCCL's even calls: an all-gather of broadcasts,
/// a reduce-scatter of reduces, an all-to-all of sends and receives.
///
//===----------------------------------------------------------------------===//

#include "CudaEndpoint.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace parc {
namespace cuda {

Status cudaStatus(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return Status();
  return Status(Code::DeviceError,
                std::string(what) + ": " + cudaGetErrorString(error));
}

class CudaCommunicator final : public Communicator {
public:
  CudaCommunicator(CudaEndpoint &endpoint, std::string name,
                   std::vector<int> members, int index, ncclComm_t comm)
      : Communicator(std::move(name), std::move(members), index), e(endpoint),
        n(endpoint.nccl()), comm(comm) {}

  ncclComm_t handle() const { return comm; }

  Status allReduce(const void *src, void *dst, int64_t count, DType t,
                   ReduceOp op, const char *label) override {
    PARC_TRY(check(t, label));
    return done(n.allReduce(src, dst, size_t(count), type(t), reduction(op),
                            comm, e.cudaStream()),
                "all_reduce", label);
  }
  Status allGather(const void *src, void *dst, const int64_t *counts, DType t,
                   const char *label) override {
    PARC_TRY(check(t, label));
    if (even(counts))
      return done(n.allGather(src, dst, size_t(counts[0]), type(t), comm,
                              e.cudaStream()),
                  "all_gather", label);
    ncclResult_t result = n.groupStart();
    char *to = static_cast<char *>(dst);
    for (int i = 0; i < size() && result == ncclSuccess; ++i) {
      if (counts[i])
        result = n.broadcast(i == index() ? src : to, to, size_t(counts[i]),
                             type(t), i, comm, e.cudaStream());
      to += counts[i] * int64_t(sizeOf(t));
    }
    return grouped(result, "all_gather", label);
  }
  Status reduceScatter(const void *src, void *dst, const int64_t *counts,
                       DType t, ReduceOp op, const char *label) override {
    PARC_TRY(check(t, label));
    if (even(counts))
      return done(n.reduceScatter(src, dst, size_t(counts[0]), type(t),
                                  reduction(op), comm, e.cudaStream()),
                  "reduce_scatter", label);
    ncclResult_t result = n.groupStart();
    const char *from = static_cast<const char *>(src);
    for (int i = 0; i < size() && result == ncclSuccess; ++i) {
      if (counts[i])
        result = n.reduce(from, i == index() ? dst : nullptr, size_t(counts[i]),
                          type(t), reduction(op), i, comm, e.cudaStream());
      from += counts[i] * int64_t(sizeOf(t));
    }
    return grouped(result, "reduce_scatter", label);
  }
  Status allToAll(const void *src, const int64_t *sendCounts, void *dst,
                  const int64_t *recvCounts, DType t,
                  const char *label) override {
    PARC_TRY(check(t, label));
    ncclResult_t result = n.groupStart();
    const char *from = static_cast<const char *>(src);
    char *to = static_cast<char *>(dst);
    for (int i = 0; i < size() && result == ncclSuccess; ++i) {
      if (sendCounts[i])
        result = n.send(from, size_t(sendCounts[i]), type(t), i, comm,
                        e.cudaStream());
      if (recvCounts[i] && result == ncclSuccess)
        result =
            n.recv(to, size_t(recvCounts[i]), type(t), i, comm, e.cudaStream());
      from += sendCounts[i] * int64_t(sizeOf(t));
      to += recvCounts[i] * int64_t(sizeOf(t));
    }
    return grouped(result, "all_to_all", label);
  }
  Status broadcast(void *data, int64_t count, DType t, int root,
                   const char *label) override {
    PARC_TRY(check(t, label));
    return done(n.broadcast(data, data, size_t(count), type(t), root, comm,
                            e.cudaStream()),
                "broadcast", label);
  }
  Status send(const void *src, int64_t count, DType t, int peer,
              const char *label) override {
    PARC_TRY(check(t, label));
    return done(n.send(src, size_t(count), type(t), peer, comm, e.cudaStream()),
                "send", label);
  }
  Status recv(void *dst, int64_t count, DType t, int peer,
              const char *label) override {
    PARC_TRY(check(t, label));
    return done(n.recv(dst, size_t(count), type(t), peer, comm, e.cudaStream()),
                "recv", label);
  }

private:
  static ncclDataType_t type(DType t) {
    switch (t) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    case DType::zp:
      break;
    }
    return ncclUint64; // refused before
  }
  static ncclRedOp_t reduction(ReduceOp op) {
    return op == ReduceOp::sum   ? ncclSum
           : op == ReduceOp::max ? ncclMax
                                 : ncclMin;
  }
  bool even(const int64_t *counts) const {
    return std::all_of(counts, counts + size(),
                       [&](int64_t c) { return c == counts[0]; });
  }
  /// The same rules as the host's.
  Status check(DType t, const char *label) const {
    if (t == DType::zp)
      return Status(Code::Unsupported, std::string("'") + label + "' on " +
                                           name() +
                                           ": residues are communicated on "
                                           "the host only");
    return Status();
  }
  Status done(ncclResult_t result, const char *call, const char *label) {
    return e.issued(result,
                    std::string(call) + " '" + label + "' on " + name());
  }
  /// Closes the group whatever happened inside it.
  Status grouped(ncclResult_t result, const char *call, const char *label) {
    ncclResult_t closed = n.groupEnd();
    return done(result == ncclSuccess ? closed : result, call, label);
  }

  CudaEndpoint &e;
  const Nccl &n;
  ncclComm_t comm;
};

CudaEndpoint::CudaEndpoint(int rank, int worldSize, int device, Store &store,
                           const WorldOptions &options)
    : rank_(rank), worldSize_(worldSize), device_(device), store_(store),
      options_(options) {}

CudaEndpoint::~CudaEndpoint() {
  for (auto &c : communicators_)
    if (!aborted_)
      nccl_->commDestroy(c->handle());
  if (workspace_)
    cudaFree(workspace_);
  if (blas_)
    cublasLtDestroy(blas_);
  for (cudaEvent_t event : events_)
    cudaEventDestroy(event);
  if (forked_)
    cudaEventDestroy(forked_);
  for (cudaStream_t stream : beside_)
    cudaStreamDestroy(stream);
  if (stream_)
    cudaStreamDestroy(stream_);
}

Status CudaEndpoint::open() {
  PARC_TRY(loadNccl(nccl_));
  PARC_TRY(cudaStatus(cudaSetDevice(device_), "cudaSetDevice"));
  PARC_TRY(
      cudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                 "cudaStreamCreate"));
  current_ = stream_;
  PARC_TRY(cudaStatus(cudaMalloc(&workspace_, WorkspaceBytes), "cudaMalloc"));
  if (cublasLtCreate(&blas_) != CUBLAS_STATUS_SUCCESS)
    return Status(Code::DeviceError, "cublasLtCreate failed");
  return Status();
}

Status CudaEndpoint::issued(ncclResult_t result, const std::string &call) {
  lastCall_ = call;
  if (result == ncclSuccess)
    return Status();
  return Status(Code::DeviceError, call + ": " + nccl_->getErrorString(result));
}

Status CudaEndpoint::createCommunicator(const std::string &name,
                                        const std::vector<int> &members,
                                        Communicator *&out) {
  auto found = std::find(members.begin(), members.end(), rank_);
  if (found == members.end())
    return Status(Code::InvalidArgument,
                  "communicator '" + name + "': rank " + std::to_string(rank_) +
                      " creates it without being a member");
  int index = int(found - members.begin());
  std::string key = "'" + name + "' {";
  for (int m : members)
    key += std::to_string(m) + " ";
  key += "}";
  key += " #" + std::to_string(created_[key]++);
  ncclUniqueId id;
  if (index == 0) {
    PARC_TRY(issued(nccl_->getUniqueId(&id), "create " + key));
    PARC_TRY(store_.set(key, std::string(id.internal, sizeof id.internal)));
  } else {
    std::string bytes;
    PARC_TRY(store_.get(key, bytes, options_.timeoutSeconds));
    if (bytes.size() != sizeof id.internal)
      return Status(Code::DeviceError, "communicator " + key +
                                           ": expected NCCL's unique id, got " +
                                           std::to_string(bytes.size()) +
                                           " bytes");
    bytes.copy(id.internal, sizeof id.internal);
  }
  ncclComm_t comm = nullptr;
  PARC_TRY(issued(nccl_->commInitRank(&comm, int(members.size()), id, index),
                  "create " + key));
  communicators_.push_back(
      std::make_unique<CudaCommunicator>(*this, name, members, index, comm));
  out = communicators_.back().get();
  return Status();
}

Status CudaEndpoint::groupStart() {
  if (grouping_)
    return Status(Code::InvalidArgument, "groupStart inside a group",
                  "end the group first");
  grouping_ = true;
  return issued(nccl_->groupStart(), "groupStart");
}

Status CudaEndpoint::groupEnd() {
  if (!grouping_)
    return Status(Code::InvalidArgument, "groupEnd without a group");
  grouping_ = false;
  return issued(nccl_->groupEnd(), "group that ends with " + lastCall_);
}

Status CudaEndpoint::abortAll(Status status) {
  if (!aborted_)
    for (auto &c : communicators_)
      nccl_->commAbort(c->handle());
  aborted_ = true;
  return status;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

Status CudaEndpoint::createStreams(int count) {
  PARC_TRY(
      cudaStatus(cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming),
                 "cudaEventCreate"));
  for (int i = 1; i < count; ++i) {
    cudaStream_t stream = nullptr;
    PARC_TRY(
        cudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                   "cudaStreamCreate"));
    beside_.push_back(stream);
  }
  return Status();
}

Status CudaEndpoint::fork(int stream) {
  if (stream < 1 || stream > int(beside_.size()))
    return Status(Code::InvalidArgument, "expected a stream from 1 to " +
                                             std::to_string(beside_.size()) +
                                             ", got " + std::to_string(stream));
  current_ = beside_[size_t(stream - 1)];
  PARC_TRY(cudaStatus(cudaEventRecord(forked_, stream_), "cudaEventRecord"));
  return cudaStatus(cudaStreamWaitEvent(current_, forked_, 0),
                    "cudaStreamWaitEvent");
}

/// Events are made in the first step and used again in the next ones.
Status CudaEndpoint::mark(int &event) {
  if (freeEvents_.empty()) {
    cudaEvent_t made = nullptr;
    PARC_TRY(cudaStatus(cudaEventCreateWithFlags(&made, cudaEventDisableTiming),
                        "cudaEventCreate"));
    freeEvents_.push_back(int(events_.size()));
    events_.push_back(made);
  }
  event = freeEvents_.back();
  freeEvents_.pop_back();
  cudaStream_t stream = current_;
  current_ = stream_;
  return cudaStatus(cudaEventRecord(events_[size_t(event)], stream),
                    "cudaEventRecord");
}

/// The wait has its own copy of the event's state, so the event is free.
Status CudaEndpoint::join(int event) {
  if (event < 0)
    return Status();
  freeEvents_.push_back(event);
  return cudaStatus(cudaStreamWaitEvent(stream_, events_[size_t(event)], 0),
                    "cudaStreamWaitEvent");
}

Status CudaEndpoint::synchronize() {
  PARC_TRY(waitFor(stream_));
  for (cudaStream_t stream : beside_)
    PARC_TRY(waitFor(stream));
  return Status();
}

Status CudaEndpoint::waitFor(cudaStream_t stream) {
  if (!stream || aborted_)
    return Status();
  auto begin = std::chrono::steady_clock::now();
  for (int spins = 0;; ++spins) {
    cudaError_t state = cudaStreamQuery(stream);
    if (state == cudaSuccess)
      return Status();
    if (state != cudaErrorNotReady)
      return abortAll(cudaStatus(state, lastCall_.c_str()));
    if (spins < 1000)
      continue; // most waits are short
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    for (auto &c : communicators_) {
      ncclResult_t error = ncclSuccess;
      nccl_->commGetAsyncError(c->handle(), &error);
      if (error != ncclSuccess && error != ncclInProgress)
        return abortAll(
            Status(Code::DeviceError,
                   c->name() + ": " + nccl_->getErrorString(error)));
    }
    std::chrono::duration<double> waited =
        std::chrono::steady_clock::now() - begin;
    if (waited.count() > options_.timeoutSeconds)
      return abortAll(
          Status(Code::Timeout,
                 "rank " + std::to_string(rank_) + " waited " +
                     std::to_string(options_.timeoutSeconds) +
                     " s; the last call it issued is " + lastCall_,
                 "run on the host backend: it names who waits for whom"));
  }
}

} // namespace cuda
} // namespace parc
