//===- RandomPlanTest.cpp - Models under arbitrary annotations ------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Pseudo-random plans: several pins anywhere in a model, on meshes of up to
/// three axes, with and without the built-in strategy, stages and
/// micro-batches. A plan may be refused, by a reason that is listed here; what
/// is accepted must be equal.
///
//===----------------------------------------------------------------------===//

#include "Model.h"
#include "OpCases.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

namespace {

/// splitmix64: the same plans on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  /// A number below `bound`.
  uint64_t below(uint64_t bound) {
    uint64_t x = state += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return (x ^ (x >> 31)) % bound;
  }

private:
  uint64_t state;
};

/// A model, prepared, with what can be pinned in it.
struct Prepared {
  std::string name;
  OwningOpRef<ModuleOp> module;
  Whole<Zp> whole;
  std::vector<Target> targets;
  bool layered = false;
};

} // namespace

/// Why a plan may be refused.
static bool isReason(StringRef errors) {
  for (StringRef reason :
       {"more parts than units", "conflicting shardings of one value",
        "would be partial by two kinds of reduction", "reads places that",
        "a value that is split over micro-batches is needed whole"})
    if (errors.contains(reason))
      return true;
  return false;
}

static Plan randomPlan(Random &random, bool layered) {
  Plan plan;
  std::vector<std::string> names = {"tp", "dp", "x"};
  size_t count = 1 + random.below(3);
  for (size_t i = 0; i < count; ++i)
    plan.mesh.push_back({names[i], 2 + static_cast<int64_t>(random.below(2))});
  plan.strategy = random.below(3) == 0;
  if (layered && count < 3 && random.below(2))
    plan.mesh.push_back({"pp", 2 + static_cast<int64_t>(random.below(2))});
  if (layered && plan.strategy)
    plan.microBatches = 1 + static_cast<int64_t>(random.below(3));
  plan.rule = random.below(2) ? "gpipe" : "1f1b";
  plan.zero = static_cast<int64_t>(random.below(4));
  return plan;
}

/// Pins dimensions of one value over some axes; `axes` loses them.
static void addPin(Random &random, Prepared &model, const Plan &plan,
                   SmallVector<Pin> &pins) {
  const Target &target = model.targets[random.below(model.targets.size())];
  Operation *op = opsOf(*model.module)[target.index];
  const Splittable &split = target.splits[random.below(target.splits.size())];
  Use use = split.uses[random.below(split.uses.size())];
  MLIRContext *context = op->getContext();
  auto type = cast<RankedTensorType>(valuesOf(op)[use.value].getType());
  SmallVector<SmallVector<StringAttr>> axes(type.getRank());
  for (const Axis &axis : plan.mesh) {
    // Half of the axes split something, most of them what can be split.
    if (axis.name == "pp" || random.below(2))
      continue;
    unsigned dim = random.below(4) ? use.dim : random.below(type.getRank());
    axes[dim].push_back(StringAttr::get(context, axis.name));
  }
  SmallVector<DimShardingAttr> dims;
  for (const auto &list : axes)
    dims.push_back(DimShardingAttr::get(context, list, 1));
  pins.push_back({target.index, use.value,
                  ShardingAttr::get(context, dims, ReductionKind::Sum,
                                    ArrayRef<StringAttr>{})});
}

static std::vector<Prepared> prepareAll(Context &context) {
  std::vector<Prepared> list;
  auto add = [&](const std::string &name, const std::string &text,
                 bool layered) {
    Prepared model;
    std::string error;
    model.name = name;
    model.layered = layered;
    model.module = prepare(context.mlir, text, error);
    ASSERT_TRUE(model.module) << error;
    auto whole = runWhole<Zp>(*model.module, 11);
    ASSERT_TRUE(succeeded(whole)) << name;
    model.whole = std::move(*whole);
    model.targets = targetsOf(*model.module);
    list.push_back(std::move(model));
  };
  for (const Model &model : models())
    add(model.name, moduleText(model, unevenSizes()), false);
  // As often as all the others.
  for (size_t i = 0, n = models().size() / 2; i < n; ++i)
    add("stack", stackModelText(), true);
  return list;
}

TEST(RandomPlan, AcceptedMeansEqual) {
  Context context;
  std::vector<Prepared> all = prepareAll(context);
  unsigned equal = 0, refused = 0;
  constexpr uint64_t seeds = 600;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    Random random(seed * 7919 + 1);
    Prepared &model = all[random.below(all.size())];
    Plan plan = randomPlan(random, model.layered);
    SmallVector<Pin> pins;
    for (uint64_t i = 0, n = 1 + random.below(4); i < n; ++i)
      addPin(random, model, plan, pins);
    Errors errors(context.mlir);
    OwningOpRef<ModuleOp> clone = pinned(*model.module, plan, pins);
    if (failed(shard(*clone, plan)) || failed(stage(*clone, plan)) ||
        failed(decompose(*clone))) {
      EXPECT_TRUE(isReason(errors.text))
          << "seed " << seed << ", " << model.name << ": " << errors.text;
      ++refused;
      continue;
    }
    std::string difference = compare(*clone, model.whole);
    EXPECT_EQ(difference.substr(0, 300), "")
        << "seed " << seed << ", " << model.name << ": " << errors.text;
    ++equal;
  }
  llvm::outs() << equal << " random plans equal, " << refused
               << " refused with a reason\n";
  EXPECT_GT(equal, seeds / 2);
}
