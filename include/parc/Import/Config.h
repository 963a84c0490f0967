//===- Config.h - What config.json says -------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A model's sizes and options, read from config.json and checked: whatever
/// this holds can be built.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_IMPORT_CONFIG_H
#define PARC_IMPORT_CONFIG_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"
#include "parc/Import/Architecture.h"
#include <optional>
#include <string>

namespace mlir::parc {

enum class ElementKind { F32, F64, BF16 };
/// "f32", "f64" or "bf16".
StringRef stringifyElementKind(ElementKind kind);
/// The inverse; nothing for another name.
std::optional<ElementKind> parseElementKind(StringRef name);

enum class ActivationKind { Silu, GeluTanh, GeluExact };

/// Rotary positions.
struct RopeConfig {
  enum class Scaling { None, Linear, Llama3 };
  Scaling scaling = Scaling::None;
  /// The base of the frequencies.
  double theta = 10000.0;
  double factor = 1.0;
  /// Of `Llama3` only: wavelengths longer than original / low are stretched
  /// by `factor`, those shorter than original / high are kept.
  double lowFactor = 1.0, highFactor = 4.0;
  int64_t originalPositions = 0;

  /// `headDim / 2` angular frequencies, highest first: theta^(-2j / headDim)
  /// (arXiv:2104.09864), scaled; Llama3 as in arXiv:2407.21783.
  SmallVector<double> getFrequencies(int64_t headDim) const;
};

/// A checked model. Sizes are at least 1 and below 2^31, the number of all
/// parameters is below 2^62.
struct ModelConfig {
  const Architecture *architecture = nullptr;
  /// The file that it was read from, for messages.
  std::string file;
  int64_t vocab = 0, hidden = 0, layers = 0, heads = 0, kvHeads = 0;
  int64_t headDim = 0, ffn = 0, maxPositions = 0;
  double epsilon = 1e-6, initializerRange = 0.02;
  ActivationKind activation = ActivationKind::Silu;
  bool qkvBias = false, outputBias = false, mlpBias = false;
  /// The head is the embedding's table.
  bool tied = false;
  /// Scores are divided by sqrt(headDim).
  bool scaleScores = true;
  /// How many positions a position sees, itself included.
  std::optional<int64_t> window;
  double embeddingDropout = 0, attentionDropout = 0, residualDropout = 0;
  RopeConfig rope;
  ElementKind element = ElementKind::F32;
  /// Fields that were not understood, in their order in the file.
  SmallVector<std::string> ignored;

  bool hasDropout() const {
    return embeddingDropout > 0 || attentionDropout > 0 || residualDropout > 0;
  }
};

/// Reads a config.json. `file` names it in locations. `element` replaces the
/// model's own element type. The first fault is emitted as an error at its
/// place, all others as notes to it; fields that are not understood as one
/// warning.
FailureOr<ModelConfig>
readModelConfig(MLIRContext *context, StringRef text, StringRef file,
                std::optional<ElementKind> element = std::nullopt);

} // namespace mlir::parc

#endif // PARC_IMPORT_CONFIG_H
