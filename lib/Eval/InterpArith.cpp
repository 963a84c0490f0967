//===- InterpArith.cpp - Constants and elementwise ops --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// arith.constant, and arith and math ops on scalars and on tensors.
///
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::parc::eval;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// A tensor that one number fills.
template <class T>
static Tensor<T> filled(ArrayRef<int64_t> shape, const Tensor<T> &scalar) {
  Tensor<T> result = Tensor<T>::zeros(shape, scalar.isInt());
  result.visit([&](auto element) {
    using E = decltype(element);
    std::fill_n(result.template mutableData<E>(), result.size(),
                scalar.template data<E>()[0]);
  });
  return result;
}

template <class T> static LogicalResult prepareConstant(OpPlan<T> &plan) {
  auto op = cast<arith::ConstantOp>(plan.op);
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type)
    return scalarConstant<T>(op, op.getValue(), plan.constant);
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense || !type.getElementType().isIntOrIndexOrFloat())
    return op.emitOpError()
           << "expected a dense constant of numbers, got " << op.getValue();
  if (failed(checkSizes(op, type.getShape())))
    return failure();
  Tensor<T> scalar;
  if (dense.isSplat()) {
    if (failed(scalarConstant<T>(op, dense.template getSplatValue<Attribute>(),
                                 scalar)))
      return failure();
    plan.constant = filled(type.getShape(), scalar);
    return success();
  }
  plan.constant =
      Tensor<T>::zeros(type.getShape(), type.getElementType().isIntOrIndex());
  for (auto [index, attr] :
       llvm::enumerate(dense.template getValues<Attribute>())) {
    if (failed(scalarConstant<T>(op, attr, scalar)))
      return failure();
    plan.constant.visit([&, i = index](auto element) {
      using E = decltype(element);
      plan.constant.template mutableData<E>()[i] = scalar.template data<E>()[0];
    });
  }
  return success();
}

template <class T>
static LogicalResult runConstant(Interpreter<T> &interpreter,
                                 const OpPlan<T> &plan) {
  return interpreter.set(plan.op->getResult(0), plan.constant);
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

template <class T> static LogicalResult prepareElementwise(OpPlan<T> &plan) {
  plan.program = std::make_unique<Program<T>>();
  return compileElementwise<T>(plan.op, *plan.program);
}

/// The shape of the tensors among the operands; scalars go with any.
template <class T>
static LogicalResult commonShape(Interpreter<T> &interpreter, Operation *op,
                                 Shape &shape) {
  bool found = false;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (!isa<RankedTensorType>(operand.getType()))
      continue;
    ArrayRef<int64_t> next = interpreter.tensor(operand).shape();
    if (found && next != ArrayRef<int64_t>(shape))
      return op->emitOpError()
             << "expected operands of one shape, got " << shapeText(shape)
             << " and, for operand " << index << ", " << shapeText(next);
    shape.assign(next.begin(), next.end());
    found = true;
  }
  return success();
}

template <class T>
static LogicalResult runElementwise(Interpreter<T> &interpreter,
                                    const OpPlan<T> &plan) {
  Operation *op = plan.op;
  KernelCall<T> call;
  if (failed(commonShape(interpreter, op, call.extents)))
    return failure();
  Shape shape = call.extents, strides = rowMajorStrides(shape);
  for (Value operand : op->getOperands()) {
    const Tensor<T> &tensor = interpreter.tensor(operand);
    Access<T> access;
    access.isInt = tensor.isInt();
    if (access.isInt)
      access.ints = tensor.ints();
    else
      access.floats = tensor.floats();
    access.strides = strides;
    if (!isa<RankedTensorType>(operand.getType()))
      access.strides.assign(shape.size(), 0);
    call.accesses.push_back(std::move(access));
  }
  call.numInputs = op->getNumOperands();
  llvm::SmallVector<Tensor<T>, 2> results;
  for (Value result : op->getResults()) {
    Access<T> access;
    access.isInt = getElementTypeOrSelf(result.getType()).isIntOrIndex();
    results.push_back(Tensor<T>::zeros(shape, access.isInt));
    if (access.isInt)
      access.outInts = results.back().mutableInts();
    else
      access.outFloats = results.back().mutableFloats();
    access.strides = strides;
    call.accesses.push_back(std::move(access));
  }
  if (failed(runKernel(*plan.program, call)))
    return failure();
  for (auto [result, value] : llvm::zip(op->getResults(), results))
    if (failed(interpreter.set(result, value)))
      return failure();
  return success();
}

template <class T> Handler<T> mlir::parc::eval::elementwiseHandler() {
  return {runElementwise<T>, prepareElementwise<T>};
}

template <class T>
void mlir::parc::eval::addArithHandlers(HandlerTable<T> &table) {
  table["arith.constant"] = {runConstant<T>, prepareConstant<T>};
}

#define PARC_INSTANTIATE(T)                                                    \
  template Handler<T> mlir::parc::eval::elementwiseHandler();                  \
  template void mlir::parc::eval::addArithHandlers(HandlerTable<T> &);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
