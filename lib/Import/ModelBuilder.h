//===- ModelBuilder.h - Writes a model's ops --------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The vocabulary that decoders are written in: one call a line of a paper.
/// Each takes care of types and of a readable location.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_IMPORT_MODELBUILDER_H
#define PARC_LIB_IMPORT_MODELBUILDER_H

#include "NN/NN.h"
#include "NN/NNExpertBuilders.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "parc/Import/Config.h"
#include "parc/Import/Model.h"
#include "parc/Import/Parameters.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace mlir::parc {

/// Sizes of what is between tokens and experts.
struct QueueSizes {
  /// Of each expert's queue.
  int64_t slots = 0;
  /// Choices that an expert takes of a scope, where it drops others.
  std::optional<int64_t> capacity;
};

/// Writes the ops of one model. Names are locations: `attn.o` in the stack
/// `layers` is `layers.attn.o`.
class ModelBuilder {
public:
  ModelBuilder(MLIRContext *context, const ModelConfig &config,
               BatchOptions batch, QueueSizes queue);

  OwningOpRef<ModuleOp> build();

private:
  // Declarations, and the parts of a model.
  void declareParameters();
  void buildStep();
  Value buildEmbedding();
  void buildTables();
  Value buildStack(const LayerRun &layers, Value x);
  Value buildLayer(Value x);
  Value buildAttention(Value x);
  void buildHeads(Value x, Value &q, Value &k, Value &v);
  void buildLatent(Value x, Value &q, Value &k, Value &v);
  Value buildLatentQueries(Value x);
  Value buildMlp(Value x);
  Value buildGated(const Twine &name, const Twine &symbol, Value x, bool bias);
  Value buildExperts(Value x);
  nn::Routing buildRouting(Value x);
  Value expertLinear(StringRef name, StringRef symbol, Value queues);
  /// Sequences that capacity and the auxiliary loss look at together.
  int64_t scopeSize() const {
    return batch.routing.scope ? batch.routing.scope : batch.batch;
  }
  Value limitChoices(Value ids);
  void addBalance(const nn::Routing &routing);
  Value countLabels(ImplicitLocOpBuilder &b, Type type);
  Value buildBalanceLoss();
  void buildLoss(Value x);

  // Lines of a model.
  Value load(StringRef symbol);
  Value linear(StringRef name, StringRef symbol, Value x, bool bias);
  Value norm(StringRef name, StringRef symbol, Value x);
  Value rmsNorm(StringRef name, StringRef symbol, Value x, double epsilon);
  Value splitHeads(StringRef name, Value x, int64_t heads, int64_t size);
  Value joinHeads(StringRef name, Value x);
  Value headNorm(StringRef name, StringRef symbol, Value x);
  Value rope(StringRef name, Value x);
  /// Elements `[offset, offset + size)` of the last dimension.
  Value slice(StringRef name, Value x, int64_t offset, int64_t size);
  /// Both side by side in the last dimension.
  Value concatenate(StringRef name, Value a, Value b);
  /// A head `B x S x 1 x D` that all heads share, once for each.
  Value shareHead(StringRef name, Value x);
  Value activate(StringRef name, Value x);
  Value dropout(StringRef name, Value x, double rate);
  Value add(StringRef name, Value a, Value b);
  Value splat(StringRef name, RankedTensorType type, double value);
  /// The same values in another float type.
  Value convert(StringRef name, Value x, Type to);

  RankedTensorType tensorOf(ArrayRef<int64_t> shape) const;
  /// The element type of what needs more than 8 bits: at least f32.
  Type getWideType();
  RankedTensorType integersOf(ArrayRef<int64_t> shape) const;
  RankedTensorType withLast(Value value, int64_t size) const;
  /// A readable place; inside a stack its name comes first.
  Location at(StringRef name) const;
  FloatAttr number(double value) { return builder.getF64FloatAttr(value); }

  MLIRContext *context;
  const ModelConfig &config;
  const Architecture &architecture;
  BatchOptions batch;
  QueueSizes queue;
  OpBuilder builder;
  Type element;
  ModuleOp module;
  llvm::StringMap<RankedTensorType> types;
  // What the micro-batch region has at hand everywhere.
  Value tokens, labels, positions, seed, cosines, sines;
  /// The stack that is written and the layer's index in it, null outside.
  const LayerRun *run = nullptr;
  Value layer;
  /// How often each expert was chosen in each scope so far, and the sum of its
  /// scores, both over layers too (scopes x experts); null where no loss asks.
  Value chosenSums, scoreSums;
  /// The number of the next dropout: no two share a mask.
  int64_t nextSite = 0;
};

} // namespace mlir::parc

#endif // PARC_LIB_IMPORT_MODELBUILDER_H
