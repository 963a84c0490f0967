//===- Kernels.cpp - Kernels from linalg ----------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every structured op is a contraction, a scatter of rows, a map or a
/// reduction. Which one it is follows from its maps and body alone.
///
//===----------------------------------------------------------------------===//

#include "Convert.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

TypedAttr RegionConverter::fillOf(Value tensor) {
  if (auto constant = tensor.getDefiningOp<arith::ConstantOp>()) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (elements && elements.isSplat())
      return cast<TypedAttr>(elements.getSplatValue<Attribute>());
    return nullptr;
  }
  auto fill = tensor.getDefiningOp<linalg::FillOp>();
  if (!fill)
    return nullptr;
  auto constant = fill.getInputs()[0].getDefiningOp<arith::ConstantOp>();
  return constant ? constant.getValue() : nullptr;
}

Value RegionConverter::sizeOf(Location loc, Value value, int64_t dim) {
  auto type = cast<RankedTensorType>(value.getType());
  if (!type.isDynamicDim(dim))
    return arith::ConstantIndexOp::create(builder, loc, type.getDimSize(dim));
  Value index = arith::ConstantIndexOp::create(builder, loc, dim);
  return tensor::DimOp::create(builder, loc, value, index);
}

/// Of a value of either program; those of the old one that stand for nothing
/// but a shape are followed to where their sizes come from.
SmallVector<Value> RegionConverter::openSizes(Value value) {
  while (auto fill = value.getDefiningOp<linalg::FillOp>())
    value = fill.getOutputs()[0];
  SmallVector<Value> sizes;
  if (auto empty = value.getDefiningOp<tensor::EmptyOp>()) {
    for (Value size : empty.getDynamicSizes())
      sizes.push_back(mapping.lookupOrDefault(size));
    return sizes;
  }
  auto type = cast<RankedTensorType>(value.getType());
  Value made = mapping.lookupOrDefault(value);
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(sizeOf(value.getLoc(), made, dim));
  return sizes;
}

Value RegionConverter::get(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return value;
  TypedAttr fill = fillOf(value);
  if (!fill)
    fill = cast<TypedAttr>(builder.getZeroAttr(type.getElementType()));
  Location loc = value.getLoc();
  auto map = rt::MapOp::create(
      builder, loc,
      TypeRange(RankedTensorType::get(type.getShape(), type.getElementType())),
      openSizes(value));
  Block &block = map.getBody().emplaceBlock();
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    block.addArgument(builder.getIndexType(), loc);
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  Value scalar = arith::ConstantOp::create(body, loc, fill);
  rt::YieldOp::create(body, loc, scalar);
  mapping.map(value, map.getResult(0));
  return map.getResult(0);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Value RegionConverter::element(OpBuilder &b, Location loc, Value tensor,
                               ValueRange indices) {
  if (!mapping.contains(tensor))
    if (TypedAttr fill = fillOf(tensor))
      return arith::ConstantOp::create(b, loc, fill);
  Value made = get(tensor);
  return rt::AtOp::create(
      b, loc, cast<RankedTensorType>(made.getType()).getElementType(), made,
      indices);
}

/// An index as arithmetic on the loops' indices.
static Value expand(OpBuilder &b, Location loc, AffineExpr expr,
                    ValueRange loops) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return loops[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return arith::ConstantIndexOp::create(b, loc, constant.getValue());
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return nullptr;
  Value left = expand(b, loc, binary.getLHS(), loops);
  Value right = expand(b, loc, binary.getRHS(), loops);
  if (!left || !right)
    return nullptr;
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return arith::AddIOp::create(b, loc, left, right);
  case AffineExprKind::Mul:
    return arith::MulIOp::create(b, loc, left, right);
  case AffineExprKind::FloorDiv:
    return arith::DivSIOp::create(b, loc, left, right);
  case AffineExprKind::Mod:
    return arith::RemSIOp::create(b, loc, left, right);
  default:
    return nullptr;
  }
}

Value RegionConverter::element(OpBuilder &b, Location loc, Value tensor,
                               AffineMap map, ValueRange loops) {
  SmallVector<Value> indices;
  for (AffineExpr expr : map.getResults()) {
    indices.push_back(expand(b, loc, expr, loops));
    if (!indices.back())
      return nullptr;
  }
  return element(b, loc, tensor, indices);
}

Value RegionConverter::scalar(OpBuilder &b, IRMapping &local, Value value) {
  if (Value known = local.lookupOrNull(value))
    return known;
  // A constant travels with the kernel.
  if (auto constant = value.getDefiningOp<arith::ConstantOp>()) {
    Value copy = b.clone(*constant)->getResult(0);
    local.map(value, copy);
    return copy;
  }
  return get(value);
}

LogicalResult RegionConverter::copyScalarOp(OpBuilder &b, IRMapping &local,
                                            Operation &op, ValueRange loops) {
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    local.map(index.getResult(), loops[index.getDim()]);
    return success();
  }
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(isa<RankedTensorType>(operand.getType())
                           ? operand
                           : scalar(b, local, operand));
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    local.map(extract.getResult(),
              element(b, op.getLoc(), extract.getTensor(),
                      ArrayRef<Value>(operands).drop_front()));
    return success();
  }
  if (op.getNumRegions() != 0 ||
      !isa<arith::ArithDialect, math::MathDialect>(op.getDialect()))
    return op.emitOpError() << "has no counterpart in a kernel's body";
  Operation *copy = b.clone(op, local);
  copy->setOperands(operands);
  local.map(op.getResults(), copy->getResults());
  return success();
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

LogicalResult RegionConverter::convertElementwise(Operation &op) {
  Location loc = op.getLoc();
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.push_back(RankedTensorType::get(
        cast<RankedTensorType>(type).getShape(), getElementTypeOrSelf(type)));
  Value shaped;
  for (Value operand : op.getOperands())
    if (isa<RankedTensorType>(operand.getType()) &&
        (!shaped || mapping.contains(operand)))
      shaped = operand;
  if (!shaped)
    return op.emitOpError() << "expected an operand that is a tensor";
  for (Value operand : op.getOperands())
    if (isa<RankedTensorType>(operand.getType()) && !fillOf(operand))
      get(operand);
  auto map = rt::MapOp::create(builder, loc, types, openSizes(shaped));
  Block &block = map.getBody().emplaceBlock();
  for (int64_t dim = 0; dim < cast<RankedTensorType>(types[0]).getRank(); ++dim)
    block.addArgument(builder.getIndexType(), loc);
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(isa<RankedTensorType>(operand.getType())
                           ? element(body, loc, operand, block.getArguments())
                           : mapping.lookupOrDefault(operand));
  SmallVector<Type> scalars;
  for (Type type : types)
    scalars.push_back(getElementTypeOrSelf(type));
  OperationState state(loc, op.getName(), operands, scalars, op.getAttrs());
  state.propertiesAttr = op.getPropertiesAsAttribute();
  Operation *made = body.create(state);
  rt::YieldOp::create(body, loc, made->getResults());
  mapping.map(op.getResults(), map.getResults());
  return success();
}

/// Checks that maps and bodies are of the kind that kernels have.
static bool isProjected(AffineMap map) { return map.isProjectedPermutation(); }

LogicalResult RegionConverter::convertMap(linalg::LinalgOp op,
                                          ArrayRef<unsigned> results) {
  Location loc = op.getLoc();
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(results[0]));
  SmallVector<Type> types;
  for (unsigned result : results) {
    auto type = cast<RankedTensorType>(op->getResult(result).getType());
    types.push_back(
        RankedTensorType::get(type.getShape(), type.getElementType()));
  }
  // Values that the body reads have to exist before it.
  for (OpOperand &operand : op->getOpOperands())
    if (!op.isDpsInit(&operand) && !op.isScalar(&operand) &&
        !fillOf(operand.get()))
      get(operand.get());
  op.getBlock()->walk([&](tensor::ExtractOp read) { get(read.getTensor()); });
  auto map = rt::MapOp::create(builder, loc, types,
                               openSizes(op.getDpsInits()[results[0]]));
  Block &block = map.getBody().emplaceBlock();
  SmallVector<Value> loops(op.getNumLoops());
  for (AffineExpr expr : out.getResults())
    loops[cast<AffineDimExpr>(expr).getPosition()] =
        block.addArgument(builder.getIndexType(), loc);
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  IRMapping local;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (argument.use_empty())
      continue;
    Value value = op.isScalar(&operand)
                      ? scalar(body, local, operand.get())
                      : element(body, loc, operand.get(),
                                op.getMatchingIndexingMap(&operand), loops);
    if (!value)
      return op.emitOpError() << "has an indexing map without counterpart in "
                                 "the runtime";
    local.map(argument, value);
  }
  for (Operation &inner : op.getBlock()->without_terminator())
    if (failed(copyScalarOp(body, local, inner, loops)))
      return failure();
  SmallVector<Value> yields;
  for (unsigned result : results)
    yields.push_back(scalar(
        body, local, op.getBlock()->getTerminator()->getOperand(result)));
  rt::YieldOp::create(body, loc, yields);
  for (auto [index, result] : llvm::enumerate(results))
    mapping.map(op->getResult(result), map.getResult(index));
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

namespace {
/// `combine(out, value)` at the end of a reduction's body.
struct Combination {
  Operation *op = nullptr;
  rt::Combiner kind = rt::Combiner::Sum;
  Value value;
};
} // namespace

static std::optional<rt::Combiner> combinerOf(Operation *op) {
  if (isa<arith::AddFOp, arith::AddIOp>(op))
    return rt::Combiner::Sum;
  if (isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MaxSIOp>(op))
    return rt::Combiner::Max;
  if (isa<arith::MinimumFOp, arith::MinNumFOp, arith::MinSIOp>(op))
    return rt::Combiner::Min;
  return std::nullopt;
}

static std::optional<Combination> combination(linalg::LinalgOp op,
                                              unsigned result) {
  Block &block = *op.getBlock();
  Value out = op.getRegionOutputArgs()[result];
  Combination found;
  found.op = block.getTerminator()->getOperand(result).getDefiningOp();
  if (!found.op || !out.hasOneUse() || *out.user_begin() != found.op)
    return std::nullopt;
  std::optional<rt::Combiner> kind = combinerOf(found.op);
  if (!kind)
    return std::nullopt;
  found.kind = *kind;
  found.value = found.op->getOperand(found.op->getOperand(0) == out ? 1 : 0);
  return found;
}

/// True where combining with `attribute` changes nothing.
static bool isNeutral(rt::Combiner kind, Attribute attribute) {
  if (auto number = dyn_cast_or_null<FloatAttr>(attribute)) {
    APFloat value = number.getValue();
    switch (kind) {
    case rt::Combiner::Sum:
      return value.isZero();
    case rt::Combiner::Max:
      return value.isInfinity() && value.isNegative();
    case rt::Combiner::Min:
      return value.isInfinity() && !value.isNegative();
    }
  }
  auto number = dyn_cast_or_null<IntegerAttr>(attribute);
  if (!number)
    return false;
  switch (kind) {
  case rt::Combiner::Sum:
    return number.getValue().isZero();
  case rt::Combiner::Max:
    return number.getValue().isMinSignedValue();
  case rt::Combiner::Min:
    return number.getValue().isMaxSignedValue();
  }
  return false;
}

/// Sizes of the reduction's loops, in order.
static SmallVector<unsigned> reductionDims(linalg::LinalgOp op) {
  SmallVector<unsigned> dims;
  op.getReductionDims(dims);
  return dims;
}

static LogicalResult convertReductionBody(linalg::LinalgOp op) {
  return op.emitOpError()
         << "is a reduction that is no sum, maximum or minimum of a value";
}

/// An input and its dimension that runs along `loop`.
static std::optional<std::pair<Value, int64_t>> inputAlong(linalg::LinalgOp op,
                                                           unsigned loop) {
  for (OpOperand *operand : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    for (auto [dim, expr] : llvm::enumerate(map.getResults()))
      if (auto position = dyn_cast<AffineDimExpr>(expr);
          position && position.getPosition() == loop)
        return std::make_pair(operand->get(), static_cast<int64_t>(dim));
  }
  return std::nullopt;
}

LogicalResult RegionConverter::convertReduction(linalg::LinalgOp op,
                                                unsigned result) {
  Location loc = op.getLoc();
  std::optional<Combination> combined = combination(op, result);
  if (!combined)
    return convertReductionBody(op);
  OpOperand *init = op.getDpsInitOperand(result);
  AffineMap out = op.getMatchingIndexingMap(init);
  for (OpOperand *operand : op.getDpsInputOperands())
    if (!op.isScalar(operand) && !fillOf(operand->get()))
      get(operand->get());
  op.getBlock()->walk([&](tensor::ExtractOp read) { get(read.getTensor()); });
  TypedAttr start = fillOf(init->get());
  bool neutral = isNeutral(combined->kind, start);
  if (!start)
    get(init->get());

  SmallVector<int64_t> ranges = op.getStaticLoopRanges(), sizes;
  SmallVector<Value> open;
  for (unsigned dim : reductionDims(op)) {
    sizes.push_back(ranges[dim]);
    if (!ShapedType::isDynamic(ranges[dim]))
      continue;
    auto along = inputAlong(op, dim);
    if (!along)
      return op.emitOpError() << "has a loop whose size no input tells";
    open.push_back(sizeOf(loc, get(along->first), along->second));
  }
  auto type = cast<RankedTensorType>(op->getResult(result).getType());
  auto reduce = rt::ReduceOp::create(
      builder, loc,
      TypeRange(RankedTensorType::get(type.getShape(), type.getElementType())),
      combined->kind, builder.getDenseI64ArrayAttr(sizes),
      openSizes(init->get()), open);
  Block &block = reduce.getBody().emplaceBlock();
  SmallVector<Value> loops(op.getNumLoops());
  for (AffineExpr expr : out.getResults())
    loops[cast<AffineDimExpr>(expr).getPosition()] =
        block.addArgument(builder.getIndexType(), loc);
  for (unsigned dim : reductionDims(op))
    loops[dim] = block.addArgument(builder.getIndexType(), loc);
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  IRMapping local;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(operand);
    if (argument.use_empty())
      continue;
    Value value = op.isScalar(operand)
                      ? scalar(body, local, operand->get())
                      : element(body, loc, operand->get(),
                                op.getMatchingIndexingMap(operand), loops);
    if (!value)
      return op.emitOpError() << "has an indexing map without counterpart in "
                                 "the runtime";
    local.map(argument, value);
  }
  for (Operation &inner : op.getBlock()->without_terminator()) {
    if (llvm::any_of(op.getRegionOutputArgs(), [&](Value argument) {
          return llvm::is_contained(inner.getOperands(), argument);
        }))
      continue;
    if (failed(copyScalarOp(body, local, inner, loops)))
      return failure();
  }
  Value value = scalar(body, local, combined->value);
  rt::YieldOp::create(body, loc, value);

  Block &finish = reduce.getFinish().emplaceBlock();
  SmallVector<Value> indices;
  for (unsigned dim = 0; dim < out.getNumResults(); ++dim)
    indices.push_back(finish.addArgument(builder.getIndexType(), loc));
  Value total = finish.addArgument(value.getType(), loc);
  OpBuilder tail = OpBuilder::atBlockEnd(&finish);
  if (!neutral) {
    Value before = start ? Value(arith::ConstantOp::create(tail, loc, start))
                         : element(tail, loc, init->get(), indices);
    IRMapping last;
    last.map(op.getRegionOutputArgs()[result], before);
    last.map(combined->value, total);
    total = tail.clone(*combined->op, last)->getResult(0);
  }
  rt::YieldOp::create(tail, loc, total);
  mapping.map(op->getResult(result), reduce.getResult(0));
  return success();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The letters of a map's loops.
static std::string letters(AffineMap map) {
  std::string text;
  for (AffineExpr expr : map.getResults())
    text += static_cast<char>('a' + cast<AffineDimExpr>(expr).getPosition());
  return text;
}

/// The input that a factor is, in line or extended to a wider type.
static Value inputOf(Value factor) {
  if (auto extension = factor.getDefiningOp<arith::ExtFOp>())
    return extension.getIn();
  return factor;
}

/// The tensor with elements of `type`.
Value RegionConverter::widened(Value value, Type type) {
  Value made = get(value);
  auto from = cast<RankedTensorType>(made.getType());
  if (from.getElementType() == type)
    return made;
  Location loc = value.getLoc();
  auto map = rt::MapOp::create(
      builder, loc, TypeRange(RankedTensorType::get(from.getShape(), type)),
      openSizes(made));
  Block &block = map.getBody().emplaceBlock();
  for (int64_t dim = 0; dim < from.getRank(); ++dim)
    block.addArgument(builder.getIndexType(), loc);
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  Value read = rt::AtOp::create(body, loc, from.getElementType(), made,
                                block.getArguments());
  rt::YieldOp::create(body, loc,
                      Value(arith::ExtFOp::create(body, loc, type, read)));
  return map.getResult(0);
}

bool RegionConverter::convertContraction(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      op.getNumLoops() > 26)
    return false;
  if (!llvm::all_of(op.getIndexingMapsArray(), isProjected))
    return false;
  std::optional<Combination> sum = combination(op, 0);
  if (!sum || sum->kind != rt::Combiner::Sum)
    return false;
  auto product = sum->value.getDefiningOp<arith::MulFOp>();
  Value a = op.getRegionInputArgs()[0], b = op.getRegionInputArgs()[1];
  if (!product || a == b)
    return false;
  Value lhs = inputOf(product.getLhs()), rhs = inputOf(product.getRhs());
  if (!((lhs == a && rhs == b) || (lhs == b && rhs == a)) ||
      product.getType() != op.getRegionOutputArgs()[0].getType() ||
      !isNeutral(rt::Combiner::Sum, fillOf(op.getDpsInits()[0])))
    return false;
  std::string left = letters(op.getIndexingMapsArray()[0]);
  std::string right = letters(op.getIndexingMapsArray()[1]);
  std::string result = letters(op.getIndexingMapsArray()[2]);
  bool hasRows = false, hasColumns = false, hasSum = false;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    char letter = static_cast<char>('a' + loop);
    bool inLeft = left.find(letter) != std::string::npos;
    bool inRight = right.find(letter) != std::string::npos;
    bool inResult = result.find(letter) != std::string::npos;
    if (inLeft + inRight + inResult < 2)
      return false;
    hasRows |= inLeft && !inRight;
    hasColumns |= inRight && !inLeft;
    hasSum |= !inResult;
  }
  if (!hasRows || !hasColumns || !hasSum)
    return false;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  // Libraries multiply one type, and give bf16 products in f32 as well.
  Value x = op.getDpsInputs()[0], y = op.getDpsInputs()[1];
  Type factor = getElementTypeOrSelf(x), other = getElementTypeOrSelf(y);
  if (factor != other || !factor.isBF16() || !type.getElementType().isF32())
    factor = type.getElementType();
  auto made = rt::ContractOp::create(
      builder, op.getLoc(),
      RankedTensorType::get(type.getShape(), type.getElementType()), left,
      widened(x, factor), right, widened(y, factor), result);
  mapping.map(op->getResult(0), made.getResult());
  return true;
}

/// The offset that the scatter's body adds to the row's number, or null for 0;
/// nothing where the body is no comparison of ids and rows.
static std::optional<Value> scatterOffset(linalg::LinalgOp op) {
  Value ids = op.getRegionInputArgs()[0];
  for (Operation &inner : op.getBlock()->without_terminator()) {
    auto compare = dyn_cast<arith::CmpIOp>(inner);
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
      continue;
    auto cast = compare.getLhs().getDefiningOp();
    if (!cast || cast->getNumOperands() != 1 || cast->getOperand(0) != ids)
      return std::nullopt;
    Value row = compare.getRhs();
    if (row.getDefiningOp<linalg::IndexOp>())
      return Value();
    auto sum = row.getDefiningOp<arith::AddIOp>();
    if (!sum || !sum.getLhs().getDefiningOp<linalg::IndexOp>())
      return std::nullopt;
    return sum.getRhs();
  }
  return std::nullopt;
}

bool RegionConverter::convertScatter(linalg::LinalgOp op) {
  if (!op->hasAttr("parc.scatter") || op.getNumDpsInputs() != 2 ||
      op->getNumResults() != 1 ||
      !isNeutral(rt::Combiner::Sum, fillOf(op.getDpsInits()[0])) ||
      !llvm::all_of(op.getIndexingMapsArray(), isProjected))
    return false;
  std::string ids = letters(op.getIndexingMapsArray()[0]);
  std::string rows = letters(op.getIndexingMapsArray()[1]);
  std::string table = letters(op.getIndexingMapsArray()[2]);
  std::optional<Value> offset = scatterOffset(op);
  if (!offset || table.size() != 2 || rows != ids + table.substr(1))
    return false;
  Location loc = op.getLoc();
  Value first = *offset ? mapping.lookupOrDefault(*offset)
                        : arith::ConstantIndexOp::create(builder, loc, 0);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Value from = get(op.getDpsInputs()[1]);
  Value at = get(op.getDpsInputs()[0]);
  auto made = rt::ScatterRowsOp::create(
      builder, loc,
      RankedTensorType::get(type.getShape(), type.getElementType()), from, at,
      first, openSizes(op.getDpsInits()[0]));
  mapping.map(op->getResult(0), made.getResult());
  return true;
}

LogicalResult RegionConverter::convertLinalg(linalg::LinalgOp op) {
  // Fills are made where they are needed.
  if (isa<linalg::FillOp>(op) && fillOf(op->getResult(0)))
    return success();
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!isProjected(op.getMatchingIndexingMap(&init)))
      return op.emitOpError()
             << "expected results indexed by loops, got "
             << AffineMapAttr::get(op.getMatchingIndexingMap(&init));
  if (reductionDims(op).empty()) {
    // Results of one order are made together.
    llvm::MapVector<Attribute, SmallVector<unsigned>> orders;
    for (unsigned result = 0; result < op->getNumResults(); ++result)
      orders[AffineMapAttr::get(
                 op.getMatchingIndexingMap(op.getDpsInitOperand(result)))]
          .push_back(result);
    for (auto &[map, results] : orders)
      if (failed(convertMap(op, results)))
        return failure();
    return success();
  }
  if (convertScatter(op) || convertContraction(op))
    return success();
  for (unsigned result = 0; result < op->getNumResults(); ++result)
    if (failed(convertReduction(op, result)))
      return failure();
  return success();
}
