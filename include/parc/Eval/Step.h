//===- Step.h - Runs one optimizer step on one rank -------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs a `parc.step` of an unpartitioned module: the oracle.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_EVAL_STEP_H
#define PARC_EVAL_STEP_H

#include "parc/Eval/Interpreter.h"

namespace mlir::parc {
class StepOp;
} // namespace mlir::parc

namespace mlir::parc::eval {

/// What a step is given, by the names that it declares.
template <class T> struct StepInputs {
  /// Integer tensors whose first dimension is the global batch.
  std::map<std::string, Tensor<T>> inputs;
  std::map<std::string, double> scalars;
};

/// What a step gives. Parameters and gradients are in the store.
template <class T> struct StepResult {
  /// By the names in the step's `results`.
  std::map<std::string, Tensor<T>> results;
  /// What the micro-batch region yields, added over micro-batches.
  std::vector<Tensor<T>> sums;
  /// By Observation's name. Micro-batches are joined along the first dimension.
  std::map<std::string, Tensor<T>> observed;
};

/// Runs the micro-batch region on `microBatches` parts of the batch, then the
/// update region. Slots that the step accumulates into are zeroed first; what
/// it stores takes effect at its end. `plan` is of the step's module. Fails
/// after a located error; the store's values are then as before, gradients are
/// not.
template <class T>
FailureOr<StepResult<T>>
runStep(StepOp step, ModulePlan<T> &plan, ParamStore<T> &params,
        const StepInputs<T> &inputs, int64_t microBatches = 1);

/// \name Shared with the runner of many ranks
/// \{

/// The input called `name`, an integer tensor; an error at `op` without it.
template <class T>
FailureOr<Tensor<T>> findInput(Operation *op, const StepInputs<T> &inputs,
                               StringRef name);
/// Scalar `name` as a value of `type`.
template <class T>
FailureOr<Tensor<T>> findScalar(Operation *op, const StepInputs<T> &inputs,
                                StringRef name, Type type);
/// Zeroes every slot that an accumulation below `op` names.
template <class T> void clearAccumulated(Operation *op, ParamStore<T> &params);
/// Adds one micro-batch's sums to those before.
template <class T>
LogicalResult addSums(Operation *op, std::vector<Tensor<T>> &sums,
                      ArrayRef<RuntimeValue<T>> terms);
/// \}

} // namespace mlir::parc::eval

#endif // PARC_EVAL_STEP_H
