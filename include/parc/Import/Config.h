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
  enum class Scaling { None, Linear, Llama3, Yarn };
  Scaling scaling = Scaling::None;
  /// The base of the frequencies.
  double theta = 10000.0;
  double factor = 1.0;
  /// Of `Llama3` only: wavelengths longer than original / low are stretched
  /// by `factor`, those shorter than original / high are kept.
  double lowFactor = 1.0, highFactor = 4.0;
  int64_t originalPositions = 0;
  /// Of `Yarn` only: pairs that turn more than `fast` times within the
  /// original positions are kept, those that turn less than `slow` times are
  /// stretched by `factor`; `truncate` rounds the bounds to whole pairs.
  double fast = 32.0, slow = 1.0;
  bool truncate = true;
  /// The factor of cosines and sines.
  double tableScale = 1.0;
  /// A further factor of the scores, where the architecture has one.
  double scoreScale = 1.0;

  /// `headDim / 2` angular frequencies, highest first: theta^(-2j / headDim)
  /// (arXiv:2104.09864), scaled; Llama3 as in arXiv:2407.21783, Yarn as in
  /// arXiv:2309.00071.
  SmallVector<double> getFrequencies(int64_t headDim) const;
};

/// Latent attention. A head of queries and keys has `plainDim + rotaryDim`
/// elements.
struct LatentConfig {
  /// 0: queries are projected at once.
  int64_t queryRank = 0;
  int64_t keyRank = 0, plainDim = 0, rotaryDim = 0;
};

/// Experts of the layers that have them.
struct ExpertsConfig {
  /// 0: none.
  int64_t count = 0;
  int64_t perToken = 0;
  /// Inner sizes of an expert, and of all shared ones together.
  int64_t ffn = 0, sharedFfn = 0;
  /// A token's experts are in `topGroups` of `groups` equal groups.
  int64_t groups = 1, topGroups = 1;
  /// The chosen scores are divided by their sum; then all times `scale`.
  bool normalize = true;
  double scale = 1.0;
  /// The weight of the auxiliary loss, 0 for none.
  double auxiliaryWeight = 0.0;
};

/// Neighbouring layers of one kind: a stack of the model.
struct LayerRun {
  /// The stack's name, and what its parameters' names begin with.
  std::string stack, prefix;
  /// The first layer in the checkpoint's numbering, and how many there are.
  int64_t begin = 0, count = 0;
  bool experts = false;
};

/// A checked model. Sizes are at least 1 and below 2^31, the number of all
/// parameters is below 2^62.
struct ModelConfig {
  const Architecture *architecture = nullptr;
  /// The file that it was read from, for messages.
  std::string file;
  int64_t vocab = 0, hidden = 0, layers = 0, heads = 0, kvHeads = 0;
  /// Elements of a head of queries and keys, of values, and of its part that
  /// is rotated.
  int64_t headDim = 0, valueDim = 0, rotaryDim = 0;
  int64_t ffn = 0, maxPositions = 0;
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
  /// Rotated pairs are neighbours, not half a head apart.
  bool interleaved = false;
  LatentConfig latent;
  ExpertsConfig experts;
  /// The stacks, first to last. Their counts add up to `layers`.
  SmallVector<LayerRun> runs;
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
