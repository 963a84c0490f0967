//===- NNAttentionLocal.h - Attention on a part of the heads ----*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How nn.attention and nn.attention_grad become local: they keep the number of
/// query heads a key head, and, under dropout, where their part lies.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNATTENTIONLOCAL_H
#define PARC_DIALECTS_NN_NNATTENTIONLOCAL_H

#include "NN/NNAttentionParts.h"
#include "NN/NNVerify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::nn {

/// The ring of the local op is over the axes that split the sequence.
template <typename Op> void setLocalRing(Op op, Op local) {
  parc::ShardingAttr sharding = parc::getSharding(op.getQuery().getType());
  if (!op.getRing() || !sharding || sharding.getDims()[1].empty()) {
    local.removeRingAttr();
    return;
  }
  parc::DimShardingAttr split = sharding.getDims()[1];
  SmallVector<Attribute> axes(split.getAxes().begin(), split.getAxes().end());
  local.setRingAttr(ArrayAttr::get(op.getContext(), axes));
  local.setRingOf(ArrayRef<int64_t>{tensorType(op.getKey()).getDimSize(1),
                                    split.getGrain()});
}

/// The local op for `op`: the clone, told what its types no longer tell.
template <typename Op>
Operation *buildLocalAttention(Op op, OpBuilder &builder, ValueRange operands,
                               TypeRange types) {
  AttentionView view(op);
  auto local = cast<Op>(parc::cloneWithTypes(builder, op, operands, types));
  setLocalRing(op, local);
  if (!view.groupAttr && !ShapedType::isDynamic(view.groupSize()))
    local.setGroup(view.groupSize());
  if (view.dropout > 0 && !view.shape) {
    ArrayRef<int64_t> query = tensorType(view.query).getShape();
    int64_t keys = tensorType(view.key).getDimSize(1);
    local.setShape(ArrayRef<int64_t>{query[0], query[2], query[1], keys});
  }
  return local;
}

/// The local query heads are some of those that share the local key heads. If
/// that is one key head, it is a group of its own.
template <typename Op> void setMemberStart(Op op, Value start) {
  int64_t keyHeads = tensorType(op.getKey()).getDimSize(2);
  int64_t heads = tensorType(op.getQuery()).getDimSize(2);
  if (keyHeads == 1 && !ShapedType::isDynamic(heads))
    op.setGroup(heads);
  else
    op.setWithinGroups(true);
  // Which heads they are matters for what they read and what is dropped.
  if (op.getWithinGroups() || AttentionView(op).dropout > 0)
    op.getHeadStartMutable().assign(start);
}

/// Sets where the local part of a factor starts; heads count query heads.
template <typename Op>
void setAttentionOffset(Op op, OpBuilder &builder, unsigned factor,
                        Value start) {
  if (factor == AttentionFactors::Batch) {
    op.getBatchStartMutable().assign(start);
    return;
  }
  if (factor == AttentionFactors::Query) {
    op.getQueryStartMutable().assign(start);
    return;
  }
  if (factor == AttentionFactors::Member) {
    setMemberStart(op, start);
    return;
  }
  // The start of a part of the members says more.
  if (op.getHeadStart())
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  Value group = indexConstant(b, AttentionView(op).groupSize());
  Value heads = arith::MulIOp::create(b, start, group);
  op.getHeadStartMutable().assign(heads);
}

/// Fails where a local op on a ring does not know the whole of its keys.
inline LogicalResult requireRing(const AttentionView &view) {
  if (view.ringOf)
    return success();
  return view.op->emitOpError()
         << "expected `of` of the ring, as the op is local";
}

/// Fails for an op on a ring, which is defined with its transfers only.
inline LogicalResult requireNoRing(const AttentionView &view) {
  if (!view.ring)
    return success();
  return view.op->emitOpError() << "expected no ring, got one over "
                                << view.ring << "; run 'parc-ring' first";
}

/// Fails where nothing tells how many query heads share a key head.
inline LogicalResult requireGroup(const AttentionView &view) {
  if (!ShapedType::isDynamic(view.groupSize()))
    return success();
  return view.op->emitOpError()
         << "expected `group`, as the numbers of heads are dynamic";
}

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNATTENTIONLOCAL_H
