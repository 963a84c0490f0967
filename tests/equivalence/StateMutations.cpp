//===- StateMutations.cpp - Wrong state and wrong operands ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Mutations of parameters, gradients, moments, attention and queues.
///
//===----------------------------------------------------------------------===//

#include "Mutations.h"
#include "NN/NN.h"
#include "parc/Import/Model.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

/// `value` with the halves of a dimension exchanged. Null where that changes
/// nothing.
static Value halvesExchanged(OpBuilder &builder, Value value, int64_t dim) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.hasStaticShape()
             ? rotated(builder, value, dim, type.getDimSize(dim) / 2)
             : Value();
}

/// A gradient that is added to another parameter's of the same shape.
static bool otherParameter(Operation *op, const Subject &) {
  auto mine = cast<AccumulateOp>(op);
  for (AccumulateOp other : op->getBlock()->getOps<AccumulateOp>()) {
    if (other.getParam() == mine.getParam() ||
        other.getInput().getType() != mine.getInput().getType() ||
        other.getInput() == mine.getInput())
      continue;
    mine.setParam(other.getParam());
    return true;
  }
  return false;
}

/// The last micro-batch's gradient in the place of the sum.
static bool overwritten(Operation *op, const Subject &) {
  auto add = cast<AccumulateOp>(op);
  OpBuilder builder(op);
  OperationState state(op->getLoc(), StoreOp::getOperationName());
  state.addOperands(add.getInput());
  state.addAttributes(op->getAttrs());
  builder.create(state);
  op->erase();
  return true;
}

/// One moment in the place of the other.
static bool otherMoment(Operation *op, const Subject &) {
  auto store = cast<StoreOp>(op);
  if (store.getSlot() != "m" && store.getSlot() != "v")
    return false;
  store.setSlot(store.getSlot() == "m" ? "v" : "m");
  return true;
}

/// A rank takes another rank's part of a parameter.
static bool otherRanksPart(Operation *op, const Subject &subject) {
  auto param = cast<ParamOp>(op);
  std::optional<ShardingAttr> sharding = param.getSharding();
  if (!sharding)
    return false;
  MLIRContext *context = op->getContext();
  auto one = StringAttr::get(context, subject.axis),
       two = StringAttr::get(context, subject.other);
  bool hasOne = sharding->splits(one), hasTwo = sharding->splits(two);
  if (hasOne == hasTwo)
    return false;
  SmallVector<DimShardingAttr> dims;
  for (DimShardingAttr dim : sharding->getDims()) {
    SmallVector<StringAttr> axes(dim.getAxes());
    for (StringAttr &axis : axes)
      axis = axis == one ? two : axis == two ? one : axis;
    dims.push_back(DimShardingAttr::get(context, axes, dim.getGrain()));
  }
  param.setShardingAttr(ShardingAttr::get(context, dims, ReductionKind::Sum,
                                          ArrayRef<StringAttr>{}));
  return true;
}

/// The rows of a parameter in another order: experts, heads or words of
/// another rank.
static bool rowsMoved(Operation *op, const Subject &) {
  auto load = cast<LoadOp>(op);
  auto type = cast<RankedTensorType>(load.getResult().getType());
  if (load.getSlot() != "value" || type.getRank() < 2 ||
      !type.hasStaticShape() || type.getDimSize(0) < 2 || op->use_empty())
    return false;
  wrapResult(op, [](OpBuilder &builder, Value value) {
    return halvesExchanged(builder, value, 0);
  });
  return true;
}

static bool keysForValues(Operation *op, const Subject &) {
  auto attention = cast<nn::AttentionOp>(op);
  Value key = attention.getKey(), value = attention.getValue();
  if (key.getType() != value.getType())
    return false;
  attention.getKeyMutable().assign(value);
  attention.getValueMutable().assign(key);
  return true;
}

/// An operand with a dimension in another order.
template <class Op> static Break moved(unsigned operand, int64_t dim) {
  return [=](Operation *op, const Subject &) {
    OpBuilder builder(op);
    Value turned = halvesExchanged(builder, op->getOperand(operand), dim);
    if (!turned)
      return false;
    op->setOperand(operand, turned);
    return true;
  };
}

std::vector<Mutation> mlir::parc::equiv::stateMutations() {
  StringRef attention = nn::AttentionOp::getOperationName();
  return {
      {"gradient of another parameter", AccumulateOp::getOperationName(),
       otherParameter},
      {"gradient of the last micro-batch", AccumulateOp::getOperationName(),
       overwritten},
      {"a moment for the other", StoreOp::getOperationName(), otherMoment},
      {"parameter split over another axis", ParamOp::getOperationName(),
       otherRanksPart},
      {"parameter with rows of others", LoadOp::getOperationName(), rowsMoved},
      {"keys for values", attention, keysForValues},
      {"keys of the wrong head group", attention, moved<nn::AttentionOp>(1, 2)},
      {"values of the wrong head group", attention,
       moved<nn::AttentionOp>(2, 2)},
      {"keys of the wrong part of the sequence", attention,
       moved<nn::AttentionOp>(1, 1)},
      {"queue slots of others", nn::CombineOp::getOperationName(),
       moved<nn::CombineOp>(0, 1)},
      {"queues of the wrong expert", nn::CombineOp::getOperationName(),
       moved<nn::CombineOp>(0, 0)},
  };
}

OwningOpRef<ModuleOp>
mlir::parc::equiv::importedModel(MLIRContext &context,
                                 const std::string &config, int64_t batch,
                                 int64_t sequence) {
  FailureOr<ModelConfig> read =
      readModelConfig(&context, config, "config.json");
  if (failed(read))
    return nullptr;
  auto module = buildModel(&context, *read, {batch, sequence});
  return succeeded(module) ? std::move(*module) : nullptr;
}
