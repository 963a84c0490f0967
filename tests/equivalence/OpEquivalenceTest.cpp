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
      llvm::outs() << ", " << unmet << " refused (fewer units than parts)";
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

  void run(Coverage &coverage, ArrayRef<std::string> known = {});

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
    bool conflict =
        tested.contested && errors.text.find("conflicting shardings") == 0;
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
  std::string dump; { llvm::raw_string_ostream os(dump); clone->print(os); } // DEBUG
  if (failed(stage(*clone, plan)))
    {if (getenv("DUMP")) llvm::errs() << tested.text() << dump; return errors.text;}
  std::string difference = compare(*clone, whole);
  if (!difference.empty() && getenv("DUMP")) llvm::errs() << tested.text() << difference << dump << *clone;
  if (difference.empty())
    coverage.add(target, tested, split);
  return difference + errors.text;
}

void ModelRun::run(Coverage &coverage, ArrayRef<std::string> known) {
  std::string error;
  module = prepare(context.mlir, moduleText(model, sizes), error);
  ASSERT_TRUE(module) << error;
  auto run = runWhole<Zp>(*module, sizes.at('V'));
  ASSERT_TRUE(succeeded(run));
  whole = std::move(*run);
  unsigned wrong = 0;
  for (const Target &target : targetsOf(*module)) {
    if (llvm::is_contained(known, target.key))
      continue;
    Operation *op = opsOf(*module)[target.index];
    for (const Case &tested : casesOf(op, target)) {
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

/// The ops of the scaffolding around every model are tested with one of them.
static const std::vector<std::string> &scaffolding() {
  static const std::vector<std::string> keys = [] {
    Context context;
    std::string error;
    Model plain = {"scaffold", "x:BSK", "", "x:BSK", ""};
    auto module = prepare(context.mlir, moduleText(plain, evenSizes()), error);
    std::vector<std::string> list;
    if (module)
      for (const Target &target : targetsOf(*module))
        list.push_back(target.key);
    return list;
  }();
  return keys;
}

TEST_P(OpEquivalence, EveryFactorOnEveryMesh) {
  const Model &model = *GetParam();
  for (const Sizes *sizes : {&evenSizes(), &unevenSizes()}) {
    Coverage coverage;
    ModelRun(model, *sizes).run(coverage, scaffolding());
    coverage.print(model.name +
                   (sizes == &evenSizes() ? ", even" : ", uneven"));
    EXPECT_GT(coverage.total, 0u);
    // A factor that never runs split is covered in name only.
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
  Model plain = {"scaffold", "x:BSK", "", "x:BSK", ""};
  for (const Sizes *sizes : {&evenSizes(), &unevenSizes()}) {
    Coverage coverage;
    ModelRun(plain, *sizes).run(coverage);
    coverage.print("scaffolding");
    EXPECT_GT(coverage.total, 0u);
  }
}

/// Ops that differ in nothing but the number they compute.
TEST(OpEquivalence, Elementwise) {
  Context context;
  Coverage coverage;
  unsigned ran = 0;
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
    ModelRun(model, unevenSizes()).run(coverage, scaffolding());
  }
  coverage.print("elementwise");
  EXPECT_GE(ran, 20u);
}

/// Every op of the dialect is reached by some model.
TEST(OpEquivalence, NoOpIsMissing) {
  Context context;
  llvm::StringSet<> reached;
  for (const Model &model : models()) {
    std::string error;
    auto module = prepare(context.mlir, moduleText(model, evenSizes()), error);
    ASSERT_TRUE(module) << error;
    for (const Target &target : targetsOf(*module))
      reached.insert(target.name);
  }
  for (RegisteredOperationName op : context.mlir.getRegisteredOperations()) {
    if (op.getDialectNamespace() != "nn")
      continue;
    EXPECT_TRUE(reached.contains(op.getStringRef()))
        << "no model in Models.cpp reaches '" << op.getStringRef().str() << "'";
  }
}
