//===- ParcStreamOps.cpp - Communication that is under way ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Verifiers of parc.start, parc.wait and parc.last_micro.
///
//===----------------------------------------------------------------------===//

#include "Parc/Parc.h"

using namespace mlir;
using namespace mlir::parc;

bool mlir::parc::isCollective(Operation *op) {
  return isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, ShiftOp>(
      op);
}

SmallVector<Operation *> StartOp::getCollectives() {
  SmallVector<Operation *> result;
  getBody().walk([&](Operation *op) {
    if (isCollective(op))
      result.push_back(op);
  });
  return result;
}

LogicalResult StartOp::verify() {
  auto yield = dyn_cast<YieldOp>(getBlock()->getTerminator());
  if (!yield || yield.getNumOperands() != getNumResults())
    return emitErrorAt(*this) << "expected the body to yield "
                              << getNumResults() << " values, one a result";
  for (auto [type, value] : llvm::zip(getResultTypes(), yield.getValues()))
    if (cast<PendingType>(type).getElement() != value.getType())
      return emitErrorAt(*this)
             << "expected a pending " << value.getType() << ", got " << type;
  WalkResult result = getBody().walk([&](Operation *op) {
    if (!isa<StartOp, WaitOp, LastMicroOp>(op))
      return WalkResult::advance();
    emitErrorAt(op) << "is in the body of 'parc.start'; expected collectives, "
                       "what they read and where their results go";
    return WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    return failure();
  if (!getAhead())
    return success();
  auto stack = dyn_cast<StackOp>((*this)->getParentOp());
  if (!stack)
    return emitErrorAt(*this) << "is ahead of a layer, but in no stack";
  result = getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      Region *region = operand.getParentRegion();
      if (getBody().isAncestor(region) || !stack.getBody().isAncestor(region))
        continue;
      emitErrorAt(*this) << "is ahead of its layer and reads a value of it; "
                            "expected loads of parameters only";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult WaitOp::verify() {
  if (getStream().has_value() == !getPending().empty())
    return emitErrorAt(*this)
           << "expected either a stream or pending values to wait for";
  if (getNumResults() != getPending().size())
    return emitErrorAt(*this)
           << "expected one result a pending value, got " << getNumResults()
           << " for " << getPending().size();
  for (auto [pending, result] : llvm::zip(getPending(), getOutputs()))
    if (cast<PendingType>(pending.getType()).getElement() != result.getType())
      return emitErrorAt(*this)
             << "expected a result of type "
             << cast<PendingType>(pending.getType()).getElement() << ", got "
             << result.getType();
  if (getPending().empty())
    return success();
  auto start = getPending().front().getDefiningOp<StartOp>();
  if (!start || !llvm::equal(start.getPending(), getPending()))
    return emitErrorAt(*this) << "expected all that one 'parc.start' gives";
  return success();
}

LogicalResult LastMicroOp::verify() {
  auto role = (*this)->getParentOfType<RoleOp>();
  if (role && !role.getBackward().isAncestor((*this)->getParentRegion()))
    return emitErrorAt(*this)
           << "expected the backward region of a role around it";
  for (Operation &op : getBody().front().without_terminator())
    if (!isa<StartOp>(op))
      return emitErrorAt(&op)
             << "is in 'parc.last_micro'; expected starts only";
  return success();
}
