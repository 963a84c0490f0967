//===- OpEquivalenceTest.cpp - Every op, every factor, every mesh ---------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The partitioned program against the unpartitioned one in exact arithmetic.
/// What is tested is enumerated from the ops' own factors: there is no table
/// of factors here, and an op that no model reaches fails the test.
///
//===----------------------------------------------------------------------===//

#include "Model.h"
#include "OpCases.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

namespace {

/// How often an op ran with a factor split over a mesh.
struct Counts {
  unsigned equal = 0, resharded = 0;
};

/// Cases by op, factor and mesh.
class Coverage {
public:
  void add(const Target &target, const Case &tested, bool split) {
    std::string mesh;
    for (const Axis &axis : tested.mesh)
      mesh += (mesh.empty() ? "" : "x") + std::to_string(axis.size);
    for (const auto &[factor, axes] : tested.split) {
      Counts &counts = table[{target.key, factor}][mesh];
      ++(split ? counts.equal : counts.resharded);
    }
    ++total;
  }
  void print(StringRef model) const {
    llvm::outs() << model << ": " << total << " cases equal";
    if (unmet)
      llvm::outs()
          << ", " << unmet
          << " refused (fewer units than parts, or two wishes for one value)";
    llvm::outs() << "\n";
    for (const auto &[row, meshes] : table) {
      llvm::outs() << llvm::formatv(
          "  {0,-46} {1} {2}:", StringRef(row.first).split(' ').first, "factor",
          row.second);
      for (const auto &[mesh, counts] : meshes)
        llvm::outs() << llvm::formatv("  {0}: {1} split, {2} resharded", mesh,
                                      counts.equal, counts.resharded);
      llvm::outs() << "\n";
    }
  }

  unsigned total = 0, unmet = 0;
  /// By op and factor, then by mesh.
  std::map<std::pair<std::string, unsigned>, std::map<std::string, Counts>>
      table;
};

/// All cases of one model in one set of sizes.
class ModelRun {
public:
  ModelRun(const Model &model, const Sizes &sizes)
      : model(model), sizes(sizes) {}

  void run(Coverage &coverage, bool pairs, const llvm::StringSet<> &known = {});

private:
  /// Runs one case; empty where it is equal or refused with reason.
  std::string check(const Target &target, const Case &tested,
                    Coverage &coverage);

  Context context;
  const Model &model;
  const Sizes &sizes;
  OwningOpRef<ModuleOp> module;
  Whole<Zp> whole;
};

} // namespace

std::string ModelRun::check(const Target &target, const Case &tested,
                            Coverage &coverage) {
  Errors errors(context.mlir);
  Plan plan;
  plan.mesh = tested.mesh;
  Operation *op = opsOf(*module)[target.index];
  op->setDiscardableAttr("target", UnitAttr::get(&context.mlir));
  OwningOpRef<ModuleOp> clone = pinned(*module, plan, tested.pins);
  op->removeDiscardableAttr("target");
  if (failed(shard(*clone, plan))) {
    bool tooFewUnits = errors.text.find("more parts than units") == 0;
    bool conflict = (tested.contested || !target.hasFactors) &&
                    errors.text.find("conflicting shardings") == 0;
    if (!tooFewUnits && !conflict)
      return errors.text;
    ++coverage.unmet;
    return "";
  }
  bool split = !tested.contested;
  clone->walk([&](Operation *found) {
    if (found->hasAttr("target") && target.hasFactors)
      split &= runsSplit(found, tested);
  });
  if (failed(stage(*clone, plan)) || failed(decompose(*clone))) {
    return errors.text;
  }
  std::string difference = compare(*clone, whole);
  if (difference.empty())
    coverage.add(target, tested, split);
  return difference + errors.text;
}

void ModelRun::run(Coverage &coverage, bool pairs,
                   const llvm::StringSet<> &known) {
  std::string error;
  module = prepare(context.mlir, moduleText(model, sizes), error);
  ASSERT_TRUE(module) << error;
  auto run = runWhole<Zp>(*module, sizes.at('V'));
  ASSERT_TRUE(succeeded(run));
  whole = std::move(*run);
  unsigned wrong = 0;
  for (const Target &target : targetsOf(*module)) {
    if (known.contains(target.key))
      continue;
    Operation *op = opsOf(*module)[target.index];
    for (const Case &tested : casesOf(op, target, pairs)) {
      std::string difference = check(target, tested, coverage);
      if (difference.empty())
        continue;
      ADD_FAILURE() << target.key << " on " << tested.text() << "\n"
                    << difference.substr(0, 600);
      if (++wrong == 20)
        return;
    }
  }
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

namespace {
class OpEquivalence : public ::testing::TestWithParam<const Model *> {};
} // namespace

static const Model scaffold = {"scaffold", "x:BSK", "", "x:BSK", ""};

/// The kinds of op that a model reaches.
static std::vector<Target> targetsOfModel(const Model &model) {
  Context context;
  std::string error;
  auto module = prepare(context.mlir, moduleText(model, evenSizes()), error);
  EXPECT_TRUE(module) << error;
  return module ? targetsOf(*module) : std::vector<Target>();
}

/// The keys of what is tested with models before `model`, the scaffolding that
/// all models have first of all.
static llvm::StringSet<> testedBefore(const Model *model) {
  llvm::StringSet<> keys;
  for (const Target &target : targetsOfModel(scaffold))
    keys.insert(target.key);
  for (const Model &other : models()) {
    if (model && (&other == model || model->combination))
      break;
    for (const Target &target : targetsOfModel(other))
      keys.insert(target.key);
  }
  return keys;
}

TEST_P(OpEquivalence, EveryFactorOnEveryMesh) {
  const Model &model = *GetParam();
  llvm::StringSet<> known = testedBefore(&model);
  for (const Sizes *sizes : {&evenSizes(), &unevenSizes()}) {
    Coverage coverage;
    ModelRun(model, *sizes).run(coverage, sizes == &unevenSizes(), known);
    coverage.print(model.name +
                   (sizes == &evenSizes() ? ", even" : ", uneven"));
    // A factor that never runs split is covered in name only. In a combination
    // another op may have the better claim to the axis.
    if (model.combination)
      continue;
    for (const auto &[row, meshes] : coverage.table) {
      unsigned split = 0;
      for (const auto &[mesh, counts] : meshes)
        split += counts.equal;
      EXPECT_GT(split, 0u) << row.first << " never runs with factor "
                           << row.second << " split";
    }
  }
}

static std::vector<const Model *> modelPointers() {
  std::vector<const Model *> list;
  for (const Model &model : models())
    list.push_back(&model);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Ops, OpEquivalence,
                         ::testing::ValuesIn(modelPointers()),
                         [](const auto &info) { return info.param->name; });

/// What every model has around its op: loss, optimizer, constants.
TEST(OpEquivalence, Scaffolding) {
  for (const Sizes *sizes : {&evenSizes(), &unevenSizes()}) {
    Coverage coverage;
    ModelRun(scaffold, *sizes).run(coverage, /*pairs=*/true);
    coverage.print("scaffolding");
    EXPECT_GT(coverage.total, 0u);
  }
}

/// Ops that differ in nothing but the number they compute.
TEST(OpEquivalence, Elementwise) {
  Context context;
  Coverage coverage;
  unsigned ran = 0;
  llvm::StringSet<> known = testedBefore(nullptr);
  for (const Model &model : elementwiseModels(context.mlir)) {
    Errors errors(context.mlir);
    std::string error;
    auto module =
        prepare(context.mlir, moduleText(model, unevenSizes()), error);
    // No gradient, or nothing that evaluates it: not an op of a model.
    if (!module || failed(runWhole<Zp>(*module, 11)))
      continue;
    SCOPED_TRACE(model.name);
    ++ran;
    ModelRun(model, unevenSizes()).run(coverage, /*pairs=*/true, known);
  }
  coverage.print("elementwise");
  EXPECT_GE(ran, 20u);
}

/// Every op of the dialect is reached by some model.
TEST(OpEquivalence, NoOpIsMissing) {
  Context context;
  llvm::StringSet<> reached;
  for (const Model &model : models())
    for (const Target &target : targetsOfModel(model))
      reached.insert(target.name);
  for (RegisteredOperationName op : context.mlir.getRegisteredOperations()) {
    if (op.getDialectNamespace() != "nn")
      continue;
    EXPECT_TRUE(reached.contains(op.getStringRef()))
        << "no model in Models.cpp reaches '" << op.getStringRef().str() << "'";
  }
}
