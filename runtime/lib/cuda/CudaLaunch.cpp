//===- CudaLaunch.cpp - World::launch on GPUs -----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds out how this process was started, and runs its rank; a process
/// started alone runs every rank as a thread, a GPU each.
///
//===----------------------------------------------------------------------===//

#include "CudaEndpoint.h"

#include <cstdlib>
#include <mutex>
#include <thread>

namespace parc {

namespace {

/// The first of these environment variables that holds a number, or \p none.
int fromEnvironment(std::initializer_list<const char *> names, int none) {
  for (const char *name : names)
    if (const char *text = std::getenv(name)) {
      char *end = nullptr;
      long value = std::strtol(text, &end, 10);
      if (end != text && *end == 0)
        return int(value);
    }
  return none;
}

struct Place {
  int rank, size, local;
};

Place findPlace() {
  return {fromEnvironment(
              {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, -1),
          fromEnvironment({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                           "SLURM_NTASKS"},
                          1),
          fromEnvironment({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                           "MPI_LOCALRANKID", "SLURM_LOCALID"},
                          0)};
}

Status deviceCount(int &count) {
  count = 0;
  PARC_TRY(cuda::cudaStatus(cudaGetDeviceCount(&count), "CUDA devices"));
  return count > 0 ? Status()
                   : Status(Code::DeviceError, "expected a CUDA device, got 0");
}

Status runRank(int rank, int size, int device, cuda::Store &store,
               const std::function<Status(Endpoint &)> &body,
               const WorldOptions &options) {
  cuda::CudaEndpoint endpoint(rank, size, device, store, options);
  Status status = endpoint.open();
  if (status.ok())
    status = body(endpoint);
  if (status.ok())
    return status;
  return Status(status.code(),
                "rank " + std::to_string(rank) + ": " + status.message(),
                status.advice());
}

Status runThreads(int ranks, const std::function<Status(Endpoint &)> &body,
                  const WorldOptions &options) {
  std::unique_ptr<cuda::Store> store = cuda::makeLocalStore();
  std::mutex mutex;
  Status first;
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      Status status = runRank(r, ranks, r, *store, body, options);
      std::lock_guard<std::mutex> lock(mutex);
      first.update(std::move(status));
    });
  for (std::thread &thread : threads)
    thread.join();
  return first;
}

} // namespace

Status World::launch(int ranks, const std::function<Status(Endpoint &)> &body,
                     const WorldOptions &options) {
  Place place = findPlace();
  int devices = 0;
  PARC_TRY(deviceCount(devices));
  if (place.rank < 0 || (place.size == 1 && ranks > 1)) {
    if (devices < ranks)
      return Status(Code::InvalidArgument,
                    "expected " + std::to_string(ranks) +
                        " GPUs, one a rank, got " + std::to_string(devices),
                    "start one process a rank with torchrun, mpirun or srun");
    return runThreads(ranks, body, options);
  }
  if (place.size != ranks)
    return Status(Code::InvalidArgument,
                  "expected " + std::to_string(ranks) +
                      " processes, one a rank of the mesh, got " +
                      std::to_string(place.size));
  const char *host = std::getenv("MASTER_ADDR");
  int port = fromEnvironment({"PARC_PORT"}, 0);
  if (port == 0) // torchrun itself listens on MASTER_PORT
    port = fromEnvironment({"MASTER_PORT"}, 29554) + 1;
  std::unique_ptr<cuda::Store> store;
  PARC_TRY(cuda::makeTcpStore(host ? host : "127.0.0.1", port, place.rank == 0,
                              store));
  return runRank(place.rank, ranks, place.local % devices, *store, body,
                 options);
}

} // namespace parc
