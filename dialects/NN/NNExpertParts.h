//===- NNExpertParts.h - What the expert ops have in common -----*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Pieces of the definitions of nn.select_experts, nn.limit_experts and the
/// ops on queues: integer arithmetic of bodies, order of choices, counts.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNEXPERTPARTS_H
#define PARC_DIALECTS_NN_NNEXPERTPARTS_H

#include "NN/NNBuilders.h"

namespace mlir::nn {

/// The index of loop `loop`, as i64, in a body.
Value loopIndex(ImplicitLocOpBuilder &b, unsigned loop);
/// Comparisons of two integers of one type, as i1.
Value equals(ImplicitLocOpBuilder &b, Value x, Value y);
Value less(ImplicitLocOpBuilder &b, Value x, Value y);
/// `x < y`, a negative x being a very large number.
Value below(ImplicitLocOpBuilder &b, Value x, Value y);
Value both(ImplicitLocOpBuilder &b, Value x, Value y);
Value either(ImplicitLocOpBuilder &b, Value x, Value y);
/// 1 or 0, as i64.
Value oneIf(ImplicitLocOpBuilder &b, Value condition);

/// For each choice in `ids` (`B x S x K`), how many choices of the same expert
/// come before it: by sequence, token, then choice. Of scopes of `scope`
/// consecutive sequences each is counted by itself; 0: all together.
Value countEarlier(ImplicitLocOpBuilder &b, Value ids, int64_t scope);

/// How often each of `experts` is in `ids` (`B x S x K`): i64 of shape `E`.
Value countChoices(ImplicitLocOpBuilder &b, Value ids, int64_t experts);

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNEXPERTPARTS_H
