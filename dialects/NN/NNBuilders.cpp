//===- NNBuilders.cpp - Loop nests that decompositions are made of --------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The builders of NNBuilders.h.
///
//===----------------------------------------------------------------------===//

#include "NN/NNBuilders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::nn;

Loops nn::loopRange(unsigned begin, unsigned end) {
  Loops loops;
  for (unsigned loop = begin; loop < end; ++loop)
    loops.push_back(loop);
  return loops;
}

Type nn::computeType(Type element) {
  if (auto type = dyn_cast<FloatType>(element))
    if (type.getWidth() < 32)
      return Float32Type::get(element.getContext());
  return element;
}

//===----------------------------------------------------------------------===//
// Sizes and constants
//===----------------------------------------------------------------------===//

OpFoldResult nn::dimSize(ImplicitLocOpBuilder &b, Value tensor, int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return b.getIndexAttr(type.getDimSize(dim));
  return tensor::DimOp::create(b, tensor, dim).getResult();
}

Sizes nn::dimSizes(ImplicitLocOpBuilder &b, Value tensor) {
  Sizes sizes;
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim)
    sizes.push_back(dimSize(b, tensor, dim));
  return sizes;
}

Value nn::indexValue(ImplicitLocOpBuilder &b, OpFoldResult size) {
  return getValueOrCreateConstantIndexOp(b, b.getLoc(), size);
}

Value nn::floatValue(ImplicitLocOpBuilder &b, OpFoldResult size, Type type) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return floatConstant(b, type, static_cast<double>(*constant));
  Value integer =
      arith::IndexCastOp::create(b, b.getI64Type(), cast<Value>(size));
  return arith::SIToFPOp::create(b, type, integer);
}

Value nn::floatConstant(ImplicitLocOpBuilder &b, Type type, double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
}

Value nn::bottomConstant(ImplicitLocOpBuilder &b, Type type) {
  const auto &semantics = cast<FloatType>(type).getFloatSemantics();
  return arith::ConstantOp::create(
      b, b.getFloatAttr(type, APFloat::getInf(semantics, /*Negative=*/true)));
}

Value nn::integerConstant(ImplicitLocOpBuilder &b, uint64_t value) {
  APInt bits(64, value);
  return arith::ConstantOp::create(b, b.getIntegerAttr(b.getI64Type(), bits));
}

Value nn::indexConstant(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value nn::add(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::AddFOp::create(b, x, y);
}

Value nn::sub(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::SubFOp::create(b, x, y);
}

Value nn::mul(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::MulFOp::create(b, x, y);
}

Value nn::div(ImplicitLocOpBuilder &b, Value x, Value y) {
  return arith::DivFOp::create(b, x, y);
}

Value nn::neg(ImplicitLocOpBuilder &b, Value x) {
  return arith::NegFOp::create(b, x);
}

Value nn::select(ImplicitLocOpBuilder &b, Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, condition, x, y);
}

Value nn::oneIf(ImplicitLocOpBuilder &b, Value condition, Type type) {
  Value zero = floatConstant(b, type, 0);
  Value one = floatConstant(b, type, 1);
  return select(b, condition, one, zero);
}

Value nn::isValid(ImplicitLocOpBuilder &b, Value label) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::sge, label,
                               integerConstant(b, 0));
}

Value nn::converted(ImplicitLocOpBuilder &b, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (value.getType().getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth())
    return arith::TruncFOp::create(b, type, value);
  return arith::ExtFOp::create(b, type, value);
}

//===----------------------------------------------------------------------===//
// Loop nests
//===----------------------------------------------------------------------===//

static Value empty(ImplicitLocOpBuilder &b, const Output &output) {
  return tensor::EmptyOp::create(b, output.sizes, output.element);
}

Value nn::filled(ImplicitLocOpBuilder &b, const Output &output, Value value) {
  Value init = empty(b, output);
  return linalg::FillOp::create(b, ValueRange{value}, ValueRange{init})
      .getResult(0);
}

/// The value that a reduction starts from.
static Value bottom(ImplicitLocOpBuilder &b, Type type, Combine combine) {
  if (type.isInteger(64))
    return integerConstant(b, combine == Combine::Sum   ? 0
                              : combine == Combine::Max ? uint64_t(1) << 63
                                                        : ~uint64_t(0) >> 1);
  return combine == Combine::Sum ? floatConstant(b, type, 0)
                                 : bottomConstant(b, type);
}

static AffineMap accessMap(MLIRContext *context, unsigned loops,
                           ArrayRef<unsigned> dims) {
  return AffineMap::getMultiDimMapWithTargets(loops, dims, context);
}

/// Widens a narrow float to the type that it is computed in.
static Value widened(ImplicitLocOpBuilder &b, Value value) {
  Type type = computeType(value.getType());
  if (type == value.getType())
    return value;
  return arith::ExtFOp::create(b, type, value);
}

/// A generic over `loops` loops, of which those that `outputs` do not name
/// reduce. The body gets the inputs' elements (widened), then the outputs' so
/// far.
static SmallVector<Value> buildNest(
    ImplicitLocOpBuilder &b, unsigned loops, ArrayRef<Access> inputs,
    ArrayRef<Output> outputs, ValueRange inits,
    function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)> body) {
  SmallVector<Value> tensors;
  SmallVector<AffineMap> maps;
  for (const Access &input : inputs) {
    tensors.push_back(input.tensor);
    maps.push_back(accessMap(b.getContext(), loops, input.loops));
  }
  SmallVector<utils::IteratorType> iterators(loops,
                                             utils::IteratorType::reduction);
  for (const Output &output : outputs) {
    maps.push_back(accessMap(b.getContext(), loops, output.loops));
    for (unsigned loop : output.loops)
      iterators[loop] = utils::IteratorType::parallel;
  }
  auto nest = linalg::GenericOp::create(
      b, inits.getTypes(), tensors, inits, maps, iterators,
      [&](OpBuilder &inner, Location loc, ValueRange arguments) {
        ImplicitLocOpBuilder nested(loc, inner);
        SmallVector<Value> elements;
        for (Value argument : arguments.take_front(inputs.size()))
          elements.push_back(widened(nested, argument));
        llvm::append_range(elements, arguments.drop_front(inputs.size()));
        SmallVector<Value> results = body(nested, elements);
        for (auto [result, output] : llvm::zip_equal(results, outputs))
          result = converted(nested, result, output.element);
        linalg::YieldOp::create(nested, results);
      });
  return llvm::to_vector_of<Value>(nest.getResults());
}

SmallVector<Value> nn::mapMany(ImplicitLocOpBuilder &b, unsigned loops,
                               ArrayRef<Access> inputs,
                               ArrayRef<Output> outputs, MultiBody body) {
  SmallVector<Value> inits;
  for (const Output &output : outputs)
    inits.push_back(empty(b, output));
  return buildNest(b, loops, inputs, outputs, inits,
                   [&](ImplicitLocOpBuilder &nested, ValueRange elements) {
                     return body(nested, elements.take_front(inputs.size()));
                   });
}

Value nn::map(ImplicitLocOpBuilder &b, unsigned loops, ArrayRef<Access> inputs,
              const Output &output, Body body) {
  return mapMany(b, loops, inputs, output,
                 [&](ImplicitLocOpBuilder &nested, ValueRange elements) {
                   return SmallVector<Value>{body(nested, elements)};
                 })
      .front();
}

/// `total` and one more term.
static Value combined(ImplicitLocOpBuilder &b, Combine combine, Value total,
                      Value term) {
  bool isSum = combine == Combine::Sum;
  if (combine == Combine::Min) {
    assert(total.getType().isInteger(64) && "the exact domain has no top");
    return arith::MinSIOp::create(b, total, term);
  }
  if (total.getType().isInteger(64))
    return isSum ? arith::AddIOp::create(b, total, term).getResult()
                 : arith::MaxSIOp::create(b, total, term).getResult();
  return isSum ? arith::AddFOp::create(b, total, term).getResult()
               : arith::MaximumFOp::create(b, total, term).getResult();
}

SmallVector<Value> nn::reduceMany(ImplicitLocOpBuilder &b, unsigned loops,
                                  ArrayRef<Access> inputs,
                                  ArrayRef<Output> outputs, Combine combine,
                                  MultiBody body) {
  SmallVector<Value> inits;
  for (const Output &output : outputs)
    inits.push_back(filled(b, output, bottom(b, output.element, combine)));
  return buildNest(b, loops, inputs, outputs, inits,
                   [&](ImplicitLocOpBuilder &nested, ValueRange elements) {
                     SmallVector<Value> terms =
                         body(nested, elements.take_front(inputs.size()));
                     ValueRange totals = elements.drop_front(inputs.size());
                     for (auto [term, total] : llvm::zip_equal(terms, totals)) {
                       term = converted(nested, term, total.getType());
                       term = combined(nested, combine, total, term);
                     }
                     return terms;
                   });
}

Value nn::reduce(ImplicitLocOpBuilder &b, unsigned loops,
                 ArrayRef<Access> inputs, const Output &output, Combine combine,
                 Body body) {
  return reduceMany(b, loops, inputs, output, combine,
                    [&](ImplicitLocOpBuilder &nested, ValueRange elements) {
                      return SmallVector<Value>{body(nested, elements)};
                    })
      .front();
}

Value nn::contract(ImplicitLocOpBuilder &b, unsigned loops, const Access &lhs,
                   const Access &rhs, const Output &output) {
  Value zero = floatConstant(b, output.element, 0);
  Value init = filled(b, output, zero);
  ArrayAttr maps =
      b.getAffineMapArrayAttr({accessMap(b.getContext(), loops, lhs.loops),
                               accessMap(b.getContext(), loops, rhs.loops),
                               accessMap(b.getContext(), loops, output.loops)});
  return linalg::ContractOp::create(b, TypeRange{init.getType()},
                                    ValueRange{lhs.tensor, rhs.tensor},
                                    ValueRange{init}, maps)
      .getResult(0);
}

Value nn::sumToLast(ImplicitLocOpBuilder &b, Value tensor, Type element) {
  auto type = cast<RankedTensorType>(tensor.getType());
  unsigned last = type.getRank() - 1;
  Output output{{last}, {dimSize(b, tensor, last)}, element};
  Value init = filled(b, output, floatConstant(b, element, 0));
  Loops all = loopRange(0, last + 1);
  SmallVector<utils::IteratorType> iterators(last,
                                             utils::IteratorType::reduction);
  iterators.push_back(utils::IteratorType::parallel);
  SmallVector<AffineMap> maps{accessMap(b.getContext(), last + 1, all),
                              accessMap(b.getContext(), last + 1, {last})};
  auto nest = linalg::GenericOp::create(
      b, TypeRange{init.getType()}, ValueRange{tensor}, ValueRange{init}, maps,
      iterators, [](OpBuilder &inner, Location loc, ValueRange x) {
        ImplicitLocOpBuilder nested(loc, inner);
        Value term = converted(nested, x[0], x[1].getType());
        Value sum = arith::AddFOp::create(inner, loc, x[1], term);
        linalg::YieldOp::create(inner, loc, sum);
      });
  return nest.getResult(0);
}

Value nn::storedAs(ImplicitLocOpBuilder &b, Value value, Type element) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == element)
    return value;
  unsigned rank = type.getRank();
  Loops loops = loopRange(0, rank);
  return map(b, rank, Access{value, loops},
             Output{loops, dimSizes(b, value), element},
             [](ImplicitLocOpBuilder &, ValueRange elements) {
               return elements.front();
             });
}
