//===- RTKernelOps.cpp - Kernels of the rt dialect ------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Verifiers of kernels.
///
//===----------------------------------------------------------------------===//

#include "RT/RT.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::rt;

LogicalResult AtOp::verify() {
  int64_t rank = cast<RankedTensorType>(getTensor().getType()).getRank();
  if (rank == static_cast<int64_t>(getIndices().size()))
    return success();
  return emitOpError() << "expected " << rank << " indices, got "
                       << getIndices().size();
}

/// Open sizes of a shape.
static int64_t countOpen(ArrayRef<int64_t> shape) {
  return llvm::count_if(shape, ShapedType::isDynamic);
}

/// Checks that all results share a shape with as many open sizes as given.
static LogicalResult checkResults(Operation *op, size_t extents) {
  if (op->getNumResults() == 0)
    return op->emitOpError() << "expected a result at least, got none";
  auto first = cast<RankedTensorType>(op->getResult(0).getType());
  for (Value result : op->getResults())
    if (cast<RankedTensorType>(result.getType()).getShape() != first.getShape())
      return op->emitOpError() << "expected results of one shape, got " << first
                               << " and " << result.getType();
  if (countOpen(first.getShape()) != static_cast<int64_t>(extents))
    return op->emitOpError() << "expected " << countOpen(first.getShape())
                             << " extents for " << first << ", got " << extents;
  return success();
}

/// Checks a body that takes `indices` indices, then `others`.
static LogicalResult checkBody(Operation *op, Block &block, int64_t indices,
                               TypeRange others, TypeRange yields) {
  if (static_cast<int64_t>(block.getNumArguments()) !=
      indices + static_cast<int64_t>(others.size()))
    return op->emitOpError()
           << "expected " << indices << " indices and " << others.size()
           << " values as arguments, got " << block.getNumArguments();
  for (BlockArgument argument : block.getArguments().take_front(indices))
    if (!argument.getType().isIndex())
      return op->emitOpError()
             << "expected an index as argument " << argument.getArgNumber()
             << ", got " << argument.getType();
  auto yield = dyn_cast<rt::YieldOp>(block.getTerminator());
  if (!yield || yield.getValues().getTypes() != yields)
    return op->emitOpError() << "expected the body to yield " << yields;
  return success();
}

static SmallVector<Type> elementTypes(Operation *op) {
  SmallVector<Type> types;
  for (Type type : op->getResultTypes())
    types.push_back(cast<RankedTensorType>(type).getElementType());
  return types;
}

static int64_t rankOf(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType()).getRank();
}

LogicalResult MapOp::verify() {
  if (failed(checkResults(*this, getExtents().size())))
    return failure();
  return checkBody(*this, getBody().front(), rankOf(*this), {},
                   elementTypes(*this));
}

LogicalResult ReduceOp::verify() {
  if (failed(checkResults(*this, getExtents().size())))
    return failure();
  if (countOpen(getSizes()) != static_cast<int64_t>(getOpenSizes().size()))
    return emitOpError() << "expected " << countOpen(getSizes())
                         << " open sizes, got " << getOpenSizes().size();
  int64_t rank = rankOf(*this);
  if (static_cast<int64_t>(getBody().front().getNumArguments()) !=
      rank + static_cast<int64_t>(getSizes().size()))
    return emitOpError() << "expected " << rank << " indices and "
                         << getSizes().size() << " reduction indices, got "
                         << getBody().front().getNumArguments();
  auto yield = dyn_cast<rt::YieldOp>(getBody().front().getTerminator());
  if (!yield || yield.getValues().size() != 1)
    return emitOpError() << "expected the body to yield one value";
  return checkBody(*this, getFinish().front(), rank,
                   yield.getValues().getTypes(), elementTypes(*this));
}

LogicalResult ContractOp::verify() {
  std::pair<StringRef, Value> operands[] = {
      {getADims(), getA()}, {getBDims(), getB()}, {getCDims(), getC()}};
  llvm::StringMap<int> count;
  for (auto [letters, value] : operands) {
    auto type = cast<RankedTensorType>(value.getType());
    if (static_cast<int64_t>(letters.size()) != type.getRank())
      return emitOpError() << "expected a letter for each dimension of " << type
                           << ", got '" << letters << "'";
    llvm::StringSet<> seen;
    for (char letter : letters) {
      if (!llvm::isLower(letter))
        return emitOpError()
               << "expected letters from a to z, got '" << letters << "'";
      if (!seen.insert(StringRef(&letter, 1)).second)
        return emitOpError() << "has letter '" << StringRef(&letter, 1)
                             << "' twice in '" << letters << "'";
      ++count[StringRef(&letter, 1)];
    }
  }
  for (auto [letters, value] : operands)
    for (char letter : letters)
      if (count[StringRef(&letter, 1)] < 2)
        return emitOpError()
               << "expected letter '" << StringRef(&letter, 1)
               << "' in two operands, got it in '" << letters << "' only";
  return success();
}
