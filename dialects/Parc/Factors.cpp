//===- Factors.cpp - What can be split in an op ---------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Helpers that ops use to state their factors.
///
//===----------------------------------------------------------------------===//

#include "Parc/Factors.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Operation.h"

using namespace mlir;
using namespace mlir::parc;

unsigned OpFactors::add(int64_t size, int64_t grain, bool splittable) {
  Factor factor;
  factor.size = size;
  factor.grain = factor.fineGrain = grain;
  factor.splittable = splittable;
  factors.push_back(factor);
  return factors.size() - 1;
}

bool OpFactors::sums() const {
  SmallVector<bool> made(factors.size());
  for (const ValueFactors &dims : results)
    for (const DimFactors &dim : dims)
      for (unsigned factor : dim)
        made[factor] = true;
  return llvm::any_of(operands, [&](const ValueFactors &dims) {
    return llvm::any_of(dims, [&](const DimFactors &dim) {
      return llvm::any_of(dim, [&](unsigned factor) { return !made[factor]; });
    });
  });
}

/// One factor a dimension, in order; nothing for scalars and non-tensors.
static ValueFactors identityFactors(Type type) {
  ValueFactors dims;
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    for (int64_t dim = 0; dim < tensor.getRank(); ++dim)
      dims.push_back({static_cast<unsigned>(dim)});
  return dims;
}

OpFactors OpFactors::elementwise(Operation *op) {
  OpFactors result;
  result.uniform = true;
  auto shape = cast<RankedTensorType>(op->getResultTypes().front()).getShape();
  for (int64_t size : shape)
    result.add(size);
  for (Type type : op->getOperandTypes())
    result.operands.push_back(identityFactors(type));
  for (Type type : op->getResultTypes())
    result.results.push_back(identityFactors(type));
  return result;
}

Operation *mlir::parc::cloneWithTypes(OpBuilder &builder, Operation *op,
                                      ValueRange operands, TypeRange types) {
  OperationState state(op->getLoc(), op->getName(), operands, types,
                       op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  IRMapping mapping;
  for (auto [from, to] : llvm::zip(op->getOperands(), operands))
    mapping.map(from, to);
  for (Region &region : op->getRegions())
    region.cloneInto(state.addRegion(), mapping);
  return builder.create(state);
}
