//===- Extents.cpp - Largest extents of local values ----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The walk to where a size comes from.
///
//===----------------------------------------------------------------------===//

#include "Extents.h"
#include "parc/Pipeline/Part.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

/// Chains of values are as long as a model's body; this only stops cycles.
static constexpr unsigned kMaxDepth = 2000;

static RankedTensorType tensorType(Value value) {
  Type type = value.getType();
  if (auto layers = dyn_cast<LayersType>(type))
    type = layers.getElement();
  return dyn_cast<RankedTensorType>(type);
}

int64_t Extents::largestPart(int64_t size, int64_t grain,
                             ArrayAttr over) const {
  int64_t parts = 1;
  for (StringRef axis : over.getAsValueRange<StringAttr>())
    parts *= axes.of(axis);
  return maxPartSize(size / grain, parts) * grain;
}

std::optional<int64_t> Extents::elements(Value value) {
  RankedTensorType type = tensorType(value);
  if (!type)
    return std::nullopt;
  int64_t product = 1;
  for (unsigned dim = 0; dim < type.getRank(); ++dim) {
    std::optional<int64_t> size = extent(value, dim);
    if (!size || llvm::MulOverflow(product, *size, product))
      return std::nullopt;
  }
  return product;
}

std::optional<int64_t> Extents::extent(Value value, unsigned dim,
                                       unsigned depth) {
  RankedTensorType type = tensorType(value);
  if (!type || dim >= type.getRank() || depth > kMaxDepth)
    return std::nullopt;
  if (!type.isDynamicDim(dim))
    return type.getDimSize(dim);
  auto found = known.find({value, dim});
  if (found != known.end())
    return found->second;
  // A value that is being looked for tells nothing about itself.
  known[{value, dim}] = std::nullopt;
  std::optional<int64_t> size;
  if (auto argument = dyn_cast<BlockArgument>(value))
    size = ofArgument(argument, dim, depth + 1);
  else
    size = ofResult(cast<OpResult>(value), dim, depth + 1);
  known[{value, dim}] = size;
  return size;
}

std::optional<int64_t> Extents::index(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op || depth > kMaxDepth)
    return std::nullopt;
  if (auto size = dyn_cast<PartSizeOp>(op))
    return largestPart(static_cast<int64_t>(size.getExtent()),
                       static_cast<int64_t>(size.getGrain()), size.getAxes());
  if (auto constant = dyn_cast<arith::ConstantIndexOp>(op))
    return constant.value();
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    if (std::optional<int64_t> which = dim.getConstantIndex())
      return extent(dim.getSource(), static_cast<unsigned>(*which), depth + 1);
  bool isProduct = isa<arith::MulIOp>(op);
  if (!isProduct && !isa<arith::AddIOp>(op) && !isa<arith::DivSIOp>(op) &&
      !isa<arith::DivUIOp>(op))
    return std::nullopt;
  std::optional<int64_t> a = index(op->getOperand(0), depth + 1);
  std::optional<int64_t> b = index(op->getOperand(1), depth + 1);
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return *a + *b;
  if (!isProduct)
    return *b ? std::optional<int64_t>(*a / *b) : std::nullopt;
  int64_t product = 0;
  if (llvm::MulOverflow(*a, *b, product))
    return std::nullopt;
  return product;
}

std::optional<int64_t> Extents::sent(Region &region, unsigned position,
                                     unsigned dim, unsigned depth) {
  if (region.empty())
    return std::nullopt;
  Operation *yield = region.front().getTerminator();
  if (position >= yield->getNumOperands())
    return std::nullopt;
  return extent(yield->getOperand(position), dim, depth);
}

int64_t Extents::mostSequences(MLIRContext *context) const {
  return maxPartSize(batch, axes.product(axes.partsOf("dp", context)) *
                                axes.of(kMicroBatchAxis));
}

std::optional<int64_t> Extents::ofRoleArgument(RoleOp role,
                                               BlockArgument argument,
                                               unsigned dim, unsigned depth) {
  unsigned number = argument.getArgNumber();
  auto inputs = static_cast<unsigned>(role.getInputs().size());
  Region *region = argument.getOwner()->getParent();
  if (region == &role.getUpdate())
    return std::nullopt;
  if (number < inputs)
    return dim == 0 ? std::optional<int64_t>(mostSequences(role.getContext()))
                    : std::nullopt;
  number -= inputs;
  bool forward = region == &role.getForward();
  int64_t neighbour =
      forward ? role.getStages().front() - 1 : role.getStages().back() + 1;
  RoleOp other;
  for (RoleOp candidate : module.getOps<RoleOp>())
    if (llvm::is_contained(candidate.getStages(), neighbour))
      other = candidate;
  if (forward)
    return other ? sent(other.getForward(), number, dim, depth) : std::nullopt;
  auto received =
      static_cast<unsigned>(other ? other.getBackwardSends() : uint64_t(0));
  if (number < received)
    return sent(other.getBackward(), number, dim, depth);
  // What the role's own forward saved.
  return sent(role.getForward(),
              static_cast<unsigned>(role.getForwardSends()) + number - received,
              dim, depth);
}

std::optional<int64_t> Extents::ofArgument(BlockArgument argument, unsigned dim,
                                           unsigned depth) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto stack = dyn_cast<StackOp>(parent)) {
    unsigned number = argument.getArgNumber();
    auto carried = static_cast<unsigned>(stack.getCarry().size());
    if (number == 0)
      return std::nullopt;
    --number;
    if (number < carried)
      return extent(stack.getCarry()[number], dim, depth);
    return extent(stack.getEach()[number - carried], dim, depth);
  }
  if (auto role = dyn_cast<RoleOp>(parent))
    return ofRoleArgument(role, argument, dim, depth);
  if (isa<StepOp>(parent) && dim == 0)
    return mostSequences(parent->getContext());
  return std::nullopt;
}

std::optional<int64_t> Extents::byFactors(OpResult result, unsigned dim,
                                          unsigned depth) {
  auto shardable = dyn_cast<ShardableOpInterface>(result.getOwner());
  if (!shardable)
    return std::nullopt;
  FailureOr<OpFactors> factors = shardable.getFactors();
  if (failed(factors))
    return std::nullopt;
  int64_t product = 1;
  for (unsigned factor : factors->results[result.getResultNumber()][dim]) {
    std::optional<int64_t> size;
    for (auto [operand, dims] :
         llvm::zip(result.getOwner()->getOperands(), factors->operands))
      for (unsigned at = 0; at < dims.size() && !size; ++at)
        if (dims[at].size() == 1 && dims[at].front() == factor)
          size = extent(operand, at, depth);
    if (!size && factors->factors[factor].size > 0)
      size = factors->factors[factor].size;
    if (!size)
      return std::nullopt;
    product *= *size;
  }
  return product;
}

int64_t Extents::localElements(RankedTensorType type,
                               ShardingAttr sharding) const {
  int64_t product = 1;
  for (auto [size, dim] : llvm::zip(type.getShape(), sharding.getDims()))
    product *= maxPartSize(size / dim.getGrain(), axes.product(dim.getAxes())) *
               dim.getGrain();
  return product;
}

/// A dimension that a collective or slice has gathered or cut; the others are
/// its input's.
std::optional<int64_t> Extents::ofMove(Operation *op, unsigned dim,
                                       unsigned depth) {
  auto part = [&](int64_t size, int64_t grain, ArrayAttr outer,
                  ArrayAttr inner) {
    int64_t whole = largestPart(size, grain, outer);
    return inner ? largestPart(whole, grain, inner) : whole;
  };
  auto of = [&](auto move, ArrayAttr inner) {
    return part(static_cast<int64_t>(move.getExtent()),
                static_cast<int64_t>(move.getGrain()), move.getOuter(), inner);
  };
  auto gather = dyn_cast<AllGatherOp>(op);
  if (gather && dim == gather.getDim())
    return of(gather, nullptr);
  auto scatter = dyn_cast<ReduceScatterOp>(op);
  if (scatter && dim == scatter.getDim())
    return std::max<int64_t>(1, of(scatter, scatter.getAxes()));
  auto slice = dyn_cast<SliceOp>(op);
  if (slice && dim == slice.getDim())
    return of(slice, slice.getAxes());
  auto move = dyn_cast<AllToAllOp>(op);
  if (move && dim == move.getGatherDim())
    return part(static_cast<int64_t>(move.getGatherExtent()),
                static_cast<int64_t>(move.getGatherGrain()),
                move.getGatherOuter(), nullptr);
  if (move && dim == move.getSplitDim())
    return part(static_cast<int64_t>(move.getSplitExtent()),
                static_cast<int64_t>(move.getSplitGrain()),
                move.getSplitOuter(), move.getAxes());
  return extent(op->getOperand(0), dim, depth);
}

std::optional<int64_t> Extents::ofResult(OpResult result, unsigned dim,
                                         unsigned depth) {
  Operation *op = result.getOwner();
  if (auto load = dyn_cast<LoadOp>(op)) {
    auto param = module.lookupSymbol<ParamOp>(load.getParam());
    if (ShardingAttr slot = param.getSlotSharding(load.getSlot());
        slot && slot.isFlat())
      return maxPartSize(localElements(param.getTensorType(), slot),
                         axes.product(slot.getFlat()));
    const ValueLayout *layout = layouts.find(load.getParam());
    if (layout && dim < layout->dims.size())
      return layout->dims[dim].largest();
    return std::nullopt;
  }
  if (auto wait = dyn_cast<WaitOp>(op)) {
    unsigned number = result.getResultNumber();
    auto start = wait.getPending()[number].getDefiningOp<StartOp>();
    return extent(start.getBlock()->getTerminator()->getOperand(number), dim,
                  depth);
  }
  if (auto empty = dyn_cast<tensor::EmptyOp>(op))
    return index(empty.getDynamicSize(dim), depth);
  if (auto gather = dyn_cast<AllGatherOp>(op);
      gather && gather.getSize() && dim == gather.getDim())
    return index(gather.getSize(), depth);
  if (Value size = isa<ReduceScatterOp, SliceOp>(op) && op->getNumOperands() > 1
                       ? op->getOperand(1)
                       : Value()) {
    std::optional<int64_t> whole = index(size, depth);
    if (!whole)
      return std::nullopt;
    return largestPart(*whole, 1, op->getAttrOfType<ArrayAttr>("axes"));
  }
  if (isa<AllGatherOp, ReduceScatterOp, AllToAllOp, SliceOp>(op))
    return ofMove(op, dim, depth);
  if (auto shift = dyn_cast<ShiftOp>(op)) {
    if (dim == shift.getDim())
      return largestPart(static_cast<int64_t>(shift.getExtent()),
                         static_cast<int64_t>(shift.getGrain()),
                         shift.getAxes());
    return extent(shift.getInput(), dim, depth);
  }
  if (isa<AllReduceOp, OwnOp>(op))
    return extent(op->getOperand(0), dim, depth);
  if (auto stack = dyn_cast<StackOp>(op))
    return extent(stack.getYield()->getOperand(result.getResultNumber()), dim,
                  depth);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    int64_t product = 1;
    ReassociationIndices members = collapse.getReassociationIndices()[dim];
    for (int64_t member : members) {
      std::optional<int64_t> size =
          extent(collapse.getSrc(), static_cast<unsigned>(member), depth + 1);
      if (!size || llvm::MulOverflow(product, *size, product))
        return std::nullopt;
    }
    return product;
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    OpFoldResult size = expand.getMixedOutputShape()[dim];
    if (auto value = dyn_cast<Value>(size))
      return index(value, depth);
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    OpFoldResult size = slice.getMixedSizes()[dim];
    if (auto value = dyn_cast<Value>(size))
      return index(value, depth);
  }
  if (auto dest = dyn_cast<DestinationStyleOpInterface>(op))
    if (OpOperand *init = dest.getTiedOpOperand(result))
      return extent(init->get(), dim, depth);
  return byFactors(result, dim, depth);
}
