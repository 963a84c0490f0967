//===- RankTest.cpp - Meshes, pools and collectives on views --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Collectives along every dimension with uneven bounds, packed on the way;
/// pools; coordinates.
///
//===----------------------------------------------------------------------===//

#include "TestWorld.h"

using namespace parc;
using namespace parc::test;

namespace {

TEST(Mesh, CoordinatesAndPeers) {
  // Ranks of 8x16x4 in the order pp, dp, tp: tp varies fastest.
  Mesh mesh{{"pp", "dp", "tp"}, {16, 4, 8}};
  EXPECT_EQ(mesh.devices(), 512);
  EXPECT_EQ(mesh.peers(0, {"tp"}), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(mesh.peers(0, {"dp"}), (std::vector<int>{0, 8, 16, 24}));
  EXPECT_EQ(mesh.peers(9, {"pp"})[1], 41);
  EXPECT_EQ(mesh.peers(0, {"tp", "dp"}).size(), 32u);
  EXPECT_EQ(mesh.coordinate(41, 0), 1);
  EXPECT_EQ(mesh.coordinate(41, 1), 1);
  EXPECT_EQ(mesh.coordinate(41, 2), 1);
}

TEST(Pool, AllocatesNothingAfterTheFirstStep) {
  Pool pool;
  size_t allocations = 0;
  for (int step = 0; step < 3; ++step) {
    Tensor<float> a(pool, {10, 100}), b(pool, {0});
    Tensor<double> c(pool, {500});
    c = Tensor<double>(pool, {7});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u);
    if (step == 0)
      allocations = pool.allocations();
  }
  EXPECT_EQ(pool.allocations(), allocations);
  EXPECT_EQ(pool.inUse(), 0u);
  EXPECT_GT(pool.peak(), 0u);
}

TEST(View, SlicesAndPermutes) {
  float x[24];
  for (int i = 0; i < 24; ++i)
    x[i] = float(i);
  View<float> v(x, {2, 3, 4});
  EXPECT_TRUE(v.contiguous());
  EXPECT_EQ(v(1, 2, 3), 23);
  EXPECT_EQ(v.slice(1, 1, 2)(1, 0, 0), 16);
  EXPECT_FALSE(v.slice(1, 1, 2).contiguous());
  EXPECT_EQ(v.permute({2, 0, 1})(3, 1, 2), 23);
  EXPECT_EQ(v.select(1, 2)(1, 3), 23);
  EXPECT_EQ(v.select(1, 2).rank, 2);
  EXPECT_EQ(v.reshape({4, 6})(3, 5), 23);
}

/// What a stream may still read is not handed out again before the wait, and
/// later steps find all of it.
TEST(Streams, MemoryStaysUntilTheWait) {
  Status s = runWorld(Backend::host, 2, [](Rank &r) {
    Communicator *c = r.createOver({"x"});
    r.create_streams(3);
    PARC_TRY(r.status());
    Tensor<float> part(r.pool(), {3, 2}), whole(r.pool(), {3, 4});
    size_t idle = r.pool().inUse(), allocations = 0;
    for (int step = 0; step < 3; ++step) {
      r.begin_stream(1 + step % 2);
      // Parts of an inner dimension go through memory of their own.
      r.wait(r.all_gather(whole, part, *c, 1, {0, 2, 4}, "w"));
      Ticket ticket = r.end_stream();
      PARC_TRY(expect(r.pool().inUse() > idle, "staged memory is kept"));
      r.wait(ticket);
      PARC_TRY(expect(r.pool().inUse() == idle, "and goes back"));
      r.wait(ticket);
      PARC_TRY(expect(r.pool().inUse() == idle, "once"));
      if (step == 0)
        allocations = r.pool().allocations();
    }
    return expect(r.pool().allocations() == allocations,
                  "nothing is allocated after the first step");
  });
  EXPECT_TRUE(s.ok()) << s.text();
}

class Views : public ::testing::TestWithParam<std::tuple<Backend, int>> {
protected:
  void SetUp() override {
    if (!available(backend(), ranks()))
      GTEST_SKIP() << "not run: needs " << ranks() << " CUDA devices";
  }
  Backend backend() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
  void onRanks(const std::function<Status(Rank &, Communicator &)> &body) {
    Status status = runWorld(backend(), ranks(), [&](Rank &r) {
      Communicator *c = r.createOver({"x"});
      PARC_TRY(r.status());
      return body(r, *c);
    });
    EXPECT_TRUE(status.ok()) << status.text();
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, Views,
                         ::testing::Combine(::testing::ValuesIn(backends()),
                                            ::testing::Values(1, 2, 3, 4)),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param) ==
                                                      Backend::host
                                                  ? "host"
                                                  : "cuda") +
                                  "_" + std::to_string(std::get<1>(info.param));
                         });

const std::vector<int64_t> Full = {5, 7, 3};

/// Element of the logical full tensor, as rank \p rank sees it.
float element(int rank, int64_t i, int64_t j, int64_t k) {
  return float(rank * 1000 + i * 100 + j * 10 + k);
}

/// The values of a box, row-major, summed over \p from .. \p to ranks.
std::vector<float> box(const std::vector<int64_t> &lo,
                       const std::vector<int64_t> &hi, int from, int to) {
  std::vector<float> out;
  for (int64_t i = lo[0]; i < hi[0]; ++i)
    for (int64_t j = lo[1]; j < hi[1]; ++j)
      for (int64_t k = lo[2]; k < hi[2]; ++k) {
        float sum = 0;
        for (int r = from; r < to; ++r)
          sum += element(r, i, j, k);
        out.push_back(sum);
      }
  return out;
}

TEST_P(Views, GatherAndScatterAlongEveryDimension) {
  for (int dim = 0; dim < 3; ++dim)
    onRanks([&](Rank &r, Communicator &c) {
      Bounds b = partBounds(Full[dim], 1, c.size());
      std::vector<int64_t> lo = {0, 0, 0}, hi = Full, size = Full;
      lo[dim] = b[r.id()];
      hi[dim] = b[r.id() + 1];
      size[dim] = hi[dim] - lo[dim];
      auto src = upload(r, box(lo, hi, 0, 1));
      Tensor<float> dst(r.pool(), Full);
      r.wait(r.all_gather(dst, View<float>(src.data(), size), c, dim, b, "g"));
      PARC_TRY(r.status());
      PARC_TRY(expect(same(download(r, dst), box({0, 0, 0}, Full, 0, 1)),
                      "all_gather"));
      auto whole = upload(r, box({0, 0, 0}, Full, r.id(), r.id() + 1));
      Tensor<float> part(r.pool(), size);
      r.wait(r.reduce_scatter(part, View<float>(whole.data(), Full), c, dim, b,
                              ReduceOp::sum, "s"));
      PARC_TRY(r.status());
      return expect(same(download(r, part), box(lo, hi, 0, c.size())),
                    "reduce_scatter");
    });
}

TEST_P(Views, AllToAllBetweenAllDimensions) {
  for (int split = 0; split < 3; ++split)
    for (int concat = 0; concat < 3; ++concat) {
      if (split == concat)
        continue;
      onRanks([&](Rank &r, Communicator &c) {
        Bounds sb = partBounds(Full[split], 1, c.size()),
               cb = partBounds(Full[concat], 1, c.size());
        std::vector<int64_t> lo = {0, 0, 0}, hi = Full, size = Full, lo2 = lo,
                             hi2 = Full, size2 = Full;
        lo[concat] = cb[r.id()];
        hi[concat] = cb[r.id() + 1];
        size[concat] = hi[concat] - lo[concat];
        lo2[split] = sb[r.id()];
        hi2[split] = sb[r.id() + 1];
        size2[split] = hi2[split] - lo2[split];
        auto src = upload(r, box(lo, hi, 0, 1));
        Tensor<float> dst(r.pool(), size2);
        r.wait(r.all_to_all(dst, View<float>(src.data(), size), c, split, sb,
                            concat, cb, "x"));
        PARC_TRY(r.status());
        return expect(same(download(r, dst), box(lo2, hi2, 0, 1)),
                      "all_to_all");
      });
    }
}

/// Rows whose number is 100 * index of dimension 0 + place in dimension 1,
/// there and back: of every part the first few, 0 to all of them.
TEST_P(Views, RowsThatAreUsedGoThereAndBack) {
  constexpr int64_t Experts = 5, Slots = 3, Width = 2;
  auto taken = [](int64_t expert, int64_t member) {
    return (expert + 2 * member) % (Slots + 1);
  };
  onRanks([&](Rank &r, Communicator &c) {
    int64_t n = c.size(), me = c.index();
    Bounds experts = partBounds(Experts, 1, c.size()),
           slots = partBounds(Slots * n, 1, c.size());
    int64_t mine = experts[size_t(me) + 1] - experts[size_t(me)];
    std::vector<float> rows, wanted, expected;
    std::vector<int64_t> sent, received;
    for (int64_t e = 0; e < Experts; ++e) {
      sent.push_back(taken(e, me));
      for (int64_t s = 0; s < Slots; ++s)
        for (int64_t w = 0; w < Width; ++w) {
          // What is not used is not zero here, and is when it comes back.
          float value = float(100 * e + 10 * me + s) + 0.5F * float(w);
          rows.push_back(value);
          wanted.push_back(s < taken(e, me) ? value : 0.0F);
        }
    }
    for (int64_t e = experts[size_t(me)]; e < experts[size_t(me) + 1]; ++e)
      for (int64_t member = 0; member < n; ++member) {
        received.push_back(taken(e, member));
        for (int64_t s = 0; s < Slots; ++s)
          for (int64_t w = 0; w < Width; ++w)
            expected.push_back(s < taken(e, member)
                                   ? float(100 * e + 10 * member + s) +
                                         0.5F * float(w)
                                   : 0.0F);
      }
    auto src = upload(r, rows);
    View<float> from(src.data(), {Experts, Slots, Width});
    Tensor<float> there(r.pool(), {mine, Slots * n, Width});
    r.wait(r.all_to_all_rows(there, from, c, 0, experts, 1, slots, sent,
                             received, "there"));
    PARC_TRY(r.status());
    PARC_TRY(expect(same(download(r, there), expected), "there"));
    Tensor<float> back(r.pool(), {Experts, Slots, Width});
    r.wait(r.all_to_all_rows(back, there, c, 1, slots, 0, experts, received,
                             sent, "back"));
    PARC_TRY(r.status());
    return expect(same(download(r, back), wanted), "back");
  });
}

TEST_P(Views, StridedViewsArePackedAndUnpacked) {
  onRanks([&](Rank &r, Communicator &c) {
    auto x = upload(r, box({0, 0, 0}, Full, r.id(), r.id() + 1));
    View<float> v(x.data(), Full);
    r.wait(r.all_reduce(v.slice(1, 2, 3), c, ReduceOp::sum, "slab"));
    auto got = download(r, x);
    for (int64_t i = 0, at = 0; i < 5; ++i)
      for (int64_t j = 0; j < 7; ++j)
        for (int64_t k = 0; k < 3; ++k, ++at) {
          float sum = 0;
          for (int m = 0; m < c.size(); ++m)
            sum += element(m, i, j, k);
          bool inside = j >= 2 && j < 5;
          PARC_TRY(expect(got[at] == (inside ? sum : element(r.id(), i, j, k)),
                          "all_reduce of a slab"));
        }
    // A ring of strided slabs in one group.
    int n = c.size(), right = (r.id() + 1) % n, left = (r.id() + n - 1) % n;
    auto y = upload(r, box({0, 0, 0}, Full, r.id(), r.id() + 1));
    Tensor<float> z(r.pool(), Full);
    r.fillZero(z.data(), z.bytes());
    r.group_start();
    r.wait(r.send(View<float>(y.data(), Full).slice(2, 1, 1), c, right, "r"));
    r.wait(r.recv(z.view().slice(2, 1, 1), c, left, "r"));
    r.group_end();
    PARC_TRY(r.status());
    auto moved = download(r, z);
    PARC_TRY(expect(moved[0] == 0, "beside the slab"));
    return expect(moved[3 * 5 + 1] == element(left, 0, 5, 1), "in the slab");
  });
}

TEST(ViewErrors, WrongSizesAreNamed) {
  Status s = runWorld(Backend::host, 2, [](Rank &r) {
    Communicator *c = r.createOver({"x"});
    Tensor<float> dst(r.pool(), {5}), src(r.pool(), {2});
    r.wait(r.all_gather(dst, src, *c, 0, Bounds{0, 3, 5}, "attn.o"));
    return r.status();
  });
  EXPECT_EQ(s.message(), "rank 0: all_gather 'attn.o': expected part 0 of 5 "
                         "f32 on dimension 0, got 2 f32");
}

TEST(ViewErrors, TheFirstFailureIsKeptAndTheRestSkipped) {
  Status s = runWorld(Backend::host, 2, [](Rank &r) {
    Communicator *c = r.createOver({"x"});
    Tensor<float> x(r.pool(), {4});
    if (r.id() == 0)
      r.fail(Status(Code::IoError, "first"));
    r.wait(r.all_reduce(x, *c, ReduceOp::sum, "never joined by rank 0"));
    r.fail(Status(Code::IoError, "second"));
    return r.status();
  });
  EXPECT_EQ(s.message(), "rank 0: first");
}

} // namespace
