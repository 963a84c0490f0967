//===- NNActivations.cpp - Activations ------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.silu, nn.gelu and their gradients: checks, factors, definitions.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNBuilders.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

/// The results' definition: one element from the same elements of all operands.
static SmallVector<Value> elementwise(Operation *op, OpBuilder &builder,
                                      Body body) {
  ImplicitLocOpBuilder b(op->getLoc(), builder);
  auto type = cast<RankedTensorType>(op->getResultTypes().front());
  Loops all = loopRange(0, type.getRank());
  SmallVector<Access> inputs;
  for (Value operand : op->getOperands())
    inputs.push_back({operand, all});
  Sizes sizes = dimSizes(b, op->getOperand(0));
  return {map(b, type.getRank(), inputs, {all, sizes, type.getElementType()},
              body)};
}

/// Checks that `grad` and `result` are like `input`.
static LogicalResult verifyGrad(Operation *op, RankedTensorType input,
                                RankedTensorType grad,
                                RankedTensorType result) {
  Type element = input.getElementType();
  return success(
      succeeded(checkFloat(op, "input", input)) &&
      succeeded(checkElement(op, "grad", grad, "the input", element)) &&
      succeeded(
          checkShape(op, "grad", grad, "as the input", input.getShape())) &&
      succeeded(checkElement(op, "result", result, "the input", element)) &&
      succeeded(
          checkShape(op, "result", result, "as the input", input.getShape())));
}

/// Factors of a gradient, which is linear in its second operand.
static OpFactors gradFactors(Operation *op) {
  OpFactors factors = OpFactors::elementwise(op);
  factors.linear = {{1}};
  return factors;
}

//===----------------------------------------------------------------------===//
// nn.silu
//===----------------------------------------------------------------------===//

/// `1 / (1 + exp(-x))`.
static Value sigmoid(ImplicitLocOpBuilder &b, Value x) {
  Value one = floatConstant(b, x.getType(), 1);
  Value power = math::ExpOp::create(b, neg(b, x));
  return div(b, one, add(b, one, power));
}

LogicalResult SiluOp::verify() {
  return checkFloat(*this, "input", tensorType(getInput()));
}

FailureOr<OpFactors> SiluOp::getFactors() {
  return OpFactors::elementwise(*this);
}

FailureOr<SmallVector<Value>> SiluOp::decompose(OpBuilder &builder) {
  return elementwise(*this, builder, [](ImplicitLocOpBuilder &b, ValueRange x) {
    return mul(b, x[0], sigmoid(b, x[0]));
  });
}

LogicalResult SiluOp::buildGradient(OpBuilder &builder,
                                    ValueRange resultGradients,
                                    ArrayRef<Type> wanted,
                                    SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(1, Value());
  if (resultGradients[0] && wanted[0])
    operandGradients[0] =
        SiluGradOp::create(builder, getLoc(), getInput().getType(), getInput(),
                           resultGradients[0]);
  return success();
}

LogicalResult SiluGradOp::verify() {
  return verifyGrad(*this, tensorType(getInput()), tensorType(getGrad()),
                    tensorType(getResult()));
}

FailureOr<OpFactors> SiluGradOp::getFactors() { return gradFactors(*this); }

FailureOr<SmallVector<Value>> SiluGradOp::decompose(OpBuilder &builder) {
  return elementwise(*this, builder, [](ImplicitLocOpBuilder &b, ValueRange x) {
    Value one = floatConstant(b, x[0].getType(), 1);
    Value s = sigmoid(b, x[0]);
    Value slope = add(b, one, mul(b, x[0], sub(b, one, s)));
    return mul(b, x[1], mul(b, s, slope));
  });
}

//===----------------------------------------------------------------------===//
// nn.gelu
//===----------------------------------------------------------------------===//

static constexpr double kSqrt2OverPi = 0.79788456080286535588;
static constexpr double kSqrtHalf = 0.70710678118654752440;
static constexpr double kTwoOverSqrtPi = 1.12837916709551257390;
static constexpr double kCubic = 0.044715;

namespace {
/// What gelu and its slope have in common: `x Phi(x)` with
/// `Phi = (1 + bend(x)) / 2`.
struct Gelu {
  Gelu(ImplicitLocOpBuilder &b, Value x, bool exact)
      : b(b), x(x), exact(exact) {
    if (exact) {
      inner = mul(b, x, constant(kSqrtHalf));
      bend = math::ErfOp::create(b, inner);
      return;
    }
    cubic = mul(b, constant(kCubic), mul(b, x, x));
    inner =
        mul(b, mul(b, constant(kSqrt2OverPi), x), add(b, constant(1), cubic));
    bend = math::TanhOp::create(b, inner);
  }
  Value constant(double value) { return floatConstant(b, x.getType(), value); }
  Value phi() { return mul(b, constant(0.5), add(b, constant(1), bend)); }
  /// The derivative of `bend`.
  Value bendSlope() {
    if (exact) {
      Value bell = math::ExpOp::create(b, neg(b, mul(b, inner, inner)));
      return mul(b, constant(kSqrtHalf),
                 mul(b, constant(kTwoOverSqrtPi), bell));
    }
    Value slope = sub(b, constant(1), mul(b, bend, bend));
    Value innerSlope = mul(b, constant(kSqrt2OverPi),
                           add(b, constant(1), mul(b, constant(3), cubic)));
    return mul(b, slope, innerSlope);
  }
  ImplicitLocOpBuilder &b;
  Value x;
  bool exact;
  Value cubic, inner, bend;
};
} // namespace

LogicalResult GeluOp::verify() {
  return checkFloat(*this, "input", tensorType(getInput()));
}

FailureOr<OpFactors> GeluOp::getFactors() {
  return OpFactors::elementwise(*this);
}

FailureOr<SmallVector<Value>> GeluOp::decompose(OpBuilder &builder) {
  return elementwise(*this, builder,
                     [&](ImplicitLocOpBuilder &b, ValueRange x) {
                       Gelu gelu(b, x[0], getExact());
                       return mul(b, x[0], gelu.phi());
                     });
}

LogicalResult GeluOp::buildGradient(OpBuilder &builder,
                                    ValueRange resultGradients,
                                    ArrayRef<Type> wanted,
                                    SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(1, Value());
  if (resultGradients[0] && wanted[0])
    operandGradients[0] =
        GeluGradOp::create(builder, getLoc(), getInput().getType(), getInput(),
                           resultGradients[0], getExact());
  return success();
}

LogicalResult GeluGradOp::verify() {
  return verifyGrad(*this, tensorType(getInput()), tensorType(getGrad()),
                    tensorType(getResult()));
}

FailureOr<OpFactors> GeluGradOp::getFactors() { return gradFactors(*this); }

FailureOr<SmallVector<Value>> GeluGradOp::decompose(OpBuilder &builder) {
  return elementwise(
      *this, builder, [&](ImplicitLocOpBuilder &b, ValueRange x) {
        Gelu gelu(b, x[0], getExact());
        Value half = gelu.constant(0.5);
        Value slope =
            add(b, gelu.phi(), mul(b, half, mul(b, x[0], gelu.bendSlope())));
        return mul(b, x[1], slope);
      });
}
