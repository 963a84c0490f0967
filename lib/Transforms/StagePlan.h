//===- StagePlan.h - Which op runs on which stage ------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The stage of every op of a local step, and the values that cross each
/// boundary between stages.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TRANSFORMS_STAGEPLAN_H
#define PARC_LIB_TRANSFORMS_STAGEPLAN_H

#include "Parc/Parc.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::parc {

/// A value that crosses a boundary: one that an op made, or what a stack
/// carries between two of its layers (`inFlight`; `value` is then the stack's
/// result).
struct Crossing {
  Value value;
  bool inFlight = false;
  bool operator==(const Crossing &other) const {
    return value == other.value && inFlight == other.inFlight;
  }
};

/// The values of its own block that an op's regions use.
SetVector<Value> capturedValues(Operation *op);
/// The same and its operands.
SetVector<Value> readValues(Operation *op);

/// Stages of a local step's micro region.
class StagePlan {
public:
  StagePlan(StepOp step, int64_t stages) : step(step), stages(stages) {}

  /// Cuts the layers and places every op; emits errors.
  LogicalResult compute();

  StepOp getStep() const { return step; }
  int64_t numStages() const { return stages; }
  /// Stage s runs layers bounds[s] to bounds[s+1] of the stacks in order.
  ArrayRef<int64_t> getBounds() const { return bounds; }
  /// The forward stacks, in order.
  ArrayRef<StackOp> getStacks() const { return stacks; }

  /// Part of the forward computation (what the sums and observations need).
  bool isForward(Operation *op) const { return forward.contains(op); }
  /// Made again wherever it is used: depends on inputs only, or is a load.
  bool isFree(Operation *op) const { return free.contains(op); }
  /// Cheap to make again in the backward region: loads, constants, sizes.
  static bool isRemade(Operation *op);
  /// True where `op` (or some layers of it) runs on `stage`.
  bool runsOn(Operation *op, int64_t stage) const;
  /// The first and last stage of a stack's layers.
  std::pair<int64_t, int64_t> stackStages(StackOp stack) const;

  /// Values sent from stage b to b+1, and gradients sent from b+1 to b.
  ArrayRef<Crossing> forwardCrossings(int64_t boundary) const {
    return crossForward[boundary];
  }
  ArrayRef<Crossing> backwardCrossings(int64_t boundary) const {
    return crossBackward[boundary];
  }

  /// The stages that use a parameter's value, in order.
  SmallVector<int64_t> paramStages(StringRef param) const;

private:
  void findForward();
  void findDependences();
  LogicalResult findStacks();
  LogicalResult cut();
  void placeForward();
  void placeBackward();
  LogicalResult findCrossings();
  SmallVector<int64_t> useStages(Value value) const;
  int64_t madeOn(Value value) const;
  void findParamStages();

  mutable StepOp step;
  int64_t stages;
  SmallVector<int64_t> bounds;
  SmallVector<StackOp> stacks;
  DenseMap<Operation *, unsigned> stackIndex;
  DenseSet<Operation *> forward, free, readsParam;
  /// The last forward stack, and the backward stack of the lowest index, that
  /// an op depends on.
  DenseMap<Operation *, int64_t> afterStack, afterBackward;
  DenseMap<Operation *, int64_t> stageOf;
  std::vector<SmallVector<Crossing>> crossForward, crossBackward;
  llvm::StringMap<llvm::SmallSetVector<int64_t, 4>> stagesOfParam;
};

/// Rewrites the update region of `plan`'s step so that values of several stages
/// are reduced over the stage axis where they are needed whole, and tells which
/// stages run each op.
class UpdatePlan {
public:
  explicit UpdatePlan(const StagePlan &plan) : plan(plan) {}
  LogicalResult compute();

  bool runsOn(Operation *op, int64_t stage) const;
  /// True where `op` adds up what stages have, and `operand` is not this
  /// stage's to add (it is zero here).
  bool isAbsent(Operation *op, unsigned operand, int64_t stage) const;

private:
  /// Where a value is: its stages (empty: all), and whether it is a sum still
  /// to be reduced over them.
  struct Place {
    SmallVector<int64_t> stages;
    bool partial = false;
  };
  LogicalResult visit(Operation *op);
  LogicalResult visitOther(Operation *op);
  void requireWhole(OpOperand &operand);
  Place placeOf(Value value) const { return places.lookup(value); }
  bool addsUp(Operation *op) const;

  const StagePlan &plan;
  DenseMap<Value, Place> places;
  DenseMap<Operation *, SmallVector<int64_t>> opStages;
  DenseSet<Operation *> sums;
  DenseMap<Value, Value> whole;
};

} // namespace mlir::parc

#endif // PARC_LIB_TRANSFORMS_STAGEPLAN_H
