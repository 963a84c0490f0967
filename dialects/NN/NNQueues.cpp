//===- NNQueues.cpp - Experts' queues -------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.dispatch, nn.fill_queues, nn.combine, nn.combine_weights_grad: checks,
/// factors, gradients, local ops, and how many slots are taken. Filling and
/// combining are each other's transpose, by the slots that dispatch dealt out.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNQueueParts.h"
#include "NN/NNVerify.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

/// Checks `slots` of queues of a type that does not say how many slots there
/// are.
static LogicalResult verifySlots(Operation *op, Value queues, Value slots) {
  if (tensorType(queues).isDynamicDim(1) && !slots)
    return op->emitOpError()
           << "expected `slots`, as dimension 1 of the queues is dynamic";
  return success();
}

/// The number of slots of queues that are a result.
static OpFoldResult slotsOf(ImplicitLocOpBuilder &b, Value queues,
                            Value slots) {
  RankedTensorType type = tensorType(queues);
  if (type.isDynamicDim(1))
    return slots;
  return b.getIndexAttr(type.getDimSize(1));
}

/// Builds the local op, which is told where its slots start. `global` are the
/// queues of the op that it is made from.
template <class Op>
static Op buildLocalOp(Op op, OpBuilder &builder, ValueRange operands,
                       TypeRange types, Value global) {
  Value start = slotStart(builder, op.getLoc(), global);
  auto local = cast<Op>(cloneWithTypes(builder, op, operands, types));
  if (start)
    local.getStartMutable().assign(start);
  return local;
}

/// The same for an op that makes queues, which may have to be told how many
/// slots there are.
template <class Op>
static Op buildLocalFill(Op op, OpBuilder &builder, ValueRange operands,
                         TypeRange types,
                         ArrayRef<SmallVector<OpFoldResult>> sizes) {
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  bool isOpen = cast<RankedTensorType>(types[0]).isDynamicDim(1);
  Value slots = isOpen ? indexValue(b, sizes[0][1]) : Value();
  Op local = buildLocalOp(op, builder, operands, types, op.getQueues());
  if (slots)
    local.getSlotsMutable().assign(slots);
  return local;
}

/// The numbers of taken slots of the queues that `op` makes.
template <class Op>
static Operation *buildCounts(OpBuilder &builder, Op op, int64_t parts) {
  RankedTensorType queues = tensorType(op.getQueues());
  auto type = RankedTensorType::get({queues.getDimSize(0), parts},
                                    builder.getI64Type());
  return CountQueuesOp::create(builder, op.getLoc(), type, op.getIds(),
                               op.getSlot(), queues.getDimSize(1), parts,
                               /*start=*/Value());
}

/// Every choice has a slot, if there are as many.
template <class Op> static int64_t balancedRows(Op op) {
  RankedTensorType queues = tensorType(op.getQueues());
  return std::min(tensorType(op.getIds()).getNumElements(),
                  queues.getDimSize(0) * queues.getDimSize(1));
}

//===----------------------------------------------------------------------===//
// nn.dispatch
//===----------------------------------------------------------------------===//

static QueueValues valuesOf(DispatchOp op) {
  return {op.getQueues(), op.getInput(), op.getIds(), op.getSlot(), Value()};
}

LogicalResult DispatchOp::verify() {
  if (failed(verifyQueues(*this, valuesOf(*this))))
    return failure();
  return verifySlots(*this, getQueues(), getSlots());
}

FailureOr<OpFactors> DispatchOp::getFactors() {
  QueueFactors queue(valuesOf(*this));
  // Split, it would make partial sums of the slots, which have no H.
  queue.factors.factors[2].splittable = false;
  queue.factors.operands = {queue.tokens(), queue.choices()};
  queue.factors.operands.resize(getNumOperands());
  queue.factors.results = {queue.queues(), queue.choices()};
  return queue.factors;
}

Operation *DispatchOp::buildLocal(OpBuilder &builder, ValueRange operands,
                                  TypeRange types,
                                  ArrayRef<SmallVector<OpFoldResult>> sizes) {
  return buildLocalFill(*this, builder, operands, types, sizes);
}

FailureOr<SmallVector<Value>> DispatchOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  QueueValues values{Value(), getInput(), getIds(), Value(), Value()};
  RankedTensorType type = tensorType(getQueues());
  QueueBuilder queue(b, values, getStart(), slotsOf(b, getQueues(), getSlots()),
                     type.getDimSize(0));
  values.slot = queue.dealSlots();
  return SmallVector<Value>{queue.fill(type.getElementType()), values.slot};
}

LogicalResult
DispatchOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                          ArrayRef<Type> wanted,
                          SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(getNumOperands(), Value());
  if (resultGradients[0] && wanted[0])
    operandGradients[0] = CombineOp::create(
        builder, getLoc(), getInput().getType(), resultGradients[0], getIds(),
        getSlot(), /*weights=*/Value(), getStart());
  return success();
}

Operation *DispatchOp::buildUsedRows(OpBuilder &builder, int64_t parts) {
  return buildCounts(builder, *this, parts);
}

int64_t DispatchOp::getBalancedRows() { return balancedRows(*this); }

//===----------------------------------------------------------------------===//
// nn.fill_queues
//===----------------------------------------------------------------------===//

static QueueValues valuesOf(FillQueuesOp op) {
  return {op.getQueues(), op.getInput(), op.getIds(), op.getSlot(),
          op.getWeights()};
}

LogicalResult FillQueuesOp::verify() {
  if (failed(verifyQueues(*this, valuesOf(*this))))
    return failure();
  return verifySlots(*this, getQueues(), getSlots());
}

FailureOr<OpFactors> FillQueuesOp::getFactors() {
  QueueFactors queue(valuesOf(*this));
  queue.factors.operands = {queue.tokens(), queue.choices(), queue.choices()};
  queue.factors.linear = {{0}};
  if (getWeights()) {
    queue.factors.operands.push_back(queue.choices());
    queue.factors.linear.push_back({3});
  }
  queue.factors.operands.resize(getNumOperands());
  queue.factors.results = {queue.queues()};
  return queue.factors;
}

Operation *FillQueuesOp::buildLocal(OpBuilder &builder, ValueRange operands,
                                    TypeRange types,
                                    ArrayRef<SmallVector<OpFoldResult>> sizes) {
  return buildLocalFill(*this, builder, operands, types, sizes);
}

FailureOr<SmallVector<Value>> FillQueuesOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  QueueValues values = valuesOf(*this);
  RankedTensorType type = tensorType(getQueues());
  QueueBuilder queue(b, values, getStart(), slotsOf(b, getQueues(), getSlots()),
                     type.getDimSize(0));
  return SmallVector<Value>{queue.fill(type.getElementType())};
}

LogicalResult
FillQueuesOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                            ArrayRef<Type> wanted,
                            SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(getNumOperands(), Value());
  Value grad = resultGradients[0];
  if (!grad)
    return success();
  if (wanted[0])
    operandGradients[0] =
        CombineOp::create(builder, getLoc(), getInput().getType(), grad,
                          getIds(), getSlot(), getWeights(), getStart());
  if (getWeights() && wanted[3])
    operandGradients[3] = CombineWeightsGradOp::create(
        builder, getLoc(), getWeights().getType(), grad, getIds(), getSlot(),
        getInput(), getStart());
  return success();
}

Operation *FillQueuesOp::buildUsedRows(OpBuilder &builder, int64_t parts) {
  return buildCounts(builder, *this, parts);
}

int64_t FillQueuesOp::getBalancedRows() { return balancedRows(*this); }

//===----------------------------------------------------------------------===//
// nn.combine
//===----------------------------------------------------------------------===//

static QueueValues valuesOf(CombineOp op) {
  return {op.getQueues(), op.getResult(), op.getIds(), op.getSlot(),
          op.getWeights()};
}

LogicalResult CombineOp::verify() {
  return verifyQueues(*this, valuesOf(*this));
}

FailureOr<OpFactors> CombineOp::getFactors() {
  QueueFactors queue(valuesOf(*this));
  queue.factors.operands = {queue.queues(), queue.choices(), queue.choices()};
  queue.factors.linear = {{0}};
  if (getWeights()) {
    queue.factors.operands.push_back(queue.choices());
    queue.factors.linear.push_back({3});
  }
  queue.factors.operands.resize(getNumOperands());
  queue.factors.results = {queue.tokens()};
  return queue.factors;
}

Operation *CombineOp::buildLocal(OpBuilder &builder, ValueRange operands,
                                 TypeRange types,
                                 ArrayRef<SmallVector<OpFoldResult>>) {
  return buildLocalOp(*this, builder, operands, types, getQueues());
}

FailureOr<SmallVector<Value>> CombineOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  QueueValues values = valuesOf(*this);
  QueueBuilder queue(b, values, getStart(), dimSize(b, getQueues(), 1),
                     tensorType(getQueues()).getDimSize(0));
  return SmallVector<Value>{
      queue.combine(tensorType(getResult()).getElementType())};
}

LogicalResult
CombineOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                         ArrayRef<Type> wanted,
                         SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(getNumOperands(), Value());
  Value grad = resultGradients[0];
  if (!grad)
    return success();
  RankedTensorType queues = tensorType(getQueues());
  if (wanted[0]) {
    ImplicitLocOpBuilder b(getLoc(), builder);
    Value slots;
    if (queues.isDynamicDim(1))
      slots = indexValue(b, dimSize(b, getQueues(), 1));
    operandGradients[0] = FillQueuesOp::create(
        b, queues, grad, getIds(), getSlot(), getWeights(), getStart(), slots);
  }
  if (getWeights() && wanted[3])
    operandGradients[3] = CombineWeightsGradOp::create(
        builder, getLoc(), getWeights().getType(), getQueues(), getIds(),
        getSlot(), grad, getStart());
  return success();
}

//===----------------------------------------------------------------------===//
// nn.combine_weights_grad
//===----------------------------------------------------------------------===//

static QueueValues valuesOf(CombineWeightsGradOp op) {
  return {op.getQueues(), op.getGrad(), op.getIds(), op.getSlot(),
          op.getResult()};
}

LogicalResult CombineWeightsGradOp::verify() {
  return verifyQueues(*this, valuesOf(*this));
}

FailureOr<OpFactors> CombineWeightsGradOp::getFactors() {
  QueueFactors queue(valuesOf(*this));
  queue.factors.operands = {queue.queues(), queue.choices(), queue.choices(),
                            queue.tokens()};
  queue.factors.operands.resize(getNumOperands());
  queue.factors.results = {queue.choices()};
  queue.factors.linear = {{0}, {3}};
  return queue.factors;
}

Operation *
CombineWeightsGradOp::buildLocal(OpBuilder &builder, ValueRange operands,
                                 TypeRange types,
                                 ArrayRef<SmallVector<OpFoldResult>>) {
  return buildLocalOp(*this, builder, operands, types, getQueues());
}

FailureOr<SmallVector<Value>>
CombineWeightsGradOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  QueueValues values = valuesOf(*this);
  QueueBuilder queue(b, values, getStart(), dimSize(b, getQueues(), 1),
                     tensorType(getQueues()).getDimSize(0));
  return SmallVector<Value>{
      queue.products(tensorType(getResult()).getElementType())};
}
