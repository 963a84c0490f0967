//===- KernelExecute.h - Instructions on lanes ------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Executes one instruction on a range of lanes.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_EVAL_KERNELEXECUTE_H
#define PARC_LIB_EVAL_KERNELEXECUTE_H

#include "Kernel.h"

namespace mlir::parc::eval {

/// The registers of a running kernel.
template <class T> struct Lanes {
  std::vector<T> floats;
  std::vector<int64_t> ints;

  T *floatLanes(unsigned reg) { return floats.data() + reg * kLanes; }
  int64_t *intLanes(unsigned reg) { return ints.data() + reg * kLanes; }
};

/// Executes `instruction` on the lanes [begin, end). Fails, with a located
/// error, where an integer is divided by zero or an index is outside of
/// `extracts`' tensor.
template <class T>
LogicalResult execute(const Program<T> &program,
                      const Instruction<T> &instruction, Lanes<T> &lanes,
                      int64_t begin, int64_t end,
                      llvm::ArrayRef<Tensor<T>> extracts);

} // namespace mlir::parc::eval

#endif // PARC_LIB_EVAL_KERNELEXECUTE_H
