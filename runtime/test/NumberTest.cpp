//===- NumberTest.cpp - Types, partitions, random numbers, functions ------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Residues, bfloat16, the partition rule, counters and the scalar functions.
///
//===----------------------------------------------------------------------===//

#include "parc/dtype.h"
#include "parc/math.h"
#include "parc/part.h"
#include "parc/random.h"

#include <gtest/gtest.h>
#include <limits>
#include <set>

using namespace parc;

namespace {

TEST(Zp, FieldLaws) {
  Zp a(int64_t(123456789012345678)), b(int64_t(-987654321)), c = a * b + a;
  EXPECT_EQ(a * a.inverse(), Zp(1));
  EXPECT_EQ(b / b, Zp(1));
  EXPECT_EQ((a + b) * c, a * c + b * c);
  EXPECT_EQ(a - a, Zp(0));
  EXPECT_EQ(a + -a, Zp(0));
  EXPECT_EQ(Zp(0).inverse(), Zp(0));
  EXPECT_EQ(Zp(-1).v, Zp::P - 1);
  EXPECT_EQ(Zp::fromResidue(Zp::P), Zp(0));
  EXPECT_EQ(Zp(std::numeric_limits<int64_t>::min()) +
                Zp(std::numeric_limits<int64_t>::max()),
            Zp(-1));
  EXPECT_EQ(Zp(3).pow(Zp::P - 1), Zp(1));
}

TEST(Zp, DoublesAreDyadicRationals) {
  EXPECT_EQ(Zp::fromDouble(0.5) * Zp(2), Zp(1));
  EXPECT_EQ(Zp::fromDouble(-0.375) * Zp(8), Zp(-3));
  EXPECT_EQ(Zp::fromDouble(6), Zp(6));
  EXPECT_EQ(Zp::fromDouble(0x1p61), Zp(1));
  EXPECT_EQ(Zp::fromDouble(0x1p-1074) * Zp(2).pow(1074), Zp(1));
  EXPECT_EQ(Zp::fromDouble(0.1) + Zp::fromDouble(0.2),
            Zp::fromDouble(0.1) + Zp::fromDouble(0.2));
  EXPECT_EQ(Zp::fromDouble(INFINITY), Zp(0));
  EXPECT_TRUE(Zp(0) < Zp(1) && Zp(1) < Zp(-1));
}

TEST(BFloat16, RoundsToNearestEven) {
  auto round = [](float f) { return float(BFloat16(f)); };
  EXPECT_EQ(round(1.0f), 1.0f);
  EXPECT_EQ(round(1.0f + 0x1p-8f), 1.0f);              // tie to even, down
  EXPECT_EQ(round(1.0f + 0x3p-8f), 1.0f + 0x1p-6f);    // tie to even, up
  EXPECT_EQ(round(1.0f + 0x1.01p-8f), 1.0f + 0x1p-7f); // above the tie
  EXPECT_EQ(round(-2.5f), -2.5f);
  EXPECT_EQ(round(INFINITY), INFINITY);
  EXPECT_EQ(round(3.4e38f), INFINITY);
  EXPECT_TRUE(std::isnan(round(NAN)));
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::signaling_NaN()).bits & 0x40,
            0x40);
}

TEST(Part, BalancedAndNested) {
  EXPECT_EQ(partBounds(97, 1, 2), (Bounds{0, 48, 97}));
  EXPECT_EQ(partBounds(7, 1, 3), (Bounds{0, 2, 4, 7}));
  EXPECT_EQ(partBounds(24, 8, 2), (Bounds{0, 8, 24}));
  EXPECT_EQ(partBounds(2, 1, 4), (Bounds{0, 0, 1, 1, 2}));
  for (int64_t n = 0; n < 60; ++n)
    for (int64_t p = 1; p < 7; ++p)
      for (int64_t q = 1; q < 7; ++q)
        for (int64_t i = 0; i <= p; ++i)
          EXPECT_EQ(partStart(n, p, i), partStart(n, p * q, i * q));
  static_assert(partStart(97, 1, 2, 1) == 48);
  static_assert(partSize(24, 8, 2, 1) == 16);
  static_assert(partStart(int64_t(1) << 60, 1 << 14, 1) == int64_t(1) << 46);
}

/// The boxes cover the list's elements once, in its order.
TEST(Part, ListsAreBoxes) {
  std::vector<int64_t> shape = {3, 4, 5};
  for (int64_t first = 0; first <= 60; ++first)
    for (int64_t count = 0; first + count <= 60; ++count) {
      std::vector<ListBox> boxes = listBoxes(shape, first, count);
      EXPECT_LE(boxes.size(), 5u);
      int64_t next = first;
      for (const ListBox &box : boxes) {
        EXPECT_EQ(box.offset, next - first);
        for (int64_t i = 0; i < box.size[0]; ++i)
          for (int64_t j = 0; j < box.size[1]; ++j)
            for (int64_t k = 0; k < box.size[2]; ++k)
              EXPECT_EQ((box.lo[0] + i) * 20 + (box.lo[1] + j) * 5 + box.lo[2] +
                            k,
                        next++);
      }
      EXPECT_EQ(next, first + count);
    }
  EXPECT_EQ(listBoxes({7}, 2, 3).front().lo, std::vector<int64_t>{2});
}

TEST(Random, IsAFunctionOfTheCounter) {
  // Fixed for ever: checkpoints and the compiler's own evaluation rely on it.
  EXPECT_EQ(random::mix(random::Golden), 0xe220a8397b1dcdafull);
  EXPECT_EQ(random::nameWord("a"), 0xaf63dc4c8601ec8cull);
  uint64_t k = random::key(1, 2, 3, 4);
  EXPECT_NE(k, random::key(1, 2, 4, 3));
  EXPECT_NE(k, random::key(2, 1, 3, 4));
  std::set<uint64_t> seen;
  double sum = 0, square = 0, uniform = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    seen.insert(random::bits(k, i));
    double x = random::normal(k, i);
    sum += x;
    square += x * x;
    uniform += random::uniform(k, i);
  }
  EXPECT_EQ(seen.size(), size_t(n));
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(square / n, 1, 0.02);
  EXPECT_NEAR(uniform / n, 0.5, 0.005);
}

/// Largest error in units of the last place over evenly spaced arguments.
template <class F, class G>
double worstUlp(F f, G exact, double lo, double hi) {
  double worst = 0;
  const int n = 400000;
  for (int i = 0; i <= n; ++i) {
    float x = float(lo + (hi - lo) * i / n);
    double e = exact(double(x));
    float ulp =
        std::nextafterf(std::fabs(float(e)), INFINITY) - std::fabs(float(e));
    if (std::fabs(e) < 1.2e-38)
      continue;
    worst = std::max(worst, std::fabs(double(f(x)) - e) / double(ulp));
  }
  return worst;
}

template <class F, class G>
double worstAbsolute(F f, G exact, double lo, double hi) {
  double worst = 0;
  for (int i = 0; i <= 400000; ++i) {
    float x = float(lo + (hi - lo) * i / 400000);
    worst = std::max(worst, std::fabs(double(f(x)) - exact(double(x))));
  }
  return worst;
}

#define PARC_PAIR(name)                                                        \
  [](float x) { return math::name(x); }, [](double x) { return std::name(x); }

TEST(Math, FloatErrors) {
  EXPECT_LT(worstUlp(PARC_PAIR(exp), -87.3, 88.7), 2);
  EXPECT_LT(worstUlp(PARC_PAIR(exp), -1, 1), 2);
  EXPECT_LT(worstUlp(PARC_PAIR(log), 1e-3, 10), 2);
  EXPECT_LT(worstUlp(PARC_PAIR(log), 1e-38, 1e-36), 2);
  EXPECT_LT(worstUlp(PARC_PAIR(log), 1, 1e30), 2);
  EXPECT_LT(worstUlp(PARC_PAIR(tanh), -10, 10), 2);
  EXPECT_LT(worstUlp(PARC_PAIR(tanh), -0.7, 0.7), 2);
  EXPECT_LT(worstUlp(PARC_PAIR(erf), -6, 6), 2);
  EXPECT_LT(worstUlp(PARC_PAIR(sin), -3, 3), 2);
  EXPECT_LT(worstAbsolute(PARC_PAIR(sin), -1e6, 1e6), 1e-7);
  EXPECT_LT(worstAbsolute(PARC_PAIR(cos), -1e6, 1e6), 1e-7);
  EXPECT_LT(worstUlp([](float x) { return math::rsqrt(x); },
                     [](double x) { return 1 / std::sqrt(x); }, 1e-6, 100),
            2);
}

TEST(Math, Edges) {
  EXPECT_EQ(math::exp(-INFINITY), 0.0f);
  EXPECT_EQ(math::exp(-1000.0f), 0.0f);
  EXPECT_EQ(math::exp(INFINITY), INFINITY);
  EXPECT_EQ(math::exp(0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(math::exp(NAN)));
  EXPECT_EQ(math::log(0.0f), -INFINITY);
  EXPECT_EQ(math::log(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(math::log(-1.0f)));
  EXPECT_TRUE(std::isnan(math::log(NAN)));
  EXPECT_EQ(math::tanh(INFINITY), 1.0f);
  EXPECT_EQ(math::tanh(-1000.0f), -1.0f);
  EXPECT_EQ(math::erf(-INFINITY), -1.0f);
  EXPECT_EQ(math::cos(0.0f), 1.0f);
}

} // namespace
