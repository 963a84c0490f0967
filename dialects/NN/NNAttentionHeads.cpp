//===- NNAttentionHeads.cpp - Key heads on more ranks than heads ----------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Attention of some of the query heads that share key heads: which key head
/// each of them reads.
///
//===----------------------------------------------------------------------===//

#include "NN/NNAttentionParts.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::nn;

/// The local key head that local query head `head` reads. The local key heads
/// are part `i` of an even split, and `head_start` lies in the query heads of
/// that part: its number of whole parts is `i`.
static Value keyHeadOf(ImplicitLocOpBuilder &b, const AttentionView &view,
                       Value head, Value keyHeads) {
  Value group = indexConstant(b, *view.groupAttr);
  Value global = arith::AddIOp::create(b, head, view.headStart);
  Value keyHead = arith::DivUIOp::create(b, global, group);
  Value part = arith::DivUIOp::create(
      b, view.headStart, arith::MulIOp::create(b, keyHeads, group));
  return arith::SubIOp::create(b, keyHead,
                               arith::MulIOp::create(b, part, keyHeads));
}

/// `B x T x G x X` as `B x T x H x X`, H being the local query heads.
static Value repeated(ImplicitLocOpBuilder &b, const AttentionView &view,
                      Value tensor) {
  Sizes sizes = dimSizes(b, tensor);
  Value keyHeads = indexValue(b, sizes[2]);
  sizes[2] = dimSize(b, view.query, 2);
  auto body = [&](ImplicitLocOpBuilder &nested, ValueRange) -> Value {
    SmallVector<Value> at;
    for (unsigned loop = 0; loop < 4; ++loop)
      at.push_back(linalg::IndexOp::create(nested, loop));
    at[2] = keyHeadOf(nested, view, at[2], keyHeads);
    return tensor::ExtractOp::create(nested, tensor, at);
  };
  return map(b, 4, ArrayRef<Access>(),
             {loopRange(0, 4), sizes, tensorType(tensor).getElementType()},
             body);
}

void nn::repeatKeyHeads(ImplicitLocOpBuilder &b, AttentionView &view) {
  if (!view.withinGroups)
    return;
  view.key = repeated(b, view, view.key);
  view.value = repeated(b, view, view.value);
  view.sharedBy = *view.groupAttr;
  view.groupAttr = 1;
}

Value nn::sumKeyHeads(ImplicitLocOpBuilder &b, const AttentionView &view,
                      Value grad, Value like) {
  if (!view.withinGroups)
    return grad;
  AttentionView original = view;
  original.groupAttr = view.sharedBy;
  Type element = tensorType(grad).getElementType();
  Value keyHeads = indexValue(b, dimSize(b, like, 2));
  // Loops: b, t, key head, x; then the query head.
  Output output{loopRange(0, 4), dimSizes(b, like), computeType(element)};
  auto body = [&](ImplicitLocOpBuilder &nested, ValueRange x) -> Value {
    Value head = linalg::IndexOp::create(nested, 4);
    Value mine = keyHeadOf(nested, original, head, keyHeads);
    Value same = arith::CmpIOp::create(nested, arith::CmpIPredicate::eq, mine,
                                       linalg::IndexOp::create(nested, 2));
    return select(nested, same, x[0], floatConstant(nested, x[0].getType(), 0));
  };
  Value sum = reduce(b, 5, {{grad, {0, 1, 4, 3}}}, output, Combine::Sum, body);
  return storedAs(b, sum, element);
}
