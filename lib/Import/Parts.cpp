//===- Parts.cpp - Fields of latent attention and experts -----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Latent attention, experts, and the runs of layers with and without those.
///
//===----------------------------------------------------------------------===//

#include "Parts.h"
#include <set>

using namespace mlir;
using namespace mlir::parc;

/// Each run is a stack of its own, compiled by itself.
static constexpr size_t kMostRuns = 64;

void mlir::parc::markPartsKnown(const Architecture &architecture,
                                Fields &fields) {
  auto mark = [&](ArrayRef<StringRef> keys) {
    for (StringRef key : keys)
      if (!key.empty())
        fields.markKnown(key);
  };
  const LatentKeys &latent = architecture.latent;
  if (architecture.attention == AttentionKind::Latent)
    mark({latent.queryRank, latent.keyRank, latent.plainDim, latent.rotaryDim,
          latent.valueDim, latent.interleaved, "head_dim", "qk_head_dim"});
  const ExpertKeys &experts = architecture.experts;
  if (architecture.router != RouterKind::None)
    mark({experts.count, experts.perToken, experts.ffn, experts.shared,
          experts.groups, experts.topGroups, experts.scale, experts.normalize,
          experts.firstDense, experts.denseLayers, experts.step,
          experts.auxiliary, experts.auxiliaryWeight});
}

/// A fault unless the field is missing or the number that follows from others.
static void checkDerived(Fields &fields, StringRef key, const Twine &rule,
                         int64_t expected) {
  const llvm::json::Value *value = fields.get(key);
  if (!value || value->getAsInteger() == expected)
    return;
  fields.fault(key, "field '" + key + "': expected " + rule + ", " +
                        Twine(expected) + ", got " +
                        fields.getSource().quote(key));
}

void mlir::parc::readLatent(Fields &fields, ModelConfig &config) {
  const LatentKeys &keys = config.architecture->latent;
  LatentConfig &latent = config.latent;
  fields.requireKey(keys.queryRank);
  if (fields.get(keys.queryRank))
    latent.queryRank = fields.size(keys.queryRank);
  latent.keyRank = fields.size(keys.keyRank);
  latent.plainDim = fields.size(keys.plainDim);
  latent.rotaryDim = fields.size(keys.rotaryDim);
  config.valueDim = fields.size(keys.valueDim);
  config.rotaryDim = latent.rotaryDim;
  config.headDim = latent.plainDim + latent.rotaryDim;
  config.interleaved =
      keys.interleaved.empty() || fields.boolean(keys.interleaved, true);
  if (fields.hasFaults())
    return;
  checkDerived(fields, "head_dim", "'" + keys.rotaryDim + "'",
               latent.rotaryDim);
  checkDerived(fields, "qk_head_dim",
               "'" + keys.plainDim + "' + '" + keys.rotaryDim + "'",
               config.headDim);
  checkDerived(fields, config.architecture->keys.kvHeads,
               "'" + config.architecture->keys.heads + "'", config.heads);
}

/// Sizes of experts that must go together.
static void checkExperts(Fields &fields, const ModelConfig &config) {
  const ExpertKeys &keys = config.architecture->experts;
  const ExpertsConfig &experts = config.experts;
  auto expect = [&](bool holds, StringRef key, const Twine &wanted,
                    int64_t got) {
    if (!holds)
      fields.fault(key, "field '" + key + "': expected " + wanted + ", got " +
                            Twine(got));
  };
  if (experts.count % experts.groups != 0)
    return expect(false, keys.count,
                  "a multiple of '" + keys.groups + "', " +
                      Twine(experts.groups),
                  experts.count);
  expect(experts.perToken <= experts.count, keys.perToken,
         "at most '" + keys.count + "', " + Twine(experts.count),
         experts.perToken);
  if (keys.groups.empty())
    return;
  int64_t inGroup = experts.count / experts.groups;
  expect(experts.topGroups <= experts.groups, keys.topGroups,
         "at most '" + keys.groups + "', " + Twine(experts.groups),
         experts.topGroups);
  expect(experts.perToken <= experts.topGroups * inGroup, keys.perToken,
         "at most the " + Twine(experts.topGroups * inGroup) + " experts of '" +
             keys.topGroups + "' groups",
         experts.perToken);
  if (config.architecture->router == RouterKind::Sigmoid)
    expect(inGroup >= 2, keys.groups,
           "at least two experts a group, because groups are ranked by their "
           "two best, so at most " +
               Twine(experts.count / 2),
           experts.groups);
}

void mlir::parc::readExperts(Fields &fields, ModelConfig &config) {
  const ExpertKeys &keys = config.architecture->experts;
  ExpertsConfig &experts = config.experts;
  experts.count = fields.size(keys.count);
  experts.perToken = fields.size(keys.perToken);
  experts.ffn = keys.ffn.empty() ? config.ffn : fields.size(keys.ffn);
  if (!keys.shared.empty()) {
    int64_t shared =
        fields.getSource().find(keys.shared) && !fields.get(keys.shared)
            ? 0
            : fields.size(keys.shared, keys.defaultShared, kMaxSize,
                          /*least=*/0);
    experts.sharedFfn = shared * experts.ffn;
    if (experts.sharedFfn > kMaxSize)
      fields.fault(keys.shared, "expected a layer of at most " +
                                    Twine(kMaxSize) + " elements a position");
  }
  if (!keys.groups.empty()) {
    experts.groups = fields.size(keys.groups, keys.defaultGroups);
    experts.topGroups = fields.size(keys.topGroups, keys.defaultTopGroups);
  }
  experts.normalize =
      keys.normalize.empty()
          ? keys.defaultNormalize
          : fields.boolean(keys.normalize, keys.defaultNormalize);
  if (!keys.scale.empty())
    experts.scale =
        fields.number(keys.scale, keys.defaultScale, 0.0, 1e6, true);
  if (!keys.auxiliary.empty() && fields.boolean(keys.auxiliary, false))
    experts.auxiliaryWeight = fields.number(
        keys.auxiliaryWeight, keys.defaultAuxiliaryWeight, 0.0, 1e6);
  if (!fields.hasFaults())
    checkExperts(fields, config);
}

/// The layers that a list names.
static std::set<int64_t> readDenseLayers(Fields &fields, StringRef key) {
  std::set<int64_t> layers;
  const llvm::json::Value *value = key.empty() ? nullptr : fields.get(key);
  if (!value)
    return layers;
  const llvm::json::Array *array = value->getAsArray();
  if (!array) {
    fields.fault(key, "field '" + key + "': expected an array, got " +
                          fields.getSource().quote(key));
    return layers;
  }
  for (const llvm::json::Value &entry : *array) {
    std::optional<int64_t> layer = entry.getAsInteger();
    if (layer && *layer >= 0)
      layers.insert(*layer);
    else
      fields.fault(key, "field '" + key +
                            "': expected numbers of layers, got " +
                            quoteJson(entry));
  }
  return layers;
}

/// Names of a run's stack and parameters. The last kind of layers to appear,
/// or the only one, has the plain names.
static void nameRuns(SmallVectorImpl<LayerRun> &runs) {
  bool mixed = runs.size() > 1;
  int64_t dense = 0, experts = 0;
  for (LayerRun &run : runs) {
    bool plain = !mixed || run.experts;
    int64_t number = run.experts ? ++experts : ++dense;
    std::string count = number > 1 ? std::to_string(number) : "";
    run.stack = (plain ? "layers" : "dense") + count;
    run.prefix =
        plain ? (number > 1 ? "run" + count + "_" : "") : "dense" + count + "_";
  }
}

void mlir::parc::readRuns(Fields &fields, ModelConfig &config) {
  const ExpertKeys &keys = config.architecture->experts;
  bool any = config.architecture->router != RouterKind::None;
  int64_t first = 0, step = 1;
  if (any && !keys.firstDense.empty())
    first = fields.size(keys.firstDense, keys.defaultFirstDense, kMaxSize,
                        /*least=*/0);
  if (any && !keys.step.empty())
    step = fields.size(keys.step, 1);
  std::set<int64_t> dense =
      readDenseLayers(fields, any ? keys.denseLayers : StringRef());
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    bool experts =
        any && layer >= first && !dense.count(layer) && (layer + 1) % step == 0;
    if (config.runs.empty() || config.runs.back().experts != experts)
      config.runs.push_back({"", "", layer, 0, experts});
    ++config.runs.back().count;
    if (config.runs.size() > kMostRuns)
      return fields.fault(keys.step.empty() ? keys.denseLayers : keys.step,
                          "expected at most " + Twine(kMostRuns) +
                              " runs of layers with and without experts, got "
                              "more");
  }
  nameRuns(config.runs);
}
