//===- Retype.cpp - Another batch, another element type -------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The two rewritings, both of types only.
///
//===----------------------------------------------------------------------===//

#include "Retype.h"
#include "parc/Analysis/Propagation.h"
#include "parc/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

/// Applies `f` to the tensor type in `type`.
static Type mapTensor(Type type, llvm::function_ref<Type(RankedTensorType)> f) {
  if (auto layers = dyn_cast<LayersType>(type))
    return LayersType::get(type.getContext(),
                           mapTensor(layers.getElement(), f));
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return f(tensor);
  return type;
}

//===----------------------------------------------------------------------===//
// Element type
//===----------------------------------------------------------------------===//

static Type floatType(MLIRContext *context, ElementKind kind) {
  switch (kind) {
  case ElementKind::F32:
    return Float32Type::get(context);
  case ElementKind::F64:
    return Float64Type::get(context);
  case ElementKind::BF16:
    return BFloat16Type::get(context);
  }
  llvm_unreachable("covered");
}

/// A constant's value with floats of `target`.
static TypedAttr convertConstant(TypedAttr value, FloatType target) {
  auto convert = [&](APFloat number) {
    bool lost = false;
    number.convert(target.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &lost);
    return number;
  };
  if (auto number = dyn_cast<FloatAttr>(value))
    return FloatAttr::get(target, convert(number.getValue()));
  auto dense = dyn_cast<DenseFPElementsAttr>(value);
  if (!dense)
    return value;
  return cast<TypedAttr>(dense.mapValues(target, [&](const APFloat &number) {
    return convert(number).bitcastToAPInt();
  }));
}

static LogicalResult changeType(ModuleOp module, ElementKind from,
                                ElementKind to) {
  if (to == ElementKind::BF16)
    return module.emitError("the program is written in ")
           << stringifyElementKind(from)
           << " and cannot become bf16: norms, softmax and loss would lose "
              "their f32";
  auto target = cast<FloatType>(floatType(module.getContext(), to));
  auto element = [&](Type type) -> Type {
    return isa<FloatType>(type) ? Type(target) : type;
  };
  auto convert = [&](Type type) -> Type {
    Type mapped = mapTensor(type, [&](RankedTensorType tensor) -> Type {
      return tensor.clone(element(tensor.getElementType()));
    });
    return element(mapped);
  };
  module.walk([&](Operation *op) {
    for (Value result : op->getResults())
      result.setType(convert(result.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(convert(argument.getType()));
    if (auto param = dyn_cast<ParamOp>(op)) {
      param.setType(cast<RankedTensorType>(convert(param.getTensorType())));
      // Nothing is narrower than its slots any more.
      param.removeSlotTypesAttr();
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      constant.setValueAttr(convertConstant(constant.getValue(), target));
  });
  module.walk([&](Operation *op) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      return;
    op->getResult(0).replaceAllUsesWith(op->getOperand(0));
    op->erase();
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Batch
//===----------------------------------------------------------------------===//

namespace {

/// Changes the batch of one step.
class Rebatch {
public:
  Rebatch(ModuleOp module, int64_t from, int64_t to)
      : module(module), from(from), to(to) {}

  LogicalResult run();

private:
  /// Makes `scratch`, a copy whose composite ops are decomposed, so that every
  /// op of it has factors.
  LogicalResult copy();
  /// Finds the dimensions that carry the batch, by value.
  void collect(const Propagation &propagation);
  Type changed(Value value) const;
  LogicalResult fixAttributes(Operation *op);

  ModuleOp module;
  int64_t from, to;
  OwningOpRef<ModuleOp> scratch;
  IRMapping mapping;
  /// What stands in `scratch` for the results of composite ops.
  DenseMap<Value, ObserveOp> observed;
  DenseMap<Value, SmallVector<unsigned, 2>> dims;
};

} // namespace

LogicalResult Rebatch::copy() {
  scratch = cast<ModuleOp>(module->clone(mapping));
  module.walk([&](Operation *op) {
    if (isa<ShardableOpInterface>(op) || !isa<DecomposableOpInterface>(op))
      return;
    for (Value result : op->getResults()) {
      Value copied = mapping.lookup(result);
      OpBuilder builder(copied.getContext());
      builder.setInsertionPointAfterValue(copied);
      observed[result] = ObserveOp::create(builder, copied.getLoc(),
                                           builder.getStringAttr(""), copied,
                                           /*fold=*/nullptr);
    }
  });
  PassManager manager(module.getContext());
  manager.addPass(createDecomposeComposites());
  return manager.run(*scratch);
}

void Rebatch::collect(const Propagation &propagation) {
  auto add = [&](Value value) {
    Type type = value.getType();
    if (auto layers = dyn_cast<LayersType>(type))
      type = layers.getElement();
    if (!isa<RankedTensorType>(type))
      return;
    ObserveOp observe = observed.lookup(value);
    ShardingAttr layout = propagation.layoutOf(observe ? observe.getInput()
                                                       : mapping.lookup(value));
    for (auto [index, dim] : llvm::enumerate(layout.getDims()))
      for (StringAttr axis : dim.getAxes())
        if (axis.getValue() == kMicroBatchAxis)
          dims[value].push_back(index);
  };
  StepOp step = *module.getOps<StepOp>().begin();
  step.getMicro().walk([&](Block *block) {
    // Bodies of linalg ops hold scalars only.
    if (!isa<StepOp, StackOp>(block->getParentOp()))
      return;
    for (BlockArgument argument : block->getArguments())
      add(argument);
    for (Operation &op : *block)
      for (Value result : op.getResults())
        add(result);
  });
}

Type Rebatch::changed(Value value) const {
  auto found = dims.find(value);
  if (found == dims.end())
    return value.getType();
  return mapTensor(value.getType(), [&](RankedTensorType type) -> Type {
    SmallVector<int64_t> shape(type.getShape());
    for (unsigned dim : found->second)
      shape[dim] = shape[dim] / from * to;
    return type.clone(shape);
  });
}

LogicalResult Rebatch::fixAttributes(Operation *op) {
  if (op->getNumResults() != 1 || !dims.count(op->getResult(0)))
    return success();
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!splat)
      return op->emitError("holds one value a sequence, so the batch cannot "
                           "change");
    constant.setValueAttr(splat.resizeSplat(type));
  } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    expand.setStaticOutputShape(type.getShape());
  } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    slice.setStaticSizes(type.getShape());
  } else if (auto slice = dyn_cast<tensor::InsertSliceOp>(op)) {
    slice.setStaticSizes(slice.getSourceType().getShape());
  }
  return success();
}

LogicalResult Rebatch::run() {
  if (failed(copy()))
    return failure();
  AxisSizes axes(*scratch, 1);
  Propagation propagation(*scratch, axes);
  if (failed(propagation.initialize()))
    return failure();
  StepOp step = *module.getOps<StepOp>().begin();
  auto axis = StringAttr::get(module.getContext(), kMicroBatchAxis);
  for (BlockArgument input : step.getMicro().front().getArguments()) {
    auto type = cast<RankedTensorType>(input.getType());
    if (type.getRank() > 0 && type.getDimSize(0) == from)
      propagation.place(mapping.lookup(Value(input)), 0, axis);
  }
  propagation.spread();
  for (ParamOp param : scratch->getOps<ParamOp>())
    if (propagation.layoutOf(param).splits(kMicroBatchAxis))
      return param.emitError("has one element a sequence, so the batch cannot "
                             "change");
  collect(propagation);
  WalkResult walked = step.getMicro().walk([&](Operation *op) {
    for (Value result : op->getResults())
      result.setType(changed(result));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(changed(argument));
    return failed(fixAttributes(op)) ? WalkResult::interrupt()
                                     : WalkResult::advance();
  });
  for (BlockArgument argument : step.getMicro().front().getArguments())
    argument.setType(changed(argument));
  return failure(walked.wasInterrupted());
}

LogicalResult mlir::parc::driver::retype(ModuleOp module,
                                         const ModelFacts &facts,
                                         const Retype &change) {
  if (facts.sequence && *facts.sequence != change.sequence)
    return module.emitError("the program is written for sequences of ")
           << *facts.sequence << " tokens, got " << change.sequence
           << "; import the model again with --seq " << change.sequence;
  if (facts.dtype != change.dtype &&
      failed(changeType(module, facts.dtype, change.dtype)))
    return failure();
  if (facts.batch && *facts.batch != change.batch &&
      failed(Rebatch(module, *facts.batch, change.batch).run()))
    return failure();
  return verify(module);
}
