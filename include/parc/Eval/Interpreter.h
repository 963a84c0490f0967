//===- Interpreter.h - Runs fully decomposed programs -----------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one evaluator. It runs blocks of arith, math, linalg, tensor and parc
/// ops in a number domain, and is at once the oracle of every test and what
/// `parc run` executes. It knows no transformer op: those are decomposed
/// before. Whatever it does not know is an error at that op.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_EVAL_INTERPRETER_H
#define PARC_EVAL_INTERPRETER_H

#include "parc/Eval/ParamStore.h"
#include "parc/Eval/RankContext.h"

#include "mlir/IR/Block.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <mutex>

namespace mlir::parc::eval {

template <class T> struct OpPlan;
template <class T> struct BlockPlan;

/// How each op of a module runs, found out once a block and shared by all ranks
/// (threads). The module must not change while a plan of it lives.
template <class T> class ModulePlan {
public:
  explicit ModulePlan(ModuleOp module);
  ~ModulePlan();

  /// The plan of `block`; null, after a located error, where an op in it or in
  /// a stack below it cannot be evaluated.
  const BlockPlan<T> *get(Block &block);
  /// True where the parameter `symbol` has layers; none for an unknown symbol.
  std::optional<bool> hasLayers(StringRef symbol) const;

private:
  std::mutex mutex;
  llvm::DenseMap<Block *, std::unique_ptr<BlockPlan<T>>> plans;
  llvm::StringMap<bool> params;
};

/// What a `parc.observe` saw. Inside a stack the layer's number is appended to
/// the name: `x.2`.
template <class T> struct Observation {
  std::string name;
  Tensor<T> value;
  Operation *op = nullptr;
};

/// Runs blocks for one rank. Not for use by two threads at once.
template <class T> class Interpreter {
public:
  using Values = llvm::SmallVector<RuntimeValue<T>>;

  Interpreter(ModulePlan<T> &plan, ParamStore<T> &params, RankContext &rank)
      : plan(plan), params(params), rank(rank) {}

  /// Runs `block` on `arguments` and returns its terminator's operands. Shapes
  /// are checked against the types. Fails after a located error.
  FailureOr<Values> run(Block &block, ArrayRef<RuntimeValue<T>> arguments);

  /// Puts all values stored by `parc.store` since the last call into the store.
  void commitStores();

  /// The values of `parc.observe` since the last call, in order.
  std::vector<Observation<T>> takeObserved() {
    return std::exchange(observed, {});
  }

  /// \name For the ops' handlers
  /// \{
  const Tensor<T> &tensor(Value value) { return environment[value].tensor; }
  const RuntimeValue<T> &value(Value value) { return environment[value]; }
  int64_t integer(Value value) { return tensor(value).asInt(); }
  /// Static sizes and offsets as they are, dynamic ones from their values.
  Shape integers(ArrayRef<OpFoldResult> mixed);
  /// The operand, moved out of the environment where nothing reads it later, so
  /// that its buffer can be written in place.
  Tensor<T> take(const OpPlan<T> &plan, OpOperand &operand);
  /// Gives a result its value, after checking the value against its type.
  LogicalResult set(Value result, RuntimeValue<T> value);
  /// True where `value` has the form of `type`; else an error at `op`, which
  /// begins with `what`.
  LogicalResult check(Operation *op, Type type, const RuntimeValue<T> &value,
                      const Twine &what);

  void observe(Observation<T> observation) {
    observed.push_back(std::move(observation));
  }
  /// Takes effect with the next commitStores.
  void store(ParamKey key, Tensor<T> value) {
    pending.push_back({std::move(key), std::move(value)});
  }
  /// The key of `symbol` in the layer that runs now.
  ParamKey key(StringRef symbol, StringRef slot) const;

  ModulePlan<T> &plan;
  ParamStore<T> &params;
  RankContext &rank;
  /// The layer that the innermost stack runs now, and the one after it.
  int64_t layer = 0;
  std::optional<int64_t> nextLayer;
  /// True in the last backward pass of a step.
  bool isLastMicro = false;
  /// What starts that are ahead of their layer have begun.
  llvm::DenseMap<Operation *, Values> ahead;
  /// \}

private:
  llvm::DenseMap<Value, RuntimeValue<T>> environment;
  std::vector<std::pair<ParamKey, Tensor<T>>> pending;
  std::vector<Observation<T>> observed;
};

} // namespace mlir::parc::eval

#endif // PARC_EVAL_INTERPRETER_H
