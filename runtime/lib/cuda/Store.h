//===- Store.h - How ranks exchange NCCL's unique ids -----------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A small key-value store: within one process, or over TCP with rank 0 as
/// the server. Values are set once and read by those who wait for them.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_CUDA_STORE_H
#define PARC_LIB_CUDA_STORE_H

#include "parc/status.h"

#include <memory>
#include <string>

namespace parc {
namespace cuda {

class Store {
public:
  virtual ~Store();
  virtual Status set(const std::string &key, const std::string &value) = 0;
  /// Waits until the key is set, or \p seconds have passed.
  virtual Status get(const std::string &key, std::string &value,
                     double seconds) = 0;
};

/// For ranks that are threads of this process.
std::unique_ptr<Store> makeLocalStore();

/// For ranks that are processes: rank 0 listens on \p port, the others reach
/// it at \p host.
Status makeTcpStore(const std::string &host, int port, bool server,
                    std::unique_ptr<Store> &out);

} // namespace cuda
} // namespace parc

#endif // PARC_LIB_CUDA_STORE_H
