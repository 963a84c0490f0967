//===- NNLoss.cpp - The loss ----------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.softmax_cross_entropy and its gradient: checks, gradient, definitions.
/// They are partitioned by their definitions, so each reduction over the
/// vocabulary is an op of its own.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNBuilders.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

/// Checks logits, labels and the logsumexp a row.
static LogicalResult verifyRows(Operation *op, Value logits, Value labels,
                                Value logSumExp) {
  RankedTensorType type = tensorType(logits), labelType = tensorType(labels);
  RankedTensorType rowType = tensorType(logSumExp);
  if (failed(checkMinRank(op, "logits", type, 1)) ||
      failed(checkFloat(op, "logits", type)) ||
      failed(checkInteger(op, "labels", labelType)))
    return failure();
  ArrayRef<int64_t> rows = type.getShape().drop_back();
  StringRef like = "the logits' leading dimensions";
  Type element = type.getElementType();
  return success(succeeded(checkShape(op, "labels", labelType, like, rows)) &&
                 succeeded(checkElement(op, "log_sum_exp", rowType,
                                        "the logits", element)) &&
                 succeeded(checkShape(op, "log_sum_exp", rowType, like, rows)));
}

/// Checks a scalar of the logits' element type.
static LogicalResult verifyScalar(Operation *op, StringRef name, Value scalar,
                                  Value logits) {
  RankedTensorType type = tensorType(scalar);
  if (failed(checkRank(op, name, type, 0)))
    return failure();
  return checkElement(op, name, type, "the logits",
                      tensorType(logits).getElementType());
}

/// Whether the label is the entry of the vocabulary that loop `loop` is at.
static Value isTarget(ImplicitLocOpBuilder &b, Value label, unsigned loop) {
  Value entry = linalg::IndexOp::create(b, loop);
  entry = arith::IndexCastOp::create(b, b.getI64Type(), entry);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, label, entry);
}

//===----------------------------------------------------------------------===//
// nn.softmax_cross_entropy
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxCrossEntropyOp::verify() {
  if (failed(verifyRows(*this, getLogits(), getLabels(), getLogSumExp())) ||
      failed(verifyScalar(*this, "loss", getLoss(), getLogits())))
    return failure();
  return verifyScalar(*this, "count", getCount(), getLogits());
}

namespace {
/// The rows of logits, and what each has one element of.
struct LossRows {
  LossRows(ImplicitLocOpBuilder &b, Value logits) : b(b), logits(logits) {
    RankedTensorType type = tensorType(logits);
    last = type.getRank() - 1;
    all = loopRange(0, last + 1);
    rows = loopRange(0, last);
    Sizes sizes = dimSizes(b, logits);
    sizes.pop_back();
    compute = computeType(type.getElementType());
    output = {rows, sizes, compute};
  }
  /// Reduces each row of logits, with other inputs that have one element a row.
  Value reduceRow(ArrayRef<Value> perRow, Combine combine, Body body) {
    SmallVector<Access> inputs{{logits, all}};
    for (Value value : perRow)
      inputs.push_back({value, rows});
    return reduce(b, last + 1, inputs, output, combine, body);
  }
  /// Sums one element a row to a scalar.
  Value sumRows(ArrayRef<Value> perRow, Body body) {
    SmallVector<Access> inputs;
    for (Value value : perRow)
      inputs.push_back({value, rows});
    return reduce(b, last, inputs, {{}, {}, compute}, Combine::Sum, body);
  }
  ImplicitLocOpBuilder &b;
  Value logits;
  unsigned last;
  Loops all, rows;
  Type compute;
  Output output;
};
} // namespace

FailureOr<SmallVector<Value>>
SoftmaxCrossEntropyOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  LossRows rows(b, getLogits());
  Type compute = rows.compute;
  Value maxima =
      rows.reduceRow({}, Combine::Max,
                     [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
  Value sums =
      rows.reduceRow({maxima}, Combine::Sum,
                     [](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
                       return math::ExpOp::create(b, sub(b, x[0], x[1]));
                     });
  Value targets = rows.reduceRow(
      {getLabels()}, Combine::Sum, [&](ImplicitLocOpBuilder &b, ValueRange x) {
        Value zero = floatConstant(b, compute, 0);
        return select(b, isTarget(b, x[1], rows.last), x[0], zero);
      });
  Value logSumExp = map(b, rows.last, {{maxima, rows.rows}, {sums, rows.rows}},
                        rows.output, [](ImplicitLocOpBuilder &b, ValueRange x) {
                          return add(b, x[0], math::LogOp::create(b, x[1]));
                        });
  Value loss = rows.sumRows({logSumExp, targets, getLabels()},
                            [&](ImplicitLocOpBuilder &b, ValueRange x) {
                              Value zero = floatConstant(b, compute, 0);
                              return select(b, isValid(b, x[2]),
                                            sub(b, x[0], x[1]), zero);
                            });
  Value count =
      rows.sumRows({getLabels()}, [&](ImplicitLocOpBuilder &b, ValueRange x) {
        return oneIf(b, isValid(b, x[0]), compute);
      });
  Type element = tensorType(getLogits()).getElementType();
  SmallVector<Value> results{loss, count, logSumExp};
  for (Value &result : results)
    result = storedAs(b, result, element);
  return results;
}

LogicalResult SoftmaxCrossEntropyOp::buildGradient(
    OpBuilder &builder, ValueRange resultGradients, ArrayRef<Type> wanted,
    SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(2, Value());
  if (resultGradients[2])
    return emitOpError() << "has no gradient for log_sum_exp, which only its "
                            "own gradient reads";
  // The number of valid tokens is constant, so only the loss counts.
  if (resultGradients[0] && wanted[0])
    operandGradients[0] = SoftmaxCrossEntropyGradOp::create(
        builder, getLoc(), getLogits().getType(), getLogits(), getLabels(),
        getLogSumExp(), resultGradients[0]);
  return success();
}

//===----------------------------------------------------------------------===//
// nn.softmax_cross_entropy_grad
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxCrossEntropyGradOp::verify() {
  if (failed(verifyRows(*this, getLogits(), getLabels(), getLogSumExp())) ||
      failed(verifyScalar(*this, "grad", getGrad(), getLogits())))
    return failure();
  RankedTensorType result = tensorType(getResult());
  RankedTensorType logits = tensorType(getLogits());
  if (failed(checkElement(*this, "result", result, "the logits",
                          logits.getElementType())))
    return failure();
  return checkShape(*this, "result", result, "as the logits",
                    logits.getShape());
}

FailureOr<SmallVector<Value>>
SoftmaxCrossEntropyGradOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  LossRows rows(b, getLogits());
  Type compute = rows.compute;
  Output output{rows.all, dimSizes(b, getLogits()),
                tensorType(getLogits()).getElementType()};
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) {
    Value zero = floatConstant(b, compute, 0);
    Value one = floatConstant(b, compute, 1);
    Value probability = math::ExpOp::create(b, sub(b, x[0], x[2]));
    Value target = select(b, isTarget(b, x[1], rows.last), one, zero);
    Value slope = mul(b, sub(b, probability, target), x[3]);
    return select(b, isValid(b, x[1]), slope, zero);
  };
  return SmallVector<Value>{map(b, rows.last + 1,
                                {{getLogits(), rows.all},
                                 {getLabels(), rows.rows},
                                 {getLogSumExp(), rows.rows},
                                 {getGrad(), {}}},
                                output, body)};
}
