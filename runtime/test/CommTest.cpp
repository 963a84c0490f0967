//===- CommTest.cpp - Conformance of collectives on every backend ---------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every collective, type and reduction, with uneven and zero counts, on one
/// to four ranks, against the sequential result.
///
//===----------------------------------------------------------------------===//

#include "TestWorld.h"

using namespace parc;
using namespace parc::test;

namespace {

struct Config {
  Backend backend;
  int ranks;
  DType type;
};

class Collectives : public ::testing::TestWithParam<Config> {
protected:
  void SetUp() override {
    if (!available(GetParam().backend, GetParam().ranks))
      GTEST_SKIP() << "not run: needs " << GetParam().ranks << " CUDA devices";
    if (GetParam().backend == Backend::cuda && GetParam().type == DType::zp)
      GTEST_SKIP() << "not run: NCCL knows no residues";
  }

  /// Runs body(rank, communicator, T()) everywhere.
  template <class F> void onRanks(F body) {
    Config c = GetParam();
    dispatch(c.type, [&](auto zero) {
      Status status = runWorld(c.backend, c.ranks, [&](Rank &r) {
        Communicator *comm = r.create("all", everyone(c.ranks));
        PARC_TRY(r.status());
        return body(r, *comm, zero);
      });
      EXPECT_TRUE(status.ok()) << status.text();
    });
  }

  /// Uneven, with a zero where there are several members.
  std::vector<int64_t> counts() const {
    std::vector<int64_t> n;
    for (int i = 0; i < GetParam().ranks; ++i)
      n.push_back(i == 1 ? 0 : 3 + 2 * i);
    return n;
  }
};

int64_t total(const std::vector<int64_t> &counts) {
  int64_t n = 0;
  for (int64_t c : counts)
    n += c;
  return n;
}

TEST_P(Collectives, AllReduce) {
  for (ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min})
    for (int64_t n : {0, 1, 5, 5000}) // 5000: more than one block
      onRanks([&](Rank &r, Communicator &c, auto zero) {
        using T = decltype(zero);
        auto src = upload(r, samples<T>(r.id(), n));
        Tensor<T> dst(r.pool(), {n});
        PARC_TRY(c.allReduce(src.data(), dst.data(), n, DTypeOf<T>::value, op,
                             "apart"));
        PARC_TRY(c.allReduce(src.data(), src.data(), n, DTypeOf<T>::value, op,
                             "in place"));
        std::vector<T> expected;
        for (int64_t i = 0; i < n; ++i)
          expected.push_back(reduced<T>(op, c.size(), i));
        PARC_TRY(expect(same(download(r, dst), expected), "all_reduce"));
        return expect(same(download(r, src), expected), "all_reduce in place");
      });
}

TEST_P(Collectives, AllGatherUneven) {
  std::vector<int64_t> n = counts();
  onRanks([&](Rank &r, Communicator &c, auto zero) {
    using T = decltype(zero);
    auto src = upload(r, samples<T>(r.id(), n[r.id()]));
    Tensor<T> dst(r.pool(), {total(n)});
    PARC_TRY(c.allGather(src.data(), dst.data(), n.data(), DTypeOf<T>::value,
                         "gather"));
    std::vector<T> expected;
    for (int m = 0; m < c.size(); ++m)
      for (int64_t i = 0; i < n[m]; ++i)
        expected.push_back(sample<T>(m, i));
    return expect(same(download(r, dst), expected), "all_gather");
  });
}

TEST_P(Collectives, ReduceScatterUneven) {
  std::vector<int64_t> n = counts();
  for (ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min})
    onRanks([&](Rank &r, Communicator &c, auto zero) {
      using T = decltype(zero);
      auto src = upload(r, samples<T>(r.id(), total(n)));
      Tensor<T> dst(r.pool(), {n[r.id()]});
      PARC_TRY(c.reduceScatter(src.data(), dst.data(), n.data(),
                               DTypeOf<T>::value, op, "scatter"));
      int64_t lo = 0;
      for (int m = 0; m < r.id(); ++m)
        lo += n[m];
      std::vector<T> expected;
      for (int64_t i = 0; i < n[r.id()]; ++i)
        expected.push_back(reduced<T>(op, c.size(), lo + i));
      return expect(same(download(r, dst), expected), "reduce_scatter");
    });
}

/// Elements from i to j: uneven, zero for some pairs.
int64_t pairCount(int i, int j) { return (i * 2 + j * 3) % 4; }

TEST_P(Collectives, AllToAllUneven) {
  onRanks([&](Rank &r, Communicator &c, auto zero) {
    using T = decltype(zero);
    std::vector<int64_t> sent, received;
    std::vector<T> values, expected;
    for (int j = 0; j < c.size(); ++j) {
      sent.push_back(pairCount(r.id(), j));
      received.push_back(pairCount(j, r.id()));
      for (int64_t i = 0; i < sent.back(); ++i)
        values.push_back(sample<T>(r.id() * 5 + j, i));
      for (int64_t i = 0; i < received.back(); ++i)
        expected.push_back(sample<T>(j * 5 + r.id(), i));
    }
    auto src = upload(r, values);
    Tensor<T> dst(r.pool(), {int64_t(expected.size())});
    PARC_TRY(c.allToAll(src.data(), sent.data(), dst.data(), received.data(),
                        DTypeOf<T>::value, "exchange"));
    return expect(same(download(r, dst), expected), "all_to_all");
  });
}

TEST_P(Collectives, BroadcastFromEveryRoot) {
  onRanks([&](Rank &r, Communicator &c, auto zero) {
    using T = decltype(zero);
    for (int root = 0; root < c.size(); ++root) {
      auto data = upload(r, samples<T>(r.id(), 5));
      PARC_TRY(c.broadcast(data.data(), 5, DTypeOf<T>::value, root, "root"));
      PARC_TRY(
          expect(same(download(r, data), samples<T>(root, 5)), "broadcast"));
    }
    return Status();
  });
}

TEST_P(Collectives, SendAlongAChain) {
  onRanks([&](Rank &r, Communicator &c, auto zero) {
    using T = decltype(zero);
    auto data = upload(r, samples<T>(r.id(), 4));
    constexpr DType t = DTypeOf<T>::value;
    if (r.id() > 0)
      PARC_TRY(c.recv(data.data(), 4, t, r.id() - 1, "from the left"));
    if (r.id() + 1 < c.size())
      PARC_TRY(c.send(data.data(), 4, t, r.id() + 1, "to the right"));
    return expect(same(download(r, data), samples<T>(0, 4)), "chain");
  });
}

TEST_P(Collectives, OpposingSendsInAGroup) {
  onRanks([&](Rank &r, Communicator &c, auto zero) {
    using T = decltype(zero);
    constexpr DType t = DTypeOf<T>::value;
    int n = c.size(), right = (r.id() + 1) % n, left = (r.id() + n - 1) % n;
    auto src = upload(r, samples<T>(r.id(), 6));
    Tensor<T> a(r.pool(), {6}), b(r.pool(), {6});
    PARC_TRY(r.endpoint().groupStart());
    PARC_TRY(c.send(src.data(), 6, t, right, "right"));
    PARC_TRY(c.send(src.data(), 6, t, left, "left"));
    PARC_TRY(c.recv(a.data(), 6, t, left, "right"));
    PARC_TRY(c.recv(b.data(), 6, t, right, "left"));
    PARC_TRY(r.endpoint().groupEnd());
    PARC_TRY(expect(same(download(r, a), samples<T>(left, 6)), "from left"));
    return expect(same(download(r, b), samples<T>(right, 6)), "from right");
  });
}

/// Two sums and an uneven gather of one communicator as one group, beside the
/// compute stream.
TEST_P(Collectives, SeveralInAGroupOnAStream) {
  onRanks([&](Rank &r, Communicator &c, auto zero) {
    using T = decltype(zero);
    int n = c.size();
    std::vector<int64_t> parts = counts();
    Tensor<T> a = upload(r, samples<T>(r.id(), 5));
    Tensor<T> b = upload(r, samples<T>(r.id(), 3));
    Tensor<T> mine = upload(r, samples<T>(r.id(), parts[size_t(r.id())]));
    Tensor<T> all(r.pool(), {total(parts)});
    r.create_streams(2);
    r.begin_stream(1);
    PARC_TRY(r.endpoint().groupStart());
    PARC_TRY(c.allReduce(a.data(), a.data(), 5, DTypeOf<T>::value,
                         ReduceOp::sum, "a"));
    PARC_TRY(c.allGather(mine.data(), all.data(), parts.data(),
                         DTypeOf<T>::value, "all"));
    PARC_TRY(c.allReduce(b.data(), b.data(), 3, DTypeOf<T>::value,
                         ReduceOp::max, "b"));
    PARC_TRY(r.endpoint().groupEnd());
    Ticket ticket = r.end_stream();
    r.wait(ticket);
    std::vector<T> sums, most, gathered;
    for (int64_t i = 0; i < 5; ++i)
      sums.push_back(reduced<T>(ReduceOp::sum, n, i));
    for (int64_t i = 0; i < 3; ++i)
      most.push_back(reduced<T>(ReduceOp::max, n, i));
    for (int i = 0; i < n; ++i)
      for (T value : samples<T>(i, parts[size_t(i)]))
        gathered.push_back(value);
    PARC_TRY(expect(same(download(r, a), sums), "the first sum"));
    PARC_TRY(expect(same(download(r, b), most), "the maximum"));
    return expect(same(download(r, all), gathered), "the gather");
  });
}

TEST_P(Collectives, CommunicatorsOfDifferentMembers) {
  onRanks([&](Rank &r, Communicator &, auto zero) {
    using T = decltype(zero);
    int n = r.worldSize();
    // Even and odd ranks, and then all in reverse.
    std::vector<int> half, reverse;
    for (int i = r.id() % 2; i < n; i += 2)
      half.push_back(i);
    for (int i = n - 1; i >= 0; --i)
      reverse.push_back(i);
    Communicator *h = r.create("half", half), *v = r.create("back", reverse);
    PARC_TRY(r.status());
    PARC_TRY(expect(v->index() == n - 1 - r.id(), "index follows the list"));
    auto a = upload(r, samples<T>(r.id(), 3));
    PARC_TRY(h->broadcast(a.data(), 3, DTypeOf<T>::value, 0, "half"));
    PARC_TRY(expect(same(download(r, a), samples<T>(r.id() % 2, 3)), "half"));
    PARC_TRY(v->broadcast(a.data(), 3, DTypeOf<T>::value, 0, "back"));
    return expect(same(download(r, a), samples<T>((n - 1) % 2, 3)), "back");
  });
}

std::vector<Config> configs() {
  std::vector<Config> all;
  for (Backend backend : backends())
    for (int ranks = 1; ranks <= 4; ++ranks)
      for (DType t : {DType::f32, DType::f64, DType::bf16, DType::i32,
                      DType::i64, DType::zp})
        all.push_back({backend, ranks, t});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Backends, Collectives, ::testing::ValuesIn(configs()),
                         [](const ::testing::TestParamInfo<Config> &info) {
                           return std::string(info.param.backend ==
                                                      Backend::host
                                                  ? "host"
                                                  : "cuda") +
                                  "_" + std::to_string(info.param.ranks) + "_" +
                                  nameOf(info.param.type);
                         });

TEST(Determinism, SumsAreTheSameBitsOnAllRanksEveryTime) {
  // Values whose sum depends on the order.
  std::vector<float> expected;
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<float> sums(4);
    Status status = runWorld(Backend::host, 4, [&](Rank &r) {
      Communicator *c = r.create("all", everyone(4));
      float values[] = {1e8f, 1.0f, -1e8f, 0.3f};
      PARC_TRY(c->allReduce(&values[r.id()], &sums[r.id()], 1, DType::f32,
                            ReduceOp::sum, "order"));
      return Status();
    });
    ASSERT_TRUE(status.ok()) << status.text();
    float inOrder = ((1e8f + 1.0f) + -1e8f) + 0.3f;
    for (float s : sums)
      EXPECT_EQ(s, inOrder);
  }
}

} // namespace
