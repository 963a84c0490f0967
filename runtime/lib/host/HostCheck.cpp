//===- HostCheck.cpp - Whether calls agree --------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Compares what the members of a call said, and names the first difference.
///
//===----------------------------------------------------------------------===//

#include "HostWorld.h"

#include <cstring>

namespace parc {
namespace host {

const char *nameOf(Kind kind) {
  static const char *const names[] = {
      "all_reduce", "all_gather", "reduce_scatter", "all_to_all",
      "broadcast",  "send",       "recv",           "create"};
  return names[int(kind)];
}

static std::string membersText(const std::vector<int> &members) {
  std::string text = "{";
  for (size_t i = 0; i < members.size(); ++i)
    text += (i ? "," : "") + std::to_string(members[i]);
  return text + "}";
}

std::string describe(const Call &call) {
  const Group &group = *call.group;
  std::string text = nameOf(call.kind);
  if (call.kind == Kind::create)
    return text + " '" + group.name + "' " + membersText(group.members);
  if (call.label && *call.label)
    text += std::string(" '") + call.label + "'";
  if (call.kind == Kind::send)
    text += " to rank " + std::to_string(group.members[call.peer]);
  if (call.kind == Kind::recv)
    text += " from rank " + std::to_string(group.members[call.peer]);
  return text + " on " + group.name;
}

static Status disagree(const Call &a, const Call &b, const std::string &field,
                       const std::string &x, const std::string &y) {
  return Status(Code::Mismatch,
                "ranks " + std::to_string(a.rank) + " and " +
                    std::to_string(b.rank) + " disagree on " + field +
                    ": expected " + x + ", as rank " + std::to_string(a.rank) +
                    " (" + describe(a) + "), got " + y + " on rank " +
                    std::to_string(b.rank) + " (" + describe(b) + ")",
                "every member of a communicator makes the same calls in the "
                "same order, with the same types and counts");
}

static Status compareCounts(const Call &a, const Call &b, int members) {
  if (!a.counts || !b.counts) {
    if (a.count != b.count)
      return disagree(a, b, "the count", std::to_string(a.count),
                      std::to_string(b.count));
    return Status();
  }
  for (int i = 0; i < members; ++i)
    if (a.counts[i] != b.counts[i])
      return disagree(a, b, "the count of member " + std::to_string(i),
                      std::to_string(a.counts[i]), std::to_string(b.counts[i]));
  return Status();
}

static Status checkExchange(const Group &group) {
  int n = int(group.members.size());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      const Call &from = *group.meeting[i], &to = *group.meeting[j];
      if (from.counts[j] != to.recvCounts[i])
        return disagree(from, to,
                        "the count from rank " + std::to_string(from.rank) +
                            " to rank " + std::to_string(to.rank),
                        std::to_string(from.counts[j]),
                        std::to_string(to.recvCounts[i]));
    }
  return Status();
}

Status checkMeeting(const Group &group) {
  const Call &a = *group.meeting[0];
  for (const Call *other : group.meeting) {
    const Call &b = *other;
    if (a.kind != b.kind)
      return disagree(a, b, "the call", nameOf(a.kind), nameOf(b.kind));
    if (a.kind == Kind::create)
      continue;
    // On a device this would go through, and add up what does not belong
    // together.
    if (std::strcmp(a.label, b.label) != 0)
      return disagree(a, b, "what is sent", std::string("'") + a.label + "'",
                      std::string("'") + b.label + "'");
    if (a.type != b.type)
      return disagree(a, b, "the dtype", nameOf(a.type), nameOf(b.type));
    if (a.reduce != b.reduce)
      return disagree(a, b, "the reduction", nameOf(a.reduce),
                      nameOf(b.reduce));
    if (a.peer != b.peer)
      return disagree(a, b, "the root", "member " + std::to_string(a.peer),
                      "member " + std::to_string(b.peer));
    if (a.kind != Kind::allToAll)
      PARC_TRY(compareCounts(a, b, int(group.members.size())));
  }
  return a.kind == Kind::allToAll ? checkExchange(group) : Status();
}

Status checkPair(const Call &send, const Call &recv) {
  if (send.type != recv.type)
    return disagree(send, recv, "the dtype", nameOf(send.type),
                    nameOf(recv.type));
  if (send.count != recv.count)
    return disagree(send, recv, "the count", std::to_string(send.count),
                    std::to_string(recv.count));
  return Status();
}

} // namespace host
} // namespace parc
