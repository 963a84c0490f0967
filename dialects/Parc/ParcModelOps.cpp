//===- ParcModelOps.cpp - Model, step and stack ---------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Verifiers and queries of the ops that a model is written in.
///
//===----------------------------------------------------------------------===//

#include "Parc/Parc.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::parc;

/// `why "text"`, or all that is known: `why <"text" of "name" ...>`.
static ParseResult parseWhy(OpAsmParser &parser, WhyAttr &why) {
  std::string text;
  if (succeeded(parser.parseOptionalString(&text))) {
    why = WhyAttr::get(parser.getContext(), text);
    return success();
  }
  why = dyn_cast_if_present<WhyAttr>(WhyAttr::parse(parser, Type()));
  return success(why != nullptr);
}

static void printWhy(OpAsmPrinter &printer, Operation *, WhyAttr why) {
  if (why.isPlain())
    printer.printString(why.getText());
  else
    printer.printStrippedAttrOrType(why);
}

#define GET_OP_CLASSES
#include "Parc/ParcOps.cpp.inc"

//===----------------------------------------------------------------------===//
// MeshOp
//===----------------------------------------------------------------------===//

/// The order of ranks names each axis of the mesh once.
static LogicalResult verifyOrder(MeshOp op, ArrayAttr order) {
  llvm::StringSet<> seen;
  for (auto axis : order.getAsRange<StringAttr>()) {
    if (!op.hasAxis(axis))
      return op.emitOpError() << "orders axis '" << axis.getValue()
                              << "', which it does not have";
    if (!seen.insert(axis.getValue()).second)
      return op.emitOpError()
             << "orders axis '" << axis.getValue() << "' twice";
  }
  if (seen.size() != op.getAxes().size())
    return op.emitOpError()
           << "expected an order of all " << op.getAxes().size()
           << " axes, got " << seen.size();
  return success();
}

LogicalResult MeshOp::verify() {
  if (getAxes().size() != getSizes().size())
    return emitOpError() << "expected one size an axis, got "
                         << getAxes().size() << " axes and "
                         << getSizes().size() << " sizes";
  llvm::StringSet<> seen;
  int64_t product = 1;
  for (auto [axis, size] :
       llvm::zip(getAxes().getAsRange<StringAttr>(), getSizes())) {
    if (!seen.insert(axis.getValue()).second)
      return emitOpError() << "names axis '" << axis.getValue() << "' twice";
    if (axis.getValue() == kMicroBatchAxis)
      return emitOpError() << "names axis 'mb', which counts micro-batches and "
                              "not devices; choose another name";
    if (size < 1)
      return emitOpError() << "expected a size of at least 1 for axis '"
                           << axis.getValue() << "', got " << size;
    if (llvm::MulOverflow(product, size, product) || product > (1 << 20))
      return emitOpError() << "has more than 1048576 devices, the most that "
                              "parc takes; make an axis smaller";
  }
  return getOrder() ? verifyOrder(*this, *getOrder()) : success();
}

int64_t MeshOp::sizeOf(StringRef axis) {
  for (auto [name, size] :
       llvm::zip(getAxes().getAsRange<StringAttr>(), getSizes()))
    if (name == axis)
      return size;
  return 1;
}

bool MeshOp::hasAxis(StringRef axis) {
  return llvm::any_of(getAxes().getAsRange<StringAttr>(),
                      [&](StringAttr name) { return name == axis; });
}

//===----------------------------------------------------------------------===//
// ParamOp and access
//===----------------------------------------------------------------------===//

/// What stands for the layer and the row in a checkpoint's name.
static constexpr StringRef kLayerHole = "{}", kRowHole = "{i}";

/// A parameter that is a box of a checkpoint's tensor lies inside it.
static LogicalResult verifyBox(ParamOp op, CheckpointAttr checkpoint) {
  ArrayRef<int64_t> shape = op.getTensorType().getShape();
  bool rows = checkpoint.getName().contains(kRowHole);
  if (rows && (shape.empty() || !checkpoint.getShape().empty()))
    return op.emitOpError()
           << "expected "
           << (shape.empty() ? "a dimension" : "no checkpoint box")
           << " where each row is a checkpoint tensor ('" << kRowHole << "')";
  if (checkpoint.getShape().empty())
    return success();
  if (checkpoint.getShape().size() != shape.size() ||
      checkpoint.getOffsets().size() != shape.size())
    return op.emitOpError()
           << "expected a checkpoint box of " << shape.size()
           << " dimensions, got " << checkpoint.getShape().size() << " and "
           << checkpoint.getOffsets().size() << " offsets";
  for (auto [dim, size] : llvm::enumerate(shape)) {
    int64_t offset = checkpoint.getOffsets()[dim], end;
    if (offset < 0 || llvm::AddOverflow(offset, size, end) ||
        end > checkpoint.getShape()[dim])
      return op.emitOpError()
             << "lies at " << offset << " with size " << size
             << " in dimension " << dim << " of a checkpoint tensor of size "
             << checkpoint.getShape()[dim];
  }
  return success();
}

/// Slots are no narrower than the value: what is added up or updated in them
/// would be lost.
static LogicalResult verifySlotTypes(ParamOp op) {
  if (!op.getSlotTypes())
    return success();
  Type own = op.getTensorType().getElementType();
  for (NamedAttribute slot : *op.getSlotTypes()) {
    StringRef name = slot.getName().getValue();
    if (name != kGradientSlot && name != kStateLayout)
      return op.emitOpError() << "expected 'grad' or 'state' in 'slot_types', "
                                 "got '"
                              << name << "'";
    auto type = dyn_cast<TypeAttr>(slot.getValue());
    if (!type || !isa<FloatType>(type.getValue()) ||
        type.getValue().getIntOrFloatBitWidth() < own.getIntOrFloatBitWidth())
      return op.emitOpError()
             << "expected a float at least as wide as " << own << " for '"
             << name << "' in 'slot_types', got " << slot.getValue();
  }
  return success();
}

LogicalResult ParamOp::verify() {
  RankedTensorType type = getTensorType();
  if (!isa<FloatType>(type.getElementType()))
    return emitOpError() << "expected a tensor of floats, got " << type;
  if (getLayers() && static_cast<int64_t>(*getLayers()) < 1)
    return emitOpError() << "expected at least 1 layer, got "
                         << static_cast<int64_t>(*getLayers());
  if (getStd() && getValue())
    return emitOpError() << "has both 'std' and 'value'; remove one";
  if (getSharding() &&
      static_cast<int64_t>(getSharding()->getDims().size()) != type.getRank())
    return emitOpError() << "expected a sharding of " << type.getRank()
                         << " dimensions, got "
                         << getSharding()->getDims().size();
  if (getSharding() && getSharding()->isPartial())
    return emitOpError() << "cannot be partial; a parameter is stored whole or "
                            "in parts";
  if (getSharding() && getSharding()->isFlat())
    return emitOpError() << "cannot be used in flat parts; 'slot_shardings' "
                            "says how a slot is stored";
  if (getSlotShardings())
    for (NamedAttribute slot : *getSlotShardings()) {
      auto sharding = dyn_cast<ShardingAttr>(slot.getValue());
      if (!sharding || sharding.isPartial() ||
          static_cast<int64_t>(sharding.getDims().size()) != type.getRank())
        return emitOpError()
               << "expected a sharding of " << type.getRank()
               << " dimensions, nothing partial, for slot '"
               << slot.getName().getValue() << "', got " << slot.getValue();
    }
  if (failed(verifySlotTypes(*this)))
    return failure();
  return getCheckpoint() ? verifyBox(*this, *getCheckpoint()) : success();
}

/// True for the slots that the model's regions use.
static bool isModelSlot(StringRef slot) {
  return slot == kValueSlot || slot == kGradientSlot;
}

FloatType ParamOp::getSlotElementType(StringRef slot) {
  auto own = cast<FloatType>(getTensorType().getElementType());
  if (!getSlotTypes() || slot == kValueSlot)
    return own;
  bool isGradient = slot == kGradientSlot || slot == kReducedSlot;
  auto type = getSlotTypes()->getAs<TypeAttr>(isGradient ? kGradientSlot
                                                         : kStateLayout);
  return type ? cast<FloatType>(type.getValue()) : own;
}

RankedTensorType ParamOp::getSlotType(StringRef slot) {
  return getTensorType().clone(getSlotElementType(slot));
}

bool ParamOp::hasMaster() {
  return getSlotElementType(kMasterSlot) != getSlotElementType(kValueSlot);
}

ShardingAttr ParamOp::getSlotSharding(StringRef slot) {
  if (getSlotShardings()) {
    for (StringRef name : {slot, isModelSlot(slot) ? slot : kStateLayout})
      if (auto sharding = getSlotShardings()->getAs<ShardingAttr>(name))
        return sharding;
  }
  return getShardingAttr();
}

static std::string fillHole(StringRef name, StringRef hole, int64_t number) {
  size_t at = name.find(hole);
  if (at == StringRef::npos)
    return name.str();
  return (name.take_front(at) + Twine(number) +
          name.drop_front(at + hole.size()))
      .str();
}

std::string ParamOp::getCheckpointName(int64_t layer, int64_t row) {
  if (!getCheckpoint())
    return getLayers() ? (getSymName() + "." + Twine(layer)).str()
                       : getSymName().str();
  int64_t number = layer * static_cast<int64_t>(getLayerStride()) +
                   static_cast<int64_t>(getLayerBase());
  std::string name = fillHole(getCheckpoint()->getName(), kLayerHole, number);
  return fillHole(name, kRowHole, row);
}

static bool hasRowTensors(ParamOp op) {
  return op.getCheckpoint() && op.getCheckpoint()->getName().contains(kRowHole);
}

int64_t ParamOp::getCheckpointRows() {
  return hasRowTensors(*this) ? getTensorType().getDimSize(0) : 1;
}

ArrayRef<int64_t> ParamOp::getCheckpointShape() {
  ArrayRef<int64_t> shape = getTensorType().getShape();
  if (hasRowTensors(*this))
    return shape.drop_front();
  bool isBox = getCheckpoint() && !getCheckpoint()->getShape().empty();
  return isBox ? getCheckpoint()->getShape() : shape;
}

/// The parameter exists, has this shape, and is used where its layers are.
static LogicalResult verifyAccess(Operation *op, FlatSymbolRefAttr symbol,
                                  StringRef slot, Type type,
                                  SymbolTableCollection &tables) {
  auto param = tables.lookupNearestSymbolFrom<ParamOp>(
      op->getParentOfType<ModuleOp>(), symbol);
  if (!param)
    return op->emitOpError()
           << "names parameter " << symbol << ", which is not declared";
  auto tensor = cast<RankedTensorType>(type), whole = param.getTensorType();
  ShardingAttr sharding = param.getSlotSharding(slot);
  // In a local program a flat slot has one dimension.
  bool flat = sharding && sharding.isFlat() && !tensor.getEncoding() &&
              tensor.getRank() == 1;
  bool fits = flat || tensor.getRank() == whole.getRank();
  // There the dimensions that are split are smaller.
  for (int64_t dim = 0; fits && !flat && dim < whole.getRank(); ++dim)
    fits =
        tensor.getDimSize(dim) == whole.getDimSize(dim) ||
        (sharding && !sharding.getDims()[dim].empty() && !tensor.getEncoding());
  if (!fits)
    return op->emitOpError() << "expected the shape of parameter " << symbol
                             << ", " << whole << ", got " << tensor;
  if (tensor.getElementType() != param.getSlotElementType(slot))
    return op->emitOpError()
           << "expected elements of " << param.getSlotElementType(slot)
           << ", as slot '" << slot << "' of parameter " << symbol
           << " has them, got " << tensor.getElementType();
  if (param.getLayers() && !op->getParentOfType<StackOp>())
    return op->emitOpError()
           << "uses parameter " << symbol
           << ", which each layer has one of, outside a stack";
  return success();
}

LogicalResult LoadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getParamAttr(), getSlot(), getType(), tables);
}
LogicalResult StoreOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getParamAttr(), getSlot(), getInput().getType(),
                      tables);
}
LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAccess(*this, getParamAttr(), getSlot(), getInput().getType(),
                      tables);
}

//===----------------------------------------------------------------------===//
// StepOp
//===----------------------------------------------------------------------===//

LogicalResult StepOp::verify() {
  Block &micro = getMicro().front();
  if (micro.getNumArguments() != getInputs().size())
    return emitErrorAt(*this) << "expected one micro argument an input, got "
                              << micro.getNumArguments() << " for "
                              << getInputs().size() << " inputs";
  for (auto [index, argument] : llvm::enumerate(micro.getArguments())) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getRank() < 1)
      return emitErrorAt(*this)
             << "expected input " << getInputs()[index]
             << " to be a tensor whose first dimension is the "
                "batch, got "
             << argument.getType();
  }
  auto yield = dyn_cast<YieldOp>(micro.getTerminator());
  if (!yield || yield.getNumOperands() < 2)
    return emitErrorAt(*this)
           << "expected the micro region to yield the summed loss "
              "and the number of valid tokens";
  if (getUpdate().empty())
    return success();
  Block &update = getUpdate().front();
  if (update.getNumArguments() != yield.getNumOperands() + getScalars().size())
    return emitErrorAt(*this)
           << "expected " << yield.getNumOperands() << " sums and "
           << getScalars().size() << " scalars as update arguments, got "
           << update.getNumArguments();
  if (update.getTerminator()->getNumOperands() != getResults().size())
    return emitErrorAt(*this)
           << "expected the update region to yield " << getResults().size()
           << " results, got " << update.getTerminator()->getNumOperands();
  return success();
}

//===----------------------------------------------------------------------===//
// StackOp
//===----------------------------------------------------------------------===//

YieldOp StackOp::getYield() {
  return cast<YieldOp>(getBlock()->getTerminator());
}
Block::BlockArgListType StackOp::getCarryArguments() {
  return getBlock()->getArguments().slice(1, getCarry().size());
}
Block::BlockArgListType StackOp::getEachArguments() {
  return getBlock()->getArguments().drop_front(1 + getCarry().size());
}
ResultRange StackOp::getCarryResults() {
  return getOutputs().take_front(getCarry().size());
}
ResultRange StackOp::getReducedResults() {
  return getOutputs().drop_front(getCarry().size()).take_front(getReductions());
}
ResultRange StackOp::getEachResults() {
  return getOutputs().drop_front(getCarry().size() + getReductions());
}

/// The body's arguments: the index, the carried values, each layer's elements.
static LogicalResult verifyStackArguments(StackOp op) {
  Block *block = op.getBlock();
  size_t expected = 1 + op.getCarry().size() + op.getEach().size();
  if (block->getNumArguments() != expected)
    return emitErrorAt(op) << "expected a body of " << expected
                           << " arguments (layer, carried, each), got "
                           << block->getNumArguments();
  if (!block->getArgument(0).getType().isIndex())
    return emitErrorAt(op) << "expected the layer's index first, got "
                           << block->getArgument(0).getType();
  for (auto [carry, argument] :
       llvm::zip(op.getCarry(), op.getCarryArguments()))
    if (carry.getType() != argument.getType())
      return emitErrorAt(op) << "carries " << carry.getType()
                             << " into an argument of " << argument.getType();
  for (auto [each, argument] : llvm::zip(op.getEach(), op.getEachArguments()))
    if (cast<LayersType>(each.getType()).getElement() != argument.getType())
      return emitErrorAt(op) << "takes an element of " << each.getType()
                             << " into an argument of " << argument.getType();
  return success();
}

LogicalResult StackOp::verify() {
  int64_t begin = getBegin(), end = getEnd();
  if (begin < 0 || begin > end)
    return emitErrorAt(*this)
           << "expected a range of layers, got " << begin << " to " << end;
  if (failed(verifyStackArguments(*this)))
    return failure();
  auto yield = dyn_cast<YieldOp>(getBlock()->getTerminator());
  if (!yield || yield.getNumOperands() != getNumResults() ||
      getNumResults() < getCarry().size() + getReductions())
    return emitErrorAt(*this)
           << "expected the body to yield " << getNumResults()
           << " values (carried, reduced, each)";
  size_t firstEach = getCarry().size() + getReductions();
  for (auto [index, value, result] :
       llvm::enumerate(yield.getValues(), getResults())) {
    Type expected = result.getType();
    if (index >= firstEach) {
      auto layers = dyn_cast<LayersType>(expected);
      expected = layers ? layers.getElement() : Type();
    }
    if (value.getType() != expected)
      return emitErrorAt(*this) << "yields " << value.getType()
                                << " for a result of type " << result.getType();
    if (index < getCarry().size() &&
        getCarry()[index].getType() != result.getType())
      return emitErrorAt(*this) << "carries " << getCarry()[index].getType()
                                << " but results in " << result.getType();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

LogicalResult ConstraintOp::verify() {
  int64_t rank = cast<RankedTensorType>(getType()).getRank();
  if (static_cast<int64_t>(getSharding().getDims().size()) != rank)
    return emitOpError() << "expected a sharding of " << rank
                         << " dimensions, got "
                         << getSharding().getDims().size();
  if (getSharding().isPartial())
    return emitOpError() << "cannot ask for a partial value";
  if (getSharding().isFlat())
    return emitOpError() << "cannot ask for flat parts, which only optimizer "
                            "state lies in";
  return success();
}

bool ConstraintOp::onlyMoves() { return true; }

LogicalResult ConstraintOp::buildGradient(OpBuilder &builder,
                                          ValueRange resultGradients,
                                          ArrayRef<Type> wanted,
                                          SmallVectorImpl<Value> &gradients) {
  Value gradient = resultGradients[0];
  gradients.push_back(
      gradient && wanted[0]
          ? ConstraintOp::create(builder, getLoc(), gradient, getSharding())
                .getResult()
          : Value());
  return success();
}

LogicalResult ReshardOp::verify() {
  auto from = cast<RankedTensorType>(getInput().getType());
  auto to = cast<RankedTensorType>(getType());
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return emitOpError() << "expected the same shape and element type, got "
                         << from << " and " << to;
  if (!parc::getSharding(from) || !parc::getSharding(to))
    return emitOpError() << "expected a sharding on both types";
  return verifyUsedRows(*this, from, getUsed(), getRows());
}

LogicalResult mlir::parc::verifyUsedRows(Operation *op, RankedTensorType type,
                                         ValueRange used,
                                         std::optional<int64_t> rows) {
  if (used.empty() && !rows)
    return success();
  if (used.size() != 2 || !rows || *rows < 0)
    return op->emitOpError() << "expected the rows that are used before and "
                                "after, and how many they are in all";
  if (type.getRank() < 2)
    return op->emitOpError() << "expected rows along dimension 1, got " << type;
  return success();
}
