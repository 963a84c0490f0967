//===- DeepseekV3.cpp - DeepSeek V3 -------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// DeepSeek V3 and R1: latent attention, dense first layers, then layers with
/// many experts, some of which every token visits.
///
//===----------------------------------------------------------------------===//

#include "RotaryDecoder.h"

using namespace mlir;
using namespace mlir::parc;

static void setLatentNames(CheckpointNames &names) {
  names.qDown = "model.layers.{}.self_attn.q_a_proj";
  names.qDownNorm = "model.layers.{}.self_attn.q_a_layernorm";
  names.qUp = "model.layers.{}.self_attn.q_b_proj";
  names.kvDown = "model.layers.{}.self_attn.kv_a_proj_with_mqa";
  names.kvDownNorm = "model.layers.{}.self_attn.kv_a_layernorm";
  names.kvUp = "model.layers.{}.self_attn.kv_b_proj";
}

static ExpertKeys makeExpertKeys() {
  ExpertKeys keys;
  keys.count = "n_routed_experts";
  keys.ffn = "moe_intermediate_size";
  keys.shared = "n_shared_experts";
  keys.groups = "n_group";
  keys.topGroups = "topk_group";
  keys.scale = "routed_scaling_factor";
  keys.normalize = "norm_topk_prob";
  keys.firstDense = "first_k_dense_replace";
  keys.defaultShared = 1;
  keys.defaultGroups = 8;
  keys.defaultTopGroups = 4;
  keys.defaultFirstDense = 3;
  keys.defaultScale = 2.5;
  return keys;
}

static Architecture make() {
  Architecture deepseek = makeRotaryDecoder();
  deepseek.modelType = "deepseek_v3";
  deepseek.className = "DeepseekV3ForCausalLM";
  deepseek.attention = AttentionKind::Latent;
  deepseek.router = RouterKind::Sigmoid;
  deepseek.keys.headDim = "";
  deepseek.keys.attentionBias = "attention_bias";
  deepseek.experts = makeExpertKeys();
  setLatentNames(deepseek.names);
  setExpertNames(deepseek.names);
  deepseek.rules.push_back({"scoring_func", R"(["sigmoid"])"});
  deepseek.rules.push_back({"topk_method", R"(["noaux_tc"])"});
  deepseek.rules.push_back({"moe_layer_freq", "[1]"});
  deepseek.rules.push_back({"output_router_logits", "[false]"});
  deepseek.rules.push_back({"pretraining_tp", "[1]"});
  // The layers that predict further tokens are not part of the model, nor is
  // the small loss of a sequence's balance.
  for (StringRef key :
       {"num_nextn_predict_layers", "ep_size", "aux_loss_alpha", "seq_aux"})
    deepseek.harmless.push_back(key);
  return deepseek;
}

const Architecture &mlir::parc::getDeepseekV3Architecture() {
  static const Architecture deepseek = make();
  return deepseek;
}
