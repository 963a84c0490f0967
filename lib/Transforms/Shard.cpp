//===- Shard.cpp - Layouts and reshards -----------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes the layouts that propagation and strategy found down as encodings,
/// op by op in program order, and inserts a reshard wherever a value is needed
/// in another layout than it is made in.
///
//===----------------------------------------------------------------------===//

#include "Reasons.h"
#include "SavedLayouts.h"
#include "UsedRows.h"
#include "parc/Analysis/OpLayout.h"
#include "parc/Analysis/ReshardPlanner.h"
#include "parc/Analysis/Strategy.h"
#include "parc/Analysis/ZeroPlan.h"
#include "parc/Transforms/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_SHARD
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

namespace {

/// Writes down the layouts of one module.
class Sharder {
public:
  Sharder(ModuleOp module, const Propagation &propagation,
          const AxisSizes &axes)
      : module(module), propagation(propagation), axes(axes),
        usedRows(propagation), planner(axes) {}

  LogicalResult run();
  /// To be called when all layouts are final.
  void eraseUnread() { usedRows.eraseUnread(); }

private:
  LogicalResult shardStep(StepOp step);
  LogicalResult shardBlock(Block &block);
  LogicalResult shardOp(Operation *op);
  LogicalResult shardStack(StackOp stack);
  void noteRing(RingOpInterface op);
  void saveAsRead(OpOperand &saved);
  void shardConstraint(ConstraintOp op);
  void finishAccumulates();

  static void setLayout(Value value, ShardingAttr sharding);
  /// What is stored lies as the slot does. The value itself cannot be asked: it
  /// may be a reshard by now, of which propagation knows nothing.
  ShardingAttr layoutOfSlot(FlatSymbolRefAttr param, StringRef slot) {
    return module.lookupSymbol<ParamOp>(param).getSlotSharding(slot);
  }
  void shardLoad(LoadOp load);
  void shardStore(StoreOp store);
  void shardAccumulate(AccumulateOp accumulate);
  /// Makes `operand` have the layout `wanted`, by a reshard where needed.
  void require(OpOperand &operand, ShardingAttr wanted);
  /// Builds the reshards that turn `source`, a copy of `operand`, into
  /// `wanted`.
  Value turn(OpOperand &operand, Value source, ShardingAttr wanted);
  /// The copies of `value` in other layouts that `block` has by now.
  SmallVector<Value> copiesIn(Block *block, Value value) const;
  /// What is turned into `wanted` with the fewest bytes: the value or a copy.
  Value cheapestSource(Block *block, Value value, ShardingAttr wanted) const;
  void requireInits(Operation *op);
  ShardingAttr operandLayout(Operation *op, unsigned index,
                             const OpFactors &factors, const OpLayout &layout);
  std::string reason(OpOperand &operand, ShardingAttr from, ShardingAttr to);

  ModuleOp module;
  const Propagation &propagation;
  const AxisSizes &axes;
  /// What was made of a value for other layouts, once a block and layout.
  DenseMap<Value, SmallVector<Value>> made;
  UsedRows usedRows;
  ReshardPlanner planner;
  /// Axes over which each parameter's accumulated slot is partial.
  llvm::StringMap<Axes> slotPartial;
  SmallVector<AccumulateOp> accumulates;
  bool inUpdate = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Reshards
//===----------------------------------------------------------------------===//

void Sharder::setLayout(Value value, ShardingAttr sharding) {
  Type type = value.getType();
  if (auto layers = dyn_cast<LayersType>(type)) {
    auto tensor = cast<RankedTensorType>(layers.getElement());
    value.setType(
        LayersType::get(type.getContext(), withSharding(tensor, sharding)));
    return;
  }
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return;
  value.setType(withSharding(tensor, sharding));
  // A constant says its type twice.
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue())
                              .reshape(cast<ShapedType>(value.getType())));
}

std::string Sharder::reason(OpOperand &operand, ShardingAttr from,
                            ShardingAttr to) {
  Operation *producer = operand.get().getDefiningOp();
  std::string made = producer ? describe(producer) : std::string("the input");
  std::string reader = describe(operand.getOwner());
  if (isa<YieldOp>(operand.getOwner()))
    reader = "the next layer";
  if (isa<ReshardOp>(operand.getOwner()))
    return "how many rows of " + made +
           " each rank uses, told before they move";
  if (auto store = dyn_cast<StoreOp>(operand.getOwner());
      store && from.isFlat() && !to.isFlat())
    return (store.getParam() + " is used whole, its state lies in parts over " +
            axesText(from.getFlat(), axes))
        .str();
  if (auto accumulate = dyn_cast<AccumulateOp>(operand.getOwner());
      accumulate && to.isFlat() && !from.isFlat())
    return (made + " leaves a sum of which " + accumulate.getParam() +
            " keeps parts over " + axesText(to.getFlat(), axes))
        .str();
  Axes reduced;
  for (StringAttr axis : from.getPartial())
    if (!llvm::is_contained(to.getPartial(), axis))
      reduced.push_back(axis);
  if (!reduced.empty()) {
    std::string kind = stringifyReductionKind(from.getKind()).str();
    return made + " leaves a partial " + kind + " over " +
           axesText(reduced, axes) + ", which " + reader + " reads whole";
  }
  if (to.isPartial() && !from.isPartial())
    return made + " is added to a partial sum over " +
           axesText(to.getPartial(), axes) + " by " + reader;
  return made + " is laid out otherwise than " + reader + " reads it";
}

/// Zero is zero in every layout, and an addend of every sum: it is made anew.
/// Null where it is not made by ops that can be.
static Value zeroAs(OpBuilder &builder, Value zero, ShardingAttr wanted) {
  Operation *op = zero.getDefiningOp();
  auto type = withSharding(cast<RankedTensorType>(zero.getType()), wanted);
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return arith::ConstantOp::create(
        builder, op->getLoc(), type,
        cast<DenseElementsAttr>(constant.getValue()).reshape(type));
  auto fill = dyn_cast<linalg::FillOp>(op);
  if (!fill || !fill.getOutputs()[0].getDefiningOp<tensor::EmptyOp>())
    return Value();
  auto empty =
      tensor::EmptyOp::create(builder, op->getLoc(), type, ValueRange());
  return linalg::FillOp::create(builder, op->getLoc(), fill.getInputs(),
                                empty.getResult())
      .getResult(0);
}

SmallVector<Value> Sharder::copiesIn(Block *block, Value value) const {
  SmallVector<Value> copies;
  if (auto found = made.find(value); found != made.end())
    for (Value copy : found->second)
      if (copy.getParentBlock() == block)
        copies.push_back(copy);
  return copies;
}

/// A sum that one reader takes in parts and another whole is scattered for the
/// one and gathered from there for the other.
Value Sharder::cheapestSource(Block *block, Value value,
                              ShardingAttr wanted) const {
  auto type = cast<RankedTensorType>(value.getType());
  Value best = value;
  double fewest = turnBytes(type, getSharding(type), wanted, axes);
  if (getSharding(type).isFlat())
    return value;
  for (Value copy : copiesIn(block, value)) {
    double bytes = turnBytes(type, getSharding(copy.getType()), wanted, axes);
    if (bytes < fewest) {
      fewest = bytes;
      best = copy;
    }
  }
  return best;
}

/// One reshard, but for values of which the program knows how many rows are
/// used: these are exchanged in a step of their own, the numbers first.
Value Sharder::turn(OpOperand &operand, Value source, ShardingAttr wanted) {
  ShardingAttr have = getSharding(source.getType());
  auto type = withSharding(cast<RankedTensorType>(source.getType()), nullptr);
  std::string text = reason(operand, have, wanted);
  OpBuilder builder(operand.getOwner());
  auto step = [&](ShardingAttr to) {
    ShardingAttr from = getSharding(source.getType());
    auto reshard = ReshardOp::create(
        builder, operand.get().getLoc(), withSharding(type, to), source,
        whyOf(operand, text, from, to, propagation));
    source = reshard.getResult();
    made[operand.get()].push_back(source);
    return reshard;
  };
  UsedRows::Numbers numbers = have.isFlat() || wanted.isFlat()
                                  ? UsedRows::Numbers()
                                  : usedRows.of(source, axes);
  const ReshardPlan *plan =
      numbers.value ? planner.plan(type, have, wanted) : nullptr;
  if (!plan || llvm::none_of(plan->path.steps, [](const ReshardStep &move) {
        return move.move == ReshardMove::AllToAll;
      })) {
    step(wanted);
    return source;
  }
  SmallVector<ShardingAttr> way =
      layoutsOnWay(*plan, type.getContext(), have, wanted);
  way.push_back(wanted);
  for (ShardingAttr to : way) {
    auto around = UsedRows::layoutsAround(
        numbers.value, getSharding(source.getType()), to, axes);
    ReshardOp reshard = step(to);
    if (!around)
      continue;
    reshard.getUsedMutable().assign({numbers.value, numbers.value});
    reshard.setRows(numbers.balanced);
    require(reshard->getOpOperand(1), around->first);
    require(reshard->getOpOperand(2), around->second);
  }
  return source;
}

void Sharder::require(OpOperand &operand, ShardingAttr wanted) {
  Value value = operand.get();
  ShardingAttr have = getSharding(value.getType());
  if (!have || have == wanted)
    return;
  // Flat parts are cut of what the dimensions leave: one after the other.
  bool change =
      have.getDims() != wanted.getDims() ||
      (have.isFlat() && wanted.isFlat() && have.getFlat() != wanted.getFlat());
  if (change && (have.isFlat() || wanted.isFlat())) {
    Axes partial;
    for (StringAttr axis : have.getPartial())
      if (!wanted.withFlat({}).splits(axis.getValue()))
        partial.push_back(axis);
    require(operand, have.isFlat() ? have.withFlat({})
                                   : wanted.withFlat({}).withPartial(
                                         have.getKind(), partial));
    return require(operand, wanted);
  }
  Operation *user = operand.getOwner();
  for (Value other : copiesIn(user->getBlock(), value))
    if (getSharding(other.getType()) == wanted) {
      operand.set(other);
      return;
    }
  OpBuilder builder(user);
  Value result = isZero(value) ? zeroAs(builder, value, wanted) : Value();
  if (!result) {
    result =
        turn(operand, cheapestSource(user->getBlock(), value, wanted), wanted);
  } else {
    made[value].push_back(result);
  }
  operand.set(result);
}

//===----------------------------------------------------------------------===//
// Ops with factors
//===----------------------------------------------------------------------===//

ShardingAttr Sharder::operandLayout(Operation *op, unsigned index,
                                    const OpFactors &factors,
                                    const OpLayout &layout) {
  ShardingAttr have = getSharding(op->getOperand(index).getType());
  if (!have)
    return nullptr;
  MLIRContext *context = op->getContext();
  const ValueFactors &dims = factors.operands[index];
  SmallVector<Axes> split = dimsOf(dims, layout.factorAxes, have);
  SmallVector<DimShardingAttr> result;
  for (size_t dim = 0; dim < have.getDims().size(); ++dim) {
    if (dim >= split.size() || split[dim].empty())
      result.push_back(
          DimShardingAttr::get(context, ArrayRef<StringAttr>(), 1));
    else
      result.push_back(DimShardingAttr::get(
          context, split[dim],
          grainOf(dims[dim], factors, layout.factorAxes, axes)));
  }
  bool carried = llvm::is_contained(layout.carriedOperands, index);
  return withOpFlat(
      ShardingAttr::get(context, result, ReductionKind::Sum,
                        carried ? ArrayRef<StringAttr>(layout.carriedPartial)
                                : ArrayRef<StringAttr>()),
      layout.flat);
}

/// What an op writes onto has the layout of what it writes.
void Sharder::requireInits(Operation *op) {
  auto dest = dyn_cast<DestinationStyleOpInterface>(op);
  if (!dest)
    return;
  for (OpOperand &init : dest.getDpsInitsMutable())
    if (OpResult result = dest.getTiedOpResult(&init))
      require(init, getSharding(result.getType()));
}

LogicalResult Sharder::shardOp(Operation *op) {
  const auto *entry = propagation.ops().find(op);
  if (entry == propagation.ops().end()) {
    for (OpOperand &operand : op->getOpOperands())
      if (ShardingAttr have = getSharding(operand.get().getType());
          have && have.isPartial() && !isa<ObserveOp>(op))
        require(operand, have.withoutPartial());
    for (Value result : op->getResults())
      setLayout(result, propagation.layoutOf(result));
    return success();
  }
  const OpFactors &factors = entry->second;
  SmallVector<ShardingAttr> operands, wishes;
  for (Value operand : op->getOperands())
    operands.push_back(getSharding(operand.getType()));
  for (Value result : op->getResults())
    wishes.push_back(isa<RankedTensorType>(result.getType())
                         ? propagation.layoutOf(result)
                         : ShardingAttr());
  LayoutBounds bounds;
  bounds.pins = propagation.pinsOf(op);
  auto keeps = [&](StringAttr axis) { return propagation.keeps(axis); };
  bounds.keeps = keeps;
  for (Value operand : op->getOperands()) {
    bounds.copies.emplace_back();
    // A sum has to be finished anyway.
    ShardingAttr have = getSharding(operand.getType());
    if (!have || !have.isPartial())
      continue;
    for (Value copy : copiesIn(op->getBlock(), operand))
      if (ShardingAttr has = getSharding(copy.getType());
          !has.isPartial() && !has.isFlat() && !isZero(copy))
        bounds.copies.back().push_back(has);
  }
  OpLayout layout = chooseLayout(op, factors, operands, wishes, bounds, axes);
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    if (!isa<RankedTensorType>(result.getType()))
      continue;
    ReductionKind kind;
    Axes partial;
    if (failed(newPartial(factors, factors.results[index], layout.factorAxes,
                          kind, partial)))
      return emitError(op->getLoc()) << "'" << op->getName()
                                     << "' would be partial by two kinds of "
                                        "reduction; constrain one of "
                                        "its dimensions";
    if (cast<RankedTensorType>(result.getType()).getRank() == 0)
      partial.append(layout.flat);
    for (StringAttr axis : layout.carriedPartial)
      if (!llvm::is_contained(partial, axis))
        partial.push_back(axis);
    SmallVector<Axes> dims =
        dimsOf(factors.results[index], layout.factorAxes, wishes[index]);
    setLayout(result,
              withOpFlat(propagation.withGrains(result, dims), layout.flat)
                  .withPartial(kind, partial));
  }
  auto dest = dyn_cast<DestinationStyleOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    if (dest && dest.isDpsInit(&operand))
      continue;
    if (ShardingAttr wanted =
            operandLayout(op, operand.getOperandNumber(), factors, layout))
      require(operand, wanted);
  }
  requireInits(op);
  if (auto ring = dyn_cast<RingOpInterface>(op); ring && ring.getRingAxes())
    noteRing(ring);
  return success();
}

/// What passes round a ring is read whole, a part after the other.
void Sharder::noteRing(RingOpInterface op) {
  Builder builder(op->getContext());
  SmallVector<StringAttr> ring(op.getRingAxes().getAsRange<StringAttr>());
  SmallVector<Attribute> reasons;
  for (OpOperand &operand : op->getOpOperands()) {
    reasons.push_back(builder.getUnitAttr());
    ShardingAttr from = getSharding(operand.get().getType());
    if (!from)
      continue;
    SmallVector<DimShardingAttr> dims;
    for (DimShardingAttr dim : from.getDims()) {
      Axes rest(dim.getAxes());
      llvm::erase_if(rest, [&](StringAttr axis) {
        return llvm::is_contained(ring, axis);
      });
      dims.push_back(
          DimShardingAttr::get(op->getContext(), rest, dim.getGrain()));
    }
    auto to = ShardingAttr::get(op->getContext(), dims, from.getKind(),
                                from.getPartial());
    if (from != to)
      reasons.back() = whyOf(operand, "", from, to, propagation);
  }
  op->setAttr(kRingReasonsAttr, builder.getArrayAttr(reasons));
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

/// A value is saved for the backward as it was made, so that the most split
/// layout is kept; a sum that is not finished, as one of its readers took it.
/// If all that read it do so in one other layout that takes no more memory, it
/// is saved so, for the backward will read it so as well. What the backward
/// asks for in the end is seen later, see SavedLayouts.h.
void Sharder::saveAsRead(OpOperand &saved) {
  Value value = saved.get();
  auto type = cast<RankedTensorType>(value.getType());
  ShardingAttr have = getSharding(type);
  auto size = [&](ShardingAttr layout) {
    return partBytes(type, layout, axes);
  };
  if (have.isPartial()) {
    ShardingAttr best;
    for (Value copy : copiesIn(saved.getOwner()->getBlock(), value))
      if (ShardingAttr read = getSharding(copy.getType());
          !read.isPartial() && (!best || size(read) < size(best)))
        best = read;
    return require(saved, best ? best : have.withoutPartial());
  }
  ReshardOp only;
  for (Operation *user : value.getUsers()) {
    if (user == saved.getOwner())
      continue;
    auto reshard = dyn_cast<ReshardOp>(user);
    if (!reshard || only)
      return;
    only = reshard;
  }
  if (!only || only->getBlock() != saved.getOwner()->getBlock())
    return;
  ShardingAttr read = getSharding(only.getType());
  if (!read.isPartial() && size(read) <= size(have))
    saved.set(only.getResult());
}

LogicalResult Sharder::shardStack(StackOp stack) {
  for (auto [operand, argument] :
       llvm::zip(stack.getCarryMutable(), stack.getCarryArguments())) {
    ShardingAttr wanted = propagation.layoutOf(argument);
    require(operand, wanted);
    setLayout(argument, wanted);
  }
  for (auto [each, argument] :
       llvm::zip(stack.getEach(), stack.getEachArguments()))
    argument.setType(cast<LayersType>(each.getType()).getElement());
  if (failed(shardBlock(*stack.getBlock())))
    return failure();
  size_t carried = stack.getCarry().size(), reduced = stack.getReductions();
  for (OpOperand &operand : stack.getYield()->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    if (index < carried)
      require(operand, propagation.layoutOf(stack.getResult(index)));
    else if (index >= carried + reduced)
      saveAsRead(operand);
    setLayout(stack.getResult(index), getSharding(operand.get().getType()));
  }
  return success();
}

void Sharder::shardConstraint(ConstraintOp op) {
  ShardingAttr wanted = propagation.layoutOf(op.getResult());
  require(op.getInputMutable(), wanted);
  op.getResult().replaceAllUsesWith(op.getInput());
  op.erase();
}

/// The op of `block` that `op` is, or is in.
static Operation *ancestorIn(Block *block, Operation *op) {
  while (op->getBlock() != block)
    op = op->getParentOp();
  return op;
}

/// A slot is used in the layout of the region it is loaded in: in the model the
/// parameter's, in an update that of the optimizer's state. Where they differ,
/// the change is made at once; outside stacks once a reader, so that nothing
/// that was gathered is kept from forward to backward.
void Sharder::shardLoad(LoadOp load) {
  ParamOp param = module.lookupSymbol<ParamOp>(load.getParam());
  ShardingAttr have = param.getSlotSharding(load.getSlot());
  ShardingAttr wanted =
      inUpdate ? param.getSlotSharding(kStateLayout) : param.getShardingAttr();
  if (load.getSlot() == kGradientSlot)
    if (auto it = slotPartial.find(load.getParam()); it != slotPartial.end())
      have = have.withPartial(ReductionKind::Sum, it->second);
  setLayout(load.getResult(), have);
  if (have.getFlat() == wanted.getFlat())
    return;
  std::string over =
      axesText(have.isFlat() ? have.getFlat() : wanted.getFlat(), axes);
  std::string why =
      (have.isFlat()
           ? load.getParam() + " is stored in parts over " + over
           : "the state of " + load.getParam() + " lies in parts over " + over)
          .str();
  bool shares = inUpdate || load->getParentOfType<StackOp>();
  DenseMap<Operation *, ReshardOp> byReader;
  for (OpOperand &use : llvm::make_early_inc_range(load->getUses())) {
    Operation *reader =
        shares ? load : ancestorIn(load->getBlock(), use.getOwner());
    ReshardOp &reshard = byReader[reader];
    if (!reshard) {
      OpBuilder builder(reader);
      if (shares)
        builder.setInsertionPointAfter(load);
      reshard = ReshardOp::create(
          builder, load.getLoc(),
          withSharding(cast<RankedTensorType>(load.getType()), wanted),
          load.getResult(), whyOf(use, why, have, wanted, propagation));
    }
    use.set(reshard.getResult());
  }
}

/// A gradient that is whole before it is reduced and cut afterwards needs two
/// places.
void Sharder::shardStore(StoreOp store) {
  FlatSymbolRefAttr param = store.getParamAttr();
  ShardingAttr slot = layoutOfSlot(param, store.getSlot());
  ShardingAttr state = layoutOfSlot(param, kStateLayout);
  if (store.getSlot() == kGradientSlot && slot != state) {
    store.setSlot(kReducedSlot);
    slot = state;
  }
  require(store.getInputMutable(), slot);
}

void Sharder::shardAccumulate(AccumulateOp accumulate) {
  ShardingAttr have = getSharding(accumulate.getInput().getType());
  ShardingAttr wanted =
      layoutOfSlot(accumulate.getParamAttr(), accumulate.getSlot());
  // A sum over axes that split the slot is scattered at once.
  Axes partial;
  for (StringAttr axis : have.getPartial())
    if (!wanted.splits(axis))
      partial.push_back(axis);
  require(accumulate.getInputMutable(),
          wanted.withPartial(have.getKind(), partial));
  accumulates.push_back(accumulate);
}

LogicalResult Sharder::shardBlock(Block &block) {
  for (Operation &operation : llvm::make_early_inc_range(block)) {
    if (auto load = dyn_cast<LoadOp>(operation)) {
      shardLoad(load);
    } else if (auto store = dyn_cast<StoreOp>(operation)) {
      shardStore(store);
    } else if (auto accumulate = dyn_cast<AccumulateOp>(operation)) {
      shardAccumulate(accumulate);
    } else if (auto stack = dyn_cast<StackOp>(operation)) {
      if (failed(shardStack(stack)))
        return failure();
    } else if (auto constraint = dyn_cast<ConstraintOp>(operation)) {
      shardConstraint(constraint);
    } else if (!operation.hasTrait<OpTrait::IsTerminator>() &&
               !isa<ReshardOp>(operation)) {
      if (failed(shardOp(&operation)))
        return failure();
    }
  }
  return success();
}

/// All that is added to a slot is partial over the same axes: what is not, is
/// owned by one coordinate of the others.
void Sharder::finishAccumulates() {
  auto tableOrder = [&](Axes &list) {
    llvm::sort(list, [&](StringAttr a, StringAttr b) {
      return llvm::find(axes.names(), a.getValue()) <
             llvm::find(axes.names(), b.getValue());
    });
  };
  for (AccumulateOp accumulate : accumulates) {
    Axes &all = slotPartial[accumulate.getParam()];
    for (StringAttr axis :
         getSharding(accumulate.getInput().getType()).getPartial())
      if (!llvm::is_contained(all, axis))
        all.push_back(axis);
    tableOrder(all);
  }
  for (AccumulateOp accumulate : accumulates) {
    ShardingAttr have = getSharding(accumulate.getInput().getType());
    const Axes &all = slotPartial[accumulate.getParam()];
    Axes partial(have.getPartial());
    tableOrder(partial);
    if (partial != all)
      require(accumulate.getInputMutable(),
              have.withPartial(ReductionKind::Sum, all));
  }
  // Accumulation discharges the axis of micro-batches.
  // order-free: each entry is changed by itself.
  for (auto &entry : slotPartial)
    llvm::erase_if(entry.second, [](StringAttr axis) {
      return axis.getValue() == kMicroBatchAxis;
    });
  accumulates.clear();
}

LogicalResult Sharder::shardStep(StepOp step) {
  for (Value argument : step.getMicro().getArguments())
    setLayout(argument, propagation.layoutOf(argument));
  if (failed(shardBlock(step.getMicro().front())))
    return failure();
  finishAccumulates();
  if (step.getUpdate().empty())
    return success();
  Block &update = step.getUpdate().front();
  for (Value argument : update.getArguments())
    setLayout(argument, propagation.layoutOf(argument));
  for (auto [value, argument] :
       llvm::zip(step.getMicro().front().getTerminator()->getOperands(),
                 update.getArguments())) {
    ShardingAttr have = getSharding(value.getType());
    Axes partial;
    for (StringAttr axis : have.getPartial())
      if (axis.getValue() != kMicroBatchAxis)
        partial.push_back(axis);
    setLayout(argument, have.withPartial(have.getKind(), partial));
  }
  inUpdate = true;
  LogicalResult done = shardBlock(update);
  inUpdate = false;
  if (failed(done))
    return failure();
  for (OpOperand &operand : update.getTerminator()->getOpOperands()) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    require(operand,
            ShardingAttr::replicated(module.getContext(), type.getRank()));
  }
  return success();
}

LogicalResult Sharder::run() {
  for (StepOp step : module.getOps<StepOp>())
    if (failed(shardStep(step)))
      return failure();
  return success();
}

/// What looks at several sequences together has to find them in one
/// micro-batch.
static LogicalResult checkScopes(ModuleOp module, int64_t microBatches) {
  WalkResult walked = module.walk([&](BatchScopedOpInterface op) {
    int64_t scope = op.getBatchScope();
    auto type = cast<RankedTensorType>(op->getOperand(0).getType());
    if (microBatches < 2 || (scope > 0 && type.getDimSize(0) % scope == 0))
      return WalkResult::advance();
    InFlightDiagnostic diag = op->emitError("'");
    diag << op->getName() << "' looks at ";
    if (scope == 0)
      diag << "the whole batch";
    else
      diag << scope << " sequences";
    diag << " together, but each of the " << microBatches
         << " micro-batches has " << type.getDimSize(0)
         << " sequences; give it a scope in sequences that divides them, or "
            "use one micro-batch";
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

namespace {
struct ShardPass : public parc::impl::ShardBase<ShardPass> {
  using ShardBase::ShardBase;

  StrategyOptions planned() {
    StrategyOptions options;
    options.sequenceParallel = sequenceParallel;
    options.contextKind = contextKind;
    options.expertAxes.assign(expertAxes.begin(), expertAxes.end());
    return options;
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    AxisSizes axes(module, microBatches);
    Propagation propagation(module, axes);
    if (failed(checkScopes(module, microBatches)) ||
        failed(propagation.initialize()))
      return signalPassFailure();
    propagation.spread();
    if (strategy && failed(applyStrategy(module, propagation, axes, planned())))
      return signalPassFailure();
    if (failed(propagation.check()))
      return signalPassFailure();
    for (ParamOp param : module.getOps<ParamOp>())
      param.setShardingAttr(propagation.layoutOf(param));
    ZeroOptions zeroOptions;
    zeroOptions.stage = zero;
    for (const std::string &axis : zeroAxes)
      zeroOptions.only.push_back(axis);
    planZero(module, propagation, axes, zeroOptions);
    Sharder sharder(module, propagation, axes);
    if (failed(sharder.run()))
      return signalPassFailure();
    chooseSavedLayouts(module, axes);
    sharder.eraseUnread();
  }
};
} // namespace
