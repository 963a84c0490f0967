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
#include "llvm/Support/MathExtras.h"
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

RopeConfig mlir::parc::readRope(Fields &fields) {
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
  fields.requireOneOf(typePath, R"(["default", "linear", "llama3"])");
  fields.requireOneOf(path("partial_rotary_factor"), "[1]");
  if (fields.get(path("factor")))
    requireType(fields, newer, older);
  if (type == "default" || fields.hasFault(typePath))
    return rope;
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

SmallVector<double> RopeConfig::getFrequencies(int64_t headDim) const {
  SmallVector<double> frequencies;
  for (int64_t j = 0; j < headDim / 2; ++j) {
    double exponent = static_cast<double>(2 * j) / static_cast<double>(headDim);
    double frequency = 1.0 / std::pow(theta, exponent);
    if (scaling == Scaling::Linear)
      frequency /= factor;
    if (scaling == Scaling::Llama3)
      frequency = stretch(*this, frequency);
    frequencies.push_back(frequency);
  }
  return frequencies;
}
