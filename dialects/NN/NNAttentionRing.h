//===- NNAttentionRing.h - Attention with keys that pass by -----*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Attention of the local queries with the keys of all ranks of a ring, one
/// rank's after the other (arXiv:2310.01889). A row's state is the largest
/// scaled product so far, the sum of exponentials under it, and the sum of
/// values weighed by them, not normalised; two states join by the algebra of
/// online softmax (arXiv:1805.02867). Keys and queries that see nothing of each
/// other are cut off both blocks' ends at run time, by their positions.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNATTENTIONRING_H
#define PARC_DIALECTS_NN_NNATTENTIONRING_H

#include "NN/NNAttentionParts.h"

namespace mlir::nn {

/// Builds attention, or its gradients, on a ring of at least one rank.
class RingAttention {
public:
  RingAttention(ImplicitLocOpBuilder &b, const AttentionView &view,
                int64_t members);

  /// The result, as `type`. Keys and values are passed on members - 1 times.
  Value forward(Type type);
  /// The gradients for query, key and value, as `types`. Keys and values are
  /// passed on members - 1 times to find the rows' statistics, and kept for
  /// the second pass, in which their gradients (in the type that is computed
  /// in) follow them as often.
  SmallVector<Value> backward(Value grad, TypeRange types);

  /// All ranks' keys or values; a sum over the ring's part of a gradient.
  Value gathered(Value part);
  Value scattered(Value sum, Type type);

private:
  /// Elements of a dimension; all of it without a size.
  struct Range {
    Value start, size;
  };
  /// The local queries and the keys of one rank, as far as they meet.
  struct Block {
    AttentionView view;
    Range queries, keys;
    /// Sizes of what they were cut from.
    OpFoldResult querySize, keySize;
  };
  /// A row's maximum, and what is summed under it.
  struct State {
    Value maxima;
    SmallVector<Access> sums;
  };

  Value passed(Value value, int64_t hops);
  Value startAfter(int64_t hops);
  Value positionsFrom(Value start, OpFoldResult size);
  Range meeting(Value own, Value others, bool ownAreKeys);
  Block makeBlock(int64_t hops, Value key, Value value);
  Value cut(Value tensor, int64_t dim, const Range &range);
  Value placed(Value tensor, int64_t dim, const Range &range, OpFoldResult size,
               Value fill);
  Value zero(Value like);
  State join(const State &a, const State &b);
  State attend(const Block &block);
  State measure(const Block &block, Value grad);
  SmallVector<Value> gradients(const Block &block, Value grad,
                               const State &total, Value deltas);
  Value added(Value a, Value b);

  ImplicitLocOpBuilder &b;
  AttentionView view;
  int64_t members;
};

/// The usual op on all keys of the ring, which is what `op` means.
template <typename Op>
Op gatheredFrom(ImplicitLocOpBuilder &b, Op op, RingAttention &ring) {
  Value key = ring.gathered(op.getKey());
  Value value = ring.gathered(op.getValue());
  auto whole = cast<Op>(b.clone(*op));
  whole.removeRingAttr();
  whole.removeRingOfAttr();
  whole.getKeyMutable().assign(key);
  whole.getValueMutable().assign(value);
  if (whole->getNumResults() == 3) {
    whole->getResult(1).setType(cast<RankedTensorType>(key.getType()));
    whole->getResult(2).setType(cast<RankedTensorType>(value.getType()));
  }
  return whole;
}

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNATTENTIONRING_H
