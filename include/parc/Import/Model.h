//===- Model.h - The model of a config --------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Builds the MLIR module of a checked config, prints it, and says in a line
/// or two what was understood.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_IMPORT_MODEL_H
#define PARC_IMPORT_MODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OwningOpRef.h"
#include "parc/Import/Config.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::parc {

/// How tokens get to experts, where a model has those.
struct RoutingOptions {
  /// Choices that exceed an expert's capacity are dropped, in the order of
  /// tokens; otherwise none is.
  bool drops = false;
  /// Of a scope: the capacity over the balanced load.
  double capacityFactor = 1.25;
  /// What capacity and the auxiliary loss look at together: so many consecutive
  /// sequences, which divide the batch; 0 for the whole batch.
  int64_t scope = 1;
  /// Slots of an expert's queue over the balanced load; at most twice as many
  /// as tokens. 0: 2, and room for all tokens of a batch of up to 4096.
  double bufferFactor = 0.0;
  /// Into how many parts batch and sequence are going to be cut. Queues are cut
  /// equally, and each of their parts has room for the tokens of the largest.
  int64_t batchParts = 1, sequenceParts = 1;
};

/// The global batch of one step.
struct BatchOptions {
  /// Sequences.
  int64_t batch = 1;
  /// Tokens each; 0: the longest that the model takes, at most 8192.
  int64_t sequence = 0;
  RoutingOptions routing = {};
};

/// The dialects that an imported model is written in.
void registerImportDialects(DialectRegistry &registry);

/// A module with one `parc.param` a parameter and one `parc.step @train`, its
/// update region empty. Inputs are `tokens`, `labels` and `positions`, each
/// `batch x sequence` of i64, and where there is dropout `seed`, one i64.
/// Emits an error, at config.json, for a batch or a sequence that is not
/// positive, that overflows, that is longer than learned positions reach, or
/// that leaves experts a capacity below one;
/// a warning for one longer than the model was made for.
/// The dialects of `registerImportDialects` are loaded.
FailureOr<OwningOpRef<ModuleOp>>
buildModel(MLIRContext *context, const ModelConfig &config, BatchOptions batch);

/// Prints a model as a person would write it: values are named after what
/// they are.
void printModel(ModuleOp module, raw_ostream &os);

/// "llama, 3 layers, 31,776 parameters, f32".
std::string describeModel(const ModelConfig &config);

/// What was understood, for `parc import`: lines of at most 100 columns, each
/// a word, blanks up to column 10, and text.
std::string summarizeConfig(const ModelConfig &config);

} // namespace mlir::parc

#endif // PARC_IMPORT_MODEL_H
