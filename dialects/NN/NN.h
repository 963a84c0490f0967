//===- NN.h - The nn dialect ---------------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Everything that the nn dialect declares.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NN_H
#define PARC_DIALECTS_NN_NN_H

#include "Parc/Parc.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "NN/NNDialect.h.inc"

namespace mlir::nn {
/// The generated declarations name it without its namespace.
using parc::OpFactors;
} // namespace mlir::nn

#define GET_OP_CLASSES
#include "NN/NNOps.h.inc"

#endif // PARC_DIALECTS_NN_NN_H
