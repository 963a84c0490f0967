//===- Compilation.cpp - A model through the phases -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Preparation, lowering and the summary.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Compilation.h"
#include "parc/Driver/Annotate.h"
#include "parc/Driver/Output.h"
#include "parc/Import/Model.h"
#include "parc/Pipeline/Rational.h"

#include "Parc/Parc.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

Session::Session(const CommandLine &line, Reporter &reporter, raw_ostream &out,
                 raw_ostream &err)
    : line(line), reporter(reporter), out(out), err(err), quiet(line.has("q")),
      verbose(line.has("v")), json(line.has("json")) {
  setUpContext(context);
}

//===----------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------===//

/// Reads --plan, or the plan beside the model. `code` is set on failure.
static std::optional<PlanFile> openPlan(Session &session,
                                        const ModelInput &input, int &code) {
  const Word *word = session.line.flag("plan");
  std::string path = word ? word->text : input.beside("plan.toml");
  if (path.empty())
    return std::nullopt;
  std::optional<std::string> text =
      readFile(path, size_t(1) << 20,
               word                  ? word->place
               : input.typed.empty() ? Place()
                                     : session.line.model.place,
               session.reporter);
  if (!text) {
    code = kUsage;
    return std::nullopt;
  }
  std::optional<PlanFile> plan = readPlan(path, *text, session.reporter);
  if (!plan)
    code = kWrong;
  return plan;
}

int mlir::parc::driver::prepare(Session &session, Compilation &compilation,
                                bool forDevices, const DataShape *data) {
  Reporter &reporter = session.reporter;
  std::optional<ModelInput> input = openModel(session.line.model, reporter);
  if (!input)
    return kUsage;
  compilation.input = std::move(*input);
  int code = kDone;
  std::optional<PlanFile> plan = openPlan(session, compilation.input, code);
  if (code != kDone)
    return code;
  DeclarationSource source(session.line, std::move(plan));
  if (data) {
    source.setFromFile("batch", data->batch, data->place);
    source.setFromFile("seq", data->sequence, data->place);
  }
  bool failed = false;
  std::optional<ElementKind> dtype = source.dtype(reporter, failed);
  if (failed)
    return kWrong;
  DiagnosticBridge bridge(&session.context, reporter, "model");
  std::optional<LoadedModel> model =
      loadModel(session.context, compilation.input, dtype, reporter);
  if (!model)
    return kWrong;
  compilation.model = std::move(*model);
  std::optional<Declaration> declaration =
      source.resolve(compilation.model.facts, forDevices, reporter);
  if (!declaration)
    return kWrong;
  compilation.declaration = std::move(*declaration);
  if (!materialize(session.context, compilation.model, compilation.declaration,
                   reporter))
    return reporter.hadError() ? kWrong : kInternal;
  return kDone;
}

//===----------------------------------------------------------------------===//
// Lowering
//===----------------------------------------------------------------------===//

namespace {

/// Collects what --dump-phases asks for.
class Dumper {
public:
  explicit Dumper(Session &session) : word(session.line.flag("dump-phases")) {}

  /// Makes the folder; false after an error.
  bool open(Session &session) {
    if (!word)
      return true;
    auto made = OutputFolder::create(word->text, session.line.has("force"),
                                     word->place, session.reporter);
    if (made)
      folder.emplace(std::move(*made));
    return folder.has_value();
  }
  bool dump(Phase phase, ModuleOp module) {
    if (!folder)
      return true;
    std::string text;
    llvm::raw_string_ostream os(text);
    printModel(module, os);
    return folder->write(std::to_string(static_cast<int>(phase)) + "-" +
                             phaseName(phase).str() + ".mlir",
                         text);
  }
  bool close() {
    return !folder || (folder->write(kManifestName,
                                     "{\"parc\": \"phases of one model\"}\n") &&
                       folder->commit());
  }

private:
  const Word *word;
  std::optional<OutputFolder> folder;
};

} // namespace

static bool hasRings(ModuleOp module) {
  return module
      .walk([](RingOpInterface op) {
        return op.getRingAxes() ? WalkResult::interrupt()
                                : WalkResult::advance();
      })
      .wasInterrupted();
}

int mlir::parc::driver::lower(Session &session, Compilation &compilation,
                              Phase to) {
  Reporter &reporter = session.reporter;
  Dumper dumper(session);
  if (!dumper.open(session))
    return kUsage;
  if (!dumper.dump(Phase::Model, compilation.module()))
    return kUsage;
  if (to == Phase::Model)
    return dumper.close() ? kDone : kUsage;
  const Declaration &declaration = compilation.declaration;
  setMesh(compilation.module(), declaration);
  PhaseOptions options;
  options.microBatches = declaration.microBatches.value;
  options.rule = declaration.schedule.value;
  options.strategy = planStrategy(compilation.module(), declaration);
  options.zero = declaration.zero.value;
  options.zeroAxes = zeroAxes(compilation.module(), declaration);
  options.balanced = declaration.contextSplit.value == "balanced" &&
                     options.strategy.contextKind != ContextKind::Ulysses;
  if (failed(applyRules(compilation.module(), declaration, reporter)))
    return kWrong;
  compilation.phase = Phase::Annotated;
  if (!dumper.dump(Phase::Annotated, compilation.module()))
    return kUsage;

  DiagnosticBridge bridge(&session.context, reporter, "model");
  auto done = [&](Phase phase) -> LogicalResult {
    compilation.phase = phase;
    if (phase == Phase::Differentiated && compilation.keepUnpartitioned)
      compilation.unpartitioned = compilation.module().clone();
    if (phase == Phase::Sharded) {
      compilation.layouts =
          collectLayouts(compilation.module(), options.microBatches);
      compilation.contextWork = contextWork(compilation.module());
      if (compilation.keepExact && hasRings(compilation.module()))
        compilation.exact = compilation.module().clone();
    }
    return success(dumper.dump(phase, compilation.module()));
  };
  auto run = [&]() -> LogicalResult {
    auto runExact = [&]() -> LogicalResult {
      PhaseOptions exact = options;
      exact.contracts = true;
      return runPhases(*compilation.exact, Phase::Sharded,
                       std::min(to, Phase::Scheduled), exact);
    };
    if (failed(runPhases(compilation.module(), Phase::Annotated,
                         std::min(to, Phase::Scheduled), options, done)))
      return failure();
    if (compilation.exact && failed(runExact()))
      return failure();
    if (to <= Phase::Scheduled)
      return success();
    compilation.runtime = compilation.module().clone();
    return runPhases(*compilation.runtime, Phase::Scheduled, Phase::Runtime,
                     options, [&](Phase phase) {
                       compilation.phase = phase;
                       return success(dumper.dump(phase, *compilation.runtime));
                     });
  };
  if (failed(run())) {
    if (reporter.hadError())
      return kWrong;
    auto next = static_cast<Phase>(static_cast<int>(compilation.phase) + 1);
    reporter.error(Place(),
                   "phase '" + phaseName(next) + "' failed and did not say why",
                   "internal");
    return kInternal;
  }
  return dumper.close() ? kDone : kUsage;
}

//===----------------------------------------------------------------------===//
// What is said
//===----------------------------------------------------------------------===//

std::string Compilation::describe() const {
  if (model.config)
    return describeModel(*model.config);
  int64_t parameters = 0;
  for (ParamOp param : (*model.module).getOps<ParamOp>())
    parameters += param.getTensorType().getNumElements() *
                  static_cast<int64_t>(param.getLayers().value_or(1));
  return withCommas(model.facts.layers) +
         (model.facts.layers == 1 ? " layer, " : " layers, ") +
         withCommas(parameters) + " parameters, " +
         stringifyElementKind(declaration.dtype.value).str();
}

std::vector<int64_t> Compilation::layersPerStage() {
  std::vector<int64_t> result;
  for (ScheduleOp schedule : module().getOps<ScheduleOp>()) {
    ArrayRef<int64_t> bounds = schedule.getBounds();
    for (size_t i = 0; i + 1 < bounds.size(); ++i)
      result.push_back(bounds[i + 1] - bounds[i]);
  }
  return result;
}

void mlir::parc::driver::reportLine(raw_ostream &os, StringRef word,
                                    const Twine &text, const Twine &aside) {
  std::string line = word.str();
  line.resize(std::max<size_t>(line.size(), 10), ' ');
  line += text.str();
  std::string tail = aside.str();
  if (!tail.empty()) {
    line.resize(std::max<size_t>(line.size() + 2, 60), ' ');
    line += tail;
  }
  os << line << '\n';
}

std::string mlir::parc::driver::listText(ArrayRef<int64_t> numbers) {
  std::string text;
  if (numbers.size() <= 8) {
    for (int64_t number : numbers)
      text += (text.empty() ? "" : "+") + std::to_string(number);
    return text;
  }
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin;
    while (end < numbers.size() && numbers[end] == numbers[begin])
      ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(end - begin) + " x " +
            std::to_string(numbers[begin]);
    begin = end;
    if (text.size() > 50 && begin < numbers.size())
      return text + ", ...";
  }
  return text;
}

std::string mlir::parc::driver::bubbleText(int64_t stages,
                                           int64_t microBatches) {
  return Rational(stages - 1, microBatches + stages - 1).percent();
}

static std::string meshText(const Mesh &mesh, bool asThreads) {
  std::string text;
  for (const MeshAxis &axis : mesh.axes())
    text += axis.name + "=" + std::to_string(axis.size) + " ";
  int64_t devices = mesh.devices();
  std::string unit = asThreads ? " rank" : " device";
  text += "= " + withCommas(devices) + unit + (devices == 1 ? "" : "s");
  return asThreads ? text + ", threads of this process" : text;
}

static void printCommSummary(raw_ostream &os, const Declaration &declaration,
                             const CommReport &comms, int64_t stage) {
  std::vector<CommSummary> summary = summarizeComms(comms, stage);
  if (summary.empty()) {
    reportLine(os, "comms", "none");
    return;
  }
  std::string where =
      declaration.size("pp") == 1
          ? "a rank, a step"
          : "stage " + std::to_string(stage) + ", a rank, a step";
  reportLine(os, "comms", where, "sent");
  for (const CommSummary &line : summary) {
    std::string axes = line.axes;
    axes.resize(std::max<size_t>(axes.size() + 1, 4), ' ');
    reportLine(os, "", axes + line.counts, bytesText(line.bytes));
  }
}

void mlir::parc::driver::printSummary(Session &session,
                                      Compilation &compilation,
                                      const CommReport &comms, bool asThreads) {
  raw_ostream &os = session.out;
  const Declaration &d = compilation.declaration;
  std::string source =
      printable(llvm::sys::path::filename(compilation.input.file));
  if (!compilation.input.beside("model.safetensors").empty() && asThreads)
    source += ", model.safetensors";
  else if (!asThreads && compilation.model.config)
    source += "; no weights needed to compile";
  reportLine(os, "model", compilation.describe(), source);
  reportLine(os, "plan",
             "batch " + withCommas(d.batch.value) + ", seq " +
                 withCommas(d.sequence.value),
             d.planPath.empty() ? "" : printable(d.planPath));
  reportLine(os, "mesh", meshText(d.mesh.value, asThreads));
  if (auto why = compilation.module()->getAttrOfType<StringAttr>(kContextAttr))
    reportLine(os, "cp-kind", why.getValue());
  int64_t pp = d.size("pp"), m = d.microBatches.value;
  if (pp > 1) {
    size_t roles = llvm::range_size(compilation.module().getOps<RoleOp>());
    reportLine(os, "stages",
               "layers on pp: " + listText(compilation.layersPerStage()),
               roles ? std::to_string(roles) + " roles" : "");
  }
  if (const std::optional<ContextWork> &work = compilation.contextWork)
    reportLine(os, "context",
               "cp=" + withCommas(d.size("cp")) + " " + work->kind +
                   (work->folded ? ", balanced" : ", contiguous") +
                   ": attention's work max/mean " +
                   llvm::formatv("{0:F2}", work->maxOverMean).str());
  std::vector<std::string> uneven = unevenTexts(compilation.layouts);
  if (!uneven.empty()) {
    size_t shown = std::min<size_t>(uneven.size(), 3);
    std::string text = llvm::join(ArrayRef(uneven).take_front(shown), "; ");
    if (shown < uneven.size())
      text += "; ...";
    reportLine(os, "uneven", text, "nothing is padded");
  }
  int64_t parts = d.size("dp") * m;
  std::string sequences = std::to_string(d.batch.value / parts);
  if (d.batch.value % parts)
    sequences += ".." + std::to_string(d.batch.value / parts + 1);
  reportLine(os, "schedule",
             d.schedule.value + ", " + withCommas(m) +
                 (m == 1 ? " micro-batch of " : " micro-batches of ") +
                 sequences + "x" + std::to_string(d.sequence.value) +
                 ", bubble " + bubbleText(pp, m));
  printCommSummary(os, d, comms, pp > 2 ? 1 : 0);
}
