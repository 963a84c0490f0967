//===- StagePlan.cpp - Which op runs on which stage -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Places the ops of a step's micro region on stages by what they depend on.
///
//===----------------------------------------------------------------------===//

#include "StagePlan.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "parc/Pipeline/StageCut.h"

using namespace mlir;
using namespace mlir::parc;

SetVector<Value> mlir::parc::capturedValues(Operation *op) {
  SetVector<Value> values;
  Block *block = op->getBlock();
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() == block)
          values.insert(operand);
    });
  return values;
}

SetVector<Value> mlir::parc::readValues(Operation *op) {
  SetVector<Value> values = capturedValues(op);
  values.insert(op->operand_begin(), op->operand_end());
  return values;
}

bool StagePlan::isRemade(Operation *op) {
  if (isa<LoadOp>(op) || op->hasTrait<OpTrait::ConstantLike>())
    return true;
  bool isShapeWork = llvm::none_of(op->getResultTypes(),
                                   llvm::IsaPred<RankedTensorType, LayersType>);
  if (!isa<tensor::EmptyOp, linalg::FillOp>(op) &&
      !(isShapeWork && isMemoryEffectFree(op) && op->getNumResults() > 0))
    return false;
  return llvm::all_of(op->getOperands(), [](Value operand) {
    Operation *def = operand.getDefiningOp();
    return def && isRemade(def);
  });
}

//===----------------------------------------------------------------------===//
// Forward and dependences
//===----------------------------------------------------------------------===//

/// Forward is what the yielded sums and the observed values are made from.
void StagePlan::findForward() {
  Block &block = step.getMicro().front();
  SmallVector<Operation *> todo;
  auto need = [&](Operation *op) {
    if (op && op->getBlock() == &block && forward.insert(op).second)
      todo.push_back(op);
  };
  for (Value value : block.getTerminator()->getOperands())
    need(value.getDefiningOp());
  for (ObserveOp observe : block.getOps<ObserveOp>())
    need(observe);
  while (!todo.empty())
    for (Value value : readValues(todo.pop_back_val()))
      need(value.getDefiningOp());
}

LogicalResult StagePlan::findStacks() {
  llvm::StringSet<> names;
  for (StackOp stack : step.getMicro().front().getOps<StackOp>()) {
    if (!isForward(stack))
      continue;
    if (stack.getBegin() != 0 || !names.insert(stack.getLayers()).second)
      return emitErrorAt(stack)
             << "expected each stack of the model to have its own name and to "
                "begin at layer 0";
    stackIndex[stack] = stacks.size();
    stacks.push_back(stack);
  }
  for (StackOp stack : step.getMicro().front().getOps<StackOp>())
    if (!isForward(stack))
      for (auto [index, other] : llvm::enumerate(stacks))
        if (other.getLayersAttr() == stack.getLayersAttr())
          stackIndex[stack] = index;
  if (stages > 1)
    for (StackOp stack : step.getMicro().front().getOps<StackOp>())
      if (stack.getReductions() > 0)
        return emitErrorAt(stack)
               << "sums a value over layers of several stages, which pipeline "
                  "parallelism does not support; carry the value instead, or "
                  "use pp=1";
  return success();
}

void StagePlan::findDependences() {
  int64_t none = stacks.size();
  for (Operation &op : step.getMicro().front()) {
    int64_t after = -1, afterB = none;
    bool reads = isa<LoadOp>(op);
    bool onlyFree = true;
    for (Value value : readValues(&op)) {
      Operation *def = value.getDefiningOp();
      if (!def || def->getBlock() != op.getBlock())
        continue;
      bool isStack = isa<StackOp>(def);
      int64_t index = isStack ? stackIndex.lookup(def) : -1;
      after = std::max(after, afterStack[def]);
      afterB = std::min(afterB, afterBackward[def]);
      if (isStack && isForward(def))
        after = std::max(after, index);
      if (isStack && !isForward(def))
        afterB = std::min(afterB, index);
      reads |= readsParam.contains(def);
      onlyFree &= isFree(def);
    }
    afterStack[&op] = after;
    afterBackward[&op] = afterB;
    bool isLoad = isa<LoadOp>(op);
    if (reads && !isLoad)
      readsParam.insert(&op);
    if (isLoad || (onlyFree && op.getNumResults() > 0 && !isa<StackOp>(op) &&
                   isMemoryEffectFree(&op)))
      free.insert(&op);
    // What is computed from a parameter belongs where the parameter is.
    if (!isLoad && llvm::any_of(op.getOperands(), [](Value operand) {
          return operand.getDefiningOp<LoadOp>();
        })) {
      free.erase(&op);
      readsParam.insert(&op);
    }
  }
}

//===----------------------------------------------------------------------===//
// Cut
//===----------------------------------------------------------------------===//

static int64_t numElements(ParamOp param) {
  return param.getTensorType().getNumElements();
}

/// The ops that read a parameter; a gathered one is read after the gather.
static SmallVector<Operation *> readersOf(LoadOp load) {
  SmallVector<Operation *> readers, todo(load->user_begin(), load->user_end());
  while (!todo.empty()) {
    Operation *op = todo.pop_back_val();
    if (isa<AllGatherOp, tensor::ExpandShapeOp>(op))
      todo.append(op->user_begin(), op->user_end());
    else
      readers.push_back(op);
  }
  return readers;
}

/// Layers, embedding and head weigh as the elements of their parameters do:
/// so does the work of the matrix products.
LogicalResult StagePlan::cut() {
  auto module = step->getParentOfType<ModuleOp>();
  StageCutProblem problem;
  problem.stages = stages;
  auto weigh = [&](Operation *root) {
    llvm::SmallSetVector<StringAttr, 8> params;
    root->walk(
        [&](LoadOp load) { params.insert(load.getParamAttr().getAttr()); });
    int64_t cost = 0;
    for (StringAttr name : params)
      cost += numElements(module.lookupSymbol<ParamOp>(name));
    return cost;
  };
  for (StackOp stack : stacks)
    problem.layers.push_back({static_cast<int64_t>(stack.getEnd()),
                              std::max<int64_t>(weigh(stack), 1)});
  for (LoadOp load : step.getMicro().front().getOps<LoadOp>())
    for (Operation *user : readersOf(load))
      if (isForward(user)) {
        int64_t cost =
            numElements(module.lookupSymbol<ParamOp>(load.getParam()));
        (afterStack[user] < 0 ? problem.firstCost : problem.lastCost) += cost;
      }
  if (stacks.empty()) {
    if (stages > 1)
      return emitErrorAt(step)
             << "has no stack of layers to cut into pp=" << stages
             << " stages; use pp=1";
    bounds = {0, 0};
    return success();
  }
  std::string error;
  std::optional<StageCut> result = cutStages(problem, error);
  if (!result)
    return emitError(step.getLoc()) << error;
  bounds.push_back(0);
  for (const StageRange &range : result->stages)
    bounds.push_back(range.end);
  return success();
}

std::pair<int64_t, int64_t> StagePlan::stackStages(StackOp stack) const {
  unsigned index = stackIndex.lookup(stack);
  int64_t first = 0;
  for (unsigned i = 0; i < index; ++i) {
    StackOp before = stacks[i];
    first += before.getEnd();
  }
  int64_t last = first + static_cast<int64_t>(stack.getEnd()) - 1;
  auto stageOfLayer = [&](int64_t layer) -> int64_t {
    return std::upper_bound(bounds.begin(), bounds.end(), layer) -
           bounds.begin() - 1;
  };
  return {stageOfLayer(first), stageOfLayer(std::max(first, last))};
}

//===----------------------------------------------------------------------===//
// Placement
//===----------------------------------------------------------------------===//

void StagePlan::placeForward() {
  SmallVector<Operation *> ops;
  for (Operation &op : step.getMicro().front())
    if (isForward(&op) && !isFree(&op) && !isa<StackOp>(op))
      ops.push_back(&op);
  for (Operation *op : ops)
    if (afterStack[op] >= 0)
      stageOf[op] = afterStack[op] + 1 == static_cast<int64_t>(stacks.size())
                        ? stages - 1
                        : stackStages(stacks[afterStack[op]]).second;
  // Before any stack: where the first reader is.
  for (Operation *op : llvm::reverse(ops)) {
    if (afterStack[op] >= 0)
      continue;
    int64_t stage = stages - 1;
    for (Value result : op->getResults())
      for (Operation *user : result.getUsers()) {
        while (user->getBlock() != op->getBlock())
          user = user->getParentOp();
        if (auto stack = dyn_cast<StackOp>(user))
          stage = std::min(stage, stackStages(stack).first);
        else if (stageOf.contains(user))
          stage = std::min(stage, stageOf[user]);
      }
    stageOf[op] = stage;
  }
}

void StagePlan::placeBackward() {
  for (Operation &op : step.getMicro().front()) {
    if (isForward(&op) || isFree(&op) || isa<StackOp>(op) ||
        op.hasTrait<OpTrait::IsTerminator>())
      continue;
    int64_t after = afterBackward[&op];
    if (after == 0 && !stacks.empty()) {
      stageOf[&op] = 0;
    } else if (after < static_cast<int64_t>(stacks.size())) {
      stageOf[&op] = stackStages(stacks[after]).first;
    } else {
      int64_t stage = -1;
      for (Value value : readValues(&op))
        if (Operation *def = value.getDefiningOp(); def && !isFree(def))
          stage = std::max(stage, madeOn(value));
      // What reads nothing placed is made wherever it is used.
      if (stage < 0 && op.getNumResults() > 0)
        free.insert(&op);
      else
        stageOf[&op] = std::max<int64_t>(stage, 0);
    }
  }
}

int64_t StagePlan::madeOn(Value value) const {
  Operation *def = value.getDefiningOp();
  if (auto stack = dyn_cast_or_null<StackOp>(def)) {
    auto [first, last] = stackStages(stack);
    return isForward(stack) ? last : first;
  }
  return stageOf.lookup(def);
}

bool StagePlan::runsOn(Operation *op, int64_t stage) const {
  if (auto stack = dyn_cast<StackOp>(op)) {
    auto [first, last] = stackStages(stack);
    return first <= stage && stage <= last;
  }
  auto it = stageOf.find(op);
  return it != stageOf.end() && it->second == stage;
}

//===----------------------------------------------------------------------===//
// Crossings
//===----------------------------------------------------------------------===//

/// The stages that read `value`.
SmallVector<int64_t> StagePlan::useStages(Value value) const {
  SmallVector<int64_t> result;
  Block *block = &step.getMicro().front();
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    bool captured = user->getBlock() != block;
    while (user->getBlock() != block)
      user = user->getParentOp();
    if (auto stack = dyn_cast<StackOp>(user)) {
      auto [first, last] = stackStages(stack);
      if (captured) {
        result.push_back(first);
        result.push_back(last);
      } else if (!isa<LayersType>(value.getType())) {
        result.push_back(isForward(stack) ? first : last);
      }
    } else if (!isFree(user) && !user->hasTrait<OpTrait::IsTerminator>()) {
      result.push_back(stageOf.lookup(user));
    }
  }
  return result;
}

LogicalResult StagePlan::findCrossings() {
  crossForward.resize(std::max<int64_t>(stages - 1, 0));
  crossBackward.resize(std::max<int64_t>(stages - 1, 0));
  for (Operation &op : step.getMicro().front()) {
    if (isFree(&op) || op.getNumResults() == 0)
      continue;
    bool isFwd = isForward(&op);
    for (Value result : op.getResults()) {
      if (isa<LayersType>(result.getType()))
        continue;
      int64_t made = madeOn(result);
      for (int64_t use : useStages(result)) {
        if (isFwd && use < made)
          return emitError(op.getLoc())
                 << "a value made on stage " << made << " is needed on stage "
                 << use << " before it";
        if (isFwd)
          for (int64_t b = made; b < use; ++b)
            if (!llvm::is_contained(crossForward[b], Crossing{result, false}))
              crossForward[b].push_back({result, false});
        for (int64_t b = use; !isFwd && b < made; ++b)
          if (!llvm::is_contained(crossBackward[b], Crossing{result, false}))
            crossBackward[b].push_back({result, false});
      }
    }
    auto stack = dyn_cast<StackOp>(op);
    if (!stack)
      continue;
    auto [first, last] = stackStages(stack);
    for (Value result : stack.getCarryResults())
      for (int64_t b = first; b < last; ++b)
        (isFwd ? crossForward : crossBackward)[b].push_back({result, true});
  }
  return success();
}

void StagePlan::findParamStages() {
  auto addStack = [&](StringRef param, StackOp stack) {
    auto [first, last] = stackStages(stack);
    for (int64_t stage = first; stage <= last; ++stage)
      stagesOfParam[param].insert(stage);
  };
  for (Operation &op : step.getMicro().front()) {
    // All layers share a parameter without layers that their body reads.
    if (auto stack = dyn_cast<StackOp>(op))
      stack.getBody().walk([&](Operation *inner) {
        if (auto load = dyn_cast<LoadOp>(inner))
          addStack(load.getParam(), stack);
        else if (auto accumulate = dyn_cast<AccumulateOp>(inner))
          addStack(accumulate.getParam(), stack);
      });
    if (auto accumulate = dyn_cast<AccumulateOp>(op))
      stagesOfParam[accumulate.getParam()].insert(stageOf.lookup(accumulate));
    auto load = dyn_cast<LoadOp>(op);
    if (!load)
      continue;
    for (Operation *user : load->getUsers()) {
      Operation *top = user;
      while (top->getBlock() != op.getBlock())
        top = top->getParentOp();
      if (auto stack = dyn_cast<StackOp>(top)) {
        addStack(load.getParam(), stack);
      } else if (stageOf.contains(top)) {
        stagesOfParam[load.getParam()].insert(stageOf.lookup(top));
      }
    }
  }
}

SmallVector<int64_t> StagePlan::paramStages(StringRef param) const {
  auto it = stagesOfParam.find(param);
  SmallVector<int64_t> result;
  if (it != stagesOfParam.end())
    result.assign(it->second.begin(), it->second.end());
  llvm::sort(result);
  return result;
}

LogicalResult StagePlan::compute() {
  findForward();
  if (failed(findStacks()))
    return failure();
  findDependences();
  if (failed(cut()))
    return failure();
  placeForward();
  placeBackward();
  findParamStages();
  return findCrossings();
}
