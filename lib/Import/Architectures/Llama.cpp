//===- Llama.cpp - Llama --------------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Llama 1 to 3: rotary positions, grouped-query attention, RMS norms, a
/// gated multi-layer perceptron. Several others name their tensors alike.
///
//===----------------------------------------------------------------------===//

#include "RotaryDecoder.h"

using namespace mlir;
using namespace mlir::parc;

static Architecture make() {
  Architecture llama = makeRotaryDecoder();
  llama.modelType = "llama";
  llama.className = "LlamaForCausalLM";
  llama.keys.attentionBias = "attention_bias";
  llama.keys.mlpBias = "mlp_bias";
  // A tensor-parallel split of the checkpoint's own sums, which changes them.
  llama.rules.push_back({"pretraining_tp", "[1]"});
  return llama;
}

const Architecture &mlir::parc::getLlamaArchitecture() {
  static const Architecture llama = make();
  return llama;
}
