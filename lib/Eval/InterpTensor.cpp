//===- InterpTensor.cpp - Ops of the tensor dialect -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Shapes, slices and elements of tensors. Dynamic sizes come from the values.
///
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::parc::eval;

LogicalResult mlir::parc::eval::checkSizes(Operation *op,
                                           ArrayRef<int64_t> sizes) {
  int64_t count = 1;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (size < 0)
      return op->emitOpError() << "expected a size of at least 0 for dimension "
                               << dim << ", got " << size;
    if (llvm::MulOverflow(count, size, count) || count > (int64_t(1) << 33))
      return op->emitOpError() << "has more than 2^33 elements, the most that "
                                  "the evaluator holds, with shape "
                               << shapeText(sizes);
  }
  return success();
}

static bool isIntType(Type type) {
  return getElementTypeOrSelf(type).isIntOrIndex();
}

//===----------------------------------------------------------------------===//
// Making and reading
//===----------------------------------------------------------------------===//

template <class T>
static LogicalResult runEmpty(Interpreter<T> &interpreter,
                              const OpPlan<T> &plan) {
  auto op = cast<tensor::EmptyOp>(plan.op);
  Shape sizes = interpreter.integers(op.getMixedSizes());
  if (failed(checkSizes(op, sizes)))
    return failure();
  return interpreter.set(op, Tensor<T>::zeros(sizes, isIntType(op.getType())));
}

template <class T>
static LogicalResult runDim(Interpreter<T> &interpreter,
                            const OpPlan<T> &plan) {
  auto op = cast<tensor::DimOp>(plan.op);
  ArrayRef<int64_t> shape = interpreter.tensor(op.getSource()).shape();
  int64_t dim = interpreter.integer(op.getIndex());
  if (dim < 0 || dim >= int64_t(shape.size()))
    return op.emitOpError() << "asks for dimension " << dim
                            << " of a tensor of rank " << shape.size();
  return interpreter.set(op, Tensor<T>::integer(shape[dim]));
}

template <class T>
static LogicalResult runExtract(Interpreter<T> &interpreter,
                                const OpPlan<T> &plan) {
  auto op = cast<tensor::ExtractOp>(plan.op);
  const Tensor<T> &source = interpreter.tensor(op.getTensor());
  Box box;
  for (Value index : op.getIndices())
    box.offsets.push_back(interpreter.integer(index));
  box.sizes.assign(source.rank(), 1);
  if (!box.inside(source.shape()))
    return op.emitOpError()
           << "reads index " << shapeText(box.offsets)
           << " of a tensor of shape " << shapeText(source.shape());
  return interpreter.set(op, extractBox(source, box).reshaped({}));
}

/// tensor.from_elements and tensor.splat: elements in row-major order.
template <class T>
static LogicalResult runFromElements(Interpreter<T> &interpreter,
                                     const OpPlan<T> &plan) {
  auto op = cast<tensor::FromElementsOp>(plan.op);
  Tensor<T> result =
      Tensor<T>::zeros(op.getType().getShape(), isIntType(op.getType()));
  for (auto [index, element] : llvm::enumerate(op.getElements()))
    result.visit([&, i = index, value = element](auto kind) {
      using E = decltype(kind);
      result.template mutableData<E>()[i] =
          interpreter.tensor(value).template data<E>()[0];
    });
  return interpreter.set(op, std::move(result));
}

template <class T>
static LogicalResult runSplat(Interpreter<T> &interpreter,
                              const OpPlan<T> &plan) {
  auto op = cast<tensor::SplatOp>(plan.op);
  Shape sizes;
  auto dynamic = op.getDynamicSizes().begin();
  for (int64_t size : op.getType().getShape())
    sizes.push_back(
        ShapedType::isDynamic(size) ? interpreter.integer(*dynamic++) : size);
  if (failed(checkSizes(op, sizes)))
    return failure();
  Tensor<T> result = Tensor<T>::zeros(sizes, isIntType(op.getType()));
  result.visit([&](auto kind) {
    using E = decltype(kind);
    std::fill_n(result.template mutableData<E>(), result.size(),
                interpreter.tensor(op.getInput()).template data<E>()[0]);
  });
  return interpreter.set(op, std::move(result));
}

/// The result's type is checked when it is set; that is all a cast does.
template <class T>
static LogicalResult runCast(Interpreter<T> &interpreter,
                             const OpPlan<T> &plan) {
  return interpreter.set(plan.op->getResult(0),
                         interpreter.tensor(plan.op->getOperand(0)));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

template <class T>
static LogicalResult runExpand(Interpreter<T> &interpreter,
                               const OpPlan<T> &plan) {
  auto op = cast<tensor::ExpandShapeOp>(plan.op);
  const Tensor<T> &source = interpreter.tensor(op.getSrc());
  Shape sizes = interpreter.integers(op.getMixedOutputShape());
  if (failed(checkSizes(op, sizes)))
    return failure();
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    int64_t product = 1;
    for (int64_t member : group)
      product *= sizes[member];
    if (product != source.shape()[dim])
      return op.emitOpError()
             << "expected dimension " << dim << " of size "
             << source.shape()[dim] << " to be expanded to sizes of that "
             << "product, got " << product;
  }
  return interpreter.set(op, source.reshaped(sizes));
}

template <class T>
static LogicalResult runCollapse(Interpreter<T> &interpreter,
                                 const OpPlan<T> &plan) {
  auto op = cast<tensor::CollapseShapeOp>(plan.op);
  const Tensor<T> &source = interpreter.tensor(op.getSrc());
  Shape sizes;
  for (auto &group : op.getReassociationIndices()) {
    int64_t product = 1;
    for (int64_t member : group)
      product *= source.shape()[member];
    sizes.push_back(product);
  }
  return interpreter.set(op, source.reshaped(sizes));
}

template <class T>
static LogicalResult runExtractSlice(Interpreter<T> &interpreter,
                                     const OpPlan<T> &plan) {
  auto op = cast<tensor::ExtractSliceOp>(plan.op);
  const Tensor<T> &source = interpreter.tensor(op.getSource());
  Box box{interpreter.integers(op.getMixedOffsets()),
          interpreter.integers(op.getMixedSizes()),
          interpreter.integers(op.getMixedStrides())};
  if (!box.inside(source.shape()))
    return op.emitOpError()
           << "takes sizes " << shapeText(box.sizes) << " at offsets "
           << shapeText(box.offsets) << " of a tensor of shape "
           << shapeText(source.shape());
  Tensor<T> part = extractBox(source, box);
  Shape shape;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (auto [dim, size] : llvm::enumerate(box.sizes))
    if (!dropped.test(dim))
      shape.push_back(size);
  return interpreter.set(op, part.reshaped(shape));
}

template <class T>
static LogicalResult runInsertSlice(Interpreter<T> &interpreter,
                                    const OpPlan<T> &plan) {
  auto op = cast<tensor::InsertSliceOp>(plan.op);
  const Tensor<T> &part = interpreter.tensor(op.getSource());
  Box box{interpreter.integers(op.getMixedOffsets()),
          interpreter.integers(op.getMixedSizes()),
          interpreter.integers(op.getMixedStrides())};
  ArrayRef<int64_t> shape = interpreter.tensor(op.getDest()).shape();
  if (!box.inside(shape) || elementCount(box.sizes) != part.size())
    return op.emitOpError()
           << "puts " << shapeText(part.shape()) << " into sizes "
           << shapeText(box.sizes) << " at offsets " << shapeText(box.offsets)
           << " of a tensor of shape " << shapeText(shape);
  Tensor<T> target = interpreter.take(plan, op.getDestMutable());
  insertBox(target, part, box);
  return interpreter.set(op, std::move(target));
}

/// tensor.insert of one element.
template <class T>
static LogicalResult runInsert(Interpreter<T> &interpreter,
                               const OpPlan<T> &plan) {
  auto op = cast<tensor::InsertOp>(plan.op);
  ArrayRef<int64_t> shape = interpreter.tensor(op.getDest()).shape();
  Box box;
  for (Value index : op.getIndices())
    box.offsets.push_back(interpreter.integer(index));
  box.sizes.assign(shape.size(), 1);
  if (!box.inside(shape))
    return op.emitOpError() << "writes index " << shapeText(box.offsets)
                            << " of a tensor of shape " << shapeText(shape);
  Tensor<T> target = interpreter.take(plan, op.getDestMutable());
  insertBox(target, interpreter.tensor(op.getScalar()), box);
  return interpreter.set(op, std::move(target));
}

template <class T>
static LogicalResult runConcat(Interpreter<T> &interpreter,
                               const OpPlan<T> &plan) {
  auto op = cast<tensor::ConcatOp>(plan.op);
  int64_t dim = int64_t(op.getDim());
  Shape shape(interpreter.tensor(op.getInputs().front()).shape());
  shape[dim] = 0;
  for (Value input : op.getInputs()) {
    Shape next(interpreter.tensor(input).shape());
    shape[dim] += std::exchange(next[dim], shape[dim]);
    next[dim] = shape[dim];
    if (next != shape)
      return op.emitOpError()
             << "expected inputs of one shape but for dimension " << dim
             << ", got " << shapeText(interpreter.tensor(input).shape());
  }
  Tensor<T> result = Tensor<T>::zeros(shape, isIntType(op.getType()));
  Box box{Shape(shape.size(), 0), {}, {}};
  for (Value input : op.getInputs()) {
    const Tensor<T> &part = interpreter.tensor(input);
    box.sizes = Shape(part.shape());
    insertBox(result, part, box);
    box.offsets[dim] += part.shape()[dim];
  }
  return interpreter.set(op, std::move(result));
}

template <class T>
void mlir::parc::eval::addTensorHandlers(HandlerTable<T> &table) {
  table["tensor.empty"] = {runEmpty<T>};
  table["tensor.dim"] = {runDim<T>};
  table["tensor.extract"] = {runExtract<T>};
  table["tensor.insert"] = {runInsert<T>};
  table["tensor.from_elements"] = {runFromElements<T>};
  table["tensor.splat"] = {runSplat<T>};
  table["tensor.cast"] = {runCast<T>};
  table["tensor.expand_shape"] = {runExpand<T>};
  table["tensor.collapse_shape"] = {runCollapse<T>};
  table["tensor.extract_slice"] = {runExtractSlice<T>};
  table["tensor.insert_slice"] = {runInsertSlice<T>};
  table["tensor.concat"] = {runConcat<T>};
}

#define PARC_INSTANTIATE(T)                                                    \
  template void mlir::parc::eval::addTensorHandlers(HandlerTable<T> &);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
