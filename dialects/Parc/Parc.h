//===- Parc.h - The parc dialect -----------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Everything that the parc dialect declares.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_PARC_PARC_H
#define PARC_DIALECTS_PARC_PARC_H

#include "Parc/Factors.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "Parc/ParcDialect.h.inc"

#include "Parc/ParcInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "Parc/ParcAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "Parc/ParcTypes.h.inc"

#define GET_OP_CLASSES
#include "Parc/ParcOps.h.inc"

namespace mlir::parc {

/// The sharding that `type` carries as its encoding; null without one.
ShardingAttr getSharding(Type type);

/// `type` with `sharding` as its encoding (null removes it).
RankedTensorType withSharding(RankedTensorType type, ShardingAttr sharding);

/// An error at the place of an op whose text may fill screens: as
/// `op->emitOpError()`, but the op is not printed.
InFlightDiagnostic emitErrorAt(Operation *op);

/// True for an op that moves data between ranks.
bool isCollective(Operation *op);
/// Checks the numbers of used rows that come with a change of layout of a value
/// of `type`: none, or two, and how many rows they stand for.
LogicalResult verifyUsedRows(Operation *op, RankedTensorType type,
                             ValueRange used, std::optional<int64_t> rows);

/// On a parameter: the plan's rule that its sharding comes from, with its place
/// ("the rule 'q' at plan.toml:3").
inline constexpr StringRef kRuleAttr = "parc.rule";

/// On an op that sums and gives the result in a type narrower than f32: the
/// type that it adds up in.
inline constexpr StringRef kAccumulateAttr = "parc.accumulate";
/// True for an op that needs it.
bool sumsNarrow(Operation *op);

/// The name of the axis of micro-batches, which splits time and not devices.
inline constexpr StringRef kMicroBatchAxis = "mb";
/// The slots of a parameter that the engine knows: its value; what
/// micro-batches add up; and, where that is laid out otherwise, its sum over
/// all ranks.
inline constexpr StringRef kValueSlot = "value";
inline constexpr StringRef kGradientSlot = "grad";
inline constexpr StringRef kReducedSlot = "reduced";
inline constexpr StringRef kMasterSlot = "master";
/// In `slot_shardings`: how all slots lie that only an update uses.
inline constexpr StringRef kStateLayout = "state";
/// The name of the axis that stages are placed on.
inline constexpr StringRef kStageAxis = "pp";

} // namespace mlir::parc

#endif // PARC_DIALECTS_PARC_PARC_H
