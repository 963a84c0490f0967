//===- Stage.cpp - The programs of pipeline stages ------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Builds one role for each set of stages that run the same ops, and the
/// schedule op with the stage table.
///
//===----------------------------------------------------------------------===//

#include "StagePlan.h"
#include "mlir/IR/IRMapping.h"
#include "parc/Analysis/Layouts.h"
#include "parc/Transforms/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_STAGE
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

namespace {

/// Builds the three regions of the role that runs on `stage`.
class RoleBuilder {
public:
  RoleBuilder(const StagePlan &plan, const UpdatePlan &update, int64_t stage)
      : plan(plan), update(update), stage(stage), step(plan.getStep()) {}

  LogicalResult build(RoleOp role);

private:
  /// One region under construction.
  struct Part {
    explicit Part(Block *block) : builder(OpBuilder::atBlockEnd(block)) {}

    OpBuilder builder;
    IRMapping mapping;
    /// What stacks carry across this role's boundaries.
    DenseMap<Value, Value> inFlight;
  };

  Value get(Part &part, Value value);
  Value getForBackward(Part &part, Value value);
  void addInputs(Part &part, Block &block);
  void receive(Part &part, Block &block, ArrayRef<Crossing> crossings);
  SmallVector<Value> send(Part &part, ArrayRef<Crossing> crossings);
  void copyOp(Part &part, Operation *op);
  void copyStack(Part &part, StackOp stack, bool isFirst, bool isLast);
  void buildBackward(RoleOp role);
  void buildForward(RoleOp role);
  void buildUpdate(RoleOp role);

  const StagePlan &plan;
  const UpdatePlan &update;
  int64_t stage;
  StepOp step;
  /// Values of the forward region that backward needs, in order.
  SmallVector<Value> saved;
  Block *backward = nullptr;
};

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The value in `part`, making what is free again.
Value RoleBuilder::get(Part &part, Value value) {
  if (Value known = part.mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  bool isForwardValue = op && plan.isForward(op);
  if (&part.builder.getBlock()->getParent()->front() == backward &&
      isForwardValue && !StagePlan::isRemade(op))
    return getForBackward(part, value);
  for (Value read : readValues(op))
    get(part, read);
  part.builder.clone(*op, part.mapping);
  return part.mapping.lookup(value);
}

/// A forward value that backward reads is saved in between.
Value RoleBuilder::getForBackward(Part &part, Value value) {
  Value argument = backward->addArgument(value.getType(), value.getLoc());
  saved.push_back(value);
  part.mapping.map(value, argument);
  return argument;
}

void RoleBuilder::addInputs(Part &part, Block &block) {
  for (BlockArgument argument : step.getMicro().getArguments())
    part.mapping.map(argument,
                     block.addArgument(argument.getType(), argument.getLoc()));
}

void RoleBuilder::receive(Part &part, Block &block,
                          ArrayRef<Crossing> crossings) {
  for (const Crossing &crossing : crossings) {
    Value argument =
        block.addArgument(crossing.value.getType(), crossing.value.getLoc());
    if (crossing.inFlight)
      part.inFlight[crossing.value] = argument;
    else
      part.mapping.map(crossing.value, argument);
  }
}

SmallVector<Value> RoleBuilder::send(Part &part, ArrayRef<Crossing> crossings) {
  SmallVector<Value> values;
  for (const Crossing &crossing : crossings)
    values.push_back(crossing.inFlight ? part.inFlight.lookup(crossing.value)
                                       : get(part, crossing.value));
  return values;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void RoleBuilder::copyStack(Part &part, StackOp stack, bool isFirst,
                            bool isLast) {
  SmallVector<Value> carried;
  for (auto [index, value] : llvm::enumerate(stack.getCarry()))
    carried.push_back(isFirst ? get(part, value)
                              : part.inFlight.lookup(stack.getResult(index)));
  SmallVector<Value> each;
  for (Value value : stack.getEach())
    each.push_back(get(part, value));
  for (Value captured : capturedValues(stack))
    get(part, captured);
  auto copy =
      cast<StackOp>(part.builder.cloneWithoutRegions(*stack, part.mapping));
  copy.getCarryMutable().assign(carried);
  copy.getEachMutable().assign(each);
  stack.getBody().cloneInto(&copy.getBody(), part.mapping);
  for (auto [index, value] : llvm::enumerate(stack.getCarryResults()))
    if (!isLast) {
      part.inFlight[value] = copy.getResult(index);
      part.mapping.erase(value);
    }
}

void RoleBuilder::copyOp(Part &part, Operation *op) {
  if (auto stack = dyn_cast<StackOp>(op)) {
    auto [first, last] = plan.stackStages(stack);
    if (!plan.isForward(op))
      std::swap(first, last);
    copyStack(part, stack, stage == first, stage == last);
    return;
  }
  for (Value read : readValues(op))
    get(part, read);
  part.builder.clone(*op, part.mapping);
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

static Value zeroOf(OpBuilder &builder, Location loc, Type type) {
  return arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(cast<RankedTensorType>(type)));
}

void RoleBuilder::buildBackward(RoleOp role) {
  backward = &role.getBackward().emplaceBlock();
  Part part(backward);
  addInputs(part, *backward);
  if (stage + 1 < plan.numStages())
    receive(part, *backward, plan.backwardCrossings(stage));
  Block &micro = step.getMicro().front();
  for (Operation &op : micro.without_terminator())
    if (!plan.isForward(&op) && plan.runsOn(&op, stage))
      copyOp(part, &op);
  SmallVector<Value> values;
  if (stage > 0)
    values = send(part, plan.backwardCrossings(stage - 1));
  role.setBackwardSends(values.size());
  for (Value sum : micro.getTerminator()->getOperands()) {
    // What every stage could make, the last one counts.
    Operation *op = sum.getDefiningOp();
    bool here = !op || plan.isFree(op) ? stage + 1 == plan.numStages()
                                       : plan.runsOn(op, stage);
    values.push_back(here ? get(part, sum)
                          : zeroOf(part.builder, sum.getLoc(), sum.getType()));
  }
  YieldOp::create(part.builder, step.getLoc(), values);
}

void RoleBuilder::buildForward(RoleOp role) {
  Block &block = role.getForward().emplaceBlock();
  Part part(&block);
  addInputs(part, block);
  if (stage > 0)
    receive(part, block, plan.forwardCrossings(stage - 1));
  for (Operation &op : step.getMicro().front().without_terminator())
    if (plan.isForward(&op) && plan.runsOn(&op, stage))
      copyOp(part, &op);
  SmallVector<Value> values;
  if (stage + 1 < plan.numStages())
    values = send(part, plan.forwardCrossings(stage));
  role.setForwardSends(values.size());
  for (Value value : saved)
    values.push_back(get(part, value));
  YieldOp::create(part.builder, step.getLoc(), values);
}

void RoleBuilder::buildUpdate(RoleOp role) {
  Block &block = role.getUpdate().emplaceBlock();
  Part part(&block);
  Block &from = step.getUpdate().front();
  for (BlockArgument argument : from.getArguments())
    part.mapping.map(argument,
                     block.addArgument(argument.getType(), argument.getLoc()));
  for (Operation &op : from.without_terminator()) {
    if (!update.runsOn(&op, stage))
      continue;
    IRMapping mapping = part.mapping;
    for (OpOperand &operand : op.getOpOperands())
      if (update.isAbsent(&op, operand.getOperandNumber(), stage))
        mapping.map(operand.get(),
                    zeroOf(part.builder, op.getLoc(), operand.get().getType()));
    Operation *copy = part.builder.clone(op, mapping);
    for (auto [value, result] : llvm::zip(op.getResults(), copy->getResults()))
      part.mapping.map(value, result);
  }
  part.builder.clone(*from.getTerminator(), part.mapping);
}

LogicalResult RoleBuilder::build(RoleOp role) {
  buildBackward(role);
  buildForward(role);
  buildUpdate(role);
  return success();
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// A text that is equal for stages that run the same ops.
static std::string signature(const StagePlan &plan, const UpdatePlan &update,
                             int64_t stage) {
  std::string text;
  StepOp step = plan.getStep();
  for (Operation &op : step.getMicro().front()) {
    text += plan.runsOn(&op, stage) ? 'x' : '.';
    if (auto stack = dyn_cast<StackOp>(op)) {
      auto [first, last] = plan.stackStages(stack);
      text += stage == first ? 'f' : '.';
      text += stage == last ? 'l' : '.';
    }
  }
  for (Operation &op : step.getUpdate().front()) {
    text += update.runsOn(&op, stage) ? 'x' : '.';
    for (unsigned i = 0; i < op.getNumOperands(); ++i)
      text += update.isAbsent(&op, i, stage) ? '0' : '1';
  }
  // What crosses is a function of the stages that run ops, and of the ends.
  text += stage == 0 ? 'F' : '.';
  text += stage + 1 == plan.numStages() ? 'L' : '.';
  auto add = [&](ArrayRef<Crossing> crossings) {
    text += std::to_string(crossings.size()) + ",";
  };
  if (stage > 0) {
    add(plan.forwardCrossings(stage - 1));
    add(plan.backwardCrossings(stage - 1));
  }
  if (stage + 1 < plan.numStages()) {
    add(plan.forwardCrossings(stage));
    add(plan.backwardCrossings(stage));
  }
  return text;
}

static std::string roleName(ArrayRef<int64_t> members, int64_t stages) {
  if (stages == 1)
    return "only";
  if (members.front() == 0)
    return "first";
  if (members.front() == stages - 1)
    return "last";
  if (static_cast<int64_t>(members.size()) == stages - 2)
    return "middle";
  return "from_" + std::to_string(members.front());
}

static LogicalResult stageStep(StepOp step, int64_t stages,
                               int64_t microBatches, StringRef rule) {
  StagePlan plan(step, stages);
  if (failed(plan.compute()))
    return failure();
  UpdatePlan update(plan);
  if (failed(update.compute()))
    return failure();
  llvm::MapVector<StringAttr, SmallVector<int64_t>> groups;
  MLIRContext *context = step.getContext();
  for (int64_t stage = 0; stage < stages; ++stage)
    groups[StringAttr::get(context, signature(plan, update, stage))].push_back(
        stage);
  OpBuilder builder(step);
  SmallVector<Attribute> names;
  SmallVector<int64_t> counts;
  for (StackOp stack : plan.getStacks()) {
    names.push_back(stack.getLayersAttr());
    counts.push_back(stack.getEnd());
  }
  ScheduleOp::create(builder, step.getLoc(), builder.getStringAttr(rule),
                     builder.getI64IntegerAttr(microBatches),
                     builder.getArrayAttr(names),
                     builder.getDenseI64ArrayAttr(counts),
                     builder.getDenseI64ArrayAttr(plan.getBounds()));
  for (auto &[text, members] : groups) {
    auto role = RoleOp::create(
        builder, step.getLoc(),
        builder.getStringAttr(roleName(members, stages)),
        builder.getDenseI64ArrayAttr(members), step.getInputsAttr(),
        step.getScalarsAttr(), step.getResultsAttr(),
        builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(0));
    role->setDiscardableAttrs(step->getDiscardableAttrDictionary());
    if (failed(RoleBuilder(plan, update, members.front()).build(role)))
      return failure();
  }
  return success();
}

namespace {
struct StagePass : public parc::impl::StageBase<StagePass> {
  using StageBase::StageBase;
  void runOnOperation() override {
    ModuleOp module = getOperation();
    int64_t stages = AxisSizes(module, microBatches).of(kStageAxis);
    for (StepOp step : llvm::make_early_inc_range(module.getOps<StepOp>())) {
      if (failed(stageStep(step, stages, microBatches, rule)))
        return signalPassFailure();
      step.erase();
    }
  }
};
} // namespace
