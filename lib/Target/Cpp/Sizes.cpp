//===- Sizes.cpp - Sizes known before values
//------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Follows an open size back to the input, parameter or part that it is: a
/// receiver has to know it before the sender's message.
///
//===----------------------------------------------------------------------===//

#include "Program.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::cpp;

namespace {

class SizeFinder {
public:
  explicit SizeFinder(const ProgramNames &names) : names(names) {}

  std::string find(Value value, int64_t dim);

private:
  std::string findArgument(BlockArgument argument, int64_t dim);
  std::string findResult(OpResult result, int64_t dim);
  std::string findIndex(Value index);
  std::string findOpen(Value value, int64_t dim, ValueRange open);
  std::string part(ArrayAttr axes, int64_t extent, int64_t grain);
  std::string findMoved(Operation *op, int64_t dim);
  rt::RoleOp roleOf(int64_t stage);

  const ProgramNames &names;
};

} // namespace

std::string SizeFinder::part(ArrayAttr axes, int64_t extent, int64_t grain) {
  return "c.part_size(" + names.axes(axes) + ", " + std::to_string(extent) +
         ", " + std::to_string(grain) + ")";
}

std::string SizeFinder::find(Value value, int64_t dim) {
  Type type = value.getType();
  if (auto layers = dyn_cast<rt::LayersType>(type))
    type = layers.getElement();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return "";
  if (!tensor.isDynamicDim(dim))
    return std::to_string(tensor.getDimSize(dim));
  if (auto argument = dyn_cast<BlockArgument>(value))
    return findArgument(argument, dim);
  return findResult(cast<OpResult>(value), dim);
}

rt::RoleOp SizeFinder::roleOf(int64_t stage) {
  for (rt::RoleOp role : names.roles)
    if (llvm::is_contained(role.getStages(), stage))
      return role;
  return nullptr;
}

std::string SizeFinder::findArgument(BlockArgument argument, int64_t dim) {
  Operation *parent = argument.getOwner()->getParentOp();
  auto number = static_cast<size_t>(argument.getArgNumber());
  if (auto stack = dyn_cast<rt::StackOp>(parent))
    return number == 0 ? "" : find(stack.getOperand(number - 1), dim);
  auto role = dyn_cast<rt::RoleOp>(parent);
  if (!role)
    return "";
  size_t inputs = role.getInputs().size();
  if (number < inputs)
    return part(
        cast<ArrayAttr>(cast<ArrayAttr>(role.getInputAxes()[number])[dim]),
        dim == 0 ? names.batch : names.seq,
        cast<DenseI64ArrayAttr>(role.getInputGrains()[number])[dim]);
  Region *region = argument.getOwner()->getParent();
  number -= inputs;
  if (region == &role.getForward()) {
    rt::RoleOp from = roleOf(role.getStages().front() - 1);
    return from ? find(from.getForward().front().getTerminator()->getOperand(
                           number),
                       dim)
                : "";
  }
  if (region != &role.getBackward())
    return "";
  Operation *forward = role.getForward().front().getTerminator();
  size_t saved = forward->getNumOperands() - role.getForwardSends();
  size_t received = argument.getOwner()->getNumArguments() - inputs - saved;
  if (number >= received)
    return find(forward->getOperand(role.getForwardSends() + number - received),
                dim);
  rt::RoleOp from = roleOf(role.getStages().back() + 1);
  return from ? find(from.getBackward().front().getTerminator()->getOperand(
                         number),
                     dim)
              : "";
}

std::string SizeFinder::findIndex(Value index) {
  Operation *op = index.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantIndexOp>(op))
    return std::to_string(constant.value());
  if (auto part = dyn_cast_or_null<rt::PartSizeOp>(op))
    return this->part(part.getAxes(), part.getExtent(), part.getGrain());
  auto dim = dyn_cast_or_null<tensor::DimOp>(op);
  std::optional<int64_t> at =
      dim ? dim.getConstantIndex() : std::optional<int64_t>();
  return at ? find(dim.getSource(), *at) : "";
}

/// The operand that is the size of an open dimension.
std::string SizeFinder::findOpen(Value value, int64_t dim, ValueRange open) {
  auto type = cast<RankedTensorType>(value.getType());
  size_t before =
      llvm::count_if(type.getShape().take_front(dim), ShapedType::isDynamic);
  return findIndex(open[before]);
}

/// Results of collectives.
std::string SizeFinder::findMoved(Operation *op, int64_t dim) {
  auto number = [&](StringRef name) {
    return op->getAttrOfType<IntegerAttr>(name).getInt();
  };
  if (auto move = dyn_cast<rt::AllToAllOp>(op)) {
    if (dim == number("split_dim")) {
      SmallVector<Attribute> axes(move.getSplitOuter().getValue());
      llvm::append_range(axes, move.getAxes());
      return part(ArrayAttr::get(op->getContext(), axes),
                  number("split_extent"), number("split_grain"));
    }
    return dim == number("gather_dim")
               ? part(move.getGatherOuter(), number("gather_extent"),
                      number("gather_grain"))
               : find(op->getOperand(0), dim);
  }
  if (dim != number("dim"))
    return find(op->getOperand(0), dim);
  // Of each transfer, another coordinate's part.
  if (isa<rt::ShiftOp>(op))
    return "";
  // The length of a list of elements.
  if (op->getNumOperands() > 1)
    return isa<rt::AllGatherOp>(op) ? findIndex(op->getOperand(1)) : "";
  auto outer = op->getAttrOfType<ArrayAttr>("outer");
  SmallVector<Attribute> axes(outer.begin(), outer.end());
  if (isa<rt::ReduceScatterOp>(op))
    llvm::append_range(axes, op->getAttrOfType<ArrayAttr>("axes"));
  return part(ArrayAttr::get(op->getContext(), axes), number("extent"),
              number("grain"));
}

std::string SizeFinder::findResult(OpResult result, int64_t dim) {
  Operation *op = result.getOwner();
  if (auto map = dyn_cast<rt::MapOp>(op))
    return findOpen(result, dim, map.getExtents());
  if (auto reduce = dyn_cast<rt::ReduceOp>(op))
    return findOpen(result, dim, reduce.getExtents());
  if (auto scatter = dyn_cast<rt::ScatterRowsOp>(op))
    return findOpen(result, dim, scatter.getExtents());
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return findOpen(result, dim, expand.getOutputShape());
  if (isa<rt::AllReduceOp, tensor::CastOp>(op))
    return find(op->getOperand(0), dim);
  if (isa<rt::AllGatherOp, rt::ReduceScatterOp, rt::AllToAllOp, rt::ShiftOp>(
          op))
    return findMoved(op, dim);
  if (auto contract = dyn_cast<rt::ContractOp>(op)) {
    char letter = contract.getCDims()[dim];
    size_t at = contract.getADims().find(letter);
    return at != StringRef::npos
               ? find(contract.getA(), static_cast<int64_t>(at))
               : find(contract.getB(),
                      static_cast<int64_t>(contract.getBDims().find(letter)));
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    std::string product;
    ReassociationIndices members = collapse.getReassociationIndices()[dim];
    for (int64_t from : members) {
      std::string size = find(collapse.getSrc(), from);
      if (size.empty())
        return "";
      product += (product.empty() ? "" : " * ") + size;
    }
    return product;
  }
  if (auto wait = dyn_cast<rt::WaitOp>(op)) {
    unsigned number = result.getResultNumber();
    auto start = wait.getPending()[number].getDefiningOp<rt::StartOp>();
    return find(start.getBlock()->getTerminator()->getOperand(number), dim);
  }
  if (auto stack = dyn_cast<rt::StackOp>(op))
    return find(stack.getBody().front().getTerminator()->getOperand(
                    result.getResultNumber()),
                dim);
  if (auto load = dyn_cast<rt::LoadOp>(op))
    for (rt::ParamOp param : names.params)
      if (param.getSymName() == load.getParam())
        return part(cast<ArrayAttr>(param.getAxes()[dim]),
                    cast<RankedTensorType>(param.getType()).getDimSize(dim),
                    param.getGrains()[dim]);
  return "";
}

std::string cpp::sizeText(const ProgramNames &names, Value value, int64_t dim) {
  return SizeFinder(names).find(value, dim);
}
