//===- Annotate.h - Mesh and rules of a plan --------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From the model to the annotated phase: the declaration's mesh and rules are
/// written into the module.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_ANNOTATE_H
#define PARC_DRIVER_ANNOTATE_H

#include "mlir/IR/BuiltinOps.h"
#include "parc/Analysis/Strategy.h"
#include "parc/Driver/Declaration.h"

namespace mlir::parc::driver {

/// Replaces the module's mesh by the declaration's.
void setMesh(ModuleOp module, const Declaration &declaration);

/// What the strategy is to do; splits axes of the module's mesh where the
/// declaration or the model need parts of them.
StrategyOptions planStrategy(ModuleOp module, const Declaration &declaration);

/// After setMesh: the axes that ZeRO splits over, where these are not all that
/// it could.
std::vector<std::string> zeroAxes(ModuleOp module,
                                  const Declaration &declaration);

/// Turns rules into wishes on parameters. Errors, at the rule's place: no
/// parameter of that name (with the nearest), another number of dimensions, an
/// axis that the mesh does not have or that stages are placed on, an axis
/// twice, a parameter that has another wish already (both places shown).
LogicalResult applyRules(ModuleOp module, const Declaration &declaration,
                         Reporter &reporter);

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_ANNOTATE_H
