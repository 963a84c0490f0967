//===- NNQueueCounts.cpp - How full queues are ----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.count_queues: checks, factors, local op, definition.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNExpertParts.h"
#include "NN/NNQueueParts.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

LogicalResult CountQueuesOp::verify() {
  RankedTensorType ids = tensorType(getIds()), slot = tensorType(getSlot());
  RankedTensorType result = tensorType(getResult());
  if (failed(checkRank(*this, "ids", ids, 3)) ||
      failed(checkInteger(*this, "ids", ids)) ||
      failed(checkInteger(*this, "slot", slot)) ||
      failed(checkShape(*this, "slot", slot, "as ids", ids.getShape())) ||
      failed(checkRank(*this, "counts", result, 2)) ||
      failed(checkInteger(*this, "counts", result)))
    return failure();
  if (static_cast<int64_t>(getSlots()) < 1 ||
      static_cast<int64_t>(getParts()) < 1)
    return emitOpError() << "expected at least 1 slot and 1 part, got "
                         << static_cast<int64_t>(getSlots()) << " and "
                         << static_cast<int64_t>(getParts());
  if (!result.hasStaticShape())
    return emitOpError() << "expected counts of a static shape, got " << result;
  return success();
}

FailureOr<OpFactors> CountQueuesOp::getFactors() {
  RankedTensorType ids = tensorType(getIds());
  OpFactors factors;
  factors.add(ids.getDimSize(0));
  factors.add(ids.getDimSize(1));
  factors.add(ids.getDimSize(2), 1, false);
  factors.add(tensorType(getResult()).getDimSize(0), 1, false);
  factors.operands = {{{0}, {1}, {2}}, {{0}, {1}, {2}}};
  factors.operands.resize(getNumOperands());
  factors.results = {{{3}, {DimCut::Set, {0, 1}}}};
  return factors;
}

Operation *CountQueuesOp::buildLocal(OpBuilder &builder, ValueRange operands,
                                     TypeRange types,
                                     ArrayRef<SmallVector<OpFoldResult>>) {
  Value start = slotStart(builder, getLoc(), getResult());
  auto local =
      cast<CountQueuesOp>(cloneWithTypes(builder, *this, operands, types));
  if (start)
    local.getStartMutable().assign(start);
  return local;
}

/// The part of a slot s: the last p with floor(p * slots / parts) <= s.
static Value partOf(ImplicitLocOpBuilder &b, Value slot, int64_t slots,
                    int64_t parts) {
  Value next = arith::AddIOp::create(b, slot, integerConstant(b, 1));
  Value scaled = arith::MulIOp::create(b, next, integerConstant(b, parts));
  Value before = arith::SubIOp::create(b, scaled, integerConstant(b, 1));
  return arith::DivUIOp::create(b, before, integerConstant(b, slots));
}

FailureOr<SmallVector<Value>> CountQueuesOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  Type integer = b.getI64Type();
  Value first =
      getStart()
          ? arith::IndexCastOp::create(b, integer, getStart()).getResult()
          : integerConstant(b, 0);
  auto slots = static_cast<int64_t>(getSlots());
  auto parts = static_cast<int64_t>(getParts());
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    Value mine = equals(b, x[0], loopIndex(b, 0));
    Value placed = below(b, x[1], integerConstant(b, slots));
    Value wanted = arith::AddIOp::create(b, loopIndex(b, 1), first);
    Value part = partOf(b, x[1], slots, parts);
    return oneIf(b, both(b, both(b, mine, placed), equals(b, part, wanted)));
  };
  Output output{{0, 1}, dimSizes(b, getResult()), integer};
  return SmallVector<Value>{
      reduce(b, 5, {{getIds(), {2, 3, 4}}, {getSlot(), {2, 3, 4}}}, output,
             Combine::Sum, body)};
}
