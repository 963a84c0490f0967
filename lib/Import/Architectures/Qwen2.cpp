//===- Qwen2.cpp - Qwen2 --------------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Qwen2 and Qwen2.5: as Llama, with biases on q, k and v.
///
//===----------------------------------------------------------------------===//

#include "RotaryDecoder.h"

using namespace mlir;
using namespace mlir::parc;

static Architecture make() {
  Architecture qwen2 = makeRotaryDecoder();
  qwen2.modelType = "qwen2";
  qwen2.className = "Qwen2ForCausalLM";
  qwen2.qkvBias = true;
  qwen2.rules.push_back({"use_sliding_window", "[false]"});
  qwen2.rules.push_back({"use_mrope", "[false]"});
  // The window has no effect while `use_sliding_window` is false.
  qwen2.harmless.push_back("sliding_window");
  return qwen2;
}

const Architecture &mlir::parc::getQwen2Architecture() {
  static const Architecture qwen2 = make();
  return qwen2;
}
