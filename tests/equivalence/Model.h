//===- Model.h - Models of one op ------------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A small training step around an op: parameters go in, and what comes out is
/// multiplied by parameters of its own and summed, so that every element of
/// every result and of every gradient is seen in some parameter's gradient.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TESTS_EQUIVALENCE_MODEL_H
#define PARC_TESTS_EQUIVALENCE_MODEL_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <map>
#include <string>
#include <vector>

namespace mlir::parc::equiv {

/// What each letter of a declaration stands for.
using Sizes = std::map<char, int64_t>;

/// Sizes that 2, 3 and 6 divide, where an op does not fix them.
const Sizes &evenSizes();
/// Sizes that hardly anything divides. Six parts fit in most of them.
const Sizes &unevenSizes();

/// A model of one op. Tensors are declared as `name:LETTERS` separated by
/// spaces; a letter is a dimension. In `body`, `$name` is the type of tensor
/// `name`.
struct Model {
  std::string name;
  /// Parameters (f32), loaded as `%name`.
  std::string params;
  /// Integer inputs (i64) `%name`; see `inputValue`.
  std::string inputs;
  /// What the loss is made of (f32); of a scalar, the scalar.
  std::string results;
  std::string body;
  /// Types of values between (f32).
  std::string others = {};
  /// True where the ops were tested before and it is their combination that
  /// is of interest.
  bool combination = false;
};

/// The text of a module with the step around `model`.
std::string moduleText(const Model &model, const Sizes &sizes);

/// The value of an input by its name: `labels` are ids of which some are -100,
/// `pos` counts along the last dimension, a `divisor` is an id and one, all
/// others are ids; element `index`
/// of a tensor whose last dimension is `last`.
int64_t inputValue(llvm::StringRef name, int64_t index, int64_t last,
                   int64_t vocabulary);

/// Models of the ops that are written down one by one.
const std::vector<Model> &models();

/// A small decoder: tied embedding, a stack of three layers with norm, gated
/// feed-forward, biases, dropout and residual, and the loss over the
/// vocabulary. Nothing in it is even: batch 9, sequence 5, width 7, inner width
/// 10, vocabulary 11.
std::string stackModelText();

/// A model of each elementwise op of arith and math that has sharding rules and
/// operands of one of the usual forms, found among the registered ops.
std::vector<Model> elementwiseModels(MLIRContext &context);

} // namespace mlir::parc::equiv

#endif // PARC_TESTS_EQUIVALENCE_MODEL_H
