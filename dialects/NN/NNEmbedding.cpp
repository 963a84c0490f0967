//===- NNEmbedding.cpp - Lookups ------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// nn.embedding and nn.embedding_grad: checks, factors, gradient, definitions.
///
//===----------------------------------------------------------------------===//

#include "NN/NN.h"
#include "NN/NNBuilders.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::parc;

/// Checks what both ops state: i64 ids, a float table of rank 2, and rows
/// (`rowsName`) of the shape of ids and N.
static LogicalResult verifyLookup(Operation *op, RankedTensorType ids,
                                  StringRef tableName, RankedTensorType table,
                                  StringRef rowsName, RankedTensorType rows) {
  if (failed(checkInteger(op, "ids", ids)) ||
      failed(checkRank(op, tableName, table, 2)) ||
      failed(checkFloat(op, tableName, table)) ||
      failed(checkFloat(op, rowsName, rows)))
    return failure();
  SmallVector<int64_t> shape(ids.getShape());
  shape.push_back(table.getDimSize(1));
  return checkShape(op, rowsName, rows,
                    ("the shape of ids and a row of the " + tableName).str(),
                    shape);
}

/// Factors: the dimensions of ids, then V, then N.
namespace {
struct LookupFactors {
  LookupFactors(RankedTensorType idsType, RankedTensorType tableType) {
    for (int64_t size : idsType.getShape())
      ids.push_back({factors.add(size)});
    unsigned v = factors.add(tableType.getDimSize(0));
    unsigned n = factors.add(tableType.getDimSize(1));
    factors.factors[v].needsOffset = true;
    rows = ids;
    rows.push_back({n});
    table = {{v}, {n}};
  }
  OpFactors factors;
  ValueFactors ids, rows, table;
};
} // namespace

//===----------------------------------------------------------------------===//
// nn.embedding
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verify() {
  RankedTensorType table = tensorType(getTable());
  RankedTensorType result = tensorType(getResult());
  if (failed(verifyLookup(*this, tensorType(getIds()), "table", table, "result",
                          result)))
    return failure();
  return checkElement(*this, "result", result, "the table",
                      table.getElementType());
}

FailureOr<OpFactors> EmbeddingOp::getFactors() {
  LookupFactors lookup(tensorType(getIds()), tensorType(getTable()));
  lookup.factors.operands = {lookup.ids, lookup.table};
  if (getStart())
    lookup.factors.operands.push_back({});
  lookup.factors.results = {lookup.rows};
  lookup.factors.linear = {{1}};
  return lookup.factors;
}

void EmbeddingOp::setFactorOffset(OpBuilder &builder, unsigned factor,
                                  Value start) {
  getStartMutable().assign(start);
}

/// `row - start` where a start is given.
static Value localRow(ImplicitLocOpBuilder &b, Value row, Value start) {
  return start ? arith::SubIOp::create(b, row, start).getResult() : row;
}

FailureOr<SmallVector<Value>> EmbeddingOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  unsigned rank = tensorType(getIds()).getRank();
  Sizes sizes = dimSizes(b, getIds());
  sizes.push_back(dimSize(b, getTable(), 1));
  Value rows = indexValue(b, dimSize(b, getTable(), 0));
  Type element = tensorType(getTable()).getElementType();
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
    Value id = arith::IndexCastOp::create(b, b.getIndexType(), x[0]);
    Value row = localRow(b, id, getStart());
    // Unsigned: a row before the part is a very large number.
    Value inside =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, row, rows);
    Value first = indexConstant(b, 0);
    Value legal = arith::SelectOp::create(b, inside, row, first);
    Value column = linalg::IndexOp::create(b, rank);
    Value loaded =
        tensor::ExtractOp::create(b, getTable(), ValueRange{legal, column});
    Value zero = floatConstant(b, element, 0);
    return arith::SelectOp::create(b, inside, loaded, zero);
  };
  return SmallVector<Value>{
      map(b, rank + 1, Access{getIds(), loopRange(0, rank)},
          {loopRange(0, rank + 1), sizes, element}, body)};
}

LogicalResult
EmbeddingOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                           ArrayRef<Type> wanted,
                           SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(getNumOperands(), Value());
  if (!resultGradients[0] || !wanted[1])
    return success();
  ImplicitLocOpBuilder b(getLoc(), builder);
  RankedTensorType table = tensorType(getTable());
  Value rows;
  if (table.isDynamicDim(0))
    rows = indexValue(b, dimSize(b, getTable(), 0));
  operandGradients[1] =
      EmbeddingGradOp::create(b, table.clone(wanted[1]), getIds(),
                              resultGradients[0], getStart(), rows);
  return success();
}

//===----------------------------------------------------------------------===//
// nn.embedding_grad
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingGradOp::verify() {
  RankedTensorType result = tensorType(getResult());
  RankedTensorType grad = tensorType(getGrad());
  if (failed(verifyLookup(*this, tensorType(getIds()), "result", result, "grad",
                          grad)) ||
      failed(checkSumElement(*this, "result", result, "grad",
                             grad.getElementType())))
    return failure();
  if (result.isDynamicDim(0) && !getRows())
    return emitOpError()
           << "expected `rows`, as dimension 0 of the result is dynamic";
  return success();
}

FailureOr<OpFactors> EmbeddingGradOp::getFactors() {
  LookupFactors lookup(tensorType(getIds()), tensorType(getResult()));
  lookup.factors.operands = {lookup.ids, lookup.rows};
  lookup.factors.operands.resize(getNumOperands());
  lookup.factors.results = {lookup.table};
  lookup.factors.linear = {{1}};
  return lookup.factors;
}

Operation *
EmbeddingGradOp::buildLocal(OpBuilder &builder, ValueRange operands,
                            TypeRange types,
                            ArrayRef<SmallVector<OpFoldResult>> sizes) {
  auto local =
      cast<EmbeddingGradOp>(cloneWithTypes(builder, *this, operands, types));
  if (tensorType(local.getResult()).isDynamicDim(0)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(local);
    ImplicitLocOpBuilder b(getLoc(), builder);
    local.getRowsMutable().assign(indexValue(b, sizes[0][0]));
  }
  return local;
}

void EmbeddingGradOp::setFactorOffset(OpBuilder &builder, unsigned factor,
                                      Value start) {
  getStartMutable().assign(start);
}

FailureOr<SmallVector<Value>> EmbeddingGradOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  RankedTensorType result = tensorType(getResult());
  unsigned rank = tensorType(getIds()).getRank();
  OpFoldResult rows = getRows() && result.isDynamicDim(0)
                          ? OpFoldResult(getRows())
                          : b.getIndexAttr(result.getDimSize(0));
  Type element = result.getElementType();
  Output output{
      {0, 1}, {rows, dimSize(b, getGrad(), rank)}, computeType(element)};
  Loops ids = loopRange(2, rank + 2), grad = ids;
  grad.push_back(1);
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) -> Value {
    Value id = arith::IndexCastOp::create(b, b.getIndexType(), x[0]);
    Value row = linalg::IndexOp::create(b, 0);
    if (getStart())
      row = arith::AddIOp::create(b, row, getStart());
    Value same = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, id, row);
    Value zero = floatConstant(b, x[1].getType(), 0);
    return arith::SelectOp::create(b, same, x[1], zero);
  };
  Value sum = reduce(b, rank + 2, {{getIds(), ids}, {getGrad(), grad}}, output,
                     Combine::Sum, body);
  // Who runs this may add each row of grad to its row of the table instead of
  // testing every pair.
  sum.getDefiningOp()->setAttr("parc.scatter", b.getUnitAttr());
  return SmallVector<Value>{storedAs(b, sum, element)};
}
