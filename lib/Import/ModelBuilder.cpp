//===- ModelBuilder.cpp - Writes a model's ops ----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Single lines: a linear map, a norm, a split into heads.
///
//===----------------------------------------------------------------------===//

#include "ModelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;
using namespace mlir::parc;

static Type getElementType(Builder &builder, ElementKind kind) {
  switch (kind) {
  case ElementKind::F32:
    return builder.getF32Type();
  case ElementKind::F64:
    return builder.getF64Type();
  case ElementKind::BF16:
    return builder.getBF16Type();
  }
  llvm_unreachable("all kinds are above");
}

ModelBuilder::ModelBuilder(MLIRContext *context, const ModelConfig &config,
                           BatchOptions batch, QueueSizes queue)
    : context(context), config(config), architecture(*config.architecture),
      batch(batch), queue(queue), builder(context),
      element(getElementType(builder, config.element)) {}

RankedTensorType ModelBuilder::tensorOf(ArrayRef<int64_t> shape) const {
  return RankedTensorType::get(shape, element);
}

Type ModelBuilder::getWideType() {
  return element.isBF16() ? builder.getF32Type() : element;
}

RankedTensorType ModelBuilder::integersOf(ArrayRef<int64_t> shape) const {
  return RankedTensorType::get(shape, IntegerType::get(context, 64));
}

RankedTensorType ModelBuilder::withLast(Value value, int64_t size) const {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = size;
  return RankedTensorType::get(shape, type.getElementType());
}

Location ModelBuilder::at(StringRef name) const {
  std::string path = run ? (run->stack + "." + name).str() : name.str();
  return NameLoc::get(StringAttr::get(context, path));
}

Value ModelBuilder::load(StringRef symbol) {
  auto name = StringAttr::get(context, (run ? run->prefix : "") + symbol);
  return LoadOp::create(builder, NameLoc::get(name), types.lookup(name),
                        FlatSymbolRefAttr::get(name));
}

Value ModelBuilder::linear(StringRef name, StringRef symbol, Value x,
                           bool bias) {
  bool transposed = architecture.layout == WeightLayout::InOut;
  Value weight = load(symbol);
  auto type = cast<RankedTensorType>(weight.getType());
  Value y = nn::LinearOp::create(
      builder, at(name), withLast(x, type.getDimSize(transposed ? 1 : 0)), x,
      weight, transposed ? builder.getUnitAttr() : nullptr);
  if (!bias)
    return y;
  Value added = load((symbol + "_bias").str());
  return nn::BiasAddOp::create(builder, at(name), y.getType(), y, added);
}

Value ModelBuilder::rmsNorm(StringRef name, StringRef symbol, Value x,
                            double epsilon) {
  return nn::RmsNormOp::create(builder, at(name), x.getType(), x, load(symbol),
                               number(epsilon));
}

Value ModelBuilder::norm(StringRef name, StringRef symbol, Value x) {
  if (architecture.norm == NormKind::Rms)
    return rmsNorm(name, symbol, x, config.epsilon);
  Value weight = load(symbol);
  Value bias = load((symbol + "_bias").str());
  return nn::LayerNormOp::create(builder, at(name), x.getType(), x, weight,
                                 bias, number(config.epsilon));
}

Value ModelBuilder::splitHeads(StringRef name, Value x, int64_t heads,
                               int64_t size) {
  RankedTensorType type = tensorOf({batch.batch, batch.sequence, heads, size});
  SmallVector<ReassociationIndices> groups = {{0}, {1}, {2, 3}};
  return tensor::ExpandShapeOp::create(builder, at(name), type, x, groups);
}

Value ModelBuilder::joinHeads(StringRef name, Value x) {
  RankedTensorType type =
      tensorOf({batch.batch, batch.sequence, config.heads * config.valueDim});
  SmallVector<ReassociationIndices> groups = {{0}, {1}, {2, 3}};
  return tensor::CollapseShapeOp::create(builder, at(name), type, x, groups);
}

Value ModelBuilder::headNorm(StringRef name, StringRef symbol, Value x) {
  return architecture.qkNorm ? norm(name, symbol, x) : x;
}

Value ModelBuilder::rope(StringRef name, Value x) {
  if (!cosines)
    return x;
  return nn::RopeOp::create(builder, at(name), x.getType(), x, cosines, sines,
                            config.interleaved ? builder.getUnitAttr()
                                               : nullptr);
}

/// Zeros and ones, a static offset or stride a dimension; the last is `last`.
static SmallVector<OpFoldResult> fill(Builder &builder, size_t rank,
                                      int64_t each, int64_t last) {
  SmallVector<OpFoldResult> values(rank, builder.getIndexAttr(each));
  values.back() = builder.getIndexAttr(last);
  return values;
}

static SmallVector<OpFoldResult> sizesOf(Builder &builder,
                                         RankedTensorType type) {
  return getAsIndexOpFoldResult(builder.getContext(), type.getShape());
}

Value ModelBuilder::slice(StringRef name, Value x, int64_t offset,
                          int64_t size) {
  RankedTensorType type = withLast(x, size);
  size_t rank = type.getRank();
  return tensor::ExtractSliceOp::create(
      builder, at(name), type, x, fill(builder, rank, 0, offset),
      sizesOf(builder, type), fill(builder, rank, 1, 1));
}

Value ModelBuilder::concatenate(StringRef name, Value a, Value b) {
  auto first = cast<RankedTensorType>(a.getType());
  auto second = cast<RankedTensorType>(b.getType());
  size_t rank = first.getRank();
  int64_t middle = first.getShape().back();
  RankedTensorType type = withLast(a, middle + second.getShape().back());
  Value whole = tensor::EmptyOp::create(builder, at(name), type.getShape(),
                                        type.getElementType());
  whole = tensor::InsertSliceOp::create(
      builder, at(name), a, whole, fill(builder, rank, 0, 0),
      sizesOf(builder, first), fill(builder, rank, 1, 1));
  return tensor::InsertSliceOp::create(
      builder, at(name), b, whole, fill(builder, rank, 0, middle),
      sizesOf(builder, second), fill(builder, rank, 1, 1));
}

Value ModelBuilder::shareHead(StringRef name, Value x) {
  int64_t size = cast<RankedTensorType>(x.getType()).getDimSize(3);
  SmallVector<ReassociationIndices> groups = {{0}, {1}, {2, 3}};
  Value one = tensor::CollapseShapeOp::create(
      builder, at(name), tensorOf({batch.batch, batch.sequence, size}), x,
      groups);
  Value all = tensor::EmptyOp::create(
      builder, at(name),
      ArrayRef<int64_t>{batch.batch, batch.sequence, config.heads, size},
      element);
  return linalg::BroadcastOp::create(builder, at(name), one, all,
                                     ArrayRef<int64_t>{2})
      .getResult()
      .front();
}

Value ModelBuilder::activate(StringRef name, Value x) {
  if (config.activation == ActivationKind::Silu)
    return nn::SiluOp::create(builder, at(name), x.getType(), x);
  bool exact = config.activation == ActivationKind::GeluExact;
  return nn::GeluOp::create(builder, at(name), x.getType(), x,
                            exact ? builder.getUnitAttr() : nullptr);
}

Value ModelBuilder::dropout(StringRef name, Value x, double rate) {
  if (rate == 0.0)
    return x;
  return nn::DropoutOp::create(builder, at(name), x.getType(), x, seed, layer,
                               ValueRange(), number(rate),
                               builder.getI64IntegerAttr(nextSite++),
                               /*shape=*/nullptr, /*fold=*/nullptr);
}

Value ModelBuilder::add(StringRef name, Value a, Value b) {
  return arith::AddFOp::create(builder, at(name), a, b);
}
