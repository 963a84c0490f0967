//===- ElementwiseGradients.cpp - Gradients of arith and math ops ---------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The derivative of each elementwise float op, once for scalars (bodies of
/// linalg ops) and tensors alike. Derivatives use the op's own result where
/// that saves a transcendental function.
///
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "Parc/Parc.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "parc/Interfaces/Casts.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::parc;

namespace {

/// Builds the gradients of the operands of one op.
class Rule {
public:
  Rule(OpBuilder &builder, Operation *op, Value gradient, ArrayRef<bool> wanted,
       SmallVectorImpl<Value> &gradients)
      : builder(builder), op(op), loc(op->getLoc()), g(gradient),
        wanted(wanted), gradients(gradients) {}

  LogicalResult apply();

private:
  using Thunk = function_ref<Value()>;

  /// Pushes the gradient of the next operand, built only where it is wanted.
  LogicalResult push(Thunk thunk) {
    gradients.push_back(wanted[gradients.size()] ? thunk() : Value());
    return success();
  }
  LogicalResult push(Thunk first, Thunk second) {
    (void)push(first);
    return push(second);
  }

  Value x(unsigned i = 0) { return op->getOperand(i); }
  Value y() { return op->getResult(0); }
  Value mul(Value a, Value b) {
    return arith::MulFOp::create(builder, loc, a, b);
  }
  Value div(Value a, Value b) {
    return arith::DivFOp::create(builder, loc, a, b);
  }
  Value add(Value a, Value b) {
    return arith::AddFOp::create(builder, loc, a, b);
  }
  Value sub(Value a, Value b) {
    return arith::SubFOp::create(builder, loc, a, b);
  }
  Value neg(Value a) { return arith::NegFOp::create(builder, loc, a); }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
  Value constant(double value);
  LogicalResult arithmetic();
  LogicalResult function();
  LogicalResult extremum(arith::CmpFPredicate firstWins);

  OpBuilder &builder;
  Operation *op;
  Location loc;
  Value g;
  ArrayRef<bool> wanted;
  SmallVectorImpl<Value> &gradients;
};

} // namespace

/// A constant of the type of the gradient.
Value Rule::constant(double value) {
  Type type = g.getType();
  TypedAttr attr = builder.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto shaped = dyn_cast<ShapedType>(type))
    attr = DenseElementsAttr::get(shaped, attr);
  return arith::ConstantOp::create(builder, loc, attr);
}

/// A subgradient: all of it to the operand that won, the first one in a tie.
LogicalResult Rule::extremum(arith::CmpFPredicate firstWins) {
  Value first = arith::CmpFOp::create(builder, loc, firstWins, x(0), x(1));
  Value zero = constant(0.0);
  return push([&] { return select(first, g, zero); },
              [&] { return select(first, zero, g); });
}

LogicalResult Rule::arithmetic() {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::AddFOp) {
        return push([&] { return g; }, [&] { return g; });
      })
      .Case([&](arith::SubFOp) {
        return push([&] { return g; }, [&] { return neg(g); });
      })
      .Case([&](arith::MulFOp) {
        return push([&] { return mul(g, x(1)); }, [&] { return mul(g, x(0)); });
      })
      .Case([&](arith::DivFOp) {
        return push([&] { return div(g, x(1)); },
                    [&] { return neg(div(mul(g, y()), x(1))); });
      })
      .Case([&](arith::NegFOp) { return push([&] { return neg(g); }); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>(
          [&](Operation *) { return extremum(arith::CmpFPredicate::OGE); })
      .Case<arith::MinimumFOp, arith::MinNumFOp>(
          [&](Operation *) { return extremum(arith::CmpFPredicate::OLE); })
      .Case([&](arith::SelectOp) {
        gradients.push_back({});
        Value zero = constant(0.0);
        return push([&] { return select(x(0), g, zero); },
                    [&] { return select(x(0), zero, g); });
      })
      .Case([&](arith::ExtFOp) {
        return push([&]() -> Value {
          return arith::TruncFOp::create(builder, loc, x().getType(), g);
        });
      })
      .Case([&](arith::TruncFOp) {
        return push([&]() -> Value {
          return arith::ExtFOp::create(builder, loc, x().getType(), g);
        });
      })
      .Default([](Operation *) { return failure(); });
}

LogicalResult Rule::function() {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](math::ExpOp) { return push([&] { return mul(g, y()); }); })
      .Case([&](math::LogOp) { return push([&] { return div(g, x()); }); })
      .Case([&](math::TanhOp) {
        return push([&] { return mul(g, sub(constant(1.0), mul(y(), y()))); });
      })
      .Case([&](math::SqrtOp) {
        return push([&] { return div(g, add(y(), y())); });
      })
      .Case([&](math::RsqrtOp) {
        // (x^-1/2)' = -x^-1/2 / 2x.
        return push([&] { return neg(div(mul(g, y()), add(x(), x()))); });
      })
      .Case([&](math::SinOp) {
        return push(
            [&] { return mul(g, math::CosOp::create(builder, loc, x())); });
      })
      .Case([&](math::CosOp) {
        return push([&] {
          return neg(mul(g, math::SinOp::create(builder, loc, x())));
        });
      })
      .Case([&](math::ErfOp) {
        // erf' = 2/sqrt(pi) exp(-x^2).
        return push([&] {
          Value bell = math::ExpOp::create(builder, loc, neg(mul(x(), x())));
          return mul(g, mul(constant(2.0 / std::sqrt(M_PI)), bell));
        });
      })
      .Case([&](math::AbsFOp) {
        return push([&] {
          Value positive = arith::CmpFOp::create(
              builder, loc, arith::CmpFPredicate::OGE, x(), constant(0.0));
          return select(positive, g, neg(g));
        });
      })
      .Case([&](math::FmaOp) {
        (void)push([&] { return mul(g, x(1)); }, [&] { return mul(g, x(0)); });
        return push([&] { return g; });
      })
      .Default([](Operation *) { return failure(); });
}

LogicalResult Rule::apply() {
  return isa<math::MathDialect>(op->getDialect()) ? function() : arithmetic();
}

template <typename Visitor> static void visitDifferentiable(Visitor visit) {
  visit.template operator()<
      arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp,
      arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp, arith::MinNumFOp,
      arith::SelectOp, arith::ExtFOp, arith::TruncFOp, math::ExpOp, math::LogOp,
      math::TanhOp, math::SqrtOp, math::RsqrtOp, math::SinOp, math::CosOp,
      math::ErfOp, math::AbsFOp, math::FmaOp>();
}

LogicalResult
mlir::parc::buildElementwiseGradient(OpBuilder &builder, Operation *op,
                                     Value gradient, ArrayRef<bool> wanted,
                                     SmallVectorImpl<Value> &gradients) {
  return Rule(builder, op, gradient, wanted, gradients).apply();
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

namespace {

template <typename ConcreteOp>
struct ElementwiseGradient
    : DifferentiableOpInterface::ExternalModel<ElementwiseGradient<ConcreteOp>,
                                               ConcreteOp> {
  LogicalResult buildGradient(Operation *op, OpBuilder &builder,
                              ValueRange resultGradients, ArrayRef<Type> wanted,
                              SmallVectorImpl<Value> &gradients) const {
    SmallVector<bool> mask;
    for (auto [want, type] : llvm::zip_equal(wanted, op->getOperandTypes()))
      mask.push_back(want && isa<FloatType>(getElementTypeOrSelf(type)));
    Value gradient = resultGradients.front();
    if (!gradient || !llvm::is_contained(mask, true)) {
      gradients.append(op->getNumOperands(), Value());
      return success();
    }
    auto shaped = dyn_cast<ShapedType>(gradient.getType());
    if (shaped && !shaped.hasStaticShape())
      return op->emitError("expected a static shape to differentiate, got ")
             << shaped;
    return buildElementwiseGradient(builder, op, gradient, mask, gradients);
  }
};

/// The gradient of a conversion is converted to what is wanted, if at all.
template <typename ConcreteOp>
struct CastGradient
    : DifferentiableOpInterface::ExternalModel<CastGradient<ConcreteOp>,
                                               ConcreteOp> {
  bool onlyMoves(Operation *) const { return true; }

  LogicalResult buildGradient(Operation *op, OpBuilder &builder,
                              ValueRange resultGradients, ArrayRef<Type> wanted,
                              SmallVectorImpl<Value> &gradients) const {
    Value gradient = resultGradients.front();
    gradients.push_back(
        gradient && wanted[0]
            ? withElements(builder, op->getLoc(), gradient, wanted[0])
            : Value());
    return success();
  }
};

/// A value that no float operand goes into has no gradients to give.
template <typename ConcreteOp>
struct NoGradient
    : DifferentiableOpInterface::ExternalModel<NoGradient<ConcreteOp>,
                                               ConcreteOp> {
  LogicalResult buildGradient(Operation *op, OpBuilder &, ValueRange,
                              ArrayRef<Type>,
                              SmallVectorImpl<Value> &gradients) const {
    gradients.append(op->getNumOperands(), Value());
    return success();
  }
};

template <typename... Ops> void attachNone(MLIRContext *context) {
  (Ops::template attachInterface<NoGradient<Ops>>(*context), ...);
}

template <typename DialectT> struct AttachRules {
  MLIRContext *context;
  template <typename... Ops> void operator()() { (attach<Ops>(), ...); }
  template <typename Op> void attach() {
    constexpr bool isCast =
        llvm::is_one_of<Op, arith::ExtFOp, arith::TruncFOp>::value;
    using Model =
        std::conditional_t<isCast, CastGradient<Op>, ElementwiseGradient<Op>>;
    if (Op::getOperationName().starts_with(DialectT::getDialectNamespace()))
      Op::template attachInterface<Model>(*context);
  }
};

} // namespace

void mlir::parc::attachArithGradients(MLIRContext *context) {
  visitDifferentiable(AttachRules<arith::ArithDialect>{context});
  attachNone<arith::ConstantOp, arith::CmpFOp, arith::CmpIOp, arith::SIToFPOp,
             arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp>(context);
}

void mlir::parc::attachMathGradients(MLIRContext *context) {
  visitDifferentiable(AttachRules<math::MathDialect>{context});
}
