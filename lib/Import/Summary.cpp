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
  if (config.kvHeads != config.heads)
    text += ", " + plural(config.kvHeads, "kv head");
  if (config.window)
    text += ", window " + withCommas(*config.window);
  if (config.architecture->qkNorm)
    text += ", norm on q and k";
  return text;
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
    os << (config.rope.scaling == RopeConfig::Scaling::Llama3
               ? ", llama3 scaling by "
               : ", linear scaling by ")
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
