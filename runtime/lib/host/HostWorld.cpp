//===- HostWorld.cpp - Matching, waiting, deadlock ------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Matches calls, blocks ranks, and finds out when nothing can move any more.
///
//===----------------------------------------------------------------------===//

#include "HostWorld.h"

#include <algorithm>
#include <cstdio>

namespace parc {
namespace host {

HostWorld::HostWorld(int n, const WorldOptions &options)
    : ranks(n), lastProgress(std::chrono::steady_clock::now()),
      timeout(options.timeoutSeconds) {}

Status HostWorld::stopped() const {
  return Status(Code::Stopped,
                "stopped because another rank failed: " + failure.message());
}

void HostWorld::fail(Status status) {
  if (!failure.ok())
    return;
  failure = std::move(status);
  for (RankState &state : ranks)
    state.wake.notify_all();
}

void HostWorld::finish(int rank, const Status &status) {
  std::lock_guard<std::mutex> lock(mutex);
  ranks[rank].finished = true;
  lastProgress = std::chrono::steady_clock::now();
  if (!status.ok() && status.code() != Code::Stopped)
    fail(Status(status.code(),
                "rank " + std::to_string(rank) + ": " + status.message(),
                status.advice()));
  for (int other = 0; other < size(); ++other)
    if (ranks[other].blocked)
      checkFinished(other);
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

Status HostWorld::postPointToPoint(Call &call, std::vector<Match> &ready) {
  Group &group = *call.group;
  bool sending = call.kind == Kind::send;
  std::list<Call *> &partners = sending ? group.recvs : group.sends;
  for (auto it = partners.begin(); it != partners.end(); ++it) {
    Call *other = *it;
    if (other->index != call.peer || other->peer != call.index)
      continue;
    PARC_TRY(sending ? checkPair(call, *other) : checkPair(*other, call));
    partners.erase(it);
    call.matched = other->matched = true;
    Match match = {sending ? &call : other, sending ? other : &call};
    ready.push_back(std::move(match));
    return Status();
  }
  (sending ? group.sends : group.recvs).push_back(&call);
  return Status();
}

Status HostWorld::post(Call &call, std::vector<Match> &ready) {
  if (call.kind == Kind::send || call.kind == Kind::recv)
    return postPointToPoint(call, ready);
  return join(call, ready);
}

/// The calls of a group on one communicator meet one after the other.
Status HostWorld::join(Call &call, std::vector<Match> &ready) {
  Group &group = *call.group;
  if (group.meeting[call.index]) {
    group.queued.push_back(&call);
    return Status();
  }
  group.meeting[call.index] = &call;
  if (++group.arrived < int(group.members.size()))
    return Status();
  PARC_TRY(checkMeeting(group));
  for (Call *member : group.meeting)
    member->matched = true;
  ready.push_back(group.meeting);
  std::fill(group.meeting.begin(), group.meeting.end(), nullptr);
  group.arrived = 0;
  std::list<Call *> queued;
  queued.swap(group.queued);
  for (Call *next : queued)
    PARC_TRY(join(*next, ready));
  return Status();
}

Status HostWorld::submit(int rank, std::vector<Call> &calls) {
  std::vector<Call *> pointers;
  for (Call &call : calls)
    pointers.push_back(&call);
  return run(rank, std::move(pointers));
}

Status HostWorld::run(int rank, std::vector<Call *> calls) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!failure.ok())
    return stopped();
  lastProgress = std::chrono::steady_clock::now();
  RankState &self = ranks[rank];
  self.posted = std::move(calls);
  std::vector<Match> ready;
  for (Call *call : self.posted) {
    Status posted = post(*call, ready);
    if (!posted.ok()) {
      fail(std::move(posted));
      break;
    }
  }
  // Matches are carried out even when the world has failed meanwhile: the
  // partners wait for them before they give up their buffers.
  lock.unlock();
  for (const Match &match : ready)
    execute(match);
  lock.lock();
  for (const Match &match : ready)
    for (Call *call : match) {
      call->done = true;
      ranks[call->rank].wake.notify_all();
    }
  Status result = wait(lock, rank);
  self.posted.clear();
  return result;
}

Status HostWorld::create(int rank, const std::string &name,
                         const std::vector<int> &members,
                         std::shared_ptr<Group> &out) {
  Group *meeting = nullptr;
  int index =
      int(std::find(members.begin(), members.end(), rank) - members.begin());
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!failure.ok())
      return stopped();
    for (Group &group : creations)
      if (!meeting && group.name == name && group.members == members &&
          !group.joined[index])
        meeting = &group;
    if (!meeting) {
      creations.emplace_back();
      meeting = &creations.back();
      meeting->name = name;
      meeting->members = members;
      meeting->meeting.resize(members.size());
      meeting->joined.resize(members.size());
      meeting->created = std::make_shared<Group>();
      meeting->created->name = name;
      meeting->created->members = members;
      meeting->created->meeting.resize(members.size());
    }
    meeting->joined[index] = true;
    out = meeting->created;
  }
  Call call;
  call.kind = Kind::create;
  call.label = name.c_str();
  call.group = meeting;
  call.rank = rank;
  call.index = index;
  return run(rank, {&call});
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

Status HostWorld::wait(std::unique_lock<std::mutex> &lock, int rank) {
  RankState &self = ranks[rank];
  auto finished = [&] {
    // A matched call is being carried out by its partner: its buffers must
    // stay, whatever has failed.
    return std::all_of(self.posted.begin(), self.posted.end(), [&](Call *c) {
      return c->done || (!failure.ok() && !c->matched);
    });
  };
  if (!finished()) {
    self.blocked = true;
    checkFinished(rank);
    checkCycle(rank);
  }
  while (!finished()) {
    auto limit = lastProgress +
                 std::chrono::duration_cast<std::chrono::nanoseconds>(timeout);
    self.wake.wait_until(lock, limit);
    auto now = std::chrono::steady_clock::now();
    auto quiet = now - lastProgress;
    if (quiet < timeout || finished())
      continue;
    lastProgress = now;
    std::string text;
    for (int r = 0; r < size(); ++r)
      text += "\n  " + waitText(r);
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%g", timeout.count());
    fail(Status(Code::Timeout,
                std::string("no rank made progress for ") + seconds +
                    " s:" + text,
                "raise the watchdog's timeout if a rank only computes longer"));
  }
  self.blocked = false;
  for (Call *call : self.posted)
    if (!call->done)
      return stopped();
  return Status();
}

std::vector<std::pair<int, Call *>> HostWorld::waitsFor(int rank) const {
  std::vector<std::pair<int, Call *>> targets;
  for (Call *call : ranks[rank].posted) {
    if (call->matched)
      continue;
    const Group &group = *call->group;
    if (call->kind == Kind::send || call->kind == Kind::recv) {
      targets.emplace_back(group.members[call->peer], call);
      continue;
    }
    if (group.meeting[call->index] != call)
      continue; // behind another call of this rank
    for (size_t i = 0; i < group.members.size(); ++i)
      if (!group.meeting[i])
        targets.emplace_back(group.members[i], call);
  }
  return targets;
}

/// Breadth first from \p rank back to itself over blocked ranks: the shortest
/// cycle that the newly blocked rank closes.
void HostWorld::checkCycle(int rank) {
  if (!failure.ok())
    return;
  std::vector<int> from(size(), -1);
  std::deque<int> queue = {rank};
  while (!queue.empty()) {
    int r = queue.front();
    queue.pop_front();
    for (auto &[target, call] : waitsFor(r)) {
      if (target == rank) {
        std::vector<int> cycle = {r};
        while (cycle.back() != rank)
          cycle.push_back(from[cycle.back()]);
        std::reverse(cycle.begin(), cycle.end());
        // Begin at the lowest rank, so that the text does not depend on who
        // came last.
        std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()),
                    cycle.end());
        std::string text = "deadlock:";
        for (size_t i = 0; i < cycle.size(); ++i)
          text += "\n  " + waitText(cycle[i], cycle[(i + 1) % cycle.size()]);
        return fail(Status(Code::Deadlock, text,
                           "sends are not buffered: issue opposing sends and "
                           "receives in one group, and collectives in the same "
                           "order on all members"));
      }
      if (from[target] < 0 && ranks[target].blocked) {
        from[target] = r;
        queue.push_back(target);
      }
    }
  }
}

void HostWorld::checkFinished(int rank) {
  for (auto &[target, call] : waitsFor(rank))
    if (ranks[target].finished)
      return fail(Status(Code::RankFailed,
                         "rank " + std::to_string(rank) + " (" +
                             describe(*call) + ") waits for rank " +
                             std::to_string(target) + ", which has returned",
                         "every member of a communicator makes the same calls "
                         "in the same order"));
}

std::string HostWorld::waitText(int rank, int target) const {
  for (auto &[other, call] : waitsFor(rank))
    if (other == target)
      return "rank " + std::to_string(rank) + " (" + describe(*call) +
             ") waits for rank " + std::to_string(target);
  return "rank " + std::to_string(rank);
}

std::string HostWorld::waitText(int rank) const {
  std::string name = "rank " + std::to_string(rank);
  if (ranks[rank].finished)
    return name + " has returned";
  if (!ranks[rank].blocked)
    return name + " is in no call";
  auto targets = waitsFor(rank);
  if (targets.empty())
    return name + " is completing a call";
  std::string text = name + " (" + describe(*targets[0].second) + ") waits for";
  const char *separator = " rank ";
  for (auto &[target, call] : targets) {
    if (call != targets[0].second)
      continue;
    text += separator + std::to_string(target);
    separator = ", ";
  }
  return text;
}

} // namespace host
} // namespace parc
