//===- NNAttentionParts.h - What attention and its gradient share -*- C++
//-*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The space of attention's definition: B x G x R x S x T, R being the query
/// heads that share a key head. Masks are selects; minus infinity enters the
/// row's maximum only.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNATTENTIONPARTS_H
#define PARC_DIALECTS_NN_NNATTENTIONPARTS_H

#include "NN/NNBuilders.h"
#include "Parc/Factors.h"
#include <optional>

namespace mlir::nn {

/// What nn.attention and nn.attention_grad both say.
struct AttentionView {
  /// `Op` is AttentionOp or AttentionGradOp.
  template <typename Op>
  explicit AttentionView(Op op)
      : op(op), query(op.getQuery()), key(op.getKey()), value(op.getValue()),
        queryPositions(op.getQueryPositions()),
        keyPositions(op.getKeyPositions()), seed(op.getSeed()),
        stream(op.getStream()), batchStart(op.getBatchStart()),
        queryStart(op.getQueryStart()), headStart(op.getHeadStart()),
        causal(op.getCausal()), window(op.getWindow()),
        scale(op.getScale().convertToDouble()),
        dropout(op.getDropout().convertToDouble()), site(op.getSite()),
        groupAttr(op.getGroup()), withinGroups(op.getWithinGroups()),
        shape(op.getShape()), fold(op.getFold()),
        ring(op.getRing().value_or(nullptr)), ringOf(op.getRingOf()) {}

  /// Query heads a key head (R): the attribute, or H / G where both are static;
  /// dynamic if neither tells.
  int64_t groupSize() const;

  Operation *op;
  Value query, key, value, queryPositions, keyPositions;
  Value seed, stream, batchStart, queryStart, headStart;
  bool causal;
  std::optional<uint64_t> window;
  double scale, dropout;
  uint64_t site;
  std::optional<uint64_t> groupAttr;
  bool withinGroups;
  /// What `groupAttr` was before repeatKeyHeads.
  uint64_t sharedBy = 1;
  /// Where the keys begin among all, on a ring; null: at the first.
  Value keyStart;
  std::optional<ArrayRef<int64_t>> shape;
  std::optional<uint64_t> fold;
  ArrayAttr ring;
  std::optional<ArrayRef<int64_t>> ringOf;
};

/// Checks everything but results and gradients.
LogicalResult verifyAttention(const AttentionView &view);

/// Why keys cannot pass by on a ring; empty where they can.
std::string whyNoRing(const AttentionView &view);

/// The keys that the query at `position` sees, of a sequence that starts at 0.
/// 1 where their number is not known.
int64_t visibleKeys(const AttentionView &view, int64_t position);

/// The factors of attention, and those of its values' dimensions.
struct AttentionFactors {
  /// On a ring Query is the keys' factor too, and Key is the key positions'.
  enum : unsigned { Batch, Query, Key, Group, Member, Head, ValueHead };
  explicit AttentionFactors(const AttentionView &view);
  parc::OpFactors factors;
  parc::ValueFactors query, key, value, result, queryPositions, keyPositions;
};

/// Where local query heads are a part of those that share the key heads, gives
/// each query head a key head of its own: `view` then has as many of both.
void repeatKeyHeads(ImplicitLocOpBuilder &b, AttentionView &view);

/// The reverse for gradients: sums those of the heads that share one of `like`.
Value sumKeyHeads(ImplicitLocOpBuilder &b, const AttentionView &view,
                  Value grad, Value like);

/// Builds the ops of attention over the loops b, g, r, s, t, x = 0 to 5; x is
/// an element of a head.
class AttentionSpace {
public:
  AttentionSpace(ImplicitLocOpBuilder &b, const AttentionView &view);

  enum : unsigned { B, G, R, S, T, X };
  /// Loops of a tensor of scores, of a row statistic, of grouped heads of
  /// queries (`B x S x G x R x X`) and of keys or values (`B x T x G x X`).
  Loops scoreLoops() const { return {B, G, R, S, T}; }
  Loops rowLoops() const { return {B, G, R, S}; }
  Loops queryLoops() const { return {B, S, G, R, X}; }
  Loops keyLoops() const { return {B, T, G, X}; }

  Access scores(Value tensor) const { return {tensor, scoreLoops()}; }
  Access rows(Value tensor) const { return {tensor, rowLoops()}; }
  Access queries(Value tensor) const { return {tensor, queryLoops()}; }
  Access keys(Value tensor) const { return {tensor, keyLoops()}; }

  /// Outputs over the same loops.
  Output scoreOutput(Type type) const;
  Output rowOutput() const;
  Output queryOutput(Value like, Type type) const;
  Output keyOutput(Value like, Type type) const;

  /// `B x S x H x X` as `B x S x G x R x X`, and back as `type`.
  Value splitHeads(Value tensor) const;
  Value joinHeads(Value tensor, Type type) const;

  /// `q . k` for every pair, not scaled.
  Value products(Value splitQuery) const;
  /// The largest visible scaled product of each row.
  Value rowMaxima(Value products) const;
  /// `exp(scaled product - maximum)` where visible, else 0.
  Value exponentials(Value products, Value maxima) const;
  /// Sums over T.
  Value rowSums(Value exponentials) const;
  /// Sums over T of the products of two tensors of scores.
  Value rowDots(Value x, Value y) const;
  /// What dropout leaves of the score that the body is at, `value / (1 - rate)`
  /// or 0; the value itself without dropout.
  Value dropped(ImplicitLocOpBuilder &nested, Value value) const;
  /// The same of all scores.
  Value dropped(Value scores) const;

  /// Storage type of the op's tensors, and the type they are computed in.
  Type element, compute;

private:
  /// `{scores, rows?, query positions, key positions}` as far as used.
  SmallVector<Access> masked(ArrayRef<Access> inputs) const;
  /// Whether the key is visible, from the positions that `masked` added behind
  /// `elements`; null where all are.
  Value visible(ImplicitLocOpBuilder &nested, ValueRange positions) const;
  Value scaled(ImplicitLocOpBuilder &nested, Value product) const;
  /// Whether dropout keeps the score that the body is at.
  Value keeps(ImplicitLocOpBuilder &nested) const;

  ImplicitLocOpBuilder &b;
  const AttentionView &view;
  /// Sizes of the loops b, g, r, s, t.
  Sizes sizes;
  Value randomKeyValue;
};

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNATTENTIONPARTS_H
