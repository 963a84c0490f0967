//===- VerifyStreams.cpp - Starts and waits fit ---------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs a role's regions in the order of a step, and remembers which slots a
/// stream stores to. What a layer has of a parameter is its own, so a loop
/// meets only the slots that all layers share again.
///
//===----------------------------------------------------------------------===//

#include "Overlap.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::parc;

namespace {

/// A step of one role.
class StreamChecker {
public:
  explicit StreamChecker(RoleOp role) : role(role) {}

  LogicalResult run();

private:
  using Slot = std::pair<StringAttr, StringAttr>;

  LogicalResult visitBlock(Block &block);
  LogicalResult visit(Operation *op);
  LogicalResult visitStack(StackOp stack);
  LogicalResult visitStart(StartOp start);
  LogicalResult use(Operation *op, StringAttr stream);
  bool hasLayers(StringAttr param) const;

  RoleOp role;
  /// The last backward pass runs.
  bool last = false;
  /// Slots that a stream stores to, and the op that does.
  llvm::MapVector<Slot, std::pair<StringAttr, Operation *>> busy;
};

} // namespace

static std::optional<std::pair<StringAttr, StringAttr>> slotOf(Operation *op) {
  if (!isa<LoadOp, StoreOp, AccumulateOp>(op))
    return std::nullopt;
  return std::pair(op->getAttrOfType<FlatSymbolRefAttr>("param").getAttr(),
                   op->getAttrOfType<StringAttr>("slot"));
}

/// Each pending value has one wait, which every path from the start meets: one
/// of the same block.
static LogicalResult verifyPending(StartOp start) {
  for (Value pending : start.getPending()) {
    if (pending.use_empty())
      return emitError(start.getLoc())
             << "starts on stream '" << start.getStream()
             << "' what nothing waits for; expected one 'parc.wait'";
    if (!pending.hasOneUse())
      return emitError(start.getLoc())
             << "starts on stream '" << start.getStream()
             << "' what is waited for twice; expected one 'parc.wait'";
    Operation *user = *pending.user_begin();
    if (!isa<WaitOp>(user) || user->getBlock() != start->getBlock())
      return emitError(start.getLoc())
             << "starts on stream '" << start.getStream()
             << "' what another block uses; expected a 'parc.wait' in its own, "
                "on every path";
  }
  return success();
}

bool StreamChecker::hasLayers(StringAttr symbol) const {
  auto param = role->getParentOfType<ModuleOp>().lookupSymbol<ParamOp>(symbol);
  return param && param.getLayers();
}

/// `op` touches its slot on `stream`, null where that is the compute stream.
LogicalResult StreamChecker::use(Operation *op, StringAttr stream) {
  std::optional<Slot> slot = slotOf(op);
  if (!slot)
    return success();
  auto found = busy.find(*slot);
  if (found == busy.end() || found->second.first == stream)
    return success();
  InFlightDiagnostic diag = emitError(op->getLoc())
                            << "uses slot '" << slot->second.getValue()
                            << "' of @" << slot->first.getValue()
                            << " while stream '"
                            << found->second.first.getValue()
                            << "' stores to it; expected 'parc.wait stream "
                            << found->second.first << "' before";
  diag.attachNote(found->second.second->getLoc()) << "is stored here";
  return diag;
}

LogicalResult StreamChecker::visitStart(StartOp start) {
  SmallVector<Operation *> ops;
  start.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    if (failed(use(op, start.getStreamAttr())))
      return failure();
  for (Operation *op : ops)
    if (isa<StoreOp, AccumulateOp>(op))
      busy[*slotOf(op)] = {start.getStreamAttr(), op};
  return success();
}

LogicalResult StreamChecker::visitStack(StackOp stack) {
  auto before = busy;
  if (failed(visitBlock(*stack.getBlock())))
    return failure();
  // The next layer meets what this one left, but for its own slots.
  auto after = busy;
  busy.remove_if([&](const auto &entry) {
    return hasLayers(entry.first.first) && !before.contains(entry.first);
  });
  if (failed(visitBlock(*stack.getBlock())))
    return failure();
  for (auto &entry : after)
    busy.insert(entry);
  return success();
}

LogicalResult StreamChecker::visit(Operation *op) {
  if (auto start = dyn_cast<StartOp>(op))
    return visitStart(start);
  if (auto stack = dyn_cast<StackOp>(op))
    return visitStack(stack);
  if (auto micro = dyn_cast<LastMicroOp>(op))
    return last ? visitBlock(micro.getBody().front()) : success();
  if (auto wait = dyn_cast<WaitOp>(op)) {
    busy.remove_if([&](const auto &entry) {
      return entry.second.first == wait.getStreamAttr();
    });
    return success();
  }
  return use(op, nullptr);
}

LogicalResult StreamChecker::visitBlock(Block &block) {
  for (Operation &op : block)
    if (failed(visit(&op)))
      return failure();
  return success();
}

LogicalResult StreamChecker::run() {
  for (bool isLast : {false, true}) {
    last = isLast;
    if (failed(visitBlock(role.getForward().front())) ||
        failed(visitBlock(role.getBackward().front())))
      return failure();
  }
  if (failed(visitBlock(role.getUpdate().front())))
    return failure();
  Operation *forgotten = nullptr;
  role.walk([&](Operation *op) {
    std::optional<Slot> slot = slotOf(op);
    if (slot && !forgotten && busy.contains(*slot))
      forgotten = busy[*slot].second;
  });
  if (!forgotten)
    return success();
  return emitError(forgotten->getLoc())
         << "is still under way when the step ends; expected 'parc.wait stream "
         << busy[*slotOf(forgotten)].first << "' in the update";
}

LogicalResult mlir::parc::verifyStreams(RoleOp role) {
  WalkResult result = role.walk([&](StartOp start) {
    return failed(verifyPending(start)) ? WalkResult::interrupt()
                                        : WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return StreamChecker(role).run();
}
