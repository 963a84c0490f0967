//===- Nccl.h - NCCL, loaded at run time ------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The functions of NCCL that the cuda backend calls, found by dlopen, so that
/// programs link and start where the library is absent.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_CUDA_NCCL_H
#define PARC_LIB_CUDA_NCCL_H

#include "parc/comm.h"

#include <nccl.h>

namespace parc {
namespace cuda {

struct Nccl {
  decltype(&::ncclGetUniqueId) getUniqueId;
  decltype(&::ncclCommInitRank) commInitRank;
  decltype(&::ncclCommDestroy) commDestroy;
  decltype(&::ncclCommAbort) commAbort;
  decltype(&::ncclCommGetAsyncError) commGetAsyncError;
  decltype(&::ncclGetErrorString) getErrorString;
  decltype(&::ncclAllReduce) allReduce;
  decltype(&::ncclAllGather) allGather;
  decltype(&::ncclReduceScatter) reduceScatter;
  decltype(&::ncclReduce) reduce;
  decltype(&::ncclBroadcast) broadcast;
  decltype(&::ncclSend) send;
  decltype(&::ncclRecv) recv;
  decltype(&::ncclGroupStart) groupStart;
  decltype(&::ncclGroupEnd) groupEnd;
};

/// The loaded library, or why there is none. Loads once.
Status loadNccl(const Nccl *&out);

} // namespace cuda
} // namespace parc

#endif // PARC_LIB_CUDA_NCCL_H
