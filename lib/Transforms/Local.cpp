//===- Local.cpp - The program of one rank --------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Builds, beside each sharded step, the step of one rank, and drops the
/// sharded one.
///
//===----------------------------------------------------------------------===//

#include "Buckets.h"
#include "FlatLowering.h"
#include "mlir/IR/IRMapping.h"
#include "parc/Analysis/FactorAxes.h"
#include "parc/Transforms/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_LOCAL
#include "parc/Transforms/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

namespace {

/// Rewrites one step.
class Localizer {
public:
  Localizer(const AxisSizes &axes, ReshardPlanner &planner)
      : axes(axes), planner(planner) {}

  FailureOr<StepOp> convert(StepOp step);

private:
  Type convertType(Type type);
  LogicalResult convertBlock(Block &from, Block &to);
  LogicalResult convertOp(Operation *op, OpBuilder &builder);
  LogicalResult convertStack(StackOp stack, OpBuilder &builder);
  LogicalResult convertShardable(ShardableOpInterface op, OpBuilder &builder);
  void addArguments(Block &from, Block &to);
  SmallVector<Value> mapped(ValueRange values);
  SmallVector<SmallVector<OpFoldResult>> sizesOf(Operation *op,
                                                 OpBuilder &builder);
  void setOffsets(ShardableOpInterface op, Operation *local,
                  OpBuilder &builder);

  const AxisSizes &axes;
  ReshardPlanner &planner;
  IRMapping mapping;
};

} // namespace

//===----------------------------------------------------------------------===//
// Types and sizes
//===----------------------------------------------------------------------===//

Type Localizer::convertType(Type type) {
  if (auto layers = dyn_cast<LayersType>(type))
    return LayersType::get(type.getContext(), convertType(layers.getElement()));
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return localType(tensor, getSharding(tensor), axes);
  return type;
}

SmallVector<Value> Localizer::mapped(ValueRange values) {
  SmallVector<Value> result;
  for (Value value : values)
    result.push_back(mapping.lookupOrDefault(value));
  return result;
}

static ArrayAttr axesAttr(DimShardingAttr dim) {
  return ArrayAttr::get(
      dim.getContext(),
      SmallVector<Attribute>(dim.getAxes().begin(), dim.getAxes().end()));
}

/// The local extents of every dimension of every result.
SmallVector<SmallVector<OpFoldResult>> Localizer::sizesOf(Operation *op,
                                                          OpBuilder &builder) {
  SmallVector<SmallVector<OpFoldResult>> result;
  for (Type type : op->getResultTypes()) {
    auto &sizes = result.emplace_back();
    auto global = dyn_cast<RankedTensorType>(type);
    if (!global)
      continue;
    auto local = cast<RankedTensorType>(convertType(type));
    if (getSharding(type).isFlat()) {
      if (local.isDynamicDim(0))
        sizes.push_back(flatPartSize(builder, op->getLoc(), global,
                                     getSharding(type), axes));
      else
        sizes.push_back(builder.getIndexAttr(local.getDimSize(0)));
      continue;
    }
    for (int64_t dim = 0; dim < global.getRank(); ++dim) {
      if (!local.isDynamicDim(dim)) {
        sizes.push_back(builder.getIndexAttr(local.getDimSize(dim)));
        continue;
      }
      DimShardingAttr split = getSharding(type).getDims()[dim];
      sizes.push_back(
          PartSizeOp::create(builder, op->getLoc(), builder.getIndexType(),
                             axesAttr(split),
                             builder.getI64IntegerAttr(global.getDimSize(dim)),
                             builder.getI64IntegerAttr(split.getGrain()))
              .getResult());
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Where the part of the factor at `at` of a dimension starts, in the factor's
/// elements, or those of the flattened factors down to it.
static Value partStart(OpBuilder &builder, Location loc, const DimFactors &dim,
                       size_t at, const OpFactors &factors, int64_t size,
                       DimShardingAttr split, ArrayRef<Axes> own) {
  SmallVector<Attribute> over;
  for (const Axes &list : own.take_front(at + 1))
    over.append(list.begin(), list.end());
  int64_t minor = 1;
  for (unsigned factor : ArrayRef<unsigned>(dim).drop_front(at + 1))
    minor *= factors.factors[factor].size;
  return PartStartOp::create(builder, loc, builder.getIndexType(),
                             builder.getArrayAttr(over),
                             builder.getI64IntegerAttr(size / minor),
                             builder.getI64IntegerAttr(std::max<int64_t>(
                                 split.getGrain() / minor, 1)));
}

/// Tells the local op where its parts of split factors start.
void Localizer::setOffsets(ShardableOpInterface op, Operation *local,
                           OpBuilder &builder) {
  FailureOr<OpFactors> factors = op.getFactors();
  SmallVector<bool> done(factors->factors.size());
  auto visit = [&](Value value, const ValueFactors &dims) {
    ShardingAttr sharding = getSharding(value.getType());
    if (!sharding)
      return;
    for (auto [dim, split, size] :
         llvm::zip(dims, sharding.getDims(),
                   cast<RankedTensorType>(value.getType()).getShape())) {
      SmallVector<Axes> own = distribute(dim, *factors, split.getAxes(), axes);
      for (auto [at, factor] : llvm::enumerate(dim)) {
        if (own[at].empty() || done[factor] ||
            !factors->factors[factor].needsOffset)
          continue;
        done[factor] = true;
        builder.setInsertionPoint(local);
        Value start = partStart(builder, op->getLoc(), dim, at, *factors, size,
                                split, own);
        cast<ShardableOpInterface>(local).setFactorOffset(builder, factor,
                                                          start);
      }
    }
  };
  for (auto [value, dims] : llvm::zip(op->getOperands(), factors->operands))
    visit(value, dims);
  for (auto [value, dims] : llvm::zip(op->getResults(), factors->results))
    visit(value, dims);
}

LogicalResult Localizer::convertShardable(ShardableOpInterface op,
                                          OpBuilder &builder) {
  SmallVector<Type> types;
  for (Type type : op->getResultTypes())
    types.push_back(convertType(type));
  // Values that a body captures are mapped as operands are.
  Operation *local = op.buildLocal(builder, mapped(op->getOperands()), types,
                                   sizesOf(op, builder));
  local->walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands())
      operand.set(mapping.lookupOrDefault(operand.get()));
  });
  for (auto [from, to] : llvm::zip(op->getResults(), local->getResults()))
    mapping.map(from, to);
  setOffsets(op, local, builder);
  return success();
}

void Localizer::addArguments(Block &from, Block &to) {
  for (BlockArgument argument : from.getArguments())
    mapping.map(argument, to.addArgument(convertType(argument.getType()),
                                         argument.getLoc()));
}

LogicalResult Localizer::convertStack(StackOp stack, OpBuilder &builder) {
  SmallVector<Type> types;
  for (Type type : stack.getResultTypes())
    types.push_back(convertType(type));
  auto local =
      StackOp::create(builder, stack.getLoc(), types, stack.getLayersAttr(),
                      stack.getBeginAttr(), stack.getEndAttr(),
                      stack.getReverseAttr(), stack.getReductionsAttr(),
                      mapped(stack.getCarry()), mapped(stack.getEach()));
  Block &body = local.getBody().emplaceBlock();
  addArguments(*stack.getBlock(), body);
  for (auto [from, to] : llvm::zip(stack.getResults(), local.getResults()))
    mapping.map(from, to);
  return convertBlock(*stack.getBlock(), body);
}

LogicalResult Localizer::convertOp(Operation *op, OpBuilder &builder) {
  if (auto reshard = dyn_cast<ReshardOp>(op)) {
    FailureOr<Value> value =
        lowerReshard(builder, reshard, mapping.lookup(reshard.getInput()),
                     mapped(reshard.getUsed()), axes, planner);
    if (succeeded(value))
      mapping.map(reshard.getResult(), *value);
    return success(succeeded(value));
  }
  if (auto stack = dyn_cast<StackOp>(op))
    return convertStack(stack, builder);
  if (auto shardable = dyn_cast<ShardableOpInterface>(op))
    return convertShardable(shardable, builder);
  SmallVector<Type> types;
  for (Type type : op->getResultTypes())
    types.push_back(convertType(type));
  Operation *local =
      cloneWithTypes(builder, op, mapped(op->getOperands()), types);
  if (auto observe = dyn_cast<ObserveOp>(op))
    local->setAttr("sharding", getSharding(observe.getInput().getType()));
  for (auto [from, to] : llvm::zip(op->getResults(), local->getResults()))
    mapping.map(from, to);
  return success();
}

LogicalResult Localizer::convertBlock(Block &from, Block &to) {
  for (Operation &op : from) {
    OpBuilder builder = OpBuilder::atBlockEnd(&to);
    if (failed(convertOp(&op, builder)))
      return failure();
  }
  return success();
}

FailureOr<StepOp> Localizer::convert(StepOp step) {
  OpBuilder builder(step);
  auto local = StepOp::create(builder, step.getLoc(), step.getSymNameAttr(),
                              step.getInputsAttr(), step.getScalarsAttr(),
                              step.getResultsAttr());
  local->setDiscardableAttrs(step->getDiscardableAttrDictionary());
  SmallVector<Attribute> shardings;
  for (BlockArgument argument : step.getMicro().getArguments())
    shardings.push_back(getSharding(argument.getType()));
  local->setAttr("input_shardings", builder.getArrayAttr(shardings));
  for (auto [from, to] : llvm::zip(step->getRegions(), local->getRegions())) {
    if (from.empty())
      continue;
    Block &block = to.emplaceBlock();
    addArguments(from.front(), block);
    if (failed(convertBlock(from.front(), block)))
      return failure();
  }
  return local;
}

namespace {
struct LocalPass : public parc::impl::LocalBase<LocalPass> {
  using LocalBase::LocalBase;
  void runOnOperation() override {
    ModuleOp module = getOperation();
    AxisSizes axes(module, microBatches);
    ReshardPlanner planner(axes);
    for (StepOp step : llvm::make_early_inc_range(module.getOps<StepOp>())) {
      FailureOr<StepOp> local = Localizer(axes, planner).convert(step);
      if (failed(local))
        return signalPassFailure();
      bucketUpdate(*local);
      bucketLayers(*local);
      step.erase();
    }
  }
};
} // namespace
