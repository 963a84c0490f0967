//===- RunSteps.h - The steps of parc run -----------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The steps of `parc run` in one number domain: all ranks beside the
/// unpartitioned program, compared after each step. In the reals both begin
/// each step with the ranks' parameters; in the exact domain each goes on with
/// its own.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_DRIVER_RUNSTEPS_H
#define PARC_LIB_DRIVER_RUNSTEPS_H

#include "RunData.h"
#include "parc/Eval/ParamStore.h"
#include "parc/Eval/Ranks.h"

#include <cmath>

namespace mlir::parc::driver {

/// The programs to run, all decomposed.
struct RunPrograms {
  /// The unpartitioned step.
  ModuleOp whole;
  /// The roles of all stages.
  ModuleOp ranks;
};

/// The largest relative difference seen, and of what.
struct Difference {
  double value = 0;
  std::string what;

  void add(double other, const Twine &name) {
    // A NaN is the largest difference of all.
    if (other > value || other != other) {
      value = other;
      what = name.str();
    }
  }
};

/// The size of the gradient of all parameters together.
struct WholeGradient {
  double squares = 0;
  int64_t elements = 0;

  double norm() const { return std::sqrt(squares); }
  /// Of one element.
  double typical() const {
    return elements ? std::sqrt(squares / static_cast<double>(elements)) : 0;
  }
};

/// One step's numbers, for its line.
struct StepNumbers {
  int64_t step = 0;
  double loss = 0, gradNorm = 0, seconds = 0;
};

/// All steps in one domain.
template <class T> class StepRunner {
public:
  /// `arithmetic` is what T computes: f32 with values rounded to bf16 where the
  /// program says so is bf16.
  StepRunner(RunPrograms programs, ElementKind arithmetic,
             const Declaration &declaration, const TokenBatch &tokens,
             const RunOptions &options)
      : programs(programs), arithmetic(arithmetic), declaration(declaration),
        tokens(tokens), options(options) {}

  /// Sets all parameters, whole.
  LogicalResult start(const InitialValues &values);
  /// Runs one step (from 1) on all ranks and without partitioning.
  FailureOr<StepNumbers> run(int64_t step);

  const Difference &difference() const { return largest; }
  /// What ranks that hold the same disagree in; empty when nothing.
  const std::vector<std::string> &disagreements() const { return replicas; }
  /// Of the last step.
  const eval::RanksResult<T> &result() const { return ranks; }

private:
  eval::StepInputs<T> inputs(int64_t step) const;
  void compare(const eval::StepResult<T> &expected);
  /// Adds up the gradients of all parameters; how far the ranks' are off.
  WholeGradient sumGradients(double &difference) const;
  void compareSlot(const eval::ParamKey &key, const eval::Tensor<T> &value,
                   const WholeGradient &all);

  RunPrograms programs;
  ElementKind arithmetic;
  const Declaration &declaration;
  const TokenBatch &tokens;
  const RunOptions &options;
  std::unique_ptr<eval::ModulePlan<T>> plan;
  eval::ParamStore<T> whole;
  eval::RanksResult<T> ranks;
  Difference largest;
  std::vector<std::string> replicas;
};

/// Writes logits, loss, grad_norm, gradients and parameters of a run.
template <class T>
bool saveResult(Session &session, const Word &path, ModuleOp module,
                const InitialValues &names, const eval::RanksResult<T> &result,
                int64_t validLabels);

} // namespace mlir::parc::driver

#endif // PARC_LIB_DRIVER_RUNSTEPS_H
