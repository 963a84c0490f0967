//===- Rope.cpp - Rotary positions of a config ----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The rotary fields in both spellings, and the frequencies that follow from
/// them, in double precision.
///
//===----------------------------------------------------------------------===//

#include "Rope.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::parc;

static constexpr double kMostTheta = 1e12;
static constexpr double kMostFactor = 1e6;
static constexpr const char *kOld = "rope_scaling";
static constexpr const char *kNew = "rope_parameters";

/// The object that holds the rotary fields: `rope_parameters`, or the older
/// `rope_scaling`; empty where there is none.
static StringRef findTable(Fields &fields) {
  const llvm::json::Value *oldTable = fields.get(kOld);
  const llvm::json::Value *newTable = fields.get(kNew);
  if (oldTable && newTable)
    fields.fault(kOld,
                 "fields 'rope_scaling' and 'rope_parameters' say the "
                 "same thing; remove one",
                 /*atKey=*/true);
  StringRef path = newTable ? kNew : kOld;
  const llvm::json::Value *table = newTable ? newTable : oldTable;
  if (!table)
    return "";
  if (table->getAsObject())
    return path;
  fields.fault(path, "field '" + path + "': expected an object, got " +
                         fields.getSource().quote(path));
  return "";
}

/// The base: in the table, beside it, or transformers' default.
static double readTheta(Fields &fields, StringRef table) {
  double outer = fields.number("rope_theta", 10000.0, 1.0, kMostTheta, true);
  if (table.empty())
    return outer;
  std::string path = (table + ".rope_theta").str();
  double inner = fields.number(path, outer, 1.0, kMostTheta, true);
  if (fields.get("rope_theta") && fields.get(path) && inner != outer)
    fields.fault(path, "fields 'rope_theta' and '" + Twine(path) +
                           "' differ; remove one");
  return inner;
}

static void readLlama3(Fields &fields, StringRef table, RopeConfig &rope) {
  auto path = [&](StringRef name) { return (table + "." + name).str(); };
  rope.lowFactor = fields.number(path("low_freq_factor"), std::nullopt, 0.0,
                                 kMostFactor, true);
  rope.highFactor = fields.number(path("high_freq_factor"), std::nullopt, 0.0,
                                  kMostFactor, true);
  rope.originalPositions =
      fields.size(path("original_max_position_embeddings"));
  if (!fields.hasFaults() && rope.lowFactor >= rope.highFactor)
    fields.fault(path("high_freq_factor"),
                 "field '" + Twine(path("high_freq_factor")) +
                     "': expected more than 'low_freq_factor', " +
                     fields.getSource().quote(path("low_freq_factor")) +
                     ", got " +
                     fields.getSource().quote(path("high_freq_factor")));
}

/// How much yarn sharpens scores that positions `factor` times as far away
/// dilute: 0.1 weight ln(factor) + 1 (arXiv:2309.00071, section 3.4).
static double getYarnScale(double factor, double weight) {
  return factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

static void readYarn(Fields &fields, StringRef table, int64_t maxPositions,
                     RopeConfig &rope) {
  auto path = [&](StringRef name) { return (table + "." + name).str(); };
  std::string original = path("original_max_position_embeddings");
  rope.originalPositions = fields.size(original, maxPositions);
  // Without a factor, the ratio of both numbers of positions is meant.
  std::optional<double> ratio;
  if (fields.get(original))
    ratio = std::max(1.0, static_cast<double>(maxPositions) /
                              static_cast<double>(rope.originalPositions));
  rope.factor = fields.number(path("factor"), ratio, 1.0, kMostFactor);
  rope.fast = fields.number(path("beta_fast"), 32.0, 0.0, kMostFactor, true);
  rope.slow = fields.number(path("beta_slow"), 1.0, 0.0, kMostFactor, true);
  rope.truncate = fields.boolean(path("truncate"), true);
  double one = fields.number(path("mscale"), 0.0, 0.0, kMostFactor);
  double all = fields.number(path("mscale_all_dim"), 0.0, 0.0, kMostFactor);
  double usual = one != 0.0 && all != 0.0 ? getYarnScale(rope.factor, one) /
                                                getYarnScale(rope.factor, all)
                                          : getYarnScale(rope.factor, 1.0);
  rope.tableScale = fields.number(path("attention_factor"), usual, 0.0,
                                  kMostFactor, /*open=*/true);
  double score = getYarnScale(rope.factor, all);
  rope.scoreScale = score * score;
  if (!fields.hasFaults() && rope.fast <= rope.slow)
    fields.fault(
        path(fields.get(path("beta_fast")) ? "beta_fast" : "beta_slow"),
        "expected 'beta_fast' above 'beta_slow', got " +
            Twine(llvm::formatv("{0} and {1}", llvm::json::Value(rope.fast),
                                llvm::json::Value(rope.slow))
                      .str()));
}

/// Some models keep one table for each kind of layer.
static void checkFlat(Fields &fields, StringRef table) {
  for (const JsonKey &key : fields.getSource().getKeys()) {
    StringRef path = key.path;
    if (!path.consume_front(table) || !path.consume_front("."))
      continue;
    const llvm::json::Value *value =
        fields.getSource().root().getObject(table)->get(path);
    if (value && value->getAsObject())
      fields.fault(key.path,
                   "field '" + Twine(key.path) +
                       "': one set of rotary fields for each kind of layer "
                       "is not supported");
  }
}

/// A factor without a type has no meaning.
static void requireType(Fields &fields, StringRef newer, StringRef older) {
  if (!fields.get(older))
    fields.require(newer);
}

RopeConfig mlir::parc::readRope(Fields &fields, int64_t maxPositions) {
  RopeConfig rope;
  StringRef table = findTable(fields);
  rope.theta = readTheta(fields, table);
  if (table.empty())
    return rope;
  checkFlat(fields, table);
  auto path = [&](StringRef name) { return (table + "." + name).str(); };
  std::string older = path("type"), newer = path("rope_type");
  std::string typePath = fields.get(newer) ? newer : older;
  std::string type = fields.string(typePath, "default");
  fields.requireOneOf(typePath, R"(["default", "linear", "llama3", "yarn"])");
  fields.requireOneOf(path("partial_rotary_factor"), "[1]");
  if (fields.get(path("factor")))
    requireType(fields, newer, older);
  if (type == "default" || fields.hasFault(typePath))
    return rope;
  if (type == "yarn") {
    rope.scaling = RopeConfig::Scaling::Yarn;
    readYarn(fields, table, maxPositions, rope);
    return rope;
  }
  rope.factor = fields.number(path("factor"), std::nullopt, 1.0, kMostFactor);
  rope.scaling = type == "llama3" ? RopeConfig::Scaling::Llama3
                                  : RopeConfig::Scaling::Linear;
  if (type == "llama3")
    readLlama3(fields, table, rope);
  return rope;
}

/// A frequency stretched as Llama 3.1 does: long waves by the whole factor,
/// short ones not at all, those between by an interpolation.
static double stretch(const RopeConfig &rope, double frequency) {
  double original = static_cast<double>(rope.originalPositions);
  double wave = 2.0 * llvm::numbers::pi / frequency;
  if (wave > original / rope.lowFactor)
    return frequency / rope.factor;
  if (wave < original / rope.highFactor)
    return frequency;
  double smooth =
      (original / wave - rope.lowFactor) / (rope.highFactor - rope.lowFactor);
  return (1.0 - smooth) * frequency / rope.factor + smooth * frequency;
}

/// The pair, as a fraction of its index, that turns `rotations` times within
/// the original positions.
static double findPair(const RopeConfig &rope, int64_t headDim,
                       double rotations) {
  double wave = static_cast<double>(rope.originalPositions) /
                (rotations * 2.0 * llvm::numbers::pi);
  return static_cast<double>(headDim) * std::log(wave) /
         (2.0 * std::log(rope.theta));
}

/// How far pair `j` is stretched as YaRN does, from 0 to 1: a ramp between the
/// pairs that turn `fast` and `slow` times (arXiv:2309.00071, section 3.2).
static double getYarnRamp(const RopeConfig &rope, int64_t headDim, int64_t j) {
  double low = findPair(rope, headDim, rope.fast);
  double high = findPair(rope, headDim, rope.slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(headDim - 1));
  if (low == high)
    high += 0.001;
  return std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
}

SmallVector<double> RopeConfig::getFrequencies(int64_t headDim) const {
  SmallVector<double> frequencies;
  for (int64_t j = 0; j < headDim / 2; ++j) {
    double exponent = static_cast<double>(2 * j) / static_cast<double>(headDim);
    double frequency = 1.0 / std::pow(theta, exponent);
    if (scaling == Scaling::Linear)
      frequency /= factor;
    if (scaling == Scaling::Llama3)
      frequency = stretch(*this, frequency);
    if (scaling == Scaling::Yarn) {
      double ramp = getYarnRamp(*this, headDim, j);
      frequency = (1.0 - ramp) * frequency + ramp * frequency / factor;
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}
