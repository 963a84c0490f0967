//===- RotaryDecoder.cpp - What rotary decoders share ---------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The common part of the descriptions of decoders with rotary positions.
///
//===----------------------------------------------------------------------===//

#include "RotaryDecoder.h"

using namespace mlir;
using namespace mlir::parc;

static CheckpointNames makeNames() {
  CheckpointNames names;
  names.embed = "model.embed_tokens";
  names.finalNorm = "model.norm";
  names.head = "lm_head";
  names.attnNorm = "model.layers.{}.input_layernorm";
  names.q = "model.layers.{}.self_attn.q_proj";
  names.k = "model.layers.{}.self_attn.k_proj";
  names.v = "model.layers.{}.self_attn.v_proj";
  names.o = "model.layers.{}.self_attn.o_proj";
  names.qNorm = "model.layers.{}.self_attn.q_norm";
  names.kNorm = "model.layers.{}.self_attn.k_norm";
  names.mlpNorm = "model.layers.{}.post_attention_layernorm";
  names.gate = "model.layers.{}.mlp.gate_proj";
  names.up = "model.layers.{}.mlp.up_proj";
  names.down = "model.layers.{}.mlp.down_proj";
  return names;
}

void mlir::parc::setExpertNames(CheckpointNames &names) {
  names.router = "model.layers.{}.mlp.gate";
  names.routerBias = "model.layers.{}.mlp.gate.e_score_correction_bias";
  names.expertGate = "model.layers.{}.mlp.experts.{i}.gate_proj";
  names.expertUp = "model.layers.{}.mlp.experts.{i}.up_proj";
  names.expertDown = "model.layers.{}.mlp.experts.{i}.down_proj";
  names.sharedGate = "model.layers.{}.mlp.shared_experts.gate_proj";
  names.sharedUp = "model.layers.{}.mlp.shared_experts.up_proj";
  names.sharedDown = "model.layers.{}.mlp.shared_experts.down_proj";
}

Architecture mlir::parc::makeRotaryDecoder() {
  Architecture decoder;
  decoder.names = makeNames();
  decoder.rules = {{"partial_rotary_factor", "[1]"}};
  decoder.harmless = {"max_window_layers"};
  return decoder;
}
