//===- KernelTest.cpp - Kernel templates and matrix products --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// map, reduce, gather, scatter and gemm against plain loops, with strides,
/// empty sizes and every type, on every backend.
///
//===----------------------------------------------------------------------===//

#include "TestWorld.h"
#include "parc/gemm.h"
#include "parc/kernels.h"

#include <array>
#include <numeric>

using namespace parc;
using namespace parc::test;

namespace {

class Kernels : public ::testing::TestWithParam<Backend> {
protected:
  void SetUp() override {
    if (!available(GetParam(), 1))
      GTEST_SKIP() << "not run: needs a CUDA device";
  }
  /// nvcc's kernels run on devices only.
  bool hasKernels() const {
#ifdef PARC_CUDA
    return GetParam() == Backend::cuda;
#else
    return GetParam() == Backend::host;
#endif
  }
  void onRank(const std::function<Status(Rank &)> &body) {
    Status status = runWorld(GetParam(), 1, body);
    EXPECT_TRUE(status.ok()) << status.text();
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, Kernels, ::testing::ValuesIn(backends()),
                         [](const auto &info) {
                           return std::string(
                               info.param == Backend::host ? "host" : "cuda");
                         });

std::vector<float> iota(int64_t n) {
  std::vector<float> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), 1.0f);
  return v;
}

// nvcc wants kernel lambdas in plain functions, not in bodies of tests.
void addTransposed(Rank &r, View<float> y, View<const float> x) {
  map<2>(
      r, {y.dims[0], y.dims[1]},
      PARC_FN(int64_t i, int64_t j) { y(i, j) = y(i, j) + x(j, i); });
}
void setOne(Rank &r, View<float> y) {
  map<0>(r, {}, PARC_FN() { y() = 1.0f; });
}
void fourDeep(Rank &r, View<float> y) {
  map<4>(
      r, {2, 3, 1, 5}, PARC_FN(int64_t a, int64_t b, int64_t c, int64_t d) {
        y(a, b, c, d) = float(1000 * a + 100 * b + 10 * c + d);
      });
}

TEST_P(Kernels, Map) {
  if (!hasKernels())
    GTEST_SKIP() << "not run: this build's kernels are the other backend's";
  onRank([](Rank &r) {
    auto x = upload(r, iota(15)), y = upload(r, iota(15));
    View<float> yv(y.data(), {5, 3}), xv(x.data(), {3, 5});
    addTransposed(r, yv, xv);
    std::vector<float> expected;
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 3; ++j)
        expected.push_back(float(1 + i * 3 + j) + float(1 + j * 5 + i));
    PARC_TRY(expect(same(download(r, y), expected), "map"));
    setOne(r, View<float>(y.data(), {}));
    PARC_TRY(expect(download(r, y)[0] == 1.0f, "map of no dimensions"));
    Tensor<float> z(r.pool(), {30});
    fourDeep(r, View<float>(z.data(), {2, 3, 1, 5}));
    PARC_TRY(expect(download(r, z)[29] == 1204.0f, "map of four"));
    addTransposed(r, View<float>(y.data(), {0, 3}), xv);
    return r.status();
  });
}

void rowSums(Rank &r, View<float> s, View<const float> x) {
  reduce<1, 1>(
      r, {x.dims[0]}, {x.dims[1]}, 0.0f, Sum(),
      PARC_FN(int64_t i, int64_t k) { return x.unit(i, k); },
      PARC_FN(int64_t i, float v) { s(i) = v; });
}
void rowExtrema(Rank &r, View<float> hi, View<float> lo, View<const float> x) {
  reduce<1, 1>(
      r, {x.dims[0]}, {x.dims[1]}, -1e30f, Max(),
      PARC_FN(int64_t i, int64_t k) { return x.unit(i, k); },
      PARC_FN(int64_t i, float v) { hi(i) = v; });
  reduce<1, 1>(
      r, {x.dims[0]}, {x.dims[1]}, 1e30f, Min(),
      PARC_FN(int64_t i, int64_t k) { return x.unit(i, k); },
      PARC_FN(int64_t i, float v) { lo(i) = v; });
}
void columnSums(Rank &r, View<float> s, View<const float> x) {
  reduce<1, 1, Inner::parallel>(
      r, {x.dims[1]}, {x.dims[0]}, 0.0f, Sum(),
      PARC_FN(int64_t j, int64_t i) { return x.unit(i, j); },
      PARC_FN(int64_t j, float v) { s(j) = v; });
}
void grandTotal(Rank &r, View<float> s, View<const float> x) {
  reduce<0, 2>(
      r, {}, {x.dims[0], x.dims[1]}, 0.0f, Sum(),
      PARC_FN(int64_t i, int64_t j) { return x(i, j); },
      PARC_FN(float v) { s() = v; });
}
void middleSums(Rank &r, View<float> s, View<const float> x) {
  reduce<2, 1, Inner::parallel>(
      r, {x.dims[0], x.dims[2]}, {x.dims[1]}, 0.0f, Sum(),
      PARC_FN(int64_t i, int64_t k, int64_t j) { return x(i, j, k); },
      PARC_FN(int64_t i, int64_t k, float v) { s(i, k) = v; });
}

/// Maximum with its place: a combiner that no vectoriser knows.
struct Best {
  float value;
  int64_t at;
};
struct TakeBest {
  PARC_HD Best operator()(Best a, Best b) const {
    bool first = a.value > b.value || (a.value == b.value && a.at < b.at);
    return first ? a : b;
  }
};
void argmax(Rank &r, View<int64_t> s, View<const float> x) {
  reduce<1, 1>(
      r, {x.dims[0]}, {x.dims[1]}, Best{-1e30f, -1}, TakeBest(),
      PARC_FN(int64_t i, int64_t k) { return Best{x(i, k), k}; },
      PARC_FN(int64_t i, Best b) { s(i) = b.at; });
}

TEST_P(Kernels, ReduceRowsAndColumns) {
  if (!hasKernels())
    GTEST_SKIP() << "not run: this build's kernels are the other backend's";
  onRank([](Rank &r) {
    const int64_t rows = 3, cols = 1301; // no multiple of any vector or tile
    auto values = samples<float>(1, rows * cols);
    auto x = upload(r, values);
    View<const float> xv(x.data(), {rows, cols});
    Tensor<float> s(r.pool(), {rows}), hi(r.pool(), {rows}),
        lo(r.pool(), {rows}), c(r.pool(), {cols}), t(r.pool(), {1});
    rowSums(r, s, xv);
    rowExtrema(r, hi, lo, xv);
    columnSums(r, c, xv);
    grandTotal(r, View<float>(t.data(), {}), xv);
    std::vector<float> rowsum(rows, 0), colsum(cols, 0);
    float all = 0;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        rowsum[i] += values[i * cols + j];
        colsum[j] += values[i * cols + j];
        all += values[i * cols + j];
      }
    PARC_TRY(expect(same(download(r, s), rowsum), "row sums"));
    PARC_TRY(expect(same(download(r, c), colsum), "column sums"));
    PARC_TRY(expect(download(r, t)[0] == all, "total"));
    PARC_TRY(expect(download(r, hi)[1] == 10.0f, "max"));
    return expect(download(r, lo)[2] == 0.0f, "min");
  });
}

TEST_P(Kernels, ReduceMiddleDimensionAndStructs) {
  if (!hasKernels())
    GTEST_SKIP() << "not run: this build's kernels are the other backend's";
  onRank([](Rank &r) {
    auto x = upload(r, iota(24));
    Tensor<float> s(r.pool(), {2, 4});
    middleSums(r, s, View<const float>(x.data(), {2, 3, 4}));
    std::vector<float> expected;
    for (int i = 0; i < 2; ++i)
      for (int k = 0; k < 4; ++k)
        expected.push_back(float(3 * (1 + i * 12 + k) + 4 + 8));
    PARC_TRY(expect(same(download(r, s), expected), "middle"));
    auto y = upload(r, std::vector<float>{1, 7, 7, 3, 2, 1});
    Tensor<int64_t> at(r.pool(), {2});
    argmax(r, at, View<const float>(y.data(), {2, 3}));
    PARC_TRY(expect(same(download(r, at), {1, 0}), "argmax"));
    // Nothing to reduce gives the neutral element.
    Tensor<float> none(r.pool(), {2});
    rowSums(r, none, View<const float>(x.data(), {2, 0}));
    return expect(same(download(r, none), {0, 0}), "empty rows");
  });
}

TEST_P(Kernels, GatherAndScatterRows) {
  if (!hasKernels())
    GTEST_SKIP() << "not run: this build's kernels are the other backend's";
  onRank([](Rank &r) {
    auto table = upload(r, iota(6));
    auto ids = upload(r, std::vector<int32_t>{10, 12, 9, 13, 10});
    View<float> tv(table.data(), {3, 2});
    Tensor<float> out(r.pool(), {5, 2});
    gatherRows<float, int32_t>(r, out, tv, ids, 10);
    PARC_TRY(expect(same(download(r, out), {1, 2, 5, 6, 0, 0, 0, 0, 1, 2}),
                    "gather"));
    auto add = upload(r, iota(10));
    scatterAddRows<float, float, int32_t>(
        r, tv, View<float>(add.data(), {5, 2}), ids, 10);
    return expect(same(download(r, table), {11, 14, 3, 4, 8, 10}), "scatter");
  });
}

//===----------------------------------------------------------------------===//
// gemm
//===----------------------------------------------------------------------===//

/// A view of the given sizes whose dimensions lie in memory in this order.
template <class T>
View<T> ordered(T *data, const std::vector<int64_t> &dims,
                const std::vector<int> &order) {
  View<T> v(data, dims);
  int64_t stride = 1;
  for (int k = int(order.size()) - 1; k >= 0; --k) {
    v.strides[order[k]] = stride;
    stride *= dims[order[k]];
  }
  return v;
}

/// Added up in type A, and rounded once.
template <class A, class C, class T>
std::vector<C> product(View<const C> c, View<const T> a, View<const T> b,
                       std::vector<C> out, bool accumulate) {
  for (int64_t s = 0; s < c.dims[0]; ++s)
    for (int64_t i = 0; i < c.dims[1]; ++i)
      for (int64_t j = 0; j < c.dims[2]; ++j) {
        int64_t at = s * c.strides[0] + i * c.strides[1] + j * c.strides[2];
        A sum = accumulate ? A(out[at]) : A(0);
        for (int64_t k = 0; k < a.dims[2]; ++k)
          sum = A(sum + A(a(s, i, k)) * A(b(s, k, j)));
        out[at] = C(sum);
      }
  return out;
}

/// Factors of type T, added up in A, given in C.
template <class T, class A = T, class C = T>
Status checkGemm(Rank &r, int64_t m, int64_t n, int64_t k) {
  const int64_t batch = 2;
  const std::vector<std::vector<int>> orders = {
      {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 1, 0}};
  auto av = samples<T>(1, batch * m * k), bv = samples<T>(2, batch * k * n);
  auto cv = samples<C>(3, batch * m * n);
  auto a = upload(r, av), b = upload(r, bv);
  for (auto &oc : orders)
    for (auto &oa : orders)
      for (auto &ob : orders)
        for (bool accumulate : {false, true}) {
          auto c = upload(r, cv);
          gemm(r, ordered(c.data(), {batch, m, n}, oc),
               ordered(a.data(), {batch, m, k}, oa),
               ordered(b.data(), {batch, k, n}, ob), accumulate);
          PARC_TRY(r.status());
          auto expected = product<A, C, T>(
              ordered<const C>(cv.data(), {batch, m, n}, oc),
              ordered<const T>(av.data(), {batch, m, k}, oa),
              ordered<const T>(bv.data(), {batch, k, n}, ob), cv, accumulate);
          PARC_TRY(expect(same(download(r, c), expected), "gemm"));
        }
  return Status();
}

TEST_P(Kernels, GemmOfAnyStrides) {
  onRank([](Rank &r) {
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{
             {3, 4, 5}, {1, 4, 5}, {3, 1, 5}, {3, 4, 1}, {1, 1, 1}}) {
      PARC_TRY(checkGemm<float>(r, m, n, k));
      PARC_TRY(checkGemm<double>(r, m, n, k));
      PARC_TRY((checkGemm<BFloat16, float>(r, m, n, k)));
      PARC_TRY((checkGemm<BFloat16, float, float>(r, m, n, k)));
      if (r.backend() == Backend::host)
        PARC_TRY(checkGemm<Zp>(r, m, n, k));
    }
    return Status();
  });
}

TEST_P(Kernels, GemmOfEmptySizes) {
  onRank([](Rank &r) {
    PARC_TRY(checkGemm<float>(r, 3, 4, 0)); // zeros, or C as it was
    PARC_TRY(checkGemm<float>(r, 0, 4, 5));
    return checkGemm<double>(r, 3, 0, 5);
  });
}

TEST_P(Kernels, GemmBroadcasts) {
  onRank([](Rank &r) {
    auto a = upload(r, iota(12)), b = upload(r, iota(6));
    Tensor<float> c(r.pool(), {2, 2, 2});
    View<float> shared(b.data(), {2, 3, 2});
    shared.strides[0] = 0;
    gemm(r, c.view(), View<float>(a.data(), {2, 2, 3}), shared);
    return expect(same(download(r, c), {22, 28, 49, 64, 76, 100, 103, 136}),
                  "broadcast batch");
  });
}

TEST_P(Kernels, GemmRefusesOtherSizes) {
  Status status = runWorld(GetParam(), 1, [](Rank &r) {
    Tensor<float> c(r.pool(), {2, 2}), a(r.pool(), {2, 2}), b(r.pool(), {3, 2});
    gemm(r, c, a, b);
    return r.status();
  });
  EXPECT_EQ(status.message(),
            "rank 0: gemm: expected C[.., m, n], A[.., m, k], B[.., k, n] of "
            "one dtype, or A and B of bf16 and C of f32, got 2x2 f32, 2x2 f32, "
            "3x2 f32");
}

#ifdef PARC_CUDA
TEST(KernelErrors, HostRanksCannotLaunch) {
  Status status = runWorld(Backend::host, 1, [](Rank &r) {
    Tensor<float> x(r.pool(), {1});
    setOne(r, View<float>(x.data(), {}));
    return r.status();
  });
  EXPECT_EQ(status.code(), Code::Unsupported);
}
#endif

} // namespace
