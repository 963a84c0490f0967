//===- Parameters.cpp - The parameters of a model -------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The table of parameters that a config calls for. The order is that of use.
///
//===----------------------------------------------------------------------===//

#include "parc/Import/Parameters.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::parc;

namespace {
/// Collects the parameters of one config.
class Table {
public:
  explicit Table(const ModelConfig &config)
      : config(config), architecture(*config.architecture),
        names(architecture.names) {}

  SmallVector<ParameterSpec> take() {
    addEmbeddings();
    for (const LayerRun &each : config.runs) {
      run = &each;
      addAttention();
      addMlp();
    }
    run = nullptr;
    addNorm("final_norm", names.finalNorm, config.hidden);
    if (!config.tied)
      add("head", names.head, {config.vocab, config.hidden},
          config.initializerRange)
          .multiplied = 1.0;
    return std::move(table);
  }

private:
  ParameterSpec &add(StringRef symbol, StringRef checkpoint,
                     ArrayRef<int64_t> shape, double std) {
    ParameterSpec &spec = table.emplace_back();
    spec.symbol = ((run ? run->prefix : "") + symbol).str();
    spec.shape.assign(shape.begin(), shape.end());
    if (run) {
      spec.layers = run->count;
      spec.firstLayer = run->begin;
    }
    spec.std = std;
    spec.checkpoint = (checkpoint + ".weight").str();
    return spec;
  }

  ParameterSpec &addConstant(const Twine &symbol, const Twine &checkpoint,
                             int64_t size, double value) {
    ParameterSpec &spec = add(symbol.str(), "", {size}, 0.0);
    spec.value = value;
    spec.checkpoint = checkpoint.str();
    return spec;
  }

  void addNorm(StringRef symbol, StringRef checkpoint, int64_t size) {
    addConstant(symbol, checkpoint + ".weight", size, 1.0);
    if (architecture.norm == NormKind::Layer)
      addConstant(symbol + "_bias", checkpoint + ".bias", size, 0.0);
  }

  /// A weight from `in` to `out` elements; `part` counts the boxes of a fused
  /// tensor, `parts` of them in all.
  void addLinear(StringRef symbol, StringRef checkpoint, int64_t in,
                 int64_t out, bool bias, bool residual = false,
                 int64_t part = 0, int64_t parts = 1) {
    bool inOut = architecture.layout == WeightLayout::InOut;
    double std = config.initializerRange;
    if (residual && architecture.scaledResidualInit)
      std /= std::sqrt(2.0 * static_cast<double>(config.layers));
    ParameterSpec &weight = inOut ? add(symbol, checkpoint, {in, out}, std)
                                  : add(symbol, checkpoint, {out, in}, std);
    weight.multiplied = 1.0;
    if (parts > 1)
      setBox(weight, inOut ? 1 : 0, part * out, parts * out);
    if (!bias)
      return;
    ParameterSpec &added =
        addConstant(symbol + "_bias", checkpoint + ".bias", out, 0.0);
    if (parts > 1)
      setBox(added, 0, part * out, parts * out);
  }

  static void setBox(ParameterSpec &spec, unsigned dim, int64_t offset,
                     int64_t size) {
    spec.boxShape.assign(spec.shape.begin(), spec.shape.end());
    spec.boxShape[dim] = size;
    spec.boxOffsets.assign(spec.shape.size(), 0);
    spec.boxOffsets[dim] = offset;
  }

  void addEmbeddings() {
    add("embed", names.embed, {config.vocab, config.hidden},
        config.initializerRange)
        .multiplied = config.tied ? 1.0 : 0.0;
    if (architecture.positions == PositionKind::Learned)
      add("position", names.position, {config.maxPositions, config.hidden},
          config.initializerRange);
  }

  void addAttention() {
    addNorm("attn_norm", names.attnNorm, config.hidden);
    if (architecture.attention == AttentionKind::Latent)
      addLatent();
    else
      addHeads();
    addLinear("o", names.o, config.heads * config.valueDim, config.hidden,
              config.outputBias, true);
  }

  void addHeads() {
    int64_t hidden = config.hidden;
    int64_t query = config.heads * config.headDim;
    int64_t key = config.kvHeads * config.headDim;
    bool bias = config.qkvBias;
    int64_t parts = architecture.fusedQkv ? 3 : 1;
    addLinear("q", names.q, hidden, query, bias, false, 0, parts);
    addLinear("k", names.k, hidden, key, bias, false, 1, parts);
    addLinear("v", names.v, hidden, key, bias, false, 2, parts);
    if (architecture.qkNorm) {
      addNorm("q_norm", names.qNorm, config.headDim);
      addNorm("k_norm", names.kNorm, config.headDim);
    }
  }

  void addLatent() {
    const LatentConfig &latent = config.latent;
    int64_t hidden = config.hidden;
    int64_t query = config.heads * config.headDim;
    if (latent.queryRank) {
      addLinear("q_down", names.qDown, hidden, latent.queryRank,
                config.qkvBias);
      addNorm("q_down_norm", names.qDownNorm, latent.queryRank);
      addLinear("q_up", names.qUp, latent.queryRank, query, false);
    } else {
      addLinear("q", names.q, hidden, query, false);
    }
    addLinear("kv_down", names.kvDown, hidden,
              latent.keyRank + latent.rotaryDim, config.qkvBias);
    addNorm("kv_down_norm", names.kvDownNorm, latent.keyRank);
    addLinear("kv_up", names.kvUp, latent.keyRank,
              config.heads * (latent.plainDim + config.valueDim), false);
  }

  void addMlp() {
    addNorm("mlp_norm", names.mlpNorm, config.hidden);
    if (run->experts)
      return addExperts();
    bool bias = config.mlpBias;
    if (architecture.mlp == MlpKind::Gated)
      addLinear("gate", names.gate, config.hidden, config.ffn, bias);
    addLinear("up", names.up, config.hidden, config.ffn, bias);
    addLinear("down", names.down, config.ffn, config.hidden, bias, true);
  }

  void addExperts() {
    const ExpertsConfig &experts = config.experts;
    // Few bits would make ties of experts that differ.
    addLinear("router", names.router, config.hidden, experts.count, false);
    table.back().wide = true;
    // Moved by a rule of its own between steps, not by its gradient.
    if (architecture.router == RouterKind::Sigmoid)
      addConstant("router_bias", names.routerBias, experts.count, 0.0).wide =
          true;
    addExpertWeight("expert_gate", names.expertGate, config.hidden,
                    experts.ffn);
    addExpertWeight("expert_up", names.expertUp, config.hidden, experts.ffn);
    addExpertWeight("expert_down", names.expertDown, experts.ffn,
                    config.hidden);
    if (!experts.sharedFfn)
      return;
    addLinear("shared_gate", names.sharedGate, config.hidden, experts.sharedFfn,
              false);
    addLinear("shared_up", names.sharedUp, config.hidden, experts.sharedFfn,
              false);
    addLinear("shared_down", names.sharedDown, experts.sharedFfn, config.hidden,
              false);
  }

  /// All experts' weights in one parameter, each `out x in`.
  void addExpertWeight(StringRef symbol, StringRef checkpoint, int64_t in,
                       int64_t out) {
    const ExpertsConfig &experts = config.experts;
    add(symbol, checkpoint, {experts.count, out, in}, config.initializerRange)
        .multiplied = static_cast<double>(experts.perToken) /
                      static_cast<double>(experts.count);
  }

  const ModelConfig &config;
  const Architecture &architecture;
  const CheckpointNames &names;
  /// The run whose parameters are added; null for the whole model's.
  const LayerRun *run = nullptr;
  SmallVector<ParameterSpec> table;
};
} // namespace

SmallVector<ParameterSpec>
mlir::parc::getParameters(const ModelConfig &config) {
  return Table(config).take();
}

/// The elements of a parameter of all layers; nothing where that overflows.
static std::optional<int64_t> countElements(const ParameterSpec &spec) {
  int64_t elements = std::max<int64_t>(spec.layers, 1);
  for (int64_t size : spec.shape)
    if (llvm::MulOverflow(elements, size, elements))
      return std::nullopt;
  return elements;
}

std::optional<int64_t> mlir::parc::countParameters(const ModelConfig &config) {
  int64_t total = 0;
  for (const ParameterSpec &spec : getParameters(config)) {
    std::optional<int64_t> elements = countElements(spec);
    if (!elements || llvm::AddOverflow(total, *elements, total) ||
        total >= (int64_t{1} << 62))
      return std::nullopt;
  }
  return total;
}

TokenFlops mlir::parc::getTokenFlops(const ModelConfig &config,
                                     int64_t sequence) {
  TokenFlops flops;
  for (const ParameterSpec &spec : getParameters(config))
    flops.weights += 6.0 * spec.multiplied *
                     static_cast<double>(countElements(spec).value_or(0));
  double length = static_cast<double>(sequence);
  double window =
      std::min(length, static_cast<double>(config.window.value_or(sequence)));
  // The first `window` positions see 1, 2, ... keys, all later ones a window.
  double seen = window * (window + 1) / 2 + (length - window) * window;
  double perKey =
      6.0 * static_cast<double>(config.layers) *
      static_cast<double>(config.heads * (config.headDim + config.valueDim));
  flops.causalAttention = perKey * seen / length;
  flops.fullAttention = perKey * length;
  return flops;
}
