//===- NNQueueParts.h - Definitions of the ops on queues --------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Experts' queues: how the ops on them check their shapes, are split, and are
/// defined. A queue is `E x C x H`; a choice's place in it are its expert and
/// its slot, of which a local op holds those from `start` on.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNQUEUEPARTS_H
#define PARC_DIALECTS_NN_NNQUEUEPARTS_H

#include "NN/NN.h"
#include "NN/NNBuilders.h"

namespace mlir::nn {

/// The values of an op on queues; those that it lacks are null. `tokens` are
/// `B x S x H`; `ids`, `slot` and `weights` `B x S x K`.
struct QueueValues {
  Value queues, tokens, ids, slot, weights;
};

/// Checks shapes and element types of all that is there; weights may be of
/// another float type.
LogicalResult verifyQueues(Operation *op, const QueueValues &values);

/// Factors of ops on queues: B, S, H (splittable), K and E.
struct QueueFactors {
  explicit QueueFactors(const QueueValues &values);
  /// The dimensions of `queues`, `tokens`, and of the others.
  parc::ValueFactors queues() const {
    return {{4}, {parc::DimCut::Set, {0, 1}}, {2}};
  }
  parc::ValueFactors tokens() const { return {{0}, {1}, {2}}; }
  parc::ValueFactors choices() const { return {{0}, {1}, {3}}; }
  parc::OpFactors factors;
};

/// Where the local part of the slots of `queues` starts: null for a value
/// whose layout does not split them.
Value slotStart(OpBuilder &builder, Location loc, Value queues);

/// Builds the definitions. `slots` is the number of slots that are here.
class QueueBuilder {
public:
  QueueBuilder(ImplicitLocOpBuilder &b, const QueueValues &values, Value start,
               OpFoldResult slots, int64_t experts)
      : b(b), values(values), start(start), slots(slots), experts(experts) {}

  /// The slots that nn.dispatch deals out.
  Value dealSlots();
  /// `values.tokens` in queues of element type `element`.
  Value fill(Type element);
  /// Each token's sum of rows.
  Value combine(Type element);
  /// Each choice's product of rows.
  Value products(Type element);

private:
  struct Place;
  Value places();
  Value rows(Type element);
  Place placeOf(ImplicitLocOpBuilder &b, Value id, Value slot);
  Value read(ImplicitLocOpBuilder &b, const Place &place, unsigned column,
             Type compute);

  ImplicitLocOpBuilder &b;
  const QueueValues &values;
  Value start;
  OpFoldResult slots;
  int64_t experts;
};

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNQUEUEPARTS_H
