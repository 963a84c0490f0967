//===- ModelInput.h - Reading MODEL -----------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reading MODEL: a config.json or its folder, MLIR text, an output folder of
/// parc, or standard input; told apart by content. Text passes the gate before
/// a parser sees it.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_MODELINPUT_H
#define PARC_DRIVER_MODELINPUT_H

#include "parc/Driver/Declaration.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::parc::driver {

/// The text of a model, not yet parsed.
struct ModelInput {
  enum class Kind { Config, IR };
  Kind kind = Kind::IR;
  /// The file that was read, as messages name it.
  std::string file;
  /// Where it lies; empty for standard input.
  std::string folder;
  /// MODEL as it was typed, for `next:` lines.
  std::string typed;
  std::string text;

  /// The file `name` beside the model where there is one, else empty.
  std::string beside(StringRef name) const;
};

/// Reads a whole file of at most `limit` bytes. Errors say what is wrong with
/// `path` and point to `place`.
std::optional<std::string> readFile(StringRef path, size_t limit,
                                    const Place &place, Reporter &reporter);

/// Opens MODEL. Errors (all with exit status kUsage): not there, not readable,
/// a folder without a model, too large.
std::optional<ModelInput> openModel(const Word &word, Reporter &reporter);

/// A model that was understood.
struct LoadedModel {
  /// Of a config.json.
  std::optional<ModelConfig> config;
  /// Of MLIR text; a config's module is built once its batch is known.
  OwningOpRef<ModuleOp> module;
  ModelFacts facts;
  /// Where the module's locations point, and what stands there.
  std::string irFile, irText;
};

/// Makes the dialects that a model may use known to `context`.
void setUpContext(MLIRContext &context);

/// Parses `input`. `dtype` replaces the element type of a config. Errors are
/// diagnostics of the context.
std::optional<LoadedModel> loadModel(MLIRContext &context,
                                     const ModelInput &input,
                                     std::optional<ElementKind> dtype,
                                     Reporter &reporter);

/// Gives `model` its module for the declaration: builds a config's, or changes
/// the batch and element type of a program. Locations of a built module point
/// into its own text, called model.mlir, and its values are named there.
bool materialize(MLIRContext &context, LoadedModel &model,
                 const Declaration &declaration, Reporter &reporter);

/// Parses MLIR text that passed the gate; values get the names that the text
/// gives them as locations. Null after an error.
OwningOpRef<ModuleOp> parseNamed(MLIRContext &context, StringRef text,
                                 StringRef file);

/// The layers of all stacks, and the symbol of each with its number of layers,
/// in order of appearance.
SmallVector<std::pair<std::string, int64_t>> stackLayers(ModuleOp module);

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_MODELINPUT_H
