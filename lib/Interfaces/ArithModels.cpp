//===- ArithModels.cpp - Factors of arith and math ops --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Elementwise arith and math ops on tensors, and constants.
///
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "Parc/Parc.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::parc;

SmallVector<Value> mlir::parc::getDynamicSizes(OpBuilder &builder, Location loc,
                                               Type type,
                                               ArrayRef<OpFoldResult> sizes) {
  SmallVector<Value> dynamic;
  auto shape = cast<ShapedType>(type).getShape();
  for (auto [extent, size] : llvm::zip_equal(shape, sizes))
    if (ShapedType::isDynamic(extent))
      dynamic.push_back(getValueOrCreateConstantIndexOp(builder, loc, size));
  return dynamic;
}

static SmallVector<SmallVector<unsigned, 2>> getLinearSets(Operation *op) {
  using Sets = SmallVector<SmallVector<unsigned, 2>>;
  return TypeSwitch<Operation *, Sets>(op)
      .Case<arith::AddFOp, arith::SubFOp, arith::AddIOp, arith::SubIOp>(
          [](Operation *) { return Sets{{0, 1}}; })
      .Case<arith::MulFOp, arith::MulIOp>(
          [](Operation *) { return Sets{{0}, {1}}; })
      .Case<arith::DivFOp, arith::NegFOp>([](Operation *) { return Sets{{0}}; })
      .Case([](arith::SelectOp) { return Sets{{1, 2}}; })
      .Case([](math::FmaOp) { return Sets{{0, 2}, {1, 2}}; })
      .Default([](Operation *) { return Sets{}; });
}

namespace {

template <typename ConcreteOp>
struct ElementwiseSharding
    : ShardableOpInterface::ExternalModel<ElementwiseSharding<ConcreteOp>,
                                          ConcreteOp> {
  FailureOr<OpFactors> getFactors(Operation *op) const {
    Type type = op->getResultTypes().front();
    if (isa<ShapedType>(type) && !isa<RankedTensorType>(type))
      return op->emitError("expected a ranked tensor or a scalar, got ")
             << type;
    OpFactors factors;
    if (isa<RankedTensorType>(type)) {
      factors = OpFactors::elementwise(op);
    } else {
      factors.operands.resize(op->getNumOperands());
      factors.results.resize(op->getNumResults());
    }
    factors.linear = getLinearSets(op);
    return factors;
  }
};

struct ConstantSharding
    : ShardableOpInterface::ExternalModel<ConstantSharding, arith::ConstantOp> {
  FailureOr<OpFactors> getFactors(Operation *op) const {
    OpFactors factors;
    ValueFactors &dims = factors.results.emplace_back();
    auto type = dyn_cast<RankedTensorType>(op->getResultTypes().front());
    if (!type)
      return factors;
    bool splat = getSplat(op) != nullptr;
    for (int64_t size : type.getShape())
      dims.push_back({factors.add(size, 1, /*splittable=*/splat)});
    return factors;
  }

  Operation *buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                        TypeRange types,
                        ArrayRef<SmallVector<OpFoldResult>> sizes) const {
    auto type = dyn_cast<RankedTensorType>(types.front());
    TypedAttr element = getSplat(op);
    Location loc = op->getLoc();
    if (!type)
      return cloneWithTypes(builder, op, operands, types);
    // Elements that differ are not split; the value says its type as well.
    auto value = cast<arith::ConstantOp>(op).getValue();
    if (!element)
      return arith::ConstantOp::create(
          builder, loc, cast<DenseElementsAttr>(value).reshape(type));
    if (type.hasStaticShape())
      return arith::ConstantOp::create(builder, loc,
                                       DenseElementsAttr::get(type, element));
    Value scalar = arith::ConstantOp::create(builder, loc, element);
    Value empty = tensor::EmptyOp::create(
        builder, loc, type, getDynamicSizes(builder, loc, type, sizes.front()));
    return linalg::FillOp::create(builder, loc, scalar, empty);
  }

private:
  /// The value of all elements of a splat constant, null otherwise.
  static TypedAttr getSplat(Operation *op) {
    auto splat =
        dyn_cast<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue());
    return splat ? dyn_cast<TypedAttr>(splat.getSplatValue<Attribute>())
                 : TypedAttr();
  }
};

/// Gives the model to every op of the list that is elementwise on tensors.
template <typename Op> void attachIfElementwise(MLIRContext *context) {
  if constexpr (Op::template hasTrait<OpTrait::Elementwise>())
    Op::template attachInterface<ElementwiseSharding<Op>>(*context);
}

template <typename... Ops> void attachAll(MLIRContext *context) {
  (attachIfElementwise<Ops>(context), ...);
}

} // namespace

void mlir::parc::attachArithSharding(MLIRContext *context) {
  attachAll<
#define GET_OP_LIST
#include "mlir/Dialect/Arith/IR/ArithOps.cpp.inc"
      >(context);
  arith::ConstantOp::attachInterface<ConstantSharding>(*context);
}

void mlir::parc::attachMathSharding(MLIRContext *context) {
  attachAll<
#define GET_OP_LIST
#include "mlir/Dialect/Math/IR/MathOps.cpp.inc"
      >(context);
}
