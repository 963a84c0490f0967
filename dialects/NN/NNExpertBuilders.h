//===- NNExpertBuilders.h - A mixture of experts, by parts ------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a model's description is translated to where it has experts: routers,
/// their loss, and the linear maps of experts. All types are static.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DIALECTS_NN_NNEXPERTBUILDERS_H
#define PARC_DIALECTS_NN_NNEXPERTBUILDERS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::nn {

/// How a router makes scores of logits.
enum class RouterScore { Softmax, Sigmoid };

/// What a model says of its router.
struct RouterOptions {
  RouterScore score = RouterScore::Softmax;
  /// Experts a token chooses.
  int64_t topK = 1;
  /// Divides the chosen scores by their sum plus `epsilon`.
  bool renormalise = false;
  double epsilon = 0;
  /// Factor of the weights (`routed_scaling_factor`).
  double scale = 1;
  /// Added to scores for the choice only, `E`; null where there is none.
  Value bias;
  /// Only experts of the `groupTopK` best of `groups` groups can be chosen; a
  /// group's score is "max" or "top2_sum".
  int64_t groups = 1, groupTopK = 1;
  StringRef groupScore = "max";
};

/// What a router gives: scores `B x S x E`; the chosen experts and their
/// weights, `B x S x K`.
struct Routing {
  Value scores, ids, weights;
};

/// The router of `logits` (`B x S x E`), computed in their type.
Routing buildRouter(ImplicitLocOpBuilder &b, Value logits,
                    const RouterOptions &options);

/// `nn.balance_loss` of a router's scores and choices, a scalar: `coefficient`
/// times the loss of each sequence (`bySequence`) or of the whole batch, times
/// the number of tokens, to be added to the summed loss of the labels.
Value buildBalanceLoss(ImplicitLocOpBuilder &b, const Routing &routing,
                       double coefficient, bool bySequence);

/// Each expert's own linear map of its queue: `queues` (`E x C x H`) with
/// `weight` (`E x F x H`, or `E x H x F` if `transposed`) gives `E x C x F`.
Value buildExpertLinear(ImplicitLocOpBuilder &b, Value queues, Value weight,
                        bool transposed = false);

} // namespace mlir::nn

#endif // PARC_DIALECTS_NN_NNEXPERTBUILDERS_H
