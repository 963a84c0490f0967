//===- Nccl.cpp - NCCL, loaded at run time --------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Looks up every function once.
///
//===----------------------------------------------------------------------===//

#include "Nccl.h"

#include <dlfcn.h>

namespace parc {
namespace cuda {

namespace {

struct Loaded {
  Nccl functions = {};
  Status status;

  Loaded() {
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      library = dlopen("libnccl.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char *why = dlerror();
      status = Status(Code::DeviceError,
                      std::string("expected NCCL's libnccl.so.2, got: ") +
                          (why ? why : "nothing"),
                      "install NCCL 2, or add its folder to LD_LIBRARY_PATH");
      return;
    }
    find(library, "ncclGetUniqueId", functions.getUniqueId);
    find(library, "ncclCommInitRank", functions.commInitRank);
    find(library, "ncclCommDestroy", functions.commDestroy);
    find(library, "ncclCommAbort", functions.commAbort);
    find(library, "ncclCommGetAsyncError", functions.commGetAsyncError);
    find(library, "ncclGetErrorString", functions.getErrorString);
    find(library, "ncclAllReduce", functions.allReduce);
    find(library, "ncclAllGather", functions.allGather);
    find(library, "ncclReduceScatter", functions.reduceScatter);
    find(library, "ncclReduce", functions.reduce);
    find(library, "ncclBroadcast", functions.broadcast);
    find(library, "ncclSend", functions.send);
    find(library, "ncclRecv", functions.recv);
    find(library, "ncclGroupStart", functions.groupStart);
    find(library, "ncclGroupEnd", functions.groupEnd);
  }

  template <class F> void find(void *library, const char *name, F &f) {
    f = reinterpret_cast<F>(dlsym(library, name));
    if (!f)
      status.update(Status(Code::DeviceError,
                           std::string("NCCL has no function ") + name,
                           "NCCL 2.7 or later is needed"));
  }
};

} // namespace

Status loadNccl(const Nccl *&out) {
  static const Loaded loaded;
  out = &loaded.functions;
  return loaded.status;
}

} // namespace cuda
} // namespace parc
