//===- CudaEndpoint.h - One rank on one GPU ---------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The cuda backend's endpoint: a device, one stream on which everything of
/// the rank is issued, NCCL communicators, a cuBLASLt handle and workspace.
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
  void *stream() const override { return stream_; }

  Status createCommunicator(const std::string &name,
                            const std::vector<int> &members,
                            Communicator *&out) override;
  Status groupStart() override;
  Status groupEnd() override;
  /// Waits for the stream; after the watchdog's time it aborts all
  /// communicators and names the last call issued.
  Status synchronize() override;

  const Nccl &nccl() const { return *nccl_; }
  cudaStream_t cudaStream() const { return stream_; }
  cublasLtHandle_t blas() const { return blas_; }
  void *workspace() const { return workspace_; }
  static constexpr size_t WorkspaceBytes = 32 << 20;

  /// Turns NCCL's result into a status, and notes the call for the watchdog.
  Status issued(ncclResult_t result, const std::string &call);
  bool grouping() const { return grouping_; }

private:
  Status abortAll(Status status);

  int rank_, worldSize_, device_;
  Store &store_;
  WorldOptions options_;
  const Nccl *nccl_ = nullptr;
  cudaStream_t stream_ = nullptr;
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
