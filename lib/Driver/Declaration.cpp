//===- Declaration.cpp - What to compile ----------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Interpretation of the declaration's keys, their defaults and their checks.
///
//===----------------------------------------------------------------------===//

#include "Resolver.h"
#include "parc/Pipeline/Schedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

DeclarationSource::DeclarationSource(const CommandLine &line,
                                     std::optional<PlanFile> plan) {
  if (plan) {
    planPath = plan->path;
    rules = std::move(plan->rules);
    for (auto &[key, value] : plan->keys)
      values[key] = {value, Origin::Plan};
  }
  for (const KeySpec &key : planKeys())
    if (const Word *word = line.flag(key.name))
      values[key.name.str()] = {{word->text, word->place}, Origin::Flag};
}

void DeclarationSource::setFromFile(StringRef key, int64_t value,
                                    const Place &place) {
  values[key.str()] = {{std::to_string(value), place}, Origin::Flag};
}

std::optional<ElementKind> DeclarationSource::dtype(Reporter &reporter,
                                                    bool &failed) const {
  failed = false;
  auto found = values.find("dtype");
  if (found == values.end())
    return std::nullopt;
  const RawValue &raw = found->second.first;
  std::optional<ElementKind> kind = parseElementKind(raw.text);
  if (kind)
    return kind;
  failed = true;
  reporter.error(raw.place, "unknown dtype " + quoted(raw.text), "dtype");
  reporter.help("dtypes: bf16, f32, f64");
  return std::nullopt;
}

RankGrid Declaration::grid() const {
  TextError ignored;
  // The order was checked when the declaration was resolved.
  if (std::optional<RankGrid> grid =
          RankGrid::get(mesh.value, rankOrder.value, ignored))
    return *grid;
  return RankGrid::rowMajor(mesh.value);
}

bool Resolver::readMesh() {
  Setting<Mesh> &mesh = result.mesh;
  TextError error;
  if (const auto *given = find("mesh")) {
    std::optional<Mesh> parsed = Mesh::parse(given->first.text, error);
    const Place &place = given->first.place;
    if (!parsed) {
      fail(place.at(error.offset, std::max<size_t>(error.length, 1)),
           error.message, "mesh");
      if (!error.help.empty())
        reporter.help(error.help);
      return false;
    }
    mesh = {*parsed, given->second, place};
  } else if (facts.mesh) {
    mesh = {*facts.mesh, Origin::Model, Place{facts.file}};
  } else {
    mesh.value = *Mesh::parse("1x1x1", error);
  }
  return true;
}

bool Resolver::readOrder() {
  Setting<std::string> &order = result.rankOrder;
  if (const auto *given = find("rank-order")) {
    order = {given->first.text, given->second, given->first.place};
  } else if (result.mesh.origin == Origin::Model) {
    order.value = facts.order.empty()
                      ? RankGrid::rowMajor(result.mesh.value).orderText()
                      : facts.order;
    order.origin = Origin::Model;
    order.place.file = facts.file;
  } else {
    order.value = RankGrid::defaultOrder.str();
  }
  TextError error;
  if (RankGrid::get(result.mesh.value, order.value, error))
    return true;
  fail(order.place.valid()
           ? order.place.at(error.offset, std::max<size_t>(error.length, 1))
           : order.place,
       error.message, "rank-order");
  if (!error.help.empty())
    reporter.help(error.help);
  return false;
}

bool Resolver::readCount(StringRef key, Setting<int64_t> &out,
                         int64_t otherwise, Origin origin) {
  const auto *given = find(key);
  if (!given) {
    out.value = otherwise;
    out.origin = origin;
    if (origin == Origin::Model)
      out.place.file = facts.file;
    return true;
  }
  const RawValue &raw = given->first;
  int64_t value = 0;
  if (StringRef(raw.text).getAsInteger(10, value))
    return fail(raw.place,
                "expected a whole number for '" + key + "', got " +
                    quoted(raw.text),
                key);
  if (value < 1 || value > (int64_t(1) << 31) - 1)
    return fail(raw.place,
                "expected '" + key + "' from 1 to 2147483647, got " +
                    Twine(value),
                key);
  out = {value, given->second, raw.place};
  return true;
}

bool Resolver::readSchedule() {
  result.schedule.value = "1f1b";
  const auto *given = find("schedule");
  if (!given)
    return true;
  const RawValue &raw = given->first;
  result.schedule = {raw.text, given->second, raw.place};
  if (findScheduleRule(raw.text))
    return true;
  fail(raw.place, "unknown schedule " + quoted(raw.text), "schedule");
  StringRef near = nearestName(raw.text, scheduleRuleNames());
  reporter.help(near.empty()
                    ? "schedules: " + llvm::join(scheduleRuleNames(), ", ")
                    : "did you mean '" + near.str() + "'?");
  return false;
}

bool Resolver::readOptimizer() {
  static constexpr std::pair<StringLiteral, double> defaults[] = {
      {"lr", 1e-2},  {"beta1", 0.9},        {"beta2", 0.95},
      {"eps", 1e-8}, {"weight-decay", 0.1}, {"clip", 0.0}};
  for (const auto &[key, otherwise] : defaults) {
    Setting<double> &setting = result.optimizer[key.str()];
    setting.value = otherwise;
    const auto *given = find(key);
    if (!given)
      continue;
    const RawValue &raw = given->first;
    double value = 0;
    if (StringRef(raw.text).getAsDouble(value) || !std::isfinite(value))
      return fail(
          raw.place,
          "expected a number for '" + key + "', got " + quoted(raw.text), key);
    bool isBeta = key.starts_with("beta");
    if (value < 0 || (isBeta && value >= 1))
      return fail(raw.place,
                  "expected '" + key + "' " +
                      (isBeta ? "in [0, 1)" : "of at least 0") + ", got " +
                      raw.text,
                  key);
    setting = {value, given->second, raw.place};
  }
  return true;
}

bool Resolver::readSequenceParallel() {
  const auto *given = find("sp");
  if (!given)
    return true;
  result.sp = {given->first.text != "false", given->second, given->first.place};
  if (!result.sp.value || result.size("tp") > 1)
    return true;
  fail(result.sp.place,
       "sequence parallelism has nothing to attach to: expected tp of at least "
       "2, got 1",
       "sp-without-tp");
  reporter.help(
      "sp splits what lies between tp's regions; give the mesh tp, or "
      "use cp to split the sequence without it");
  return false;
}

bool Resolver::readChoice(StringRef key, ArrayRef<StringRef> choices,
                          Setting<std::string> &out) {
  out.value = choices.front().str();
  const auto *given = find(key);
  if (!given)
    return true;
  const RawValue &raw = given->first;
  out = {raw.text, given->second, raw.place};
  if (llvm::is_contained(choices, raw.text))
    return true;
  fail(raw.place, "unknown " + key + " " + quoted(raw.text), key);
  StringRef near = nearestName(raw.text, choices);
  reporter.help(near.empty() ? "one of " + llvm::join(choices, ", ")
                             : "did you mean '" + near.str() + "'?");
  return false;
}

bool Resolver::readContext() {
  return readChoice("cp-kind", {"auto", "ring", "all-gather", "ulysses"},
                    result.contextKind) &&
         readChoice("cp-split", {"balanced", "contiguous"},
                    result.contextSplit);
}

bool Resolver::readFactor(StringRef key, double least, Setting<double> &out) {
  const auto *given = find(key);
  if (!given)
    return true;
  const RawValue &raw = given->first;
  if (StringRef(raw.text).getAsDouble(out.value) || !(out.value >= least) ||
      out.value > 1e6)
    return fail(raw.place,
                "expected '" + key + "' from " + numberText(least) +
                    " to 1000000, got " + quoted(raw.text),
                key);
  out.origin = given->second;
  out.place = raw.place;
  return true;
}

std::optional<Declaration> Resolver::run() {
  bool failedType = false;
  std::optional<ElementKind> kind = source.dtype(reporter, failedType);
  if (failedType)
    return std::nullopt;
  result.dtype.value = kind.value_or(facts.dtype);
  result.dtype.origin = Origin::Model;
  result.dtype.place.file = facts.file;
  if (const auto *given = find("dtype"))
    result.dtype = {*kind, given->second, given->first.place};
  result.rules = source.rules;
  result.planPath = source.planPath;
  if (!readMesh() || !readOrder() || !readSchedule() || !readOptimizer() ||
      !readSequenceParallel() || !readContext() || !readSizes() ||
      !readZero() || !readMoe() || !readExperts() || !checkBatch() ||
      !checkStages())
    return std::nullopt;
  warnNodes();
  return std::move(result);
}

std::optional<Declaration>
DeclarationSource::resolve(const ModelFacts &facts, bool forDevices,
                           Reporter &reporter) const {
  return Resolver(*this, facts, forDevices, reporter).run();
}
