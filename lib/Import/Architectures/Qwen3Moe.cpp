//===- Qwen3Moe.cpp - Qwen3 with experts --------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Qwen3 with experts: as Qwen3, some or all layers with experts.
///
//===----------------------------------------------------------------------===//

#include "RotaryDecoder.h"

using namespace mlir;
using namespace mlir::parc;

static Architecture make() {
  Architecture qwen3 = makeRotaryDecoder();
  qwen3.modelType = "qwen3_moe";
  qwen3.className = "Qwen3MoeForCausalLM";
  qwen3.qkNorm = true;
  qwen3.router = RouterKind::Softmax;
  qwen3.keys.attentionBias = "attention_bias";
  qwen3.defaults.headDim = 128;
  qwen3.experts.count = "num_experts";
  qwen3.experts.ffn = "moe_intermediate_size";
  qwen3.experts.normalize = "norm_topk_prob";
  qwen3.experts.defaultNormalize = false;
  qwen3.experts.denseLayers = "mlp_only_layers";
  qwen3.experts.step = "decoder_sparse_step";
  qwen3.experts.auxiliary = "output_router_logits";
  qwen3.experts.auxiliaryWeight = "router_aux_loss_coef";
  setExpertNames(qwen3.names);
  qwen3.rules.push_back({"use_sliding_window", "[false]"});
  // The window has no effect while `use_sliding_window` is false.
  qwen3.harmless.push_back("sliding_window");
  return qwen3;
}

const Architecture &mlir::parc::getQwen3MoeArchitecture() {
  static const Architecture qwen3 = make();
  return qwen3;
}
