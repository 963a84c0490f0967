//===- RoleConverter.cpp - Structure and communication --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The cloning walk over a role's region: stacks, parameters, collectives and
/// slices.
///
//===----------------------------------------------------------------------===//

#include "Convert.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::parc;

/// The type in the new program: layers of another dialect, no encoding.
static Type convertType(Type type) {
  if (auto layers = dyn_cast<parc::LayersType>(type))
    return rt::LayersType::get(type.getContext(),
                               convertType(layers.getElement()));
  if (auto pending = dyn_cast<parc::PendingType>(type))
    return rt::PendingType::get(type.getContext(),
                                convertType(pending.getElement()));
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return RankedTensorType::get(tensor.getShape(), tensor.getElementType());
  return type;
}

static rt::CombinerAttr convertKind(MLIRContext *context,
                                    parc::ReductionKind kind) {
  switch (kind) {
  case parc::ReductionKind::Sum:
    return rt::CombinerAttr::get(context, rt::Combiner::Sum);
  case parc::ReductionKind::Max:
    return rt::CombinerAttr::get(context, rt::Combiner::Max);
  case parc::ReductionKind::Min:
    return rt::CombinerAttr::get(context, rt::Combiner::Min);
  }
  llvm_unreachable("a kind without a combiner");
}

LogicalResult RegionConverter::convert(Block &from, Block &to) {
  for (BlockArgument argument : from.getArguments())
    mapping.map(argument, to.addArgument(convertType(argument.getType()),
                                         argument.getLoc()));
  return convertOps(from);
}

LogicalResult RegionConverter::convertOps(Block &from) {
  for (Operation &op : from)
    if (failed(convertOp(op)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult RegionConverter::convertOp(Operation &op) {
  Location loc = op.getLoc();
  auto map = [&](Operation *made) {
    mapping.map(op.getResults(), made->getResults());
    return success();
  };
  if (auto stack = dyn_cast<parc::StackOp>(op))
    return convertStack(stack);
  if (auto start = dyn_cast<parc::StartOp>(op))
    return convertStart(start);
  if (auto wait = dyn_cast<parc::WaitOp>(op)) {
    convertWait(wait);
    return success();
  }
  if (auto micro = dyn_cast<parc::LastMicroOp>(op))
    return convertLastMicro(micro);
  if (auto load = dyn_cast<parc::LoadOp>(op))
    return map(rt::LoadOp::create(builder, loc, convertType(load.getType()),
                                  load.getParamAttr(), load.getSlotAttr()));
  if (auto store = dyn_cast<parc::StoreOp>(op)) {
    rt::StoreOp::create(builder, loc, store.getParamAttr(), store.getSlotAttr(),
                        get(store.getInput()));
    return success();
  }
  if (auto accumulate = dyn_cast<parc::AccumulateOp>(op)) {
    rt::AccumulateOp::create(builder, loc, accumulate.getParamAttr(),
                             accumulate.getSlotAttr(),
                             get(accumulate.getInput()));
    return success();
  }
  if (isa<parc::ObserveOp>(op))
    return success();
  if (auto check = dyn_cast<parc::CheckLoadOp>(op)) {
    Value counts = get(check.getCounts());
    rt::CheckLoadOp::create(builder, loc, counts, get(check.getLimit()));
    mapping.map(check.getResult(), counts);
    return success();
  }
  if (auto yield = dyn_cast<parc::YieldOp>(op)) {
    SmallVector<Value> values;
    for (Value value : yield.getValues())
      values.push_back(get(value));
    rt::YieldOp::create(builder, loc, values);
    return success();
  }
  if (auto part = dyn_cast<parc::PartStartOp>(op))
    return map(rt::PartStartOp::create(builder, loc, part.getAxes(),
                                       part.getExtent(), part.getGrain()));
  if (auto part = dyn_cast<parc::PartSizeOp>(op))
    return map(rt::PartSizeOp::create(builder, loc, part.getAxes(),
                                      part.getExtent(), part.getGrain()));
  if (parc::isCollective(&op) || isa<parc::SliceOp, parc::OwnOp>(op))
    return convertMoves(op);
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
    return convertLinalg(linalg);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return convertExtractSlice(slice);
  if (auto extract = dyn_cast<tensor::ExtractOp>(op);
      extract && extract.getIndices().empty())
    return map(rt::ReadOp::create(builder, loc, extract.getType(),
                                  get(extract.getTensor())));
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
    return convertInsertSlice(slice);
  // Made where they are needed.
  if (isa<tensor::EmptyOp>(op))
    return success();
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp,
          tensor::DimOp>(op)) {
    for (Value operand : op.getOperands())
      get(operand);
    return map(builder.clone(op, mapping));
  }
  bool onTensor =
      llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>);
  if (isa<arith::ConstantOp>(op)) {
    if (!onTensor || !fillOf(op.getResult(0)))
      return map(builder.clone(op));
    return success();
  }
  if (isa<arith::ArithDialect, math::MathDialect>(op.getDialect()))
    return onTensor ? convertElementwise(op) : map(builder.clone(op, mapping));
  return op.emitOpError() << "has no counterpart in the runtime";
}

LogicalResult RegionConverter::convertStack(parc::StackOp op) {
  SmallVector<Value> carry, each;
  for (Value value : op.getCarry())
    carry.push_back(get(value));
  for (Value value : op.getEach())
    each.push_back(get(value));
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.push_back(convertType(type));
  auto made = rt::StackOp::create(
      builder, op.getLoc(), types, op.getLayersAttr().getAttr(),
      op.getBeginAttr(), op.getEndAttr(), op.getReverseAttr(),
      op.getReductionsAttr(), carry, each);
  Block &block = made.getBody().emplaceBlock();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&block);
  // What the body makes lives there; what it reads from outside is known.
  IRMapping outside = mapping;
  LogicalResult result = convert(*op.getBlock(), block);
  mapping = outside;
  mapping.map(op.getResults(), made.getResults());
  return result;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

LogicalResult RegionConverter::convertStart(parc::StartOp op) {
  // What a constant or a fill becomes is no part of the group.
  for (Operation *moved : op.getCollectives())
    for (Value operand : moved->getOperands())
      if (!op.getBody().isAncestor(operand.getParentRegion()))
        get(operand);
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.push_back(convertType(type));
  auto made = rt::StartOp::create(builder, op.getLoc(), types,
                                  op.getStreamAttr(), op.getAheadAttr());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&made.getBody().emplaceBlock());
  IRMapping outside = mapping;
  LogicalResult result = convertOps(*op.getBlock());
  mapping = outside;
  mapping.map(op.getResults(), made.getResults());
  return result;
}

void RegionConverter::convertWait(parc::WaitOp op) {
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.push_back(convertType(type));
  SmallVector<Value> pending;
  for (Value value : op.getPending())
    pending.push_back(mapping.lookup(value));
  auto made = rt::WaitOp::create(builder, op.getLoc(), types,
                                 op.getStreamAttr(), pending);
  mapping.map(op.getResults(), made.getResults());
}

LogicalResult RegionConverter::convertLastMicro(parc::LastMicroOp op) {
  auto made = rt::LastMicroOp::create(builder, op.getLoc());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&made.getBody().emplaceBlock());
  return convertOps(op.getBody().front());
}

//===----------------------------------------------------------------------===//
// Communication
//===----------------------------------------------------------------------===//

LogicalResult RegionConverter::convertAllReduce(parc::AllReduceOp op) {
  Value input = get(op.getInput());
  if (tables.members(op.getAxes(), op.getStages()) == 1) {
    mapping.map(op.getResult(), input);
    return success();
  }
  auto made = rt::AllReduceOp::create(
      builder, op.getLoc(), convertKind(op.getContext(), op.getKind()), input,
      tables.group(op.getAxes(), op.getStages()),
      builder.getStringAttr(op.getWhy()));
  mapping.map(op.getResult(), made.getResult());
  return success();
}

LogicalResult RegionConverter::convertMoves(Operation &op) {
  if (auto reduce = dyn_cast<parc::AllReduceOp>(op))
    return convertAllReduce(reduce);
  auto axes = op.getAttrOfType<ArrayAttr>("axes");
  if (tables.members(axes) == 1) {
    mapping.map(op.getResult(0), get(op.getOperand(0)));
    return success();
  }
  if (auto own = dyn_cast<parc::OwnOp>(op))
    return convertOwn(own);
  if (auto slice = dyn_cast<parc::SliceOp>(op))
    return convertSlice(slice);
  Value input = get(op.getOperand(0));
  Type type = convertType(op.getResult(0).getType());
  FlatSymbolRefAttr group = tables.group(axes);
  Value result;
  SmallVector<Value> used;
  if (auto move = dyn_cast<parc::AllToAllOp>(op))
    for (Value rows : move.getUsed())
      used.push_back(get(rows));
  if (auto gather = dyn_cast<parc::AllGatherOp>(op))
    result = rt::AllGatherOp::create(
        builder, op.getLoc(), type, input, gather.getDimAttr(),
        gather.getExtentAttr(), gather.getGrainAttr(), axes, gather.getOuter(),
        group, builder.getStringAttr(gather.getWhy()),
        mapping.lookupOrNull(gather.getSize()));
  else if (auto scatter = dyn_cast<parc::ReduceScatterOp>(op))
    result = rt::ReduceScatterOp::create(
        builder, op.getLoc(), type,
        convertKind(op.getContext(), scatter.getKind()), input,
        scatter.getDimAttr(), scatter.getExtentAttr(), scatter.getGrainAttr(),
        axes, scatter.getOuter(), group,
        builder.getStringAttr(scatter.getWhy()),
        mapping.lookupOrNull(scatter.getSize()));
  else if (auto move = dyn_cast<parc::AllToAllOp>(op))
    result = rt::AllToAllOp::create(
        builder, op.getLoc(), type, input, used, move.getGatherDimAttr(),
        move.getGatherExtentAttr(), move.getGatherGrainAttr(),
        move.getGatherOuter(), move.getSplitDimAttr(),
        move.getSplitExtentAttr(), move.getSplitGrainAttr(),
        move.getSplitOuter(), axes, group,
        builder.getStringAttr(move.getWhy()));
  else if (auto shift = dyn_cast<parc::ShiftOp>(op))
    result = rt::ShiftOp::create(
        builder, op.getLoc(), type, input, shift.getDimAttr(),
        shift.getExtentAttr(), shift.getGrainAttr(), shift.getHopsAttr(), axes,
        group, builder.getStringAttr(shift.getWhy()));
  mapping.map(op.getResult(0), result);
  return success();
}

//===----------------------------------------------------------------------===//
// Parts without communication
//===----------------------------------------------------------------------===//

namespace {
/// A map under construction whose body is filled by the caller.
struct MapShell {
  MapShell(OpBuilder &builder, Location loc, RankedTensorType type,
           ValueRange extents)
      : op(rt::MapOp::create(builder, loc, TypeRange(type), extents)),
        body(OpBuilder::atBlockEnd(&op.getBody().emplaceBlock())) {
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      op.getBody().front().addArgument(body.getIndexType(), loc);
  }
  SmallVector<Value> indices() {
    return SmallVector<Value>(op.getBody().front().args_begin(),
                              op.getBody().front().args_end());
  }
  Value finish(Value value) {
    rt::YieldOp::create(body, op.getLoc(), value);
    return op.getResult(0);
  }

  rt::MapOp op;
  OpBuilder body;
};
} // namespace

LogicalResult RegionConverter::convertOwn(parc::OwnOp op) {
  Location loc = op.getLoc();
  Value input = get(op.getInput());
  // The coordinate: with one unit a part, a part starts at its own number.
  Value coordinate = rt::PartStartOp::create(builder, loc, op.getAxes(),
                                             tables.members(op.getAxes()), 1);
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<Value> extents = openSizes(input);
  MapShell map(builder, loc, type, extents);
  Value zero = arith::ConstantIndexOp::create(map.body, loc, 0);
  Value first = arith::CmpIOp::create(map.body, loc, arith::CmpIPredicate::eq,
                                      coordinate, zero);
  Value value = rt::AtOp::create(map.body, loc, type.getElementType(), input,
                                 map.indices());
  Value none = arith::ConstantOp::create(
      map.body, loc, map.body.getZeroAttr(type.getElementType()));
  mapping.map(op.getResult(), map.finish(arith::SelectOp::create(
                                  map.body, loc, first, value, none)));
  return success();
}

Value RegionConverter::partStart(Location loc, ArrayAttr outer, ArrayAttr axes,
                                 int64_t extent, int64_t grain) {
  SmallVector<Attribute> all(outer.begin(), outer.end());
  all.append(axes.begin(), axes.end());
  Value start = rt::PartStartOp::create(builder, loc, builder.getArrayAttr(all),
                                        extent, grain);
  if (outer.empty())
    return start;
  Value whole = rt::PartStartOp::create(builder, loc, outer, extent, grain);
  return arith::SubIOp::create(builder, loc, start, whole);
}

/// A piece of a list whose length is a value.
LogicalResult RegionConverter::convertListSlice(parc::SliceOp op, Value input,
                                                RankedTensorType type) {
  Location loc = op.getLoc();
  int64_t parts = tables.members(op.getAxes());
  Value size = mapping.lookup(op.getSize());
  Value count = arith::ConstantIndexOp::create(builder, loc, parts);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  // With one unit a part, a part starts at its own number.
  Value part = rt::PartStartOp::create(builder, loc, op.getAxes(), parts, 1);
  auto startOf = [&](Value index) -> Value {
    Value units = arith::MulIOp::create(builder, loc, index, size);
    return arith::DivSIOp::create(builder, loc, units, count);
  };
  Value next = arith::AddIOp::create(builder, loc, part, one);
  Value start = startOf(part), end = startOf(next);
  Value extent = arith::SubIOp::create(builder, loc, end, start);
  MapShell map(builder, loc, type, extent);
  Value at = arith::AddIOp::create(map.body, loc, map.indices()[0], start);
  mapping.map(op.getResult(),
              map.finish(rt::AtOp::create(map.body, loc, type.getElementType(),
                                          input, at)));
  return success();
}

LogicalResult RegionConverter::convertSlice(parc::SliceOp op) {
  Location loc = op.getLoc();
  Value input = get(op.getInput());
  auto type = cast<RankedTensorType>(convertType(op.getType()));
  if (op.getSize())
    return convertListSlice(op, input, type);
  Value start = partStart(loc, op.getOuter(), op.getAxes(), op.getExtent(),
                          op.getGrain());
  auto dim = static_cast<int64_t>(op.getDim());
  SmallVector<Value> extents;
  for (int64_t index = 0; index < type.getRank(); ++index) {
    if (!type.isDynamicDim(index))
      continue;
    if (index != dim) {
      extents.push_back(sizeOf(loc, input, index));
      continue;
    }
    SmallVector<Attribute> all(op.getOuter().begin(), op.getOuter().end());
    all.append(op.getAxes().begin(), op.getAxes().end());
    extents.push_back(rt::PartSizeOp::create(builder, loc,
                                             builder.getArrayAttr(all),
                                             op.getExtent(), op.getGrain()));
  }
  MapShell map(builder, loc, type, extents);
  SmallVector<Value> indices = map.indices();
  indices[dim] = arith::AddIOp::create(map.body, loc, indices[dim], start);
  mapping.map(op.getResult(),
              map.finish(rt::AtOp::create(map.body, loc, type.getElementType(),
                                          input, indices)));
  return success();
}

Value RegionConverter::indexOf(Location loc, OpFoldResult part) {
  if (auto value = dyn_cast<Value>(part))
    return mapping.lookupOrDefault(value);
  return arith::ConstantIndexOp::create(
      builder, loc, cast<IntegerAttr>(cast<Attribute>(part)).getInt());
}

LogicalResult RegionConverter::convertExtractSlice(tensor::ExtractSliceOp op) {
  Location loc = op.getLoc();
  Value input = get(op.getSource());
  auto type = cast<RankedTensorType>(convertType(op.getType()));
  llvm::SmallBitVector dropped = op.getDroppedDims();
  auto valueOf = [&](OpFoldResult part) { return indexOf(loc, part); };
  SmallVector<Value> extents, offsets, strides;
  int64_t kept = 0;
  for (auto [index, size] : llvm::enumerate(op.getMixedSizes())) {
    offsets.push_back(valueOf(op.getMixedOffsets()[index]));
    strides.push_back(valueOf(op.getMixedStrides()[index]));
    if (!dropped[index] && type.isDynamicDim(kept++))
      extents.push_back(valueOf(size));
  }
  MapShell map(builder, loc, type, extents);
  SmallVector<Value> loops = map.indices(), indices;
  kept = 0;
  for (size_t index = 0; index < offsets.size(); ++index) {
    Value at = offsets[index];
    if (!dropped[index]) {
      Value step =
          arith::MulIOp::create(map.body, loc, loops[kept++], strides[index]);
      at = arith::AddIOp::create(map.body, loc, at, step);
    }
    indices.push_back(at);
  }
  mapping.map(op.getResult(),
              map.finish(rt::AtOp::create(map.body, loc, type.getElementType(),
                                          input, indices)));
  return success();
}

/// Each element of the result comes from the slice where that has it, else from
/// what it is put into.
LogicalResult RegionConverter::convertInsertSlice(tensor::InsertSliceOp op) {
  Location loc = op.getLoc();
  RankedTensorType sourceType = op.getSourceType();
  for (OpFoldResult stride : op.getMixedStrides())
    if (!isConstantIntValue(stride, 1))
      return op.emitOpError() << "expected strides of 1, got a slice that "
                                 "skips elements";
  if (sourceType.getRank() != op.getType().getRank())
    return op.emitOpError() << "expected a slice of rank "
                            << op.getType().getRank() << ", got " << sourceType;
  TypedAttr fill = fillOf(op.getDest());
  if (op.getDest().getDefiningOp<tensor::EmptyOp>())
    fill = cast<TypedAttr>(builder.getZeroAttr(op.getType().getElementType()));
  Value source = get(op.getSource());
  Value dest = fill ? Value() : get(op.getDest());
  auto type = cast<RankedTensorType>(convertType(op.getType()));
  SmallVector<Value> offsets, sizes;
  for (auto [offset, size] :
       llvm::zip(op.getMixedOffsets(), op.getMixedSizes())) {
    offsets.push_back(indexOf(loc, offset));
    sizes.push_back(indexOf(loc, size));
  }
  MapShell map(builder, loc, type, openSizes(op.getDest()));
  OpBuilder &b = map.body;
  Value inside, zero = arith::ConstantIndexOp::create(b, loc, 0);
  SmallVector<Value> loops = map.indices(), from;
  for (auto [loop, offset, size] : llvm::zip(loops, offsets, sizes)) {
    from.push_back(arith::SubIOp::create(b, loc, loop, offset));
    // Unsigned: an element before the slice is a very large number.
    Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       from.back(), size);
    inside = inside ? arith::AndIOp::create(b, loc, inside, here) : here;
  }
  // A place that the slice has, for the elements that it lacks.
  for (Value &index : from)
    index = arith::SelectOp::create(b, loc, inside, index, zero);
  Type element = type.getElementType();
  Value taken = rt::AtOp::create(b, loc, element, source, from);
  Value kept = fill ? arith::ConstantOp::create(b, loc, fill).getResult()
                    : rt::AtOp::create(b, loc, element, dest, loops);
  mapping.map(op.getResult(),
              map.finish(arith::SelectOp::create(b, loc, inside, taken, kept)));
  return success();
}
