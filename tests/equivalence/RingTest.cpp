//===- RingTest.cpp - Attention on a ring ---------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Ring attention and its gradients: how it runs, in double precision, and what
/// it means, in exact arithmetic; both against one rank's attention.
///
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "Model.h"
#include "parc/Eval/Compare.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

namespace {

/// How keys are masked, and in which order positions come.
struct Mask {
  const char *name, *attributes, *positions;
};

constexpr Mask kMasks[] = {
    {"whole", "", "pos"},
    {"causal", "causal", "pos"},
    {"window", "causal window 3", "pos"},
    {"only_window", "window 2", "pos"},
    // Positions in no order, some twice: what is cut off must be found.
    {"shuffled", "causal", "ids"},
    {"shuffled_window", "causal window 4", "ids"},
};

class RingTest : public ::testing::TestWithParam<Mask> {
protected:
  Model model() const {
    std::string positions = GetParam().positions;
    std::string at = "%" + positions, type = "$" + positions;
    return {"ring", "q:BSHD k:BSGD v:BSGE", positions + ":BS", "y:BSHE",
            "%y = nn.attention %q, %k, %v positions(" + at + ", " + at + ") " +
                GetParam().attributes + " scale 0.5 : $q, $k, $v, " + type +
                ", " + type + " -> $y"};
  }

  /// The module on a ring of `ranks`, ready to run. Null after a failure.
  OwningOpRef<ModuleOp> partitioned(ModuleOp module, int64_t ranks,
                                    bool contracts) {
    Plan plan;
    plan.mesh = {{"cp", ranks}};
    plan.strategy = true;
    plan.options.contextKind = ContextKind::Ring;
    plan.contracts = contracts;
    OwningOpRef<ModuleOp> clone = pinned(module, plan, {});
    unsigned onRing = 0;
    if (failed(shard(*clone, plan)))
      return nullptr;
    clone->walk([&](RingOpInterface op) { onRing += bool(op.getRingAxes()); });
    EXPECT_EQ(onRing, 2u) << "attention and its gradients";
    if (failed(stage(*clone, plan)))
      return nullptr;
    countShifts(*clone, contracts ? 0 : ranks - 1);
    return succeeded(decompose(*clone)) ? std::move(clone) : nullptr;
  }

  /// Keys and values forward; the same and their gradients backward.
  static void countShifts(ModuleOp module, int64_t hops) {
    int64_t forward = 0, backward = 0;
    for (RoleOp role : module.getOps<RoleOp>()) {
      role.getForward().walk([&](ShiftOp) { ++forward; });
      role.getBackward().walk([&](ShiftOp) { ++backward; });
    }
    EXPECT_EQ(forward, 2 * hops);
    EXPECT_EQ(backward, 4 * hops);
  }

  Context context;
};

} // namespace

static void expectClose(const eval::RanksResult<double> &got,
                        const Whole<double> &whole) {
  EXPECT_TRUE(got.replicaDifferences.empty());
  for (const auto &[name, value] : whole.results)
    EXPECT_LE(eval::relativeDifference(got.results.at(name), value), 1e-12)
        << name;
  for (const auto &[key, value] : whole.after.all()) {
    const auto *found = got.params.find(key);
    ASSERT_TRUE(found) << key.text();
    EXPECT_LE(eval::relativeDifference(*found, value), 1e-12) << key.text();
  }
}

TEST_P(RingTest, EqualsOneRank) {
  for (int64_t sequence : {4, 7, 12})
    for (int64_t ranks : {2, 3, 4}) {
      SCOPED_TRACE(std::to_string(sequence) + " on " + std::to_string(ranks));
      Errors errors(context.mlir);
      Sizes sizes = {{'B', 2}, {'S', sequence}, {'H', 4},
                     {'G', 2}, {'D', 3},        {'E', 2}};
      std::string error;
      auto module = prepare(context.mlir, moduleText(model(), sizes), error);
      ASSERT_TRUE(module) << error;
      auto whole = runWhole<double>(*module, 2 * sequence);
      ASSERT_TRUE(succeeded(whole));
      auto real = partitioned(*module, ranks, false);
      ASSERT_TRUE(real) << errors.text;
      auto got = eval::runRanks<double>(*real, whole->before, whole->inputs);
      ASSERT_TRUE(succeeded(got)) << errors.text;
      expectClose(*got, *whole);

      auto exact = runWhole<Zp>(*module, 2 * sequence);
      ASSERT_TRUE(succeeded(exact));
      auto meant = partitioned(*module, ranks, true);
      ASSERT_TRUE(meant) << errors.text;
      EXPECT_EQ(compare(*meant, *exact), "") << errors.text;
    }
}

/// True where the ranks' numbers are not those of one rank.
static bool differs(ModuleOp module, const Whole<double> &whole) {
  auto got = eval::runRanks<double>(module, whole.before, whole.inputs);
  if (failed(got))
    return true;
  for (const auto &[key, value] : whole.after.all()) {
    const auto *found = got->params.find(key);
    if (!found || !(eval::relativeDifference(*found, value) <= 1e-6))
      return true;
  }
  return llvm::any_of(whole.results, [&](const auto &entry) {
    return !(eval::relativeDifference(got->results.at(entry.first),
                                      entry.second) <= 1e-6);
  });
}

/// A transfer left out, and one that comes from the neighbour's neighbour.
TEST_P(RingTest, WrongNeighbourIsSeen) {
  Errors errors(context.mlir);
  Sizes sizes = {{'B', 2}, {'S', 12}, {'H', 4}, {'G', 2}, {'D', 3}, {'E', 2}};
  std::string error;
  auto module = prepare(context.mlir, moduleText(model(), sizes), error);
  ASSERT_TRUE(module) << error;
  auto whole = runWhole<double>(*module, 24);
  ASSERT_TRUE(succeeded(whole));
  auto real = partitioned(*module, 4, false);
  ASSERT_TRUE(real) << errors.text;
  auto shiftsOf = [](ModuleOp module) {
    SmallVector<ShiftOp> shifts;
    module.walk([&](ShiftOp shift) { shifts.push_back(shift); });
    return shifts;
  };
  // Behind a window lie transfers of what nobody looks at.
  bool all = std::string(GetParam().name) == "whole";
  unsigned made = 0, seen = 0;
  for (size_t index = 0; index < shiftsOf(*real).size(); ++index)
    for (bool twice : {false, true}) {
      OwningOpRef<ModuleOp> broken(real->clone());
      ShiftOp shift = shiftsOf(*broken)[index];
      if (twice) {
        OpBuilder builder(shift->getContext());
        builder.setInsertionPointAfter(shift);
        auto next = cast<ShiftOp>(builder.clone(*shift));
        next.getInputMutable().assign(shift.getResult());
        shift.getResult().replaceAllUsesExcept(next.getResult(), next);
      } else {
        shift.getResult().replaceAllUsesWith(shift.getInput());
        shift.erase();
      }
      bool different = differs(*broken, *whole);
      EXPECT_TRUE(different || !all)
          << (twice ? "twice: " : "left out: ") << index;
      ++made;
      seen += different;
    }
  EXPECT_GE(2 * seen, made);
}

INSTANTIATE_TEST_SUITE_P(Masks, RingTest, ::testing::ValuesIn(kMasks),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
