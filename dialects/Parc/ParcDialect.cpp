//===- ParcDialect.cpp - The parc dialect ---------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Registration of the parc dialect, and its interfaces' generated code.
///
//===----------------------------------------------------------------------===//

#include "Parc/Parc.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::parc;

#include "Parc/ParcDialect.cpp.inc"

#include "Parc/ParcEnums.cpp.inc"

#include "Parc/ParcInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "Parc/ParcTypes.cpp.inc"

InFlightDiagnostic mlir::parc::emitErrorAt(Operation *op) {
  return emitError(op->getLoc()) << "'" << op->getName() << "' op ";
}

void ParcDialect::initialize() {
  registerAttributes();
  addTypes<
#define GET_TYPEDEF_LIST
#include "Parc/ParcTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Parc/ParcOps.cpp.inc"
      >();
}

bool mlir::parc::sumsNarrow(Operation *op) {
  auto narrow = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    auto element =
        tensor ? dyn_cast<FloatType>(tensor.getElementType()) : FloatType();
    return element && element.getWidth() < 32;
  };
  auto shardable = dyn_cast<ShardableOpInterface>(op);
  if (!shardable || llvm::none_of(op->getResultTypes(), narrow))
    return false;
  FailureOr<OpFactors> factors = shardable.getFactors();
  return succeeded(factors) && factors->sums();
}
