//===- Run.cpp - Runs a case in exact arithmetic --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The driver in one process, the comparison, shrinking.
///
//===----------------------------------------------------------------------===//

#include "Run.h"
#include "../Harness.h"
#include "parc/Driver/Compilation.h"
#include "parc/Eval/Compare.h"

#include <fstream>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::fuzz;
using mlir::parc::equiv::Zp;

namespace {

/// A case in the driver.
class Driven {
public:
  Driven(const Case &given, const std::string &folder);

  /// Lowers up to `phase`; an exit code.
  int lower(driver::Phase phase);
  MLIRContext &context() { return session->context; }
  std::string text() { return errors; }

private:
  void addRule();

  const Case &given;
  std::string errors;
  llvm::raw_string_ostream errorStream{errors};
  driver::Reporter reporter{errorStream, /*color=*/false};
  std::optional<driver::CommandLine> line;
  std::optional<driver::Session> session;

public:
  bool isPrepared = false;
  /// Lives in the session's context.
  driver::Compilation compilation;
};

} // namespace

Driven::Driven(const Case &given, const std::string &folder) : given(given) {
  std::string path = folder + "/config.json";
  std::ofstream(path) << given.config();
  std::vector<std::string> words = given.arguments();
  words.insert(words.begin(), {"run", path});
  std::vector<StringRef> references(words.begin(), words.end());
  line = driver::CommandLine::parse(references, reporter);
  if (!line)
    return;
  session.emplace(*line, reporter, llvm::nulls(), llvm::nulls());
  session->context.disableMultithreading();
  compilation.keepUnpartitioned = compilation.keepExact = true;
}

void Driven::addRule() {
  if (given.ruleAxis.empty())
    return;
  auto params = llvm::to_vector(compilation.module().getOps<ParamOp>());
  ParamOp param =
      params[static_cast<size_t>(given.ruleParameter) % params.size()];
  driver::ShardingRule rule;
  rule.pattern = param.getSymName().str();
  rule.dims.resize(param.getTensorType().getRank());
  if (rule.dims.empty() ||
      !compilation.declaration.mesh.value.indexOf(given.ruleAxis))
    return;
  rule.dims[static_cast<size_t>(given.ruleDim) % rule.dims.size()] = {
      given.ruleAxis};
  compilation.declaration.rules.push_back(rule);
}

int Driven::lower(driver::Phase phase) {
  if (!session)
    return driver::kUsage;
  int code = driver::prepare(*session, compilation, /*forDevices=*/false);
  if (code != driver::kDone)
    return code;
  isPrepared = true;
  addRule();
  return driver::lower(*session, compilation, phase);
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// What a user may be told. Everything else is a fault of the compiler.
static bool isReason(StringRef errors) {
  for (StringRef reason :
       {"more parts than units", "conflicting shardings of one value",
        "would be partial by two kinds of reduction",
        "a value that is split over micro-batches is needed whole",
        "exchanges the sequence for heads",
        "is already to be laid out otherwise"})
    if (errors.contains(reason))
      return true;
  return false;
}

/// A parameter that nothing reads lives on no rank.
static void dropUnread(ModuleOp ranks, eval::ParamStore<Zp> &store) {
  llvm::StringSet<> read;
  ranks.walk([&](LoadOp load) { read.insert(load.getParam()); });
  eval::ParamStore<Zp> kept;
  for (const auto &[key, value] : store.all())
    if (read.contains(key.symbol))
      kept.set(key, value);
  store = std::move(kept);
}

template <class T>
static FailureOr<equiv::Whole<T>> runWhole(ModuleOp module,
                                           int64_t vocabulary) {
  equiv::Whole<T> whole;
  whole.before = equiv::randomParams<T>(module);
  whole.after = whole.before;
  whole.inputs = equiv::stepInputs<T>(module, vocabulary);
  eval::ModulePlan<T> plan(module);
  auto result = eval::runStep<T>(*module.getOps<StepOp>().begin(), plan,
                                 whole.after, whole.inputs);
  if (failed(result))
    return failure();
  whole.results = std::move(result->results);
  whole.observed = std::move(result->observed);
  return whole;
}

/// What differs in double precision: for programs whose algebra holds in the
/// reals only. AdamW divides a gradient by its own size, so that parameters and
/// moments say nothing here.
static std::string compareReals(ModuleOp ranks, ModuleOp single,
                                int64_t vocabulary) {
  auto whole = runWhole<double>(single, vocabulary);
  if (failed(whole))
    return "the whole program did not run";
  auto got = eval::runRanks<double>(ranks, whole->before, whole->inputs);
  if (failed(got))
    return "the ranks did not run";
  std::string text;
  for (const std::string &difference : got->replicaDifferences)
    text += difference + "; ";
  for (const auto &[name, value] : whole->results) {
    auto found = got->results.find(name);
    if (found == got->results.end() ||
        !(eval::relativeDifference(found->second, value) <= 1e-8))
      text += name + " differs in f64; ";
  }
  return text;
}

Outcome mlir::parc::fuzz::run(const Case &given, const std::string &folder) {
  using Kind = Outcome::Kind;
  Driven driven(given, folder);
  int code = driven.lower(driver::Phase::Staged);
  // A rule may part what gives places from what reads them.
  bool moved = !given.ruleAxis.empty() &&
               StringRef(driven.text()).contains("remove the constraint");
  if (code != driver::kDone)
    return {moved || isReason(driven.text()) ? Kind::Refused : Kind::Wrong,
            driven.text(), driven.isPrepared ? 2 : 1};
  ModuleOp ranks = driven.compilation.module(),
           single = *driven.compilation.unpartitioned;
  // Rings are what they mean in exact arithmetic.
  ModuleOp exact =
      driven.compilation.exact ? *driven.compilation.exact : ModuleOp();
  equiv::Errors errors(driven.context());
  for (ModuleOp module : {ranks, single, exact})
    if (module && failed(equiv::decompose(module)))
      return {Kind::Wrong, "decomposition failed: " + errors.text, 3};
  auto whole = runWhole<Zp>(single, given.sizes.vocabulary);
  if (failed(whole))
    return {Kind::Wrong, "the whole program did not run: " + errors.text, 4};
  dropUnread(ranks, whole->after);
  std::string difference = equiv::compare(exact ? exact : ranks, *whole);
  if (difference.empty() && exact)
    difference = compareReals(ranks, single, given.sizes.vocabulary);
  if (difference.empty())
    return {Kind::Equal, ""};
  // Parts of batch and sequence that are very unequal: the step stops, with
  // rank, layer and expert.
  if (StringRef(errors.text).contains("its queue holds"))
    return {Kind::Refused, "error: a queue of experts overflows"};
  return {Kind::Wrong, difference.substr(0, 600) + "\n" + errors.text, 5};
}

//===----------------------------------------------------------------------===//
// Placements
//===----------------------------------------------------------------------===//

void mlir::parc::fuzz::addPlacements(const Case &given,
                                     const std::string &folder,
                                     Placements &placements) {
  Driven driven(given, folder);
  if (driven.lower(driver::Phase::Sharded) != driver::kDone)
    return;
  driven.compilation.module().walk([&](Operation *op) {
    std::set<std::string> found;
    for (Value value : equiv::valuesOf(op)) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      auto sharding =
          type ? dyn_cast_or_null<ShardingAttr>(type.getEncoding()) : nullptr;
      if (!sharding)
        continue;
      // Parts of an axis count as the axis.
      for (DimShardingAttr dim : sharding.getDims())
        for (StringAttr axis : dim.getAxes())
          found.insert(axis.getValue().split('.').first.str());
      for (StringAttr axis : sharding.getPartial())
        found.insert("partial " + axis.getValue().split('.').first.str());
    }
    for (const std::string &axis : found)
      ++placements[op->getName().getStringRef().str()][axis];
  });
}

//===----------------------------------------------------------------------===//
// Shrinking
//===----------------------------------------------------------------------===//

Case mlir::parc::fuzz::shrink(Case wrong, const std::string &folder) {
  int step = run(wrong, folder).step;
  // Each run takes milliseconds.
  unsigned left = 400;
  for (bool any = true; any && left > 0;) {
    any = false;
    for (const Case &next : simpler(wrong)) {
      if (left-- == 0)
        break;
      Outcome outcome = run(next, folder);
      if (outcome.kind != Outcome::Kind::Wrong || outcome.step != step)
        continue;
      wrong = next;
      any = true;
      break;
    }
  }
  return wrong;
}
