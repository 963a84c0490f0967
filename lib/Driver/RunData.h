//===- RunData.h - What parc run is given -----------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What `parc run` is given: its options, the batch, initial parameters.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_DRIVER_RUNDATA_H
#define PARC_LIB_DRIVER_RUNDATA_H

#include "parc/Driver/Compilation.h"
#include "parc/Import/Weights.h"

namespace mlir::parc::driver {

/// The flags of `parc run` that are not of the declaration.
struct RunOptions {
  int64_t steps = 1;
  int64_t seed = 0;
  /// Path of the weights; empty: values from the seed.
  std::string weights;
  std::string save;
  bool exact = false;
};

/// Nothing after an error.
std::optional<RunOptions> readRunOptions(Session &session);

/// One global batch, row-major batch x sequence.
struct TokenBatch {
  int64_t batch = 0, sequence = 0;
  std::vector<int64_t> tokens;
  /// Per position, -100 where none.
  std::vector<int64_t> labels;

  int64_t validLabels() const;
};

/// Reads `input_ids` and, where present, `labels` of a safetensors file: one
/// label a position, shifted already, -100 where there is none. Without them
/// position t is scored against id t+1, and the last position is not scored.
std::optional<TokenBatch> readTokens(Session &session, const Word &path);

/// Ids from the seed, as an emitted program without data has them.
TokenBatch syntheticTokens(int64_t batch, int64_t sequence, int64_t vocab,
                           int64_t seed);

/// The labels of a batch without labels.
std::vector<int64_t> shiftLabels(ArrayRef<int64_t> tokens, int64_t sequence);

/// Rows of the table that the tokens look up; 0 where there is none.
int64_t vocabularyOf(ModuleOp module);

/// Checks that every id is below the vocabulary.
bool checkTokens(Session &session, const TokenBatch &tokens, int64_t vocab,
                 const Place &place);

/// Initial values of parameters, whole, as doubles.
class InitialValues {
public:
  /// Opens and checks the weights, if any; nothing after an error.
  static std::optional<InitialValues> open(Session &session, ModuleOp module,
                                           const RunOptions &options);

  /// All elements of a parameter's layer; nothing after an error.
  std::optional<std::vector<double>> read(ParamOp param, int64_t layer) const;
  /// The tensor that holds a parameter's layer in a checkpoint, or row `row` of
  /// it where each row is a tensor.
  std::string name(ParamOp param, int64_t layer, int64_t row = 0) const;
  /// True where the values come from a file.
  bool fromFile() const { return weights.has_value(); }

private:
  std::optional<Weights> weights;
  int64_t seed = 0;
};

} // namespace mlir::parc::driver

#endif // PARC_LIB_DRIVER_RUNDATA_H
