//===- Run.cpp - parc run -------------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `parc run`: trains a model on all ranks of its mesh, as threads of this
/// process, and compares every number with the unpartitioned program's.
///
//===----------------------------------------------------------------------===//

#include "RunSteps.h"

#include "NN/NNPasses.h"
#include "parc/Driver/PlanFile.h"
#include "parc/Transforms/Passes.h"
#include "parc/trainer.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

namespace {

/// One `parc run`.
class Run {
public:
  Run(Session &session, RunOptions options)
      : session(session), options(std::move(options)) {}

  int execute();

private:
  int load();
  int lowerBoth();
  /// How the steps are run and compared.
  struct Training {
    ElementKind arithmetic;
    double tolerance; ///< Largest relative difference; 0: exact.
    bool reported;    ///< Its numbers are the run's.
    /// Up to here a difference may be rounding; another run has to tell.
    double doubtful = 0;
  };
  template <class T> int train(const Training &training);
  int finish(const Training &training, const Difference &difference,
             ArrayRef<std::string> disagreements);
  /// For what rounds: it is tried again in doubles, where nothing is.
  int trainUnrounded() {
    return train<double>({ElementKind::F64, 1e-9, /*reported=*/false});
  }
  void printStep(const StepNumbers &numbers);

  Session &session;
  RunOptions options;
  Compilation compilation;
  TokenBatch tokens;
  std::optional<InitialValues> values;
  /// The last training's difference was too large, but may be rounding.
  bool inDoubt = false;
};

} // namespace

/// Reads the inputs first: they give the batch.
int Run::load() {
  std::optional<DataShape> shape;
  if (const Word *word = session.line.flag("inputs")) {
    if (!llvm::sys::fs::exists(word->text)) {
      session.reporter.error(word->place,
                             "no file called '" + printable(word->text) + "'",
                             "file");
      return kUsage;
    }
    std::optional<TokenBatch> read = readTokens(session, *word);
    if (!read)
      return kWrong;
    tokens = std::move(*read);
    shape = DataShape{tokens.batch, tokens.sequence, word->place};
  }
  if (const Word *word = session.line.flag("weights"))
    if (!llvm::sys::fs::exists(word->text)) {
      session.reporter.error(word->place,
                             "no file called '" + printable(word->text) + "'",
                             "file");
      return kUsage;
    }
  compilation.keepUnpartitioned = true;
  int code = prepare(session, compilation, /*forDevices=*/false,
                     shape ? &*shape : nullptr);
  if (code != kDone)
    return code;
  const Declaration &declaration = compilation.declaration;
  int64_t vocab = vocabularyOf(compilation.module());
  if (vocab < 1) {
    session.reporter.error(Place(),
                           "the model looks its 'tokens' up in no table, so "
                           "'parc run' has nothing to feed it",
                           "inputs");
    return kWrong;
  }
  Place place;
  if (shape)
    place = shape->place;
  else
    tokens = syntheticTokens(declaration.batch.value,
                             declaration.sequence.value, vocab, options.seed);
  if (!checkTokens(session, tokens, vocab, place))
    return kWrong;
  if (tokens.validLabels() == 0) {
    session.reporter.error(place, "no position has a label", "inputs");
    return kWrong;
  }
  if (options.weights.empty() && !compilation.input.folder.empty())
    if (auto found = findWeights(compilation.input.folder))
      options.weights = *found;
  DiagnosticBridge bridge(&session.context, session.reporter, "weights");
  values = InitialValues::open(session, compilation.module(), options);
  return values ? kDone : kWrong;
}

int Run::lowerBoth() {
  compilation.keepExact = options.exact;
  int code = lower(session, compilation, Phase::Scheduled);
  if (code != kDone)
    return code;
  DiagnosticBridge bridge(&session.context, session.reporter, "internal");
  SmallVector<ModuleOp> modules{compilation.module(),
                                *compilation.unpartitioned};
  if (compilation.exact)
    modules.push_back(*compilation.exact);
  for (ModuleOp module : modules) {
    PassManager manager(&session.context);
    manager.addPass(createDecompose());
    if (failed(manager.run(module)))
      return kInternal;
  }
  return kDone;
}

void Run::printStep(const StepNumbers &numbers) {
  if (session.json) {
    session.out << llvm::json::Value(
                       llvm::json::Object{{"step", numbers.step},
                                          {"loss", numbers.loss},
                                          {"grad_norm", numbers.gradNorm}})
                << '\n';
    return;
  }
  double perSecond =
      static_cast<double>(tokens.batch * tokens.sequence) / numbers.seconds;
  session.out << ::parc::stepLine(
                     numbers.step, {numbers.loss, numbers.gradNorm},
                     compilation.declaration.optimizer["lr"].value, perSecond)
              << '\n';
  session.out.flush();
}

int Run::finish(const Training &training, const Difference &difference,
                ArrayRef<std::string> disagreements) {
  StringRef domain = stringifyElementKind(training.arithmetic);
  Reporter &reporter = session.reporter;
  std::string amount;
  llvm::raw_string_ostream(amount) << llvm::format("%.1e", difference.value);
  if (!disagreements.empty()) {
    reporter.error(Place(), "ranks disagree: " + disagreements.front(),
                   "not-equal");
    for (const std::string &text : disagreements.take_front(5).drop_front())
      reporter.note(text);
    return kNotEqual;
  }
  // A NaN is neither.
  bool equal = difference.value <= training.tolerance;
  inDoubt = !equal && difference.value <= training.doubtful;
  if (inDoubt) {
    if (!session.json && !session.quiet)
      reportLine(session.out, "rounding",
                 difference.what + " differs by " + amount + " (relative, " +
                     domain + "); again with nothing rounded");
    return kDone;
  }
  if (!equal) {
    reporter.error(Place(),
                   "not the model: " + difference.what + " differs by " +
                       amount + " (relative, " + domain + ")",
                   "not-equal");
    return kNotEqual;
  }
  if (session.json || session.quiet)
    return kDone;
  bool exact = training.tolerance == 0;
  std::string what = training.arithmetic == ElementKind::BF16 && !exact
                         ? "loss, logits and the gradient as a whole"
                         : "every loss, gradient and parameter";
  bool again = !exact && !training.reported;
  std::string ran =
      stringifyElementKind(compilation.declaration.dtype.value).str();
  reportLine(session.out, "equal",
             exact ? what + ", exactly, modulo 2^61-1"
                   : what + " within " + domain + " rounding of the " +
                         "unpartitioned model" +
                         (again ? ", nothing rounded to " + ran : ""));
  if (!exact && !difference.what.empty())
    reportLine(session.out, "",
               "largest relative difference " + amount + ", " +
                   difference.what);
  return kDone;
}

template <class T> int Run::train(const Training &training) {
  bool exact = std::is_same_v<T, ::parc::Zp>;
  StepRunner<T> runner(
      {*compilation.unpartitioned,
       exact ? compilation.exactModule() : compilation.module()},
      training.arithmetic, compilation.declaration, tokens, options);
  DiagnosticBridge bridge(&session.context, session.reporter, "run");
  auto fault = [&] { return session.reporter.hadError() ? kWrong : kInternal; };
  if (failed(runner.start(*values)))
    return kWrong;
  for (int64_t step = 1; step <= options.steps; ++step) {
    FailureOr<StepNumbers> numbers = runner.run(step);
    if (failed(numbers))
      return fault();
    if (training.reported && !session.quiet)
      printStep(*numbers);
  }
  if constexpr (!std::is_same_v<T, ::parc::Zp>)
    if (const Word *word = session.line.flag("save"); word && training.reported)
      if (!saveResult<T>(session, *word, *compilation.unpartitioned, *values,
                         runner.result(), tokens.validLabels()))
        return kUsage;
  return finish(training, runner.difference(), runner.disagreements());
}

/// The keys of a plan that were given as flags, as they were given; the mesh
/// aside.
static std::string planFlags(const Session &session) {
  std::string text;
  for (const KeySpec &key : planKeys()) {
    const Word *word = session.line.flag(key.name);
    if (!word || key.name == "mesh")
      continue;
    text += " --" + key.name.str();
    if (key.type != KeyType::Boolean)
      text += " " + printable(word->text);
  }
  return text;
}

int Run::execute() {
  int code = load();
  if (code == kDone)
    code = lowerBoth();
  if (code != kDone)
    return code;
  warnUneven(compilation.layouts, session.reporter);
  if (!session.json && !session.quiet) {
    CommReport comms = collectComms(compilation.module(), compilation.layouts,
                                    compilation.declaration.batch.value,
                                    compilation.declaration.microBatches.value);
    printSummary(session, compilation, comms, /*asThreads=*/true);
    if (!values->fromFile())
      reportLine(session.out, "weights",
                 "random, from seed " + Twine(options.seed));
    session.out << '\n';
  }
  switch (compilation.declaration.dtype.value) {
  case ElementKind::F64:
    code = train<double>({ElementKind::F64, 1e-9, /*reported=*/true});
    break;
  case ElementKind::F32:
    // More than that is rounding where it is gone without any: deep models, or
    // a token between two experts.
    code = train<float>(
        {ElementKind::F32, 2e-5, /*reported=*/true, /*doubtful=*/0.25});
    if (code == kDone && inDoubt)
      code = trainUnrounded();
    break;
  case ElementKind::BF16:
    // Eight bits of mantissa, and sums in another order: a coarse comparison.
    // So the program runs again with nothing rounded to bf16.
    code = train<float>({ElementKind::BF16, 0.25, /*reported=*/true});
    if (code == kDone)
      code = trainUnrounded();
    break;
  }
  if (code == kDone && options.exact)
    code = train<::parc::Zp>(
        {compilation.declaration.dtype.value, 0, /*reported=*/false});
  if (code == kDone && !session.json && !session.quiet)
    session.out << "\nnext: parc " << compilation.input.typed << " --mesh "
                << compilation.declaration.mesh.value.str()
                << planFlags(session) << " -o out\n";
  return code;
}

int mlir::parc::driver::runRun(Session &session) {
  std::optional<RunOptions> options = readRunOptions(session);
  if (!options)
    return kUsage;
  return Run(session, std::move(*options)).execute();
}
