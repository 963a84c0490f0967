//===- CudaEndpoint.h - One rank on one GPU ---------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The cuda backend's endpoint: a device, the compute stream and those beside
/// it, events between them, NCCL communicators, a cuBLASLt handle and
/// workspace. One thread issues everything, in one order.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_CUDA_CUDAENDPOINT_H
#define PARC_LIB_CUDA_CUDAENDPOINT_H

#include "Nccl.h"
#include "Store.h"
#include "parc/comm.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <map>
#include <memory>

namespace parc {
namespace cuda {

class CudaCommunicator;

Status cudaStatus(cudaError_t error, const char *what);

class CudaEndpoint final : public Endpoint {
public:
  CudaEndpoint(int rank, int worldSize, int device, Store &store,
               const WorldOptions &options);
  ~CudaEndpoint() override;

  /// Sets the device of the calling thread, and makes stream and handles.
  Status open();

  int rank() const override { return rank_; }
  int worldSize() const override { return worldSize_; }
  Backend backend() const override { return Backend::cuda; }
  void *stream() const override { return current_; }

  Status createCommunicator(const std::string &name,
                            const std::vector<int> &members,
                            Communicator *&out) override;
  Status groupStart() override;
  Status groupEnd() override;
  Status createStreams(int count) override;
  Status fork(int stream) override;
  Status mark(int &event) override;
  Status join(int event) override;
  /// Waits for the stream; after the watchdog's time it aborts all
  /// communicators and names the last call issued.
  Status synchronize() override;

  const Nccl &nccl() const { return *nccl_; }
  cudaStream_t cudaStream() const { return current_; }
  cublasLtHandle_t blas() const { return blas_; }
  void *workspace() const { return workspace_; }
  static constexpr size_t WorkspaceBytes = 32 << 20;

  /// Turns NCCL's result into a status, and notes the call for the watchdog.
  Status issued(ncclResult_t result, const std::string &call);

private:
  Status abortAll(Status status);

  int rank_, worldSize_, device_;
  Store &store_;
  WorldOptions options_;
  const Nccl *nccl_ = nullptr;
  Status waitFor(cudaStream_t stream);

  cudaStream_t stream_ = nullptr, current_ = nullptr;
  std::vector<cudaStream_t> beside_; ///< Streams 1 and up.
  cudaEvent_t forked_ = nullptr;
  std::vector<cudaEvent_t> events_;
  std::vector<int> freeEvents_;
  cublasLtHandle_t blas_ = nullptr;
  void *workspace_ = nullptr;
  bool grouping_ = false, aborted_ = false;
  std::string lastCall_ = "start";
  std::map<std::string, int> created_; ///< How often, by name and members.
  std::vector<std::unique_ptr<CudaCommunicator>> communicators_;
};

} // namespace cuda
} // namespace parc

#endif // PARC_LIB_CUDA_CUDAENDPOINT_H
