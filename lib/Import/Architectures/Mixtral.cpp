//===- Mixtral.cpp - Mixtral --------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Mixtral: as Mistral, with experts in every layer.
///
//===----------------------------------------------------------------------===//

#include "RotaryDecoder.h"

using namespace mlir;
using namespace mlir::parc;

static Architecture make() {
  Architecture mixtral = makeRotaryDecoder();
  mixtral.modelType = "mixtral";
  mixtral.className = "MixtralForCausalLM";
  mixtral.router = RouterKind::Softmax;
  mixtral.keys.window = "sliding_window";
  mixtral.defaults.epsilon = 1e-5;
  mixtral.experts.count = "num_local_experts";
  mixtral.experts.auxiliary = "output_router_logits";
  mixtral.experts.auxiliaryWeight = "router_aux_loss_coef";
  mixtral.names.router = "model.layers.{}.block_sparse_moe.gate";
  mixtral.names.expertGate = "model.layers.{}.block_sparse_moe.experts.{i}.w1";
  mixtral.names.expertUp = "model.layers.{}.block_sparse_moe.experts.{i}.w3";
  mixtral.names.expertDown = "model.layers.{}.block_sparse_moe.experts.{i}.w2";
  mixtral.rules.push_back({"router_jitter_noise", "[0]"});
  return mixtral;
}

const Architecture &mlir::parc::getMixtralArchitecture() {
  static const Architecture mixtral = make();
  return mixtral;
}
