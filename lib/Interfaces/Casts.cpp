//===- Casts.cpp - Floats as other floats ---------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One arith op where the types differ.
///
//===----------------------------------------------------------------------===//

#include "parc/Interfaces/Casts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

Value mlir::parc::withElements(OpBuilder &builder, Location loc, Value value,
                               Type element) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == element)
    return value;
  Type type = element;
  if (auto tensor = dyn_cast<RankedTensorType>(value.getType()))
    type = tensor.clone(element);
  if (from.getIntOrFloatBitWidth() > element.getIntOrFloatBitWidth())
    return arith::TruncFOp::create(builder, loc, type, value);
  return arith::ExtFOp::create(builder, loc, type, value);
}
