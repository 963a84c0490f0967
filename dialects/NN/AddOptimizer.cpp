//===- AddOptimizer.cpp - Fills update regions with AdamW -----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes the update region: gradient norm, clipping, AdamW.
///
//===----------------------------------------------------------------------===//

#include "NN/NNPasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::nn {
#define GEN_PASS_DEF_ADDOPTIMIZER
#include "NN/NNPasses.h.inc"
} // namespace mlir::nn

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

namespace {

constexpr StringRef kScalars[] = {"lr",          "beta1",        "beta2",
                                  "eps",         "weight_decay", "clip",
                                  "correction1", "correction2"};

/// Writes the update region of one step.
class OptimizerBuilder {
public:
  explicit OptimizerBuilder(StepOp step)
      : step(step), builder(step.getContext()), loc(step.getLoc()) {}

  LogicalResult build();

private:
  using Params = SmallVector<ParamOp>;

  void collect();
  void addArguments(Block &block);
  /// The gradients of a stack's parameters, a layer each, and the sum of their
  /// squares.
  StackOp buildLayerNorms(StackOp layers, Params &params);
  void buildLayerUpdates(StackOp layers, Params &params, StackOp norms);
  Value loadSlot(ParamOp param, StringRef slot);
  Value sumOf(ArrayRef<Value> values);
  void buildScale(Value squares);
  void updateParam(ParamOp param, Value gradient);
  Value constant(double value);

  StepOp step;
  OpBuilder builder;
  Location loc;
  RankedTensorType scalarType;
  Params single;
  /// The stack that stands for each group of layers, and its parameters.
  llvm::MapVector<StringAttr, std::pair<StackOp, Params>> layered;
  Value loss, count, scale, meanLoss, norm;
  SmallVector<Value> scalars;
};

} // namespace

/// Parameters that gradients are accumulated for, by the stack they are in.
void OptimizerBuilder::collect() {
  auto module = step->getParentOfType<ModuleOp>();
  llvm::SmallSetVector<StringAttr, 16> seen;
  step.getMicro().walk([&](AccumulateOp accumulate) {
    StringAttr name = accumulate.getParamAttr().getAttr();
    if (!seen.insert(name))
      return;
    auto param = module.lookupSymbol<ParamOp>(name);
    if (!param.getLayers()) {
      single.push_back(param);
      return;
    }
    auto stack = accumulate->getParentOfType<StackOp>();
    auto &group = layered[stack.getLayersAttr().getAttr()];
    group.first = stack;
    group.second.push_back(param);
  });
  // In the order of declaration, which is the model's.
  auto byPlace = [](ParamOp a, ParamOp b) { return a->isBeforeInBlock(b); };
  llvm::sort(single, byPlace);
  for (auto &entry : layered)
    llvm::sort(entry.second.second, byPlace);
}

Value OptimizerBuilder::constant(double value) {
  auto attr = DenseElementsAttr::get(
      scalarType, builder.getFloatAttr(scalarType.getElementType(), value));
  return arith::ConstantOp::create(builder, loc, attr);
}

Value OptimizerBuilder::loadSlot(ParamOp param, StringRef slot) {
  return LoadOp::create(builder, loc, param.getSlotType(slot),
                        FlatSymbolRefAttr::get(param.getSymNameAttr()),
                        builder.getStringAttr(slot));
}

Value OptimizerBuilder::sumOf(ArrayRef<Value> values) {
  return AddNOp::create(builder, loc, scalarType, values);
}

void OptimizerBuilder::addArguments(Block &block) {
  SmallVector<StringRef> names(std::begin(kScalars), std::end(kScalars));
  auto sums = step.getMicro().front().getTerminator()->getOperands();
  scalarType = cast<RankedTensorType>(sums[0].getType());
  for (Value sum : sums)
    block.addArgument(sum.getType(), loc);
  loss = block.getArgument(0);
  count = block.getArgument(1);
  for (size_t i = 0; i < names.size(); ++i)
    scalars.push_back(block.addArgument(scalarType, loc));
  step.setScalarsAttr(builder.getStrArrayAttr(names));
  step.setResultsAttr(builder.getStrArrayAttr({"loss", "grad_norm"}));
}

StackOp OptimizerBuilder::buildLayerNorms(StackOp layers, Params &params) {
  SmallVector<Type> types{scalarType};
  for (ParamOp param : params)
    types.push_back(LayersType::get(builder.getContext(),
                                    param.getSlotType(kGradientSlot)));
  auto stack =
      StackOp::create(builder, loc, types, layers.getLayersAttr(),
                      layers.getBeginAttr(), layers.getEndAttr(), UnitAttr(),
                      builder.getI64IntegerAttr(1), ValueRange{}, ValueRange{});
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&stack.getBody());
  body->addArgument(builder.getIndexType(), loc);
  SmallVector<Value> squares, gradients;
  for (ParamOp param : params) {
    gradients.push_back(loadSlot(param, kGradientSlot));
    squares.push_back(
        SumSquaresOp::create(builder, loc, scalarType, gradients.back()));
  }
  SmallVector<Value> yielded{sumOf(squares)};
  yielded.append(gradients);
  YieldOp::create(builder, loc, yielded);
  return stack;
}

/// norm = sqrt(squares) / count; scale = clipping factor / count, the factor
/// being min(1, clip / (norm + 1e-6)) as torch.nn.utils.clip_grad_norm_ has it.
void OptimizerBuilder::buildScale(Value squares) {
  Value one = constant(1.0), zero = constant(0.0);
  Value perToken = arith::DivFOp::create(builder, loc, one, count);
  meanLoss = arith::MulFOp::create(builder, loc, loss, perToken);
  Value root = math::SqrtOp::create(builder, loc, squares);
  norm = arith::MulFOp::create(builder, loc, root, perToken);
  Value clip = scalars[5];
  Value guarded = arith::AddFOp::create(builder, loc, norm, constant(1e-6));
  Value ratio = arith::DivFOp::create(builder, loc, clip, guarded);
  Value limited = arith::MinimumFOp::create(builder, loc, ratio, one);
  Value clips = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT,
                                      clip, zero);
  Value factor = arith::SelectOp::create(builder, loc, clips, limited, one);
  scale = arith::MulFOp::create(builder, loc, factor, perToken);
}

void OptimizerBuilder::updateParam(ParamOp param, Value gradient) {
  StringRef held = param.hasMaster() ? kMasterSlot : kValueSlot;
  Value value = loadSlot(param, held), m = loadSlot(param, "m"),
        v = loadSlot(param, "v");
  Value decay = scalars[4];
  if (param.getNoDecay())
    decay = constant(0.0);
  auto update = AdamWOp::create(
      builder, loc, TypeRange{value.getType(), m.getType(), v.getType()}, value,
      gradient, m, v, scalars[0], scalars[1], scalars[2], scalars[3], decay,
      scalars[6], scalars[7], scale);
  auto symbol = FlatSymbolRefAttr::get(param.getSymNameAttr());
  StringRef slots[] = {held, "m", "v"};
  for (auto [slot, result] : llvm::zip(slots, update->getResults()))
    StoreOp::create(builder, loc, symbol, result, builder.getStringAttr(slot));
  if (param.hasMaster())
    StoreOp::create(builder, loc, symbol,
                    arith::TruncFOp::create(builder, loc, param.getTensorType(),
                                            update.getNewParam()),
                    builder.getStringAttr(kValueSlot));
  // What was accumulated in part is whole from here on, and can be read.
  StoreOp::create(builder, loc, symbol, gradient,
                  builder.getStringAttr(kGradientSlot));
}

void OptimizerBuilder::buildLayerUpdates(StackOp layers, Params &params,
                                         StackOp norms) {
  auto stack = StackOp::create(
      builder, loc, TypeRange{}, layers.getLayersAttr(), layers.getBeginAttr(),
      layers.getEndAttr(), UnitAttr(), builder.getI64IntegerAttr(0),
      ValueRange{}, norms.getEachResults());
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&stack.getBody());
  body->addArgument(builder.getIndexType(), loc);
  for (ParamOp param : params)
    updateParam(param,
                body->addArgument(param.getSlotType(kGradientSlot), loc));
  YieldOp::create(builder, loc, ValueRange{});
}

LogicalResult OptimizerBuilder::build() {
  collect();
  if (single.empty() && layered.empty())
    return emitErrorAt(step)
           << "accumulates no gradient; run 'parc-differentiate' first";
  builder.createBlock(&step.getUpdate());
  addArguments(step.getUpdate().front());
  SmallVector<Value> squares, gradients;
  SmallVector<StackOp> norms;
  for (ParamOp param : single) {
    gradients.push_back(loadSlot(param, kGradientSlot));
    squares.push_back(
        SumSquaresOp::create(builder, loc, scalarType, gradients.back()));
  }
  for (auto &entry : layered) {
    norms.push_back(buildLayerNorms(entry.second.first, entry.second.second));
    squares.push_back(norms.back().getReducedResults()[0]);
  }
  buildScale(sumOf(squares));
  for (auto [param, gradient] : llvm::zip(single, gradients))
    updateParam(param, gradient);
  for (auto [entry, norm] : llvm::zip(layered, norms))
    buildLayerUpdates(entry.second.first, entry.second.second, norm);
  YieldOp::create(builder, loc, ValueRange{meanLoss, norm});
  return success();
}

namespace {
struct AddOptimizerPass : public nn::impl::AddOptimizerBase<AddOptimizerPass> {
  void runOnOperation() override {
    for (StepOp step : getOperation().getOps<StepOp>())
      if (step.getUpdate().empty() && failed(OptimizerBuilder(step).build()))
        return signalPassFailure();
  }
};
} // namespace
