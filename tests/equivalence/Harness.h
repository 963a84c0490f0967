//===- Harness.h - A model in one piece and on many ranks ------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Prepares a model, runs it unpartitioned, pins dimensions of its ops to mesh
/// axes, partitions it, runs all ranks, and compares everything a step makes.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TESTS_EQUIVALENCE_HARNESS_H
#define PARC_TESTS_EQUIVALENCE_HARNESS_H

#include "Parc/Parc.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "parc/Analysis/Strategy.h"
#include "parc/Eval/Ranks.h"

namespace mlir::parc::equiv {

using Zp = eval::Zp;

/// A context with everything that parc knows loaded.
class Context {
public:
  Context();
  MLIRContext mlir;
};

/// Collects errors as text while it lives.
class Errors {
public:
  explicit Errors(MLIRContext &context);
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};

/// What a whole step of one rank makes, in domain T.
template <class T> struct Whole {
  eval::ParamStore<T> before, after;
  eval::StepInputs<T> inputs;
  std::map<std::string, eval::Tensor<T>> results;
  std::vector<eval::Tensor<T>> sums;
  std::map<std::string, eval::Tensor<T>> observed;
};

/// Parses `text`, and appends the backward and the optimizer. Null with the
/// reason in `error`.
OwningOpRef<ModuleOp> prepare(MLIRContext &context, const std::string &text,
                              std::string &error);
/// The same for a module that was built. Null after a diagnostic.
OwningOpRef<ModuleOp> prepare(OwningOpRef<ModuleOp> module);

/// Pseudo-random values for every slot of every parameter: any residue, or in
/// the reals from the interval 0.25 to 1.25, with both signs (second moments
/// are positive).
template <class T> eval::ParamStore<T> randomParams(ModuleOp module);
/// The inputs and scalars of the step of `module`; ids are below `vocabulary`.
template <class T>
eval::StepInputs<T> stepInputs(ModuleOp module, int64_t vocabulary);

/// Runs the step of a prepared module on one rank. Leaves `module` as it is.
template <class T>
FailureOr<Whole<T>> runWhole(ModuleOp module, int64_t vocabulary);

/// A wish for the layout of operand or result `value` (operands first) of the
/// `op`th op of a prepared module, in the order of a walk.
struct Pin {
  unsigned op;
  unsigned value;
  ShardingAttr sharding;
};

struct Axis {
  std::string name;
  int64_t size;
};
using Axes = SmallVector<Axis>;

/// How a module is partitioned.
struct Plan {
  Axes mesh;
  int64_t microBatches = 1;
  std::string rule = "1f1b";
  /// Whether the built-in strategy places what no pin does.
  bool strategy = false;
  /// ZeRO's stage.
  int64_t zero = 0;
  /// For the strategy.
  StrategyOptions options = {};
  /// Whether ops on rings are what they mean instead of how they run, as exact
  /// arithmetic needs it.
  bool contracts = true;
};

/// A clone of `module` with the mesh and the pins as constraints.
OwningOpRef<ModuleOp> pinned(ModuleOp module, const Plan &plan,
                             ArrayRef<Pin> pins);
/// The passes up to the sharded phase, checked; from there to a staged module;
/// and from there to what the evaluator runs.
LogicalResult shard(ModuleOp module, const Plan &plan);
LogicalResult stage(ModuleOp module, const Plan &plan);
LogicalResult decompose(ModuleOp module);

/// Empty where all ranks of the staged `module` make what `whole` has: results,
/// observed values, gradients, parameters, moments, and replicas alike. Else
/// what differs.
std::string compare(ModuleOp module, const Whole<Zp> &whole);

/// The op's operands and results.
SmallVector<Value> valuesOf(Operation *op);
/// All ops of a module in the order that pins count.
std::vector<Operation *> opsOf(ModuleOp module);

} // namespace mlir::parc::equiv

#endif // PARC_TESTS_EQUIVALENCE_HARNESS_H
