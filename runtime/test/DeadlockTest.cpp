//===- DeadlockTest.cpp - What would hang is named ------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Deadlocks, disagreements, early returns and timeouts of the host backend,
/// by the exact text of their messages.
///
//===----------------------------------------------------------------------===//

#include "TestWorld.h"
#include "parc/value.h"

#include <atomic>
#include <chrono>
#include <thread>

using namespace parc;
using namespace parc::test;

namespace {

constexpr double Short = 0.2;

Status world(int ranks, const std::function<Status(Rank &, Communicator &)> &f,
             double timeout = 5) {
  return runWorld(
      Backend::host, ranks,
      [&](Rank &r) {
        Communicator *c = r.create("tp", everyone(ranks));
        PARC_TRY(r.status());
        return f(r, *c);
      },
      timeout);
}

Status reduce(Communicator &c, float &x, const char *label) {
  return c.allReduce(&x, &x, 1, DType::f32, ReduceOp::sum, label);
}

TEST(Deadlock, OpposingSendsWithoutAGroup) {
  Status s = world(2, [](Rank &r, Communicator &c) {
    float x = 0;
    PARC_TRY(c.send(&x, 1, DType::f32, 1 - r.id(), "F mb 1"));
    return c.recv(&x, 1, DType::f32, 1 - r.id(), "F mb 1");
  });
  EXPECT_EQ(s.code(), Code::Deadlock);
  EXPECT_EQ(s.message(),
            "deadlock:\n"
            "  rank 0 (send 'F mb 1' to rank 1 on tp) waits for rank 1\n"
            "  rank 1 (send 'F mb 1' to rank 0 on tp) waits for rank 0");
  EXPECT_NE(s.advice().find("one group"), std::string::npos);
}

TEST(Deadlock, SendAgainstCollective) {
  Status s = world(2, [](Rank &r, Communicator &c) {
    float x = 0;
    if (r.id() == 0)
      return c.send(&x, 1, DType::f32, 1, "F mb 1");
    return reduce(c, x, "loss");
  });
  EXPECT_EQ(s.message(),
            "deadlock:\n"
            "  rank 0 (send 'F mb 1' to rank 1 on tp) waits for rank 1\n"
            "  rank 1 (all_reduce 'loss' on tp) waits for rank 0");
}

TEST(Deadlock, ShortestCycleAmongFour) {
  // 2 and 3 are drawn in, but the cycle is between 0 and 1.
  Status s = world(4, [](Rank &r, Communicator &c) {
    float x = 0;
    if (r.id() >= 2)
      return reduce(c, x, "loss");
    return c.recv(&x, 1, DType::f32, 1 - r.id(), "B mb 0");
  });
  EXPECT_EQ(s.message(),
            "deadlock:\n"
            "  rank 0 (recv 'B mb 0' from rank 1 on tp) waits for rank 1\n"
            "  rank 1 (recv 'B mb 0' from rank 0 on tp) waits for rank 0");
}

TEST(Deadlock, CollectivesInDifferentOrder) {
  Status s = runWorld(Backend::host, 2, [](Rank &r) {
    Communicator *a = r.create("tp", {0, 1}), *b = r.create("dp", {0, 1});
    PARC_TRY(r.status());
    float x = 0;
    PARC_TRY(reduce(r.id() ? *b : *a, x, "first"));
    return reduce(r.id() ? *a : *b, x, "second");
  });
  EXPECT_EQ(s.message(),
            "deadlock:\n"
            "  rank 0 (all_reduce 'first' on tp) waits for rank 1\n"
            "  rank 1 (all_reduce 'first' on dp) waits for rank 0");
}

/// What generated code does for a start on a stream.
void start(Rank &r, int stream, Communicator &c, float &x, const char *label) {
  Value<float> value(View<float>(&x, {1}));
  r.begin_stream(stream);
  r.wait(r.all_reduce(value, c, ReduceOp::sum, label));
  r.wait(r.end_stream());
}

TEST(Deadlock, StartsSwappedOnOneRank) {
  Status s = runWorld(Backend::host, 2, [](Rank &r) {
    Communicator *tp = r.create("tp", {0, 1}), *dp = r.create("dp", {0, 1});
    r.create_streams(3);
    PARC_TRY(r.status());
    float x = 0, y = 0;
    if (r.id() == 0) {
      start(r, 1, *tp, x, "layers.attn.o");
      start(r, 2, *dp, y, "q.grad");
    } else {
      start(r, 2, *dp, y, "q.grad");
      start(r, 1, *tp, x, "layers.attn.o");
    }
    return r.status();
  });
  EXPECT_EQ(s.code(), Code::Deadlock);
  EXPECT_EQ(s.message(),
            "deadlock:\n"
            "  rank 0 (all_reduce 'layers.attn.o' on tp) waits for rank 1\n"
            "  rank 1 (all_reduce 'q.grad' on dp) waits for rank 0");
}

/// On one communicator, with one type and count, a swap would be a sum of what
/// does not belong together.
TEST(Deadlock, StartsSwappedOnOneCommunicator) {
  Status s = runWorld(Backend::host, 2, [](Rank &r) {
    Communicator *tp = r.create("tp", {0, 1});
    r.create_streams(3);
    PARC_TRY(r.status());
    float x = 0, y = 0;
    bool first = r.id() == 0;
    start(r, 1, *tp, first ? x : y,
          first ? "layers.attn.o" : "layers.mlp.down");
    start(r, 1, *tp, first ? y : x,
          first ? "layers.mlp.down" : "layers.attn.o");
    return r.status();
  });
  EXPECT_EQ(s.code(), Code::Mismatch);
  EXPECT_EQ(s.message(),
            "ranks 0 and 1 disagree on what is sent: expected 'layers.attn.o', "
            "as rank 0 (all_reduce 'layers.attn.o' on tp), got "
            "'layers.mlp.down' on rank 1 (all_reduce 'layers.mlp.down' on tp)");
}

/// A group on one communicator against one on another, each behind another
/// call of its own group that both share.
TEST(Deadlock, GroupsOfDifferentMembership) {
  Status s = runWorld(Backend::host, 2, [](Rank &r) {
    Communicator *tp = r.create("tp", {0, 1}), *dp = r.create("dp", {0, 1});
    PARC_TRY(r.status());
    float x[3] = {};
    PARC_TRY(r.endpoint().groupStart());
    PARC_TRY(reduce(*tp, x[0], "a"));
    PARC_TRY(reduce(r.id() ? *dp : *tp, x[1], "b"));
    PARC_TRY(r.endpoint().groupEnd());
    return Status();
  });
  EXPECT_EQ(s.message(), "deadlock:\n"
                         "  rank 0 (all_reduce 'b' on tp) waits for rank 1\n"
                         "  rank 1 (all_reduce 'b' on dp) waits for rank 0");
}

TEST(Deadlock, CommunicatorsCreatedInDifferentOrder) {
  Status s = runWorld(Backend::host, 2, [](Rank &r) {
    r.create(r.id() ? "dp" : "tp", {0, 1});
    r.create(r.id() ? "tp" : "dp", {0, 1});
    return r.status();
  });
  EXPECT_EQ(s.message(), "deadlock:\n"
                         "  rank 0 (create 'tp' {0,1}) waits for rank 1\n"
                         "  rank 1 (create 'dp' {0,1}) waits for rank 0");
}

TEST(Deadlock, CommunicatorsOfDifferentMembers) {
  Status s = runWorld(Backend::host, 3, [](Rank &r) {
    if (r.id() == 0)
      r.create("tp", {0, 1});
    else
      r.create("tp", {0, 1, 2});
    return r.status();
  });
  EXPECT_EQ(s.code(), Code::Deadlock);
  EXPECT_NE(s.message().find("create 'tp' {0,1}) waits"), std::string::npos);
  EXPECT_NE(s.message().find("create 'tp' {0,1,2}) waits"), std::string::npos);
}

TEST(Deadlock, SendToItselfOutsideAGroup) {
  Status s = world(1, [](Rank &, Communicator &c) {
    float x = 0;
    return c.send(&x, 1, DType::f32, 0, "self");
  });
  EXPECT_EQ(s.message(),
            "deadlock:\n"
            "  rank 0 (send 'self' to rank 0 on tp) waits for rank 0");
}

struct Disagreement {
  const char *name;
  std::function<Status(int, Communicator &, float *)> call;
  const char *text;
};

class Mismatch : public ::testing::TestWithParam<Disagreement> {};

TEST_P(Mismatch, NamesBothRanksAndTheField) {
  Status s = world(2, [&](Rank &r, Communicator &c) {
    float x[8] = {}, *p = x;
    return GetParam().call(r.id(), c, p);
  });
  EXPECT_EQ(s.code(), Code::Mismatch);
  EXPECT_NE(s.message().find("ranks 0 and 1 disagree on"), std::string::npos)
      << s.text();
  EXPECT_NE(s.message().find(GetParam().text), std::string::npos) << s.text();
}

INSTANTIATE_TEST_SUITE_P(
    Fields, Mismatch,
    ::testing::Values(
        Disagreement{"kind",
                     [](int r, Communicator &c, float *x) {
                       int64_t n[] = {1, 1};
                       return r ? c.allGather(x, x + 4, n, DType::f32, "g")
                                : c.allReduce(x, x, 1, DType::f32,
                                              ReduceOp::sum, "a");
                     },
                     "the call: expected all_reduce, as rank 0 (all_reduce "
                     "'a' on tp), got all_gather on rank 1"},
        Disagreement{"dtype",
                     [](int r, Communicator &c, float *x) {
                       return c.allReduce(x, x, 1, r ? DType::i32 : DType::f32,
                                          ReduceOp::sum, "a");
                     },
                     "the dtype: expected f32, as rank 0"},
        Disagreement{"count",
                     [](int r, Communicator &c, float *x) {
                       return c.allReduce(x, x, 1 + r, DType::f32,
                                          ReduceOp::sum, "a");
                     },
                     "the count: expected 1, as rank 0"},
        Disagreement{"counts",
                     [](int r, Communicator &c, float *x) {
                       int64_t n[] = {1, 1 + r};
                       return c.allGather(x, x + 4, n, DType::f32, "g");
                     },
                     "the count of member 1: expected 1, as rank 0"},
        Disagreement{"reduction",
                     [](int r, Communicator &c, float *x) {
                       return c.allReduce(x, x, 1, DType::f32,
                                          r ? ReduceOp::max : ReduceOp::sum,
                                          "a");
                     },
                     "the reduction: expected sum, as rank 0"},
        Disagreement{"root",
                     [](int r, Communicator &c, float *x) {
                       return c.broadcast(x, 1, DType::f32, r, "b");
                     },
                     "the root: expected member 0, as rank 0"},
        Disagreement{"exchange",
                     [](int r, Communicator &c, float *x) {
                       int64_t out[] = {1, 1}, in[] = {1, 1 + r};
                       in[0] = r ? 2 : 1;
                       return c.allToAll(x, out, x + 4, in, DType::f32, "x");
                     },
                     "the count from rank 0 to rank 1: expected 1"},
        Disagreement{"send",
                     [](int r, Communicator &c, float *x) {
                       return r ? c.recv(x, 3, DType::f32, 0, "p")
                                : c.send(x, 2, DType::f32, 1, "p");
                     },
                     "the count: expected 2, as rank 0 (send 'p' to rank 1 on "
                     "tp), got 3 on rank 1 (recv 'p' from rank 0 on tp)"}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(Death, ARankThatReturnsEarlyIsNamed) {
  Status s = world(3, [](Rank &r, Communicator &c) {
    float x = 0;
    return r.id() == 2 ? Status() : reduce(c, x, "loss");
  });
  EXPECT_EQ(s.code(), Code::RankFailed);
  EXPECT_NE(
      s.message().find("(all_reduce 'loss' on tp) waits for rank 2, which "
                       "has returned"),
      std::string::npos)
      << s.text();
}

TEST(Death, AnErrorReleasesTheOthersAndComesFirst) {
  std::vector<Code> codes(3, Code::Ok);
  Status s = world(3, [&](Rank &r, Communicator &c) {
    float x = 0;
    Status mine = r.id() == 1 ? Status(Code::IoError, "disk is full")
                              : reduce(c, x, "loss");
    codes[r.id()] = mine.code();
    return mine;
  });
  EXPECT_EQ(s.code(), Code::IoError);
  EXPECT_EQ(s.message(), "rank 1: disk is full");
  EXPECT_EQ(codes[0], Code::Stopped);
  EXPECT_EQ(codes[2], Code::Stopped);
}

TEST(Watchdog, NamesTheRankThatIsInNoCall) {
  std::atomic<bool> released{false};
  Status s = world(
      2,
      [&](Rank &r, Communicator &c) {
        float x = 0;
        if (r.id() == 0) {
          Status mine = reduce(c, x, "loss");
          released = true;
          return mine;
        }
        while (!released)
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return Status();
      },
      Short);
  EXPECT_EQ(s.code(), Code::Timeout);
  EXPECT_NE(s.message().find("no rank made progress for 0.2 s:\n  rank 0 "
                             "(all_reduce 'loss' on tp) waits for rank 1\n"
                             "  rank 1 is in no call"),
            std::string::npos)
      << s.text();
}

TEST(Watchdog, LongerWorkThanTheTimeoutWithProgressIsFine) {
  Status s = world(
      3,
      [](Rank &r, Communicator &c) {
        float x = 0;
        for (int i = 0; i < 8; ++i) {
          if (r.id() == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
          PARC_TRY(reduce(c, x, "step"));
        }
        return Status();
      },
      Short);
  EXPECT_TRUE(s.ok()) << s.text();
}

TEST(Misuse, IsAnErrorWithTheRange) {
  auto message = [](const std::function<Status(Rank &, Communicator &)> &f) {
    return world(1, f).message();
  };
  float x = 0;
  int64_t negative[] = {-1};
  EXPECT_EQ(message([&](Rank &, Communicator &c) {
              return c.send(&x, 1, DType::f32, 3, "s");
            }),
            "rank 0: send 's' on tp: expected a member from 0 to 0, got 3");
  EXPECT_EQ(message([&](Rank &, Communicator &c) {
              return c.allGather(&x, &x, negative, DType::f32, "g");
            }),
            "rank 0: all_gather 'g' on tp: expected counts of at least 0, got "
            "-1");
  EXPECT_EQ(message([&](Rank &r, Communicator &) {
              r.create_streams(3);
              r.begin_stream(1);
              r.begin_stream(2);
              return r.status();
            }),
            "rank 0: begin_stream '': expected the stream before to be ended");
  EXPECT_EQ(message([&](Rank &r, Communicator &) {
              r.create("x", {0, 0});
              return r.status();
            }),
            "rank 0: communicator 'x': expected each member once, got rank 0 "
            "twice");
  EXPECT_EQ(message([&](Rank &r, Communicator &) {
              r.create("x", {0, 1});
              return r.status();
            }),
            "rank 0: communicator 'x': expected members from 0 to 0, got 1");
  EXPECT_EQ(World::run(0, [](Endpoint &) { return Status(); }).message(),
            "expected at least 1 rank, got 0");
}

} // namespace
