//===- Mutations.h - Ways to break a staged program ------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Mutations of ops, by the ways in which partitioners are known to go wrong,
/// and the programs that they are tried on.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TESTS_EQUIVALENCE_MUTATIONS_H
#define PARC_TESTS_EQUIVALENCE_MUTATIONS_H

#include "Harness.h"

#include <functional>

namespace mlir::parc::equiv {

/// A correct staged program, what it must compute, and two axes of it that are
/// equally long.
struct Subject {
  std::string name;
  OwningOpRef<ModuleOp> prepared, staged;
  Whole<Zp> whole;
  std::string axis, other;
};

/// A way to break an op; false where it does not apply.
using Break = std::function<bool(Operation *, const Subject &)>;
struct Mutation {
  std::string name;
  /// The kind of op that it applies to.
  StringRef op;
  Break apply;
};

/// Replaces an op of one result by `by`.
void replaceOp(Operation *op, Value by);
/// Replaces the value of an op by something computed from it.
void wrapResult(Operation *op, function_ref<Value(OpBuilder &, Value)> by);
/// Puts the other of the subject's two axes in the place of the one that an
/// attribute names.
bool swapAxis(Operation *op, StringRef attr, const Subject &subject);

/// `value` with the first `part` elements of a dimension moved to its end, so
/// that parts are another rank's. Null where that changes nothing.
Value rotated(OpBuilder &builder, Value value, int64_t dim, int64_t part);

/// Of collectives and slices: parts that go to other ranks or dimensions,
/// reductions of too little or too much.
std::vector<Mutation> partMutations();
/// Of what ranks hold and where it goes: gradients, state, keys and values.
std::vector<Mutation> stateMutations();

/// A decoder with experts, small, as imported: `config` are the fields that
/// differ between models.
OwningOpRef<ModuleOp> importedModel(MLIRContext &context,
                                    const std::string &config, int64_t batch,
                                    int64_t sequence);

} // namespace mlir::parc::equiv

#endif // PARC_TESTS_EQUIVALENCE_MUTATIONS_H
