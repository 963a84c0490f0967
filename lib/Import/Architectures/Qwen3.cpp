//===- Qwen3.cpp - Qwen3 --------------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Qwen3: as Llama, with a norm on each head of q and k, and a head size of
/// its own.
///
//===----------------------------------------------------------------------===//

#include "RotaryDecoder.h"

using namespace mlir;
using namespace mlir::parc;

static Architecture make() {
  Architecture qwen3 = makeRotaryDecoder();
  qwen3.modelType = "qwen3";
  qwen3.className = "Qwen3ForCausalLM";
  qwen3.qkNorm = true;
  qwen3.keys.attentionBias = "attention_bias";
  qwen3.defaults.headDim = 128;
  qwen3.rules.push_back({"use_sliding_window", "[false]"});
  // The window has no effect while `use_sliding_window` is false.
  qwen3.harmless.push_back("sliding_window");
  return qwen3;
}

const Architecture &mlir::parc::getQwen3Architecture() {
  static const Architecture qwen3 = make();
  return qwen3;
}
