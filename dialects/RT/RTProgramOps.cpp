//===- RTProgramOps.cpp - Tables and control of the rt dialect ------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Verifiers of tables and stacks.
///
//===----------------------------------------------------------------------===//

#include "RT/RT.h"

using namespace mlir;
using namespace mlir::rt;

LogicalResult MeshOp::verify() {
  if (getAxes().size() == getSizes().size())
    return success();
  return emitOpError() << "expected one size an axis, got " << getSizes().size()
                       << " for " << getAxes().size();
}

LogicalResult ParamOp::verify() {
  auto rank = static_cast<size_t>(cast<RankedTensorType>(getType()).getRank());
  if (getAxes().size() != rank || getGrains().size() != rank ||
      getFull().size() != rank || getOffsets().size() != rank)
    return emitOpError() << "expected axes, grains, full and offsets of "
                         << rank << " dimensions";
  return success();
}

LogicalResult ScheduleOp::verify() {
  if (getStacks().size() != getCounts().size())
    return emitOpError() << "expected one count a stack, got "
                         << getCounts().size() << " for " << getStacks().size();
  if (getBounds().size() != getLoops().size() + 1 ||
      getInFlight().size() != getLoops().size())
    return emitOpError() << "expected bounds, in_flight and loops of as many "
                            "stages, got "
                         << getBounds().size() - 1 << ", "
                         << getInFlight().size() << " and "
                         << getLoops().size();
  for (Attribute stage : getLoops()) {
    auto loops = dyn_cast<ArrayAttr>(stage);
    if (!loops)
      return emitOpError() << "expected an array of loops for each stage";
    for (Attribute loop : loops) {
      auto numbers = dyn_cast<DenseI64ArrayAttr>(loop);
      if (!numbers || numbers.size() % 2 == 0 || numbers[0] < 1)
        return emitOpError()
               << "expected loops of a count and pairs, got " << loop;
    }
  }
  return success();
}

LogicalResult StackOp::verify() {
  size_t carried = getCarry().size();
  auto reduced = static_cast<size_t>(getReductions());
  Block &block = getBody().front();
  if (block.getNumArguments() != 1 + carried + getEach().size())
    return emitOpError() << "expected " << 1 + carried + getEach().size()
                         << " block arguments, got " << block.getNumArguments();
  auto yield = dyn_cast<rt::YieldOp>(block.getTerminator());
  if (!yield || yield.getNumOperands() != getNumResults() ||
      getNumResults() < carried + reduced)
    return emitOpError() << "expected the body to yield one value a result";
  return success();
}
