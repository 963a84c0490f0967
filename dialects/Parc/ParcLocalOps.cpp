//===- ParcLocalOps.cpp - Collectives and local programs ------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Builders and verifiers of the ops of local and staged programs.
///
//===----------------------------------------------------------------------===//

#include "Parc/Parc.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::parc;

void AllReduceOp::build(OpBuilder &builder, OperationState &state,
                        ReductionKind kind, Value input, ArrayAttr axes,
                        WhyAttr why) {
  build(builder, state, input.getType(),
        ReductionKindAttr::get(builder.getContext(), kind), input, axes, why,
        nullptr);
}

void AllReduceOp::build(OpBuilder &builder, OperationState &state,
                        ReductionKind kind, Value input, ArrayAttr axes,
                        StringAttr why) {
  build(builder, state, kind, input, axes,
        WhyAttr::get(builder.getContext(), why.getValue()));
}

LogicalResult AllToAllOp::verify() {
  int64_t rank = cast<RankedTensorType>(getInput().getType()).getRank();
  for (auto dim : {static_cast<int64_t>(getGatherDim()),
                   static_cast<int64_t>(getSplitDim())})
    if (dim < 0 || dim >= rank)
      return emitErrorAt(*this) << "expected dimensions below " << rank
                                << ", the tensor's rank, got " << dim;
  if (getGatherDim() == getSplitDim())
    return emitErrorAt(*this)
           << "expected two dimensions, got " << getSplitDim()
           << " both to gather and to split";
  llvm::StringSet<> seen;
  for (ArrayAttr list : {getGatherOuter(), getSplitOuter(), getAxes()})
    for (StringRef axis : list.getAsValueRange<StringAttr>())
      if (!seen.insert(axis).second)
        return emitErrorAt(*this)
               << "names axis '" << axis << "' twice; an axis moves or stays";
  if (!getUsed().empty() && getGatherDim() + getSplitDim() != 1)
    return emitErrorAt(*this) << "expected rows of dimensions 0 and 1, got "
                              << getGatherDim() << " and " << getSplitDim();
  return verifyUsedRows(*this, cast<RankedTensorType>(getInput().getType()),
                        getUsed(), getRows());
}

LogicalResult RoleOp::verify() {
  if (getStages().empty())
    return emitErrorAt(*this) << "expected at least one stage";
  size_t inputs = getInputs().size();
  if (getForward().front().getNumArguments() < inputs ||
      getBackward().front().getNumArguments() < inputs)
    return emitErrorAt(*this)
           << "expected the step's " << inputs
           << " inputs as first arguments of forward and backward";
  auto forward = dyn_cast<YieldOp>(getForward().front().getTerminator());
  if (!forward || forward.getNumOperands() < getForwardSends())
    return emitErrorAt(*this) << "expected forward to yield at least "
                              << getForwardSends() << " values to send";
  auto backward = dyn_cast<YieldOp>(getBackward().front().getTerminator());
  if (!backward || backward.getNumOperands() < getBackwardSends())
    return emitErrorAt(*this) << "expected backward to yield at least "
                              << getBackwardSends() << " values to send";
  return success();
}

LogicalResult ScheduleOp::verify() {
  if (getLayers().size() != getCounts().size())
    return emitOpError() << "expected one count a stack, got "
                         << getLayers().size() << " and " << getCounts().size();
  if (static_cast<int64_t>(getMicroBatches()) < 1)
    return emitOpError() << "expected at least 1 micro-batch, got "
                         << static_cast<int64_t>(getMicroBatches());
  if (getBounds().size() < 2)
    return emitOpError() << "expected the bounds of at least one stage";
  for (auto [lower, upper] :
       llvm::zip(getBounds().drop_back(), getBounds().drop_front()))
    if (lower > upper)
      return emitOpError() << "expected rising bounds, got " << lower
                           << " before " << upper;
  return success();
}
