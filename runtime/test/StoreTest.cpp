//===- StoreTest.cpp - Start-up exchange of the cuda backend --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The key-value store within a process and over TCP; needs no device.
///
//===----------------------------------------------------------------------===//

#include "../lib/cuda/Store.h"

#include <gtest/gtest.h>
#include <thread>

using namespace parc;
using namespace parc::cuda;

namespace {

/// One side waits before the other sets; then again when it is there.
void exchange(Store &a, Store &b) {
  std::string early, late;
  Status first;
  std::thread waiter([&] { first = b.get("tp", early, 20); });
  std::string id("\0\1binary\xff", 9);
  Status set = a.set("tp", id);
  waiter.join();
  EXPECT_TRUE(set.ok()) << set.text();
  EXPECT_TRUE(first.ok()) << first.text();
  Status second = b.get("tp", late, 20);
  EXPECT_TRUE(second.ok()) << second.text();
  EXPECT_EQ(early, id);
  EXPECT_EQ(late, id);
  Status never = b.get("dp", late, 0.1);
  EXPECT_EQ(never.code(), Code::Timeout);
}

TEST(Store, Local) {
  std::unique_ptr<Store> store = makeLocalStore();
  exchange(*store, *store);
}

TEST(Store, Tcp) {
  std::unique_ptr<Store> server, client;
  Status status;
  int port = 41873;
  for (int tries = 0; tries < 20; ++tries, ++port) {
    status = makeTcpStore("127.0.0.1", port, true, server);
    if (status.ok())
      break;
  }
  ASSERT_TRUE(status.ok()) << status.text();
  status = makeTcpStore("127.0.0.1", port, false, client);
  ASSERT_TRUE(status.ok()) << status.text();
  exchange(*server, *client);
}

} // namespace
