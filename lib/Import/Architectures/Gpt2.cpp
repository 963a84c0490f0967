//===- Gpt2.cpp - GPT-2 ---------------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// GPT-2: learned positions, layer norms with biases, one fused projection to
/// q, k and v, weights stored inputs first, head tied to the embedding.
///
//===----------------------------------------------------------------------===//

#include "parc/Import/Architecture.h"

using namespace mlir;
using namespace mlir::parc;

static ConfigKeys makeKeys() {
  ConfigKeys keys;
  keys.hidden = "n_embd";
  keys.layers = "n_layer";
  keys.heads = "n_head";
  keys.kvHeads = "";
  keys.headDim = "";
  keys.ffn = "n_inner";
  keys.maxPositions = "n_positions";
  keys.epsilon = "layer_norm_epsilon";
  keys.activation = "activation_function";
  keys.scaleScores = "scale_attn_weights";
  keys.embeddingDropout = "embd_pdrop";
  keys.attentionDropout = "attn_pdrop";
  keys.residualDropout = "resid_pdrop";
  return keys;
}

static CheckpointNames makeNames() {
  CheckpointNames names;
  names.embed = "transformer.wte";
  names.position = "transformer.wpe";
  names.finalNorm = "transformer.ln_f";
  names.head = "lm_head";
  names.attnNorm = "transformer.h.{}.ln_1";
  names.q = names.k = names.v = "transformer.h.{}.attn.c_attn";
  names.o = "transformer.h.{}.attn.c_proj";
  names.mlpNorm = "transformer.h.{}.ln_2";
  names.up = "transformer.h.{}.mlp.c_fc";
  names.down = "transformer.h.{}.mlp.c_proj";
  return names;
}

static Architecture make() {
  Architecture gpt2;
  gpt2.modelType = "gpt2";
  gpt2.className = "GPT2LMHeadModel";
  gpt2.norm = NormKind::Layer;
  gpt2.positions = PositionKind::Learned;
  gpt2.mlp = MlpKind::Plain;
  gpt2.layout = WeightLayout::InOut;
  gpt2.fusedQkv = true;
  gpt2.qkvBias = gpt2.outputBias = gpt2.mlpBias = true;
  gpt2.scaledResidualInit = true;
  gpt2.keys = makeKeys();
  gpt2.names = makeNames();
  gpt2.defaults.activation = "gelu_new";
  gpt2.defaults.tied = true;
  gpt2.defaults.epsilon = 1e-5;
  gpt2.defaults.dropout = 0.1;
  gpt2.defaults.ffnFactor = 4;
  gpt2.rules = {{"scale_attn_by_inverse_layer_idx", "[false]"},
                {"add_cross_attention", "[false]"}};
  gpt2.harmless = {"n_ctx",
                   "reorder_and_upcast_attn",
                   "summary_activation",
                   "summary_first_dropout",
                   "summary_proj_to_labels",
                   "summary_type",
                   "summary_use_proj"};
  return gpt2;
}

const Architecture &mlir::parc::getGpt2Architecture() {
  static const Architecture gpt2 = make();
  return gpt2;
}
