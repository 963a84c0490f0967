//===- RT.h - The rt dialect ------------------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Everything that the rt dialect declares.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_RT_RT_H
#define PARC_DIALECTS_RT_RT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "RT/RTDialect.h.inc"

#include "RT/RTEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "RT/RTTypes.h.inc"

#define GET_OP_CLASSES
#include "RT/RTOps.h.inc"

namespace mlir::rt {

/// What an event of `rt.schedule` does.
enum class EventKind : int64_t {
  Forward,
  Backward,
  SendForward,
  ReceiveForward,
  SendBackward,
  ReceiveBackward,
  Group,
};

} // namespace mlir::rt

#endif // PARC_DIALECTS_RT_RT_H
