//===- HostWorld.h - State of the threads-as-ranks backend ------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The shared state of a host world. One mutex guards it all; data is copied
/// outside the mutex by whichever rank completed a match, while its partners
/// wait. A rank is blocked on all of its unmatched calls together, so any
/// cycle in "waits for" is a proved deadlock, found when it closes.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_HOST_HOSTWORLD_H
#define PARC_LIB_HOST_HOSTWORLD_H

#include "parc/comm.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>

namespace parc {
namespace host {

enum class Kind : uint8_t {
  allReduce,
  allGather,
  reduceScatter,
  allToAll,
  broadcast,
  send,
  recv,
  create
};

const char *nameOf(Kind kind);

struct Group;

/// One rank's side of one call.
struct Call {
  Kind kind = Kind::send;
  DType type = DType::f32;
  ReduceOp reduce = ReduceOp::sum;
  const void *src = nullptr;
  void *dst = nullptr;
  int64_t count = 0;                   ///< Elements; unused with counts.
  const int64_t *counts = nullptr;     ///< One a member: parts, or sent.
  const int64_t *recvCounts = nullptr; ///< allToAll only.
  int peer = -1;                       ///< Member: partner or root.
  const char *label = "";
  Group *group = nullptr;
  int rank = -1;  ///< Global.
  int index = -1; ///< Member.
  bool matched = false, done = false;
};

/// What the members of one communicator share, or of one being created.
struct Group {
  std::string name;
  std::vector<int> members;
  std::vector<Call *> meeting; ///< By member; null: not arrived.
  int arrived = 0;
  /// Of members that have another call in the meeting, oldest first.
  std::list<Call *> queued;
  std::list<Call *> sends, recvs; ///< Unmatched, oldest first.
  std::shared_ptr<Group> created; ///< Creations: what comes of it,
  std::vector<bool> joined;       ///< and who has begun to join, by member.
};

/// Calls that found each other: a collective's members, or a send and a recv.
using Match = std::vector<Call *>;

/// Moves the data of a match. Runs outside the mutex.
void execute(const Match &match);

/// Why the members of a full meeting cannot proceed, if so.
Status checkMeeting(const Group &group);
/// Why a send and a receive cannot proceed, if so.
Status checkPair(const Call &send, const Call &recv);

/// "all_reduce 'loss' on tp", "send 'F mb 1' to rank 1 on pp".
std::string describe(const Call &call);

class HostWorld {
public:
  HostWorld(int ranks, const WorldOptions &options);

  int size() const { return int(ranks.size()); }

  /// Posts the calls of one rank together and waits until all are done.
  Status submit(int rank, std::vector<Call> &calls);
  Status create(int rank, const std::string &name,
                const std::vector<int> &members, std::shared_ptr<Group> &out);

  /// A rank's body returned.
  void finish(int rank, const Status &status);
  const Status &result() const { return failure; }

private:
  struct RankState {
    std::condition_variable wake;
    std::vector<Call *> posted; ///< Until the rank leaves submit.
    bool blocked = false, finished = false;
  };

  Status post(Call &call, std::vector<Match> &ready);
  Status postPointToPoint(Call &call, std::vector<Match> &ready);
  Status join(Call &call, std::vector<Match> &ready);
  Status wait(std::unique_lock<std::mutex> &lock, int rank);
  Status run(int rank, std::vector<Call *> calls);

  void fail(Status status);
  Status stopped() const;
  std::vector<std::pair<int, Call *>> waitsFor(int rank) const;
  void checkCycle(int rank);
  void checkFinished(int rank);
  std::string waitText(int rank) const;
  std::string waitText(int rank, int target) const;

  mutable std::mutex mutex;
  std::deque<RankState> ranks;
  std::list<Group> creations;
  Status failure;
  std::chrono::steady_clock::time_point lastProgress;
  std::chrono::duration<double> timeout;
};

} // namespace host
} // namespace parc

#endif // PARC_LIB_HOST_HOSTWORLD_H
