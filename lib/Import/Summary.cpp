//===- Summary.cpp - What was understood of a config ----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The lines that parc import prints.
///
//===----------------------------------------------------------------------===//

#include "parc/Import/Model.h"
#include "parc/Import/Parameters.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::parc;

/// 31776 as "31,776".
static std::string withCommas(int64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;)
    text.insert(at -= 3, ",");
  return text;
}

/// Short enough to read: exact below ten million, else with two decimals.
static std::string shorten(int64_t number) {
  if (number < 10'000'000)
    return withCommas(number);
  bool billions = number >= 1'000'000'000;
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("%.2f",
                      static_cast<double>(number) / (billions ? 1e9 : 1e6))
      << (billions ? " B" : " M");
  return text;
}

static std::string plural(int64_t number, StringRef noun) {
  return (withCommas(number) + " " + noun + (number == 1 ? "" : "s")).str();
}

std::string mlir::parc::describeModel(const ModelConfig &config) {
  std::string text = config.architecture->modelType.str();
  text += ", " + plural(config.layers, "layer");
  text += ", " + shorten(countParameters(config).value_or(0)) + " parameters";
  text += ", " + stringifyElementKind(config.element).str();
  return text;
}

/// A line: a word, then text from column 10 on.
static void line(raw_ostream &os, StringRef word, const Twine &text) {
  os << word;
  os.indent(10 - static_cast<unsigned>(word.size())) << text << '\n';
}

static std::string describeAttention(const ModelConfig &config) {
  std::string text =
      plural(config.heads, "head") + " of " + withCommas(config.headDim);
  if (config.architecture->attention == AttentionKind::Latent)
    return text + ", " + withCommas(config.rotaryDim) + " rotated, values of " +
           withCommas(config.valueDim) + ", from " +
           (config.latent.queryRank
                ? withCommas(config.latent.queryRank) + " and "
                : "") +
           withCommas(config.latent.keyRank);
  if (config.kvHeads != config.heads)
    text += ", " + plural(config.kvHeads, "kv head");
  if (config.window)
    text += ", window " + withCommas(*config.window);
  if (config.architecture->qkNorm)
    text += ", norm on q and k";
  return text;
}

static StringRef nameOf(RopeConfig::Scaling scaling) {
  switch (scaling) {
  case RopeConfig::Scaling::None:
    return "no";
  case RopeConfig::Scaling::Linear:
    return "linear";
  case RopeConfig::Scaling::Llama3:
    return "llama3";
  case RopeConfig::Scaling::Yarn:
    return "yarn";
  }
  llvm_unreachable("all kinds are above");
}

static std::string describeExperts(const ModelConfig &config) {
  const ExpertsConfig &experts = config.experts;
  int64_t layers = 0;
  for (const LayerRun &run : config.runs)
    layers += run.experts ? run.count : 0;
  std::string text = withCommas(experts.count) + " of ffn " +
                     withCommas(experts.ffn) + ", " +
                     withCommas(experts.perToken) + " a token";
  if (experts.groups > 1)
    text += " from " + withCommas(experts.topGroups) + " of " +
            withCommas(experts.groups) + " groups";
  if (experts.sharedFfn)
    text += ", shared ffn " + withCommas(experts.sharedFfn);
  return text + ", in " + plural(layers, "layer");
}

static std::string describePositions(const ModelConfig &config) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (config.architecture->positions == PositionKind::Learned) {
    os << "learned, " << withCommas(config.maxPositions);
    return text;
  }
  os << "rotary, base " << llvm::format("%.10g", config.rope.theta);
  if (config.rope.scaling != RopeConfig::Scaling::None)
    os << ", " << nameOf(config.rope.scaling) << " scaling by "
       << llvm::format("%.10g", config.rope.factor);
  os << ", made for " << withCommas(config.maxPositions);
  return text;
}

static std::string describeDropout(const ModelConfig &config) {
  std::string text;
  llvm::raw_string_ostream(text)
      << "embedding " << llvm::format("%g", config.embeddingDropout)
      << ", attention " << llvm::format("%g", config.attentionDropout)
      << ", residual " << llvm::format("%g", config.residualDropout);
  return text;
}

std::string mlir::parc::summarizeConfig(const ModelConfig &config) {
  std::string text;
  llvm::raw_string_ostream os(text);
  line(os, "model", describeModel(config));
  line(os, "shape",
       "hidden " + withCommas(config.hidden) + ", ffn " +
           withCommas(config.ffn) + ", vocabulary " + withCommas(config.vocab) +
           (config.tied ? ", head tied to the embedding" : ""));
  line(os, "attention", describeAttention(config));
  if (config.experts.count)
    line(os, "experts", describeExperts(config));
  line(os, "positions", describePositions(config));
  if (config.hasDropout())
    line(os, "dropout", describeDropout(config));
  line(os, "fields",
       config.ignored.empty()
           ? std::string("all understood")
           : "all understood but " +
                 withCommas(static_cast<int64_t>(config.ignored.size())) +
                 ", ignored");
  return text;
}
