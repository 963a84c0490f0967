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

#include "parc/Driver/Declaration.h"
#include "parc/Import/Model.h"
#include "parc/Pipeline/Schedule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

/// A node where no cluster is named.
static constexpr int64_t kNodeSize = 8;
/// Longer sequences are asked for, not assumed.
static constexpr int64_t kUsualSequence = 8192;

/// The shortest text that reads back as the same number.
static std::string number(double value) {
  for (int digits = 1; digits < 17; ++digits) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, value);
    double back = 0;
    if (!StringRef(text).getAsDouble(back) && back == value)
      return text;
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", value);
  return text;
}

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

namespace mlir::parc::driver {

/// One resolution.
class Resolver {
public:
  Resolver(const DeclarationSource &source, const ModelFacts &facts,
           bool forDevices, Reporter &reporter)
      : source(source), facts(facts), forDevices(forDevices),
        reporter(reporter) {}

  std::optional<Declaration> run();

private:
  const std::pair<RawValue, Origin> *find(StringRef key) const {
    auto found = source.values.find(key.str());
    return found == source.values.end() ? nullptr : &found->second;
  }
  bool fail(const Place &place, const Twine &message, StringRef name) {
    reporter.error(place, message, name);
    return false;
  }
  bool readMesh();
  bool readOrder();
  bool readCount(StringRef key, Setting<int64_t> &out, int64_t otherwise,
                 Origin origin);
  bool readSchedule();
  bool readOptimizer();
  bool readContext();
  bool readChoice(StringRef key, ArrayRef<StringRef> choices,
                  Setting<std::string> &out);
  bool readSequenceParallel();
  bool readExperts();
  bool readSizes();
  bool checkExpertKeys();
  bool readMoe();
  bool readExpertScope();
  void warnExpertCuts();
  bool readFactor(StringRef key, double least, Setting<double> &out);
  bool readZero();
  bool checkZeroGroup();
  bool checkStages();
  bool checkBatch();
  void warnNodes();

  const DeclarationSource &source;
  const ModelFacts &facts;
  bool forDevices;
  Reporter &reporter;
  Declaration result;
};

} // namespace mlir::parc::driver

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

bool Resolver::readExperts() {
  if (!readCount("ep", result.ep, 1, Origin::Default))
    return false;
  int64_t ep = result.ep.value;
  if (ep == 1)
    return true;
  const Place &place = result.ep.place;
  if (facts.experts && *facts.experts == 0) {
    fail(place,
         "expert parallelism on a dense model: ep=" + Twine(ep) +
             ", the model has no experts",
         "ep-on-dense");
    reporter.help("leave out ep");
    return false;
  }
  if (facts.experts && *facts.experts % ep != 0) {
    fail(place,
         "experts are not a multiple of ep: " + Twine(*facts.experts) +
             " experts, ep=" + Twine(ep),
         "ep-experts");
    reporter.help("ep must divide " + Twine(*facts.experts));
    return false;
  }
  // Experts take the ranks of cp first, then of dp.
  int64_t cp = result.size("cp"), dp = result.size("dp");
  bool fits = ep <= cp ? cp % ep == 0 : ep % cp == 0 && dp % (ep / cp) == 0;
  if (!fits) {
    fail(place,
         "ep=" + Twine(ep) +
             " does not divide the ranks that share a "
             "batch: cp=" +
             Twine(cp) + ", dp=" + Twine(dp),
         "ep-mesh");
    reporter.help("ep takes cp first, then dp: a divisor of cp, or cp times a "
                  "divisor of dp");
    return false;
  }
  if (result.size("tp") > 1 && !result.sp.value) {
    fail(place,
         "ep=" + Twine(ep) + " with tp=" + Twine(result.size("tp")) +
             " needs sp",
         "ep-without-sp");
    reporter.help("without sp every tp rank would send the same tokens; add "
                  "--sp");
    return false;
  }
  warnExpertCuts();
  return true;
}

/// ZeRO's groups cut dp and cp first. Experts lie on neighbours, and where
/// their ranks do not nest with a group, on the next larger part of the axis.
void Resolver::warnExpertCuts() {
  int64_t ep = result.ep.value, group = result.zeroGroup.value;
  int64_t cp = result.size("cp"), dp = result.size("dp");
  if (result.zero.value == 0 || group == cp * dp)
    return;
  auto ranksOf = [](int64_t wanted, int64_t cut, int64_t axis) {
    if (wanted % cut == 0 || cut % wanted == 0)
      return wanted;
    return wanted < cut ? cut : axis;
  };
  int64_t ranks =
      ranksOf(std::min(ep, cp), std::min(group, cp), cp) *
      ranksOf(ep / std::min(ep, cp), group / std::min(group, cp), dp);
  if (ranks == ep)
    return;
  int64_t experts = facts.experts.value_or(0);
  std::string share;
  if (experts % ranks != 0)
    share = llvm::formatv(", {0} or {1} of {2} on each", experts / ranks,
                          experts / ranks + 1, experts);
  reporter.warning(result.ep.place,
                   "ep=" + Twine(ep) + " and a ZeRO group of " + Twine(group) +
                       " cut dp x cp and do not nest: experts lie on " +
                       Twine(ranks) + " ranks" + share,
                   "ep-zero-group");
}

bool Resolver::readSizes() {
  int64_t pp = result.size("pp"), dp = result.size("dp");
  Origin fromModel = facts.batch ? Origin::Model : Origin::Default;
  if (!readCount("batch", result.batch, facts.batch.value_or(4 * pp * dp),
                 fromModel))
    return false;
  int64_t sequence = facts.maxSequence
                         ? std::min(facts.maxSequence, kUsualSequence)
                         : kUsualSequence;
  Origin origin = facts.sequence ? Origin::Model : Origin::Default;
  if (!readCount("seq", result.sequence, facts.sequence.value_or(sequence),
                 origin))
    return false;
  int64_t one = std::max<int64_t>(1, result.batch.value / dp);
  return readCount("micro-batches", result.microBatches, one, Origin::Default);
}

bool Resolver::readFactor(StringRef key, double least, Setting<double> &out) {
  const auto *given = find(key);
  if (!given)
    return true;
  const RawValue &raw = given->first;
  if (StringRef(raw.text).getAsDouble(out.value) || !(out.value >= least) ||
      out.value > 1e6)
    return fail(raw.place,
                "expected '" + key + "' from " + number(least) +
                    " to 1000000, got " + quoted(raw.text),
                key);
  out.origin = given->second;
  out.place = raw.place;
  return true;
}

/// False where a key of experts has no meaning for this model. A program's own
/// plan repeats what it was imported with.
bool Resolver::checkExpertKeys() {
  for (StringRef key :
       {"moe", "moe-buffer-factor", "capacity-factor", "moe-scope"}) {
    const auto *given = find(key);
    bool repeats = !facts.isConfig && given && given->second == Origin::Plan;
    if (!given || facts.experts.value_or(0) > 0 || repeats)
      continue;
    fail(given->first.place,
         facts.isConfig ? "'" + key + "' without experts in the model"
                        : "'" + key + "' of a program, which has its queues",
         key);
    reporter.help(facts.isConfig ? "remove it"
                                 : "give it when the config is imported");
    return false;
  }
  return true;
}

bool Resolver::readMoe() {
  static constexpr StringLiteral kinds[] = {"dropless", "capacity"};
  if (!checkExpertKeys())
    return false;
  if (facts.experts.value_or(0) > 0)
    result.moe.value = kinds[0].str();
  if (const auto *given = find("moe"))
    result.moe = {given->first.text, given->second, given->first.place};
  if (result.moe.value.empty())
    return true;
  if (!llvm::is_contained(kinds, StringRef(result.moe.value))) {
    fail(result.moe.place, "unknown 'moe' " + quoted(result.moe.value), "moe");
    reporter.help("kinds: dropless, capacity");
    return false;
  }
  bool drops = result.moe.value == kinds[1];
  if (const auto *given = find("capacity-factor"); given && !drops) {
    fail(given->first.place, "'capacity-factor' where no token is dropped",
         "capacity-factor");
    reporter.help("add --moe capacity, or remove it");
    return false;
  }
  if (drops)
    result.capacityFactor.value = RoutingOptions().capacityFactor;
  // A queue below the balanced load would overflow in every step.
  return readFactor("moe-buffer-factor", 1.0, result.bufferFactor) &&
         readFactor("capacity-factor", 0.001, result.capacityFactor) &&
         readExpertScope();
}

bool Resolver::readExpertScope() {
  Setting<std::string> &scope = result.expertScope;
  if (!readChoice("moe-scope", {"sequence", "micro-batch", "global"}, scope))
    return false;
  int64_t batch = result.batch.value, m = result.microBatches.value;
  int64_t parts = result.size("dp") * m;
  if (scope.value == "global" && m > 1) {
    fail(scope.place,
         "a scope of the whole batch in " + Twine(m) +
             " micro-batches: none can wait for a later one",
         "moe-scope");
    reporter.help("--micro-batches 1, or --moe-scope micro-batch");
    return false;
  }
  if (scope.value == "micro-batch" && batch % parts != 0) {
    fail(scope.place,
         "micro-batches of different sizes are no scope: " + Twine(batch) +
             " sequences in " + Twine(parts) + " parts",
         "moe-scope");
    reporter.help("a --batch that is a multiple of " + Twine(parts));
    return false;
  }
  return true;
}

/// A group is whole along the faster of the two axes, or lies within it.
bool Resolver::checkZeroGroup() {
  if (result.zeroGroup.value == 1 && result.dataRanks() > 1) {
    fail(result.zeroGroup.place, "a ZeRO group of 1 rank splits nothing",
         "zero-group");
    reporter.help("--zero 0 says the same");
    return false;
  }
  int64_t ranks = result.dataRanks(), group = result.zeroGroup.value;
  int64_t cp = result.size("cp");
  if (ranks % group == 0 && (group % cp == 0 || cp % group == 0))
    return true;
  fail(result.zeroGroup.place,
       "expected a ZeRO group that divides dp x cp = " + Twine(ranks) +
           ", got " + Twine(group),
       "zero-group");
  for (int64_t fewer = group - 1; fewer > 0; --fewer)
    if (ranks % fewer == 0 && (fewer % cp == 0 || cp % fewer == 0)) {
      reporter.help("the next smaller one is " + Twine(fewer));
      break;
    }
  return false;
}

bool Resolver::readZero() {
  int64_t ranks = result.dataRanks();
  result.zero.value = ranks > 1 ? 1 : 0;
  if (const auto *given = find("zero")) {
    const RawValue &raw = given->first;
    int64_t stage = 0;
    if (StringRef(raw.text).getAsInteger(10, stage) || stage < 0 || stage > 3)
      return fail(raw.place,
                  "expected 'zero' from 0 to 3, got " + quoted(raw.text),
                  "zero");
    result.zero = {stage, given->second, raw.place};
    bool isOther =
        given->second == Origin::Plan && result.mesh.origin == Origin::Flag;
    if (ranks == 1 && isOther) {
      // The plan means another mesh.
      result.zero.value = 0;
    } else if (stage > 0 && ranks == 1) {
      fail(raw.place,
           "ZeRO " + Twine(stage) +
               " has nothing to split over: dp=1, cp=1 in the mesh " +
               result.mesh.value.str(),
           "zero");
      reporter.help("give the mesh a dp axis, or leave --zero out");
      return false;
    }
  }
  if (!readCount("zero-group", result.zeroGroup, ranks, Origin::Default))
    return false;
  if (find("zero-group") && result.zero.value == 0) {
    fail(result.zeroGroup.place, "a ZeRO group without ZeRO", "zero-group");
    reporter.help("--zero 1, 2 or 3 splits over groups");
    return false;
  }
  if (!checkZeroGroup())
    return false;
  int64_t m = result.microBatches.value;
  if (result.zero.value >= 2 && m > 1)
    reporter.warning(
        result.zero.place,
        "ZeRO " + Twine(result.zero.value) + " reduces gradients " + Twine(m) +
            " times a step, once a micro-batch" +
            (result.zero.value == 3 ? ", and gathers parameters twice in each"
                                    : ""),
        "zero-traffic");
  return true;
}

bool Resolver::checkStages() {
  int64_t pp = result.size("pp"), m = result.microBatches.value;
  if (pp > std::max<int64_t>(1, facts.layers)) {
    fail(result.mesh.place,
         "more stages than layers: pp=" + Twine(pp) + ", layers " +
             Twine(facts.layers),
         "stages");
    reporter.help("pp can be at most " +
                  Twine(std::max<int64_t>(1, facts.layers)));
    return false;
  }
  ScheduleProblem problem;
  problem.stages = pp;
  problem.microBatches = m;
  if (std::optional<std::string> wrong = problem.check())
    return fail(result.microBatches.place, *wrong, "schedule");
  if (std::optional<std::string> idle = idleWarning(pp, m)) {
    reporter.warning(result.microBatches.place,
                     "fewer micro-batches than stages: " + *idle, "idle");
    reporter.help("a larger --batch or more --micro-batches fill it");
  }
  return true;
}

bool Resolver::checkBatch() {
  int64_t dp = result.size("dp"), m = result.microBatches.value;
  int64_t batch = result.batch.value, parts = 0;
  bool overflow = llvm::MulOverflow(dp, m, parts);
  const Place &place = result.batch.place.valid() ? result.batch.place
                       : result.microBatches.place.valid()
                           ? result.microBatches.place
                           : result.mesh.place;
  if (overflow || batch < parts) {
    fail(place,
         "batch smaller than dp x micro-batches: " + Twine(batch) +
             " sequences for dp=" + Twine(dp) + " x " + Twine(m) +
             " micro-batches",
         "batch");
    if (!overflow)
      reporter.help("--batch " + Twine(parts) +
                    (batch >= dp ? ", or --micro-batches " + Twine(batch / dp)
                                 : Twine()));
    return false;
  }
  if (batch % parts != 0)
    reporter.warning(
        place,
        "batch " + Twine(batch) + " is no multiple of dp=" + Twine(dp) + " x " +
            Twine(m) + " micro-batches: " + Twine(batch / parts) + " or " +
            Twine(batch / parts + 1) + " sequences in each",
        "uneven-batch");
  return true;
}

void Resolver::warnNodes() {
  if (!forDevices)
    return;
  std::optional<size_t> tp = result.mesh.value.indexOf("tp");
  if (!tp || result.size("tp") < 2)
    return;
  int64_t reach = (result.size("tp") - 1) * result.grid().strides()[*tp] + 1;
  // A group inside an aligned block of a node's size stays in the node.
  if (reach <= kNodeSize && kNodeSize % reach == 0)
    return;
  if (reach <= kNodeSize && result.mesh.value.devices() <= kNodeSize)
    return;
  reporter.warning(result.mesh.place,
                   "tp=" + Twine(result.size("tp")) +
                       " reaches across nodes of " + Twine(kNodeSize) +
                       ": a group spans " + Twine(reach) + " ranks",
                   "tp-across-nodes");
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

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

std::string mlir::parc::driver::originText(Origin origin, const Place &place) {
  switch (origin) {
  case Origin::Default:
    return "default";
  case Origin::Model:
    return "the model";
  case Origin::Plan:
    return printable(place.file) + ":" + std::to_string(place.line);
  case Origin::Flag:
    return place.file == "<command line>" ? "flag" : printable(place.file);
  }
  return "";
}

namespace {
/// A key as it is printed.
struct Row {
  StringRef key;
  std::string value;
  bool text;
  std::string origin;
};
} // namespace

template <class T>
static Row row(StringRef key, std::string value, bool text,
               const Setting<T> &setting) {
  return {key, std::move(value), text,
          originText(setting.origin, setting.place)};
}

static SmallVector<Row> rows(const Declaration &d) {
  SmallVector<Row> table = {
      row("mesh", d.mesh.value.str(), true, d.mesh),
      row("rank-order", d.rankOrder.value, true, d.rankOrder),
      row("schedule", d.schedule.value, true, d.schedule),
      row("batch", std::to_string(d.batch.value), false, d.batch),
      row("seq", std::to_string(d.sequence.value), false, d.sequence),
      row("micro-batches", std::to_string(d.microBatches.value), false,
          d.microBatches),
      row("zero", std::to_string(d.zero.value), false, d.zero),
      row("dtype", stringifyElementKind(d.dtype.value).str(), true, d.dtype)};
  table.push_back(row("sp", d.sp.value ? "true" : "false", false, d.sp));
  table.push_back(row("cp-kind", d.contextKind.value, true, d.contextKind));
  table.push_back(row("cp-split", d.contextSplit.value, true, d.contextSplit));
  table.push_back(row("ep", std::to_string(d.ep.value), false, d.ep));
  if (!d.moe.value.empty())
    table.push_back(row("moe", d.moe.value, true, d.moe));
  if (d.bufferFactor.value != 0.0)
    table.push_back(row("moe-buffer-factor", number(d.bufferFactor.value),
                        false, d.bufferFactor));
  if (d.capacityFactor.value != 0.0)
    table.push_back(row("capacity-factor", number(d.capacityFactor.value),
                        false, d.capacityFactor));
  if (!d.expertScope.value.empty() && d.expertScope.value != "sequence")
    table.push_back(row("moe-scope", d.expertScope.value, true, d.expertScope));
  if (d.zeroGroup.value != d.dataRanks())
    table.push_back(row("zero-group", std::to_string(d.zeroGroup.value), false,
                        d.zeroGroup));
  for (StringRef key :
       {"lr", "beta1", "beta2", "eps", "weight-decay", "clip"}) {
    const Setting<double> &setting = d.optimizer.at(key.str());
    table.push_back(row(key, number(setting.value), false, setting));
  }
  return table;
}

static std::string ruleText(const ShardingRule &rule) {
  std::string text = "[";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(rule.dims, os, [&](const auto &dim) {
    os << '[';
    llvm::interleaveComma(dim, os, [&](const std::string &axis) {
      os << '"' << printable(axis) << '"';
    });
    os << ']';
  });
  os << ']';
  return text;
}

/// A TOML basic string.
static std::string tomlString(StringRef text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string mlir::parc::driver::planText(const Declaration &declaration) {
  std::string text = "schema = 1\n";
  llvm::raw_string_ostream os(text);
  for (const Row &row : rows(declaration))
    os << row.key << " = " << (row.text ? tomlString(row.value) : row.value)
       << '\n';
  if (!declaration.rules.empty())
    os << "\n[rules]\n";
  for (const ShardingRule &rule : declaration.rules)
    os << tomlString(printable(rule.pattern)) << " = " << ruleText(rule)
       << '\n';
  return text;
}

void mlir::parc::driver::printDeclaration(const Declaration &declaration,
                                          raw_ostream &os) {
  for (const Row &row : rows(declaration))
    os << llvm::left_justify(row.key, 15) << ' '
       << llvm::left_justify(row.value, 30) << ' ' << row.origin << '\n';
  for (const ShardingRule &rule : declaration.rules)
    os << llvm::left_justify("rule", 15) << ' '
       << llvm::left_justify(printable(rule.pattern) + " = " + ruleText(rule),
                             30)
       << ' ' << originText(Origin::Plan, rule.place) << '\n';
}

llvm::json::Value
mlir::parc::driver::declarationToJSON(const Declaration &declaration) {
  llvm::json::Object object;
  for (const Row &row : rows(declaration)) {
    llvm::json::Value value = row.value;
    int64_t whole = 0;
    double real = 0;
    if (row.value == "true" || row.value == "false")
      value = row.value == "true";
    else if (!row.text && !StringRef(row.value).getAsInteger(10, whole))
      value = whole;
    else if (!row.text && !StringRef(row.value).getAsDouble(real))
      value = real;
    object[row.key] =
        llvm::json::Object{{"value", std::move(value)}, {"origin", row.origin}};
  }
  return object;
}
