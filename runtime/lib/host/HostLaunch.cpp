//===- HostLaunch.cpp - World::launch without a device --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A library built for the host launches threads.
///
//===----------------------------------------------------------------------===//

#include "parc/comm.h"

namespace parc {

Status World::launch(int ranks, const std::function<Status(Endpoint &)> &body,
                     const WorldOptions &options) {
  return run(ranks, body, options);
}

} // namespace parc
