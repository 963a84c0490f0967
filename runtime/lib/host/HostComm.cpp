//===- HostComm.cpp - Endpoints and communicators of the host backend -----===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Turns the public calls into posts to the shared world, and starts a thread
/// a rank.
///
//===----------------------------------------------------------------------===//

#include "HostWorld.h"

#include <algorithm>
#include <thread>

namespace parc {

Communicator::~Communicator() = default;
Endpoint::~Endpoint() = default;

namespace host {
namespace {

class HostEndpoint;

class HostCommunicator final : public Communicator {
public:
  HostCommunicator(HostEndpoint &endpoint, std::shared_ptr<Group> group,
                   int index)
      : Communicator(group->name, group->members, index), endpoint(endpoint),
        group(std::move(group)) {}

  Status allReduce(const void *src, void *dst, int64_t count, DType t,
                   ReduceOp op, const char *label) override {
    Call call = make(Kind::allReduce, src, dst, t, label);
    call.count = count;
    call.reduce = op;
    return collective(call);
  }
  Status allGather(const void *src, void *dst, const int64_t *counts, DType t,
                   const char *label) override {
    Call call = make(Kind::allGather, src, dst, t, label);
    call.counts = counts;
    return collective(call);
  }
  Status reduceScatter(const void *src, void *dst, const int64_t *counts,
                       DType t, ReduceOp op, const char *label) override {
    Call call = make(Kind::reduceScatter, src, dst, t, label);
    call.counts = counts;
    call.reduce = op;
    return collective(call);
  }
  Status allToAll(const void *src, const int64_t *sendCounts, void *dst,
                  const int64_t *recvCounts, DType t,
                  const char *label) override {
    Call call = make(Kind::allToAll, src, dst, t, label);
    call.counts = sendCounts;
    call.recvCounts = recvCounts;
    return collective(call);
  }
  Status broadcast(void *data, int64_t count, DType t, int root,
                   const char *label) override {
    Call call = make(Kind::broadcast, nullptr, data, t, label);
    call.count = count;
    call.peer = root;
    PARC_TRY(checkPeer(call));
    return collective(call);
  }
  Status send(const void *src, int64_t count, DType t, int peer,
              const char *label) override {
    Call call = make(Kind::send, src, nullptr, t, label);
    call.count = count;
    call.peer = peer;
    return pointToPoint(call);
  }
  Status recv(void *dst, int64_t count, DType t, int peer,
              const char *label) override {
    Call call = make(Kind::recv, nullptr, dst, t, label);
    call.count = count;
    call.peer = peer;
    return pointToPoint(call);
  }

private:
  Call make(Kind kind, const void *src, void *dst, DType t, const char *label) {
    Call call;
    call.kind = kind;
    call.type = t;
    call.src = src;
    call.dst = dst;
    call.label = label ? label : "";
    call.group = group.get();
    call.rank = members()[index()];
    call.index = index();
    return call;
  }
  Status checkPeer(const Call &call) const {
    if (call.peer >= 0 && call.peer < size())
      return Status();
    return Status(Code::InvalidArgument,
                  std::string(nameOf(call.kind)) + " '" + call.label + "' on " +
                      name() + ": expected a member from 0 to " +
                      std::to_string(size() - 1) + ", got " +
                      std::to_string(call.peer));
  }
  Status checkCounts(const Call &call) const;
  Status collective(Call &call);
  Status pointToPoint(Call &call);

  HostEndpoint &endpoint;
  std::shared_ptr<Group> group;
};

class HostEndpoint final : public Endpoint {
public:
  HostEndpoint(HostWorld &world, int rank) : world(world), self(rank) {}

  int rank() const override { return self; }
  int worldSize() const override { return world.size(); }
  Backend backend() const override { return Backend::host; }
  Status synchronize() override { return Status(); }

  Status createCommunicator(const std::string &name,
                            const std::vector<int> &members,
                            Communicator *&out) override;
  Status groupStart() override;
  Status groupEnd() override;

  bool grouping() const { return inGroup; }
  void defer(const Call &call) { grouped.push_back(call); }
  Status submit(Call &call) {
    std::vector<Call> calls = {call};
    return world.submit(self, calls);
  }

private:
  HostWorld &world;
  int self;
  bool inGroup = false;
  std::vector<Call> grouped;
  std::vector<std::unique_ptr<HostCommunicator>> communicators;
};

Status HostCommunicator::checkCounts(const Call &call) const {
  int64_t least = call.count;
  for (int i = 0; i < size(); ++i) {
    if (call.counts)
      least = std::min(least, call.counts[i]);
    if (call.recvCounts)
      least = std::min(least, call.recvCounts[i]);
  }
  if (least >= 0)
    return Status();
  return Status(Code::InvalidArgument, describe(call) +
                                           ": expected counts of at least 0, "
                                           "got " +
                                           std::to_string(least));
}

Status HostCommunicator::collective(Call &call) {
  PARC_TRY(checkCounts(call));
  if (!endpoint.grouping())
    return endpoint.submit(call);
  endpoint.defer(call);
  return Status();
}

Status HostCommunicator::pointToPoint(Call &call) {
  PARC_TRY(checkPeer(call));
  PARC_TRY(checkCounts(call));
  if (!endpoint.grouping())
    return endpoint.submit(call);
  endpoint.defer(call);
  return Status();
}

Status HostEndpoint::groupStart() {
  if (inGroup)
    return Status(Code::InvalidArgument, "groupStart inside a group",
                  "end the group first");
  inGroup = true;
  return Status();
}

Status HostEndpoint::groupEnd() {
  if (!inGroup)
    return Status(Code::InvalidArgument, "groupEnd without a group");
  inGroup = false;
  Status status = world.submit(self, grouped);
  grouped.clear();
  return status;
}

Status HostEndpoint::createCommunicator(const std::string &name,
                                        const std::vector<int> &members,
                                        Communicator *&out) {
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  std::string who = "communicator '" + name + "': ";
  if (sorted.empty() || sorted.front() < 0 || sorted.back() >= world.size())
    return Status(Code::InvalidArgument,
                  who + "expected members from 0 to " +
                      std::to_string(world.size() - 1) + ", got " +
                      (sorted.empty()       ? "none"
                       : sorted.front() < 0 ? std::to_string(sorted.front())
                                            : std::to_string(sorted.back())));
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    return Status(Code::InvalidArgument, who +
                                             "expected each member once, got "
                                             "rank " +
                                             std::to_string(*twice) + " twice");
  auto found = std::find(members.begin(), members.end(), self);
  if (found == members.end())
    return Status(Code::InvalidArgument,
                  who + "rank " + std::to_string(self) +
                      " creates it without being a member");
  std::shared_ptr<Group> group;
  PARC_TRY(world.create(self, name, members, group));
  communicators.push_back(std::make_unique<HostCommunicator>(
      *this, std::move(group), int(found - members.begin())));
  out = communicators.back().get();
  return Status();
}

} // namespace
} // namespace host

Status World::run(int ranks, const std::function<Status(Endpoint &)> &body,
                  const WorldOptions &options) {
  if (ranks < 1)
    return Status(Code::InvalidArgument,
                  "expected at least 1 rank, got " + std::to_string(ranks));
  host::HostWorld world(ranks, options);
  std::vector<std::unique_ptr<host::HostEndpoint>> endpoints;
  for (int r = 0; r < ranks; ++r)
    endpoints.push_back(std::make_unique<host::HostEndpoint>(world, r));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { world.finish(r, body(*endpoints[r])); });
  for (std::thread &thread : threads)
    thread.join();
  return world.result();
}

} // namespace parc
