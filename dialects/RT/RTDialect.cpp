//===- RTDialect.cpp - The rt dialect -------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Registration of the rt dialect.
///
//===----------------------------------------------------------------------===//

#include "RT/RT.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::rt;

#include "RT/RTDialect.cpp.inc"

#include "RT/RTEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "RT/RTTypes.cpp.inc"

#define GET_OP_CLASSES
#include "RT/RTOps.cpp.inc"

void RTDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "RT/RTTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "RT/RTOps.cpp.inc"
      >();
}
