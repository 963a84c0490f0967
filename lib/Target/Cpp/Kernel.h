//===- Kernel.h - Kernels as C++ functions ----------------------------*- C++
//-*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A kernel becomes a function of views; kernels that do the same are one.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TARGET_CPP_KERNEL_H
#define PARC_LIB_TARGET_CPP_KERNEL_H

#include "Names.h"

#include "RT/RT.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::parc::cpp {

/// How to call a kernel: its function, then these values after its results.
struct KernelCall {
  std::string function;
  /// Tensors, then index values, in the order of parameters.
  SmallVector<Value> tensors, scalars;
  /// What follows of the reduction's sizes.
  enum class Sizes { None, Each, Product } sizes = Sizes::None;
};

/// The kernels of one file.
class KernelTable {
public:
  /// The function for an rt.map or rt.reduce, printed at its first use.
  FailureOr<KernelCall> get(Operation *op);
  /// All functions so far.
  StringRef text() const { return printed; }

private:
  llvm::StringMap<std::string> known;
  Scope scope;
  std::string printed;
};

} // namespace mlir::parc::cpp

#endif // PARC_LIB_TARGET_CPP_KERNEL_H
