//===- PartTest.cpp - Tests of the balanced split -------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Cover, balance, nesting, inverse and size limits of the split.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/Part.h"

#include "gtest/gtest.h"

using namespace mlir::parc;

namespace {

static_assert(partStart(97, 2, 1) == 48 && partSize(97, 2, 1) == 49);
static_assert(partStart(7, 8, 1) == 0 && partSize(7, 8, 7) == 1);

TEST(Part, CoversAndBalances) {
  for (int64_t units = 0; units <= 40; ++units)
    for (int64_t parts = 1; parts <= 12; ++parts) {
      EXPECT_EQ(partStart(units, parts, 0), 0);
      EXPECT_EQ(partStart(units, parts, parts), units);
      int64_t least = units, most = 0;
      for (int64_t i = 0; i < parts; ++i) {
        EXPECT_EQ(partStart(units, parts, i), i * units / parts);
        int64_t size = partSize(units, parts, i);
        least = std::min(least, size);
        most = std::max(most, size);
        for (int64_t unit = partStart(units, parts, i);
             unit < partStart(units, parts, i + 1); ++unit)
          EXPECT_EQ(partOf(units, parts, unit), i);
      }
      EXPECT_EQ(least, minPartSize(units, parts));
      EXPECT_EQ(most, maxPartSize(units, parts));
      EXPECT_EQ(least == most, isEvenSplit(units, parts));
    }
}

TEST(Part, BoundsNestUnderSubAxes) {
  for (int64_t units = 0; units <= 60; ++units)
    for (int64_t a = 1; a <= 6; ++a)
      for (int64_t b = 1; b <= 6; ++b)
        for (int64_t i = 0; i <= a; ++i)
          EXPECT_EQ(partStart(units, a, i), partStart(units, a * b, i * b));
}

TEST(Part, DoesNotOverflow) {
  constexpr int64_t units = INT64_MAX;
  constexpr int64_t parts = int64_t(1) << 30;
  EXPECT_EQ(partStart(units, parts, parts), units);
  EXPECT_EQ(partStart(units, parts, 1), units / parts);
  EXPECT_EQ(partSize(units, parts, parts - 1), units / parts + 1);
}

TEST(Part, GrainsStayWhole) {
  // Seven heads of 16 on two ranks.
  constexpr GrainedDim heads{112, 16};
  EXPECT_TRUE(heads.isValid());
  EXPECT_EQ(heads.size(2, 0), 48);
  EXPECT_EQ(heads.start(2, 1), 48);
  EXPECT_EQ(heads.size(2, 1), 64);
  EXPECT_FALSE(heads.isEven(2));
  EXPECT_TRUE(heads.isEven(7));
  EXPECT_FALSE((GrainedDim{112, 15}.isValid()));
  EXPECT_FALSE((GrainedDim{112, 0}.isValid()));
  EXPECT_EQ(joinGrains(4, 6), 12);
}

} // namespace
