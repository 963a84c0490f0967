//===- parc-opt.cpp - Runs parc's passes ----------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// mlir-opt with parc's dialects and passes.
///
//===----------------------------------------------------------------------===//

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "parc/Driver/Phases.h"
#include "parc/InitAll.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::parc::registerAllDialects(registry);
  mlir::parc::registerAllPasses();
  mlir::parc::driver::registerPhasePipelines();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "parc-opt: runs the passes of parc\n", registry));
}
