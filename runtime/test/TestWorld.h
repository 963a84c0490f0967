//===- TestWorld.h - Harness shared by the conformance tests ----*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs a body on every rank of a backend, and moves test data to and from
/// the rank's memory. A backend without its device is skipped, and so shown as
/// not run.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TEST_TESTWORLD_H
#define PARC_TEST_TESTWORLD_H

#include "parc/rank.h"

#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#ifdef PARC_CUDA
#include <cuda_runtime.h>
#endif

namespace parc {
namespace test {

#ifdef PARC_CUDA
/// Devices that CUDA sees here; 0 without a driver.
inline int cudaDevices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}
#endif

/// Whether \p ranks ranks of this backend can run here.
inline bool available(Backend backend, int ranks) {
  if (backend == Backend::host)
    return true;
#ifdef PARC_CUDA
  return cudaDevices() >= ranks;
#else
  return false;
#endif
}

/// The backends that this build has: a suite lists no case of another.
inline std::vector<Backend> backends() {
#ifdef PARC_CUDA
  return {Backend::host, Backend::cuda};
#else
  return {Backend::host};
#endif
}

inline Status runWorld(Backend backend, int ranks,
                       const std::function<Status(Rank &)> &body,
                       double timeout = 5) {
  WorldOptions options;
  options.timeoutSeconds = timeout;
  auto onRank = [&](Endpoint &endpoint) {
    Rank r(endpoint, Mesh{{"x"}, {ranks}});
    Status status = body(r);
    status.update(r.status());
    return status;
  };
  return backend == Backend::host ? World::run(ranks, onRank, options)
                                  : World::launch(ranks, onRank, options);
}

template <class T> Tensor<T> upload(Rank &r, const std::vector<T> &values) {
  Tensor<T> t(r.pool(), {int64_t(values.size())});
  r.toDevice(t.data(), values.data(), t.bytes());
  return t;
}

template <class T> std::vector<T> download(Rank &r, const Tensor<T> &t) {
  std::vector<T> values(size_t(t.size()));
  r.toHost(values.data(), t.data(), t.bytes());
  r.synchronize();
  return values;
}

inline std::vector<int> everyone(int ranks) {
  std::vector<int> members;
  for (int i = 0; i < ranks; ++i)
    members.push_back(i);
  return members;
}

/// A small number that every type holds exactly, different by rank and place.
template <class T> T sample(int rank, int64_t i) {
  int v = int((rank * 7 + i * 3) % 11);
  return T(v);
}
template <class T> std::vector<T> samples(int rank, int64_t n) {
  std::vector<T> values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(sample<T>(rank, i));
  return values;
}

/// The sequential reduction in rank order.
template <class T> T reduced(ReduceOp op, int ranks, int64_t i) {
  T acc = sample<T>(0, i);
  for (int r = 1; r < ranks; ++r) {
    T v = sample<T>(r, i);
    acc = op == ReduceOp::sum   ? T(acc + v)
          : op == ReduceOp::max ? (acc > v ? acc : v)
                                : (acc < v ? acc : v);
  }
  return acc;
}

template <class T> bool same(const std::vector<T> &a, const std::vector<T> &b) {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i]))
      return false;
  return true;
}

/// Reports a failed expectation on a rank, as a status that ends the run.
inline Status expect(bool condition, const std::string &what) {
  return condition ? Status() : Status(Code::InvalidArgument, "test: " + what);
}

} // namespace test
} // namespace parc

#endif // PARC_TEST_TESTWORLD_H
