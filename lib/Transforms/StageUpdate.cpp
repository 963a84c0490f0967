//===- StageUpdate.cpp - The update region over stages --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Places the update on stages. A value that several stages make in part is a
/// sum over the stage axis, reduced where it is first needed whole.
///
//===----------------------------------------------------------------------===//

#include "StagePlan.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::parc;

static bool isScalar(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 0;
}

bool UpdatePlan::runsOn(Operation *op, int64_t stage) const {
  auto it = opStages.find(op);
  return it == opStages.end() || it->second.empty() ||
         llvm::is_contained(it->second, stage);
}

bool UpdatePlan::isAbsent(Operation *op, unsigned operand,
                          int64_t stage) const {
  if (!sums.contains(op))
    return false;
  Place place = placeOf(op->getOperand(operand));
  if (place.partial)
    return !place.stages.empty() && !llvm::is_contained(place.stages, stage);
  // Copies count once, on the first stage that has one.
  return stage != (place.stages.empty() ? 0 : place.stages.front());
}

/// Reduces an operand that is still a sum over stages, once for all readers.
void UpdatePlan::requireWhole(OpOperand &operand) {
  Value value = operand.get();
  Place place = placeOf(value);
  if (!place.partial)
    return;
  Value &reduced = whole[value];
  if (!reduced) {
    OpBuilder builder(operand.getOwner());
    builder.setInsertionPointAfterValue(value);
    auto reduce = AllReduceOp::create(
        builder, value.getLoc(), ReductionKind::Sum, value,
        builder.getStrArrayAttr({kStageAxis}),
        builder.getStringAttr("several stages have a part of it"));
    if (!place.stages.empty())
      reduce.setStagesAttr(builder.getDenseI64ArrayAttr(place.stages));
    opStages[reduce] = place.stages;
    places[reduce.getResult()] = {place.stages, false};
    reduced = reduce.getResult();
  }
  operand.set(reduced);
}

/// True for an op that is jointly linear in all its operands.
bool UpdatePlan::addsUp(Operation *op) const {
  auto shardable = dyn_cast<ShardableOpInterface>(op);
  if (!shardable || op->getNumResults() != 1 || op->getNumOperands() == 0)
    return false;
  FailureOr<OpFactors> factors = shardable.getFactors();
  if (failed(factors))
    return false;
  return llvm::any_of(factors->linear, [&](const auto &set) {
    return set.size() == op->getNumOperands();
  });
}

/// The reason of a sum that is now partial over stages too; what it sends is
/// counted anew.
static WhyAttr withStages(WhyAttr why) {
  ShardingAttr from = why.getFrom();
  if (!from)
    return why;
  SmallVector<StringAttr> partial(from.getPartial());
  partial.push_back(StringAttr::get(why.getContext(), kStageAxis));
  return why.withMove(from.withPartial(ReductionKind::Sum, partial),
                      why.getTo(), std::nullopt);
}

LogicalResult UpdatePlan::visitOther(Operation *op) {
  SmallVector<int64_t> common;
  bool differ = false, partial = false;
  for (Value operand : op->getOperands()) {
    Place place = placeOf(operand);
    partial |= place.partial;
    if (place.stages.empty())
      continue;
    differ |= !common.empty() && common != place.stages;
    common = place.stages;
  }
  if ((partial || differ) && addsUp(op)) {
    sums.insert(op);
    places[op->getResult(0)] = {{}, true};
    return success();
  }
  if (differ)
    return emitError(op->getLoc()) << "'" << op->getName()
                                   << "' combines values of different stages "
                                      "in a way that is not a sum";
  for (OpOperand &operand : op->getOpOperands())
    requireWhole(operand);
  opStages[op] = common;
  for (Value result : op->getResults())
    places[result] = {common, false};
  return success();
}

/// True for an op that moves elements, or adds up those of several ranks: what
/// it makes of a sum over stages is a sum over stages.
static bool keepsSums(Operation *op) {
  if (auto scatter = dyn_cast<ReduceScatterOp>(op))
    return scatter.getKind() == ReductionKind::Sum;
  return isa<parc::SliceOp, tensor::CollapseShapeOp>(op);
}

LogicalResult UpdatePlan::visit(Operation *op) {
  if (auto load = dyn_cast<LoadOp>(op)) {
    SmallVector<int64_t> stages = plan.paramStages(load.getParam());
    bool partial = load.getSlot() == "grad" && stages.size() > 1;
    opStages[op] = stages;
    places[load.getResult()] = {stages, partial};
    return success();
  }
  if (auto store = dyn_cast<StoreOp>(op)) {
    requireWhole(store.getInputMutable());
    opStages[op] = plan.paramStages(store.getParam());
    return success();
  }
  if (auto stack = dyn_cast<StackOp>(op)) {
    if (!stack.getCarry().empty())
      return emitErrorAt(stack)
             << "carries a value through the layers of several stages in an "
                "update; reduce it instead";
    stack.getBody().walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands())
        if (operand.get().getParentBlock() == stack->getBlock())
          requireWhole(operand);
    });
    for (Value result : stack.getReducedResults())
      places[result] = {{}, true};
    return success();
  }
  if (keepsSums(op)) {
    Place place = placeOf(op->getOperand(0));
    opStages[op] = place.stages;
    places[op->getResult(0)] = place;
    return success();
  }
  // A reduction of a scalar takes the stage axis along.
  if (auto reduce = dyn_cast<AllReduceOp>(op);
      reduce && reduce.getKind() == ReductionKind::Sum && isScalar(reduce)) {
    Place place = placeOf(reduce.getInput());
    if (place.partial && place.stages.empty()) {
      SmallVector<Attribute> axes(reduce.getAxes().begin(),
                                  reduce.getAxes().end());
      axes.push_back(StringAttr::get(op->getContext(), kStageAxis));
      reduce.setAxesAttr(ArrayAttr::get(op->getContext(), axes));
      reduce.setWhyAttr(withStages(reduce.getWhyAttr()));
      return success();
    }
  }
  return visitOther(op);
}

LogicalResult UpdatePlan::compute() {
  StepOp step = plan.getStep();
  if (step.getUpdate().empty())
    return emitErrorAt(step) << "expected an update region";
  // With one stage nothing is in parts, and everything runs there.
  if (plan.numStages() == 1)
    return success();
  Block &update = step.getUpdate().front();
  size_t sumsOfStep = step.getMicro().front().getTerminator()->getNumOperands();
  for (BlockArgument argument : update.getArguments().take_front(sumsOfStep))
    places[argument] = {{}, true};
  SmallVector<Operation *> ops;
  for (Operation &op : update)
    ops.push_back(&op);
  for (Operation *op : ops)
    if (failed(visit(op)))
      return failure();
  return success();
}
