//===- RunData.cpp - What parc run is given -------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Options, tokens and initial values.
///
//===----------------------------------------------------------------------===//

#include "RunData.h"

#include "Parc/Parc.h"
#include "parc/random.h"
#include "parc/safetensors.h"
#include "parc/trainer.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

/// Positions without a label.
static constexpr int64_t kIgnored = -100;

static bool readWhole(Session &session, StringRef flag, int64_t lowest,
                      int64_t &out) {
  const Word *word = session.line.flag(flag);
  if (!word)
    return true;
  int64_t value = 0;
  if (!StringRef(word->text).getAsInteger(10, value) && value >= lowest) {
    out = value;
    return true;
  }
  session.reporter.error(word->place,
                         "expected a whole number of at least " +
                             Twine(lowest) + " for '--" + flag + "', got '" +
                             printable(word->text) + "'",
                         flag);
  return false;
}

std::optional<RunOptions> mlir::parc::driver::readRunOptions(Session &session) {
  RunOptions options;
  if (!readWhole(session, "steps", 1, options.steps) ||
      !readWhole(session, "seed", 0, options.seed))
    return std::nullopt;
  if (const Word *word = session.line.flag("weights"))
    options.weights = word->text;
  if (const Word *word = session.line.flag("save"))
    options.save = word->text;
  options.exact = session.line.has("exact");
  return options;
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

int64_t TokenBatch::validLabels() const {
  return llvm::count_if(labels,
                        [](int64_t label) { return label != kIgnored; });
}

std::vector<int64_t> mlir::parc::driver::shiftLabels(ArrayRef<int64_t> tokens,
                                                     int64_t sequence) {
  std::vector<int64_t> shifted(tokens.size(), kIgnored);
  for (size_t at = 0; at < tokens.size(); ++at)
    if ((static_cast<int64_t>(at) + 1) % sequence != 0)
      shifted[at] = tokens[at + 1];
  return shifted;
}

std::optional<TokenBatch> mlir::parc::driver::readTokens(Session &session,
                                                         const Word &path) {
  auto fail = [&](const Twine &message) {
    session.reporter.error(path.place, message, "inputs");
    return std::nullopt;
  };
  ::parc::SafetensorsFile file;
  if (::parc::Status status = file.open(path.text); !status.ok()) {
    (void)fail(status.message());
    if (!status.advice().empty())
      session.reporter.help(status.advice());
    return std::nullopt;
  }
  const ::parc::FileTensor *ids = file.find("input_ids");
  if (!ids)
    return fail("expected 'input_ids' in '" + printable(path.text) +
                "', found no such tensor");
  if (ids->shape.size() != 2 || ids->shape[0] < 1 || ids->shape[1] < 1)
    return fail("expected 'input_ids' of two dimensions, batch and sequence, "
                "got " +
                Twine(ids->shape.size()));
  TokenBatch batch;
  batch.batch = ids->shape[0];
  batch.sequence = ids->shape[1];
  auto read = [&](const char *name, std::vector<int64_t> &out) {
    out.resize(static_cast<size_t>(ids->elements()));
    ::parc::Status status =
        file.read(name, ids->shape, ::parc::DType::i64, out.data());
    if (status.ok())
      return true;
    (void)fail(status.message());
    return false;
  };
  if (!read("input_ids", batch.tokens))
    return std::nullopt;
  if (!file.find("labels"))
    batch.labels = shiftLabels(batch.tokens, batch.sequence);
  else if (!read("labels", batch.labels))
    return std::nullopt;
  return batch;
}

TokenBatch mlir::parc::driver::syntheticTokens(int64_t batch, int64_t sequence,
                                               int64_t vocab, int64_t seed) {
  TokenBatch result;
  result.batch = batch;
  result.sequence = sequence;
  for (int64_t i = 0; i < batch * sequence; ++i)
    result.tokens.push_back(
        ::parc::syntheticToken(static_cast<uint64_t>(seed), i, vocab));
  result.labels = shiftLabels(result.tokens, sequence);
  return result;
}

int64_t mlir::parc::driver::vocabularyOf(ModuleOp module) {
  int64_t rows = 0;
  for (StepOp step : module.getOps<StepOp>()) {
    Value tokens;
    for (auto [name, argument] :
         llvm::zip(step.getInputs().getAsValueRange<StringAttr>(),
                   step.getMicro().getArguments()))
      if (name == "tokens")
        tokens = argument;
    // What is looked up by the tokens has a factor that ids address.
    step.getMicro().walk([&](ShardableOpInterface op) {
      if (!tokens || !llvm::is_contained(op->getOperands(), tokens))
        return;
      FailureOr<OpFactors> factors = op.getFactors();
      if (succeeded(factors))
        for (const Factor &factor : factors->factors)
          if (factor.needsOffset)
            rows = factor.size;
    });
  }
  return rows;
}

bool mlir::parc::driver::checkTokens(Session &session, const TokenBatch &tokens,
                                     int64_t vocab, const Place &place) {
  auto check = [&](ArrayRef<int64_t> values, StringRef what, bool ignorable) {
    for (auto [index, value] : llvm::enumerate(values)) {
      if ((value >= 0 && value < vocab) || (ignorable && value == kIgnored))
        continue;
      session.reporter.error(
          place,
          "expected " + what + " below the vocabulary of " + Twine(vocab) +
              ", got " + Twine(value) + " at [" +
              Twine(static_cast<int64_t>(index) / tokens.sequence) + ", " +
              Twine(static_cast<int64_t>(index) % tokens.sequence) + "]",
          "inputs");
      return false;
    }
    return true;
  };
  return check(tokens.tokens, "ids", false) &&
         check(tokens.labels, "labels", true);
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

std::optional<InitialValues> InitialValues::open(Session &session,
                                                 ModuleOp module,
                                                 const RunOptions &options) {
  InitialValues values;
  values.seed = options.seed;
  if (options.weights.empty())
    return values;
  FailureOr<Weights> weights = Weights::open(&session.context, options.weights);
  if (failed(weights) || failed(weights->check(module)))
    return std::nullopt;
  values.weights = std::move(*weights);
  return values;
}

std::string InitialValues::name(ParamOp param, int64_t layer,
                                int64_t row) const {
  if (weights)
    if (std::string found = weights->findName(param, layer, row);
        !found.empty())
      return found;
  return param.getCheckpointName(layer, row);
}

/// The initial values of a box of a tensor that no file has.
static void fillInitial(const ::parc::TensorSpec &spec, uint64_t seed,
                        ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
                        MutableArrayRef<double> values) {
  SmallVector<int64_t> index(sizes.size(), 0);
  for (double &value : values) {
    int64_t flat = 0;
    for (size_t dim = 0; dim < index.size(); ++dim)
      flat = flat * spec.shape[dim] + offsets[dim] + index[dim];
    value = ::parc::initialValue(spec, seed, flat);
    for (size_t dim = index.size(); dim-- > 0;) {
      if (++index[dim] < sizes[dim])
        break;
      index[dim] = 0;
    }
  }
}

std::optional<std::vector<double>> InitialValues::read(ParamOp param,
                                                       int64_t layer) const {
  RankedTensorType type = param.getTensorType();
  std::vector<double> values(static_cast<size_t>(type.getNumElements()));
  SmallVector<int64_t> offsets(type.getRank(), 0);
  if (weights) {
    if (failed(weights->read(param, layer, offsets, type.getShape(),
                             ::parc::DType::f64, values.data())))
      return std::nullopt;
    return values;
  }
  ::parc::TensorSpec spec;
  ArrayRef<int64_t> shape = param.getCheckpointShape();
  spec.shape.assign(shape.begin(), shape.end());
  if (auto checkpoint = param.getCheckpoint();
      checkpoint && !checkpoint->getShape().empty())
    offsets.assign(checkpoint->getOffsets().begin(),
                   checkpoint->getOffsets().end());
  spec.init = param.getValue() ? ::parc::Init::constant : ::parc::Init::normal;
  spec.value = param.getValue() ? param.getValue()->convertToDouble()
               : param.getStd() ? param.getStd()->convertToDouble()
                                : 0.0;
  int64_t rows = param.getCheckpointRows();
  size_t count = values.size() / static_cast<size_t>(rows);
  for (int64_t row = 0; row < rows; ++row) {
    spec.name = name(param, layer, row);
    fillInitial(
        spec, static_cast<uint64_t>(seed),
        ArrayRef(offsets).take_back(shape.size()),
        type.getShape().take_back(shape.size()),
        MutableArrayRef(values).slice(static_cast<size_t>(row) * count, count));
  }
  return values;
}
