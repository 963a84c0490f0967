//===- StageEquivalenceTest.cpp - Stages and micro-batches ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A stack of three layers on one, two and three stages, alone and with tensor
/// and data parallelism, in one to four micro-batches and both rules.
///
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "Model.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

namespace {

struct Sizes3 {
  int64_t tp, pp, dp;
};

class StageEquivalence : public ::testing::TestWithParam<Sizes3> {};

} // namespace

TEST_P(StageEquivalence, MicroBatchesAndRules) {
  Context context;
  std::string error;
  auto module = prepare(context.mlir, stackModelText(), error);
  ASSERT_TRUE(module) << error;
  auto whole = runWhole<Zp>(*module, 11);
  ASSERT_TRUE(succeeded(whole));
  auto [tp, pp, dp] = GetParam();
  unsigned equal = 0;
  for (int64_t microBatches = 1; microBatches <= 4; ++microBatches)
    for (const char *rule : {"gpipe", "1f1b"}) {
      Errors errors(context.mlir);
      Plan plan = {{{"tp", tp}, {"pp", pp}, {"dp", dp}},
                   microBatches,
                   rule,
                   /*strategy=*/true,
                   /*zero=*/microBatches - 1};
      OwningOpRef<ModuleOp> clone = pinned(*module, plan, {});
      if (failed(shard(*clone, plan))) {
        EXPECT_GT(microBatches * dp, 9) << errors.text;
        continue;
      }
      ASSERT_TRUE(succeeded(stage(*clone, plan))) << errors.text;
      ASSERT_TRUE(succeeded(decompose(*clone))) << errors.text;
      EXPECT_EQ(compare(*clone, *whole), "")
          << microBatches << " micro-batches, " << rule << "\n"
          << errors.text;
      ++equal;
    }
  EXPECT_GE(equal, 6u);
}

INSTANTIATE_TEST_SUITE_P(Meshes, StageEquivalence,
                         ::testing::Values(Sizes3{1, 1, 1}, Sizes3{1, 1, 2},
                                           Sizes3{1, 1, 3}, Sizes3{2, 1, 1},
                                           Sizes3{3, 1, 1}, Sizes3{1, 2, 1},
                                           Sizes3{1, 3, 1}, Sizes3{2, 2, 1},
                                           Sizes3{1, 2, 2}, Sizes3{1, 3, 2},
                                           Sizes3{3, 3, 1}, Sizes3{2, 2, 2},
                                           Sizes3{2, 3, 2}),
                         [](const auto &info) {
                           return std::to_string(info.param.tp) + "x" +
                                  std::to_string(info.param.pp) + "x" +
                                  std::to_string(info.param.dp);
                         });
