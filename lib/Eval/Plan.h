//===- Plan.h - How each op runs --------------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The table of handlers, filled by one function a group of ops, and what is
/// kept of each op between runs.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_EVAL_PLAN_H
#define PARC_LIB_EVAL_PLAN_H

#include "Kernel.h"
#include "parc/Eval/Interpreter.h"

namespace mlir::parc::eval {

/// How one kind of op runs.
template <class T> struct Handler {
  LogicalResult (*run)(Interpreter<T> &, const OpPlan<T> &) = nullptr;
  /// Work done once; may be null.
  LogicalResult (*prepare)(OpPlan<T> &) = nullptr;
};

/// One op of a block.
template <class T> struct OpPlan {
  Operation *op = nullptr;
  Handler<T> handler;
  /// Values of this block that nothing reads after this op.
  llvm::SmallVector<Value, 2> dying;
  /// The compiled body, where the op has one.
  std::unique_ptr<Program<T>> program;
  /// The body is out + a * b, without rounding between.
  bool contraction = false;
  /// Results that are rounded to bf16 when they are whole.
  llvm::SmallVector<unsigned, 1> rounded;
  /// The value of a constant.
  Tensor<T> constant;
};

template <class T> struct BlockPlan {
  std::vector<OpPlan<T>> ops;
  /// Values of this block that only the terminator reads.
  llvm::SmallVector<Value, 4> dyingAtEnd;
};

/// Sizes that a program states or computes must be sizes, and fit into memory;
/// else an error at `op`.
LogicalResult checkSizes(Operation *op, ArrayRef<int64_t> sizes);

template <class T> using HandlerTable = llvm::StringMap<Handler<T>>;

template <class T> void addArithHandlers(HandlerTable<T> &table);
template <class T> void addTensorHandlers(HandlerTable<T> &table);
template <class T> void addParcHandlers(HandlerTable<T> &table);
template <class T> void addCollectiveHandlers(HandlerTable<T> &table);
/// The handlers of every structured linalg op, and of every elementwise op.
template <class T> Handler<T> structuredHandler();
template <class T> Handler<T> elementwiseHandler();

} // namespace mlir::parc::eval

#endif // PARC_LIB_EVAL_PLAN_H
