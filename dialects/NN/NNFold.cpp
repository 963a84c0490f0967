//===- NNFold.cpp - The order of the sequence -----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.fold: checks, factors, definition; and the index that it stands for.
///
//===----------------------------------------------------------------------===//

#include "NN/NNFold.h"
#include "NN/NN.h"
#include "NN/NNBuilders.h"
#include "NN/NNVerify.h"
#include "Parc/FoldInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

LogicalResult FoldOp::verify() {
  RankedTensorType type = tensorType(getInput());
  if (failed(checkInteger(*this, "input", type)))
    return failure();
  auto dim = static_cast<int64_t>(getDim());
  if (dim < 0 || dim >= type.getRank())
    return emitOpError() << "expected dim below the input's rank "
                         << type.getRank() << ", got " << dim;
  if (type.isDynamicDim(dim))
    return emitOpError() << "expected a static size of dimension " << dim;
  if (static_cast<int64_t>(getParts()) < 1)
    return emitOpError() << "expected at least one part, got "
                         << static_cast<int64_t>(getParts());
  return success();
}

FailureOr<OpFactors> FoldOp::getFactors() {
  OpFactors factors = OpFactors::elementwise(*this);
  factors.factors[getDim()].splittable = false;
  factors.linear = {{0}};
  return factors;
}

namespace {
struct NNFoldInterface : FoldDialectInterface {
  explicit NNFoldInterface(Dialect *dialect) : FoldDialectInterface(dialect) {}
  Value fold(OpBuilder &builder, Location loc, Value input, int64_t dim,
             int64_t parts) const override {
    return FoldOp::create(builder, loc, input.getType(), input, dim, parts);
  }
};
} // namespace

void nn::addFoldInterface(NNDialect &dialect) {
  dialect.addInterfaces<NNFoldInterface>();
}

/// As foldedIndex of the pipeline library, in index arithmetic.
Value nn::foldedIndexOf(ImplicitLocOpBuilder &b, Value index, OpFoldResult size,
                        int64_t parts) {
  Value extent = indexValue(b, size), count = indexConstant(b, parts);
  Value one = indexConstant(b, 1), two = indexConstant(b, 2);
  auto plus = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  auto minus = [&](Value x, Value y) -> Value {
    return arith::SubIOp::create(b, x, y);
  };
  auto times = [&](Value x, Value y) -> Value {
    return arith::MulIOp::create(b, x, y);
  };
  auto over = [&](Value x, Value y) -> Value {
    return arith::DivUIOp::create(b, x, y);
  };
  Value part = over(minus(times(plus(index, one), count), one), extent);
  Value begin = over(times(part, extent), count);
  Value end = over(times(plus(part, one), extent), count);
  Value front = over(plus(begin, one), two);
  Value frontSize = minus(over(plus(end, one), two), front);
  Value place = minus(index, begin);
  Value inFront =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, place, frontSize);
  Value back = plus(minus(extent, over(end, two)), minus(place, frontSize));
  return arith::SelectOp::create(b, inFront, plus(front, place), back);
}

FailureOr<SmallVector<Value>> FoldOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RankedTensorType type = tensorType(getInput());
  unsigned rank = type.getRank();
  Loops all = loopRange(0, rank);
  OpFoldResult extent = dimSize(b, getInput(), getDim());
  auto body = [&](ImplicitLocOpBuilder &nested, ValueRange) -> Value {
    SmallVector<Value> at;
    for (unsigned loop : all)
      at.push_back(linalg::IndexOp::create(nested, loop));
    at[getDim()] = foldedIndexOf(nested, at[getDim()], extent, getParts());
    return tensor::ExtractOp::create(nested, getInput(), at);
  };
  return SmallVector<Value>{
      map(b, rank, ArrayRef<Access>(),
          {all, dimSizes(b, getInput()), type.getElementType()}, body)};
}
