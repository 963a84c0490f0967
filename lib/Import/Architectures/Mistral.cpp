//===- Mistral.cpp - Mistral ----------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Mistral: as Llama, with a sliding window.
///
//===----------------------------------------------------------------------===//

#include "RotaryDecoder.h"

using namespace mlir;
using namespace mlir::parc;

static Architecture make() {
  Architecture mistral = makeRotaryDecoder();
  mistral.modelType = "mistral";
  mistral.className = "MistralForCausalLM";
  mistral.keys.window = "sliding_window";
  mistral.defaults.window = 4096;
  return mistral;
}

const Architecture &mlir::parc::getMistralArchitecture() {
  static const Architecture mistral = make();
  return mistral;
}
