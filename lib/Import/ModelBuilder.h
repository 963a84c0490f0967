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
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "parc/Import/Config.h"
#include "parc/Import/Model.h"
#include "parc/Import/Parameters.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::parc {

/// Writes the ops of one model. Names are locations: `layers.attn.o`.
class ModelBuilder {
public:
  ModelBuilder(MLIRContext *context, const ModelConfig &config,
               BatchOptions batch);

  OwningOpRef<ModuleOp> build();

private:
  // Declarations, and the parts of a model.
  void declareParameters();
  void buildStep();
  Value buildEmbedding();
  Value buildStack(Value x);
  Value buildLayer(Value x);
  Value buildAttention(Value x);
  Value buildMlp(Value x);
  void buildLoss(Value x);

  // Lines of a model.
  Value load(StringRef symbol);
  Value linear(StringRef name, StringRef symbol, Value x, bool bias);
  Value norm(StringRef name, StringRef symbol, Value x);
  Value splitHeads(StringRef name, Value x, int64_t heads);
  Value joinHeads(StringRef name, Value x);
  Value headNorm(StringRef name, StringRef symbol, Value x);
  Value rope(StringRef name, Value x);
  Value activate(StringRef name, Value x);
  Value dropout(StringRef name, Value x, double rate);
  Value add(StringRef name, Value a, Value b);

  RankedTensorType tensorOf(ArrayRef<int64_t> shape) const;
  RankedTensorType integersOf(ArrayRef<int64_t> shape) const;
  RankedTensorType withLast(Value value, int64_t size) const;
  Location at(StringRef name) const;
  FloatAttr number(double value) { return builder.getF64FloatAttr(value); }

  MLIRContext *context;
  const ModelConfig &config;
  const Architecture &architecture;
  BatchOptions batch;
  OpBuilder builder;
  Type element;
  ModuleOp module;
  llvm::StringMap<RankedTensorType> types;
  // What the micro-batch region has at hand everywhere.
  Value tokens, labels, positions, seed, cosines, sines;
  /// The layer's index inside the stack, null outside.
  Value layer;
  /// The number of the next dropout: no two share a mask.
  int64_t nextSite = 0;
};

} // namespace mlir::parc

#endif // PARC_LIB_IMPORT_MODELBUILDER_H
