//===- Architecture.h - What sets one architecture apart --------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An architecture is a description: which parts a decoder layer has, how
/// config.json spells its sizes, how checkpoints name its tensors, and which
/// values of which fields are supported. One builder makes the model of any
/// description.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_IMPORT_ARCHITECTURE_H
#define PARC_IMPORT_ARCHITECTURE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir::parc {

enum class NormKind { Rms, Layer };
enum class PositionKind { Learned, Rotary };
enum class MlpKind { Plain, Gated };
/// `Latent`: queries, keys and values come from projections to small vectors,
/// and one rotated part of the keys serves all heads (arXiv:2405.04434).
enum class AttentionKind { Grouped, Latent };
/// How a router scores experts. `None`: there are no experts. `Sigmoid` has a
/// bias that counts for the choice only (arXiv:2408.15664), and groups are
/// ranked by their two best experts (arXiv:2412.19437).
enum class RouterKind { None, Softmax, Sigmoid };

/// The order of a weight's dimensions in a checkpoint: `OutIn` is a linear
/// layer's, `InOut` that of a one-wide convolution.
enum class WeightLayout { OutIn, InOut };

/// How config.json spells the fields that are used. An empty name: the
/// architecture has no such field.
struct ConfigKeys {
  StringRef hidden = "hidden_size";
  StringRef layers = "num_hidden_layers";
  StringRef heads = "num_attention_heads";
  StringRef kvHeads = "num_key_value_heads";
  StringRef headDim = "head_dim";
  StringRef ffn = "intermediate_size";
  StringRef vocab = "vocab_size";
  StringRef maxPositions = "max_position_embeddings";
  StringRef epsilon = "rms_norm_eps";
  StringRef activation = "hidden_act";
  StringRef window;
  StringRef attentionBias;
  StringRef mlpBias;
  StringRef scaleScores;
  StringRef embeddingDropout;
  StringRef attentionDropout = "attention_dropout";
  StringRef residualDropout;
};

/// How config.json spells the sizes of latent attention.
struct LatentKeys {
  /// Null: queries are projected at once.
  StringRef queryRank = "q_lora_rank";
  StringRef keyRank = "kv_lora_rank";
  StringRef plainDim = "qk_nope_head_dim";
  StringRef rotaryDim = "qk_rope_head_dim";
  StringRef valueDim = "v_head_dim";
  /// Rotated pairs are neighbours; empty: they always are.
  StringRef interleaved = "rope_interleave";
  /// Of the norms of small vectors; config.json does not say it.
  double epsilon = 1e-6;
};

/// How config.json spells what experts need. An empty name: the architecture
/// has no such field.
struct ExpertKeys {
  StringRef count, perToken = "num_experts_per_tok";
  /// The inner size of an expert; empty: that of `ConfigKeys::ffn`.
  StringRef ffn;
  /// Experts that every token visits.
  StringRef shared;
  StringRef groups, topGroups;
  StringRef scale, normalize;
  /// The first layers, or those listed, have no experts; then every
  /// `step`-th layer has.
  StringRef firstDense, denseLayers, step;
  /// The auxiliary loss's weight, used where `auxiliary` is true.
  StringRef auxiliary, auxiliaryWeight;
  /// transformers' values of absent fields.
  int64_t defaultShared = 0, defaultGroups = 1, defaultTopGroups = 1;
  int64_t defaultFirstDense = 0;
  double defaultScale = 1.0, defaultAuxiliaryWeight = 0.001;
  bool defaultNormalize = true;
};

/// What transformers assumes where config.json leaves a field out.
struct ConfigDefaults {
  StringRef activation = "silu";
  bool tied = false;
  double epsilon = 1e-6;
  double initializerRange = 0.02;
  double dropout = 0.0;
  /// 0: hidden size over heads.
  int64_t headDim = 0;
  /// 0: none.
  int64_t window = 0;
  /// 0: required. Else the inner size is this many hidden sizes.
  int64_t ffnFactor = 0;
};

/// Where a checkpoint keeps each tensor, without `.weight` and `.bias`; `{}`
/// stands for the layer's number, `{i}` for the expert's.
struct CheckpointNames {
  StringRef embed, position, finalNorm, head;
  StringRef attnNorm, q, k, v, o, qNorm, kNorm;
  /// Latent attention: down to a small vector, its norm, up to heads.
  StringRef qDown, qDownNorm, qUp, kvDown, kvDownNorm, kvUp;
  StringRef mlpNorm, gate, up, down;
  StringRef router, routerBias, expertGate, expertUp, expertDown;
  StringRef sharedGate, sharedUp, sharedDown;
};

/// A field that is supported with some values only.
struct ValueRule {
  StringRef key;
  /// The supported values, a JSON array.
  StringRef allowed;
};

/// One architecture of decoder.
struct Architecture {
  /// `model_type` and `architectures` of config.json.
  StringRef modelType, className;
  NormKind norm = NormKind::Rms;
  PositionKind positions = PositionKind::Rotary;
  MlpKind mlp = MlpKind::Gated;
  WeightLayout layout = WeightLayout::OutIn;
  AttentionKind attention = AttentionKind::Grouped;
  RouterKind router = RouterKind::None;
  /// q, k and v are one checkpoint tensor, side by side in its outputs.
  bool fusedQkv = false;
  /// Each head of q and k is normalised before the rotation.
  bool qkNorm = false;
  /// Biases that are always there; `keys.attentionBias` and `keys.mlpBias`
  /// add theirs.
  bool qkvBias = false, outputBias = false, mlpBias = false;
  /// The two projections into the residual stream start smaller, by
  /// 1/sqrt(2 * layers).
  bool scaledResidualInit = false;
  ConfigKeys keys;
  LatentKeys latent;
  ExpertKeys experts;
  ConfigDefaults defaults;
  CheckpointNames names;
  SmallVector<ValueRule> rules;
  /// Fields that do not change a training step, beside those of every model.
  SmallVector<StringRef> harmless;
};

const Architecture &getDeepseekV3Architecture();
const Architecture &getGpt2Architecture();
const Architecture &getLlamaArchitecture();
const Architecture &getMistralArchitecture();
const Architecture &getMixtralArchitecture();
const Architecture &getQwen2Architecture();
const Architecture &getQwen3Architecture();
const Architecture &getQwen3MoeArchitecture();

/// Every architecture, in the order of their names.
ArrayRef<const Architecture *> getArchitectures();

/// The architecture of a `model_type`; null where it is not supported.
const Architecture *findArchitecture(StringRef modelType);

} // namespace mlir::parc

#endif // PARC_IMPORT_ARCHITECTURE_H
