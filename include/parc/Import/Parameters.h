//===- Parameters.h - The parameters of a model -----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Names, shapes and initial values of all parameters that a config calls
/// for, and what follows from them: how many there are, how many operations a
/// token takes.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_IMPORT_PARAMETERS_H
#define PARC_IMPORT_PARAMETERS_H

#include "parc/Import/Config.h"

namespace mlir::parc {

/// One `parc.param`, of the whole model or of each layer of a run.
struct ParameterSpec {
  std::string symbol;
  SmallVector<int64_t, 3> shape;
  /// The run's layers and its first one's number; 0 layers: the whole model's.
  int64_t layers = 0, firstLayer = 0;
  /// The deviation of normal initial values, or else the constant one.
  double std = 0.0;
  std::optional<double> value;
  /// The checkpoint's tensor; where the parameter is a box of it, the whole
  /// shape and the box's offsets.
  std::string checkpoint;
  SmallVector<int64_t, 2> boxShape, boxOffsets;
  /// Of at least f32, whatever the model's element type.
  bool wide = false;
  /// Operations of a token are in proportion to it, a product's weight: for
  /// that fraction of its elements.
  double multiplied = 0.0;
};

/// All parameters: the embeddings, those of each run's layers, the norm and
/// the head.
SmallVector<ParameterSpec> getParameters(const ModelConfig &config);

/// The number of all elements; nothing from 2^62 on.
std::optional<int64_t> countParameters(const ModelConfig &config);

/// Floating-point operations of a training step for one token, forward and
/// backward. A multiplication with an addition counts as two.
struct TokenFlops {
  /// 6 an element of every multiplied weight, a tied head's included.
  double weights = 0;
  /// Scores and their use, 6 * layers * heads * (headDim + valueDim) * keys:
  /// for the keys that a position sees on average, and for all of the
  /// sequence.
  double causalAttention = 0, fullAttention = 0;
};
TokenFlops getTokenFlops(const ModelConfig &config, int64_t sequence);

} // namespace mlir::parc

#endif // PARC_IMPORT_PARAMETERS_H
