//===- ModelAttention.cpp - Attention of a model --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Queries, keys and values, projected to heads at once or by way of a small
/// vector, and what is made of them.
///
//===----------------------------------------------------------------------===//

#include "ModelBuilder.h"
#include <cmath>

using namespace mlir;
using namespace mlir::parc;

Value ModelBuilder::buildAttention(Value x) {
  Value q, k, v;
  bool latent = architecture.attention == AttentionKind::Latent;
  if (latent)
    buildLatent(x, q, k, v);
  else
    buildHeads(x, q, k, v);
  double scale = config.scaleScores
                     ? 1.0 / std::sqrt(static_cast<double>(config.headDim))
                     : 1.0;
  if (latent)
    scale *= config.rope.scoreScale;
  bool drops = config.attentionDropout > 0;
  Value context = nn::AttentionOp::create(
      builder, at("attn.context"), withLast(q, config.valueDim), q, k, v,
      positions, positions, drops ? seed : Value(), drops ? layer : Value(),
      /*batch_start=*/Value(), /*query_start=*/Value(),
      /*head_start=*/Value(), builder.getUnitAttr(),
      config.window ? builder.getI64IntegerAttr(*config.window) : nullptr,
      number(scale), number(config.attentionDropout),
      builder.getI64IntegerAttr(drops ? nextSite++ : 0), /*group=*/nullptr,
      /*within_groups=*/nullptr,
      /*shape=*/nullptr, /*fold=*/nullptr, /*ring=*/nullptr,
      /*ring_of=*/nullptr);
  context = joinHeads("attn.joined", context);
  Value o = linear("attn.o", "o", context, config.outputBias);
  return dropout("attn.dropout", o, config.residualDropout);
}

void ModelBuilder::buildHeads(Value x, Value &q, Value &k, Value &v) {
  q = linear("attn.q", "q", x, config.qkvBias);
  k = linear("attn.k", "k", x, config.qkvBias);
  v = linear("attn.v", "v", x, config.qkvBias);
  q = splitHeads("attn.q.heads", q, config.heads, config.headDim);
  k = splitHeads("attn.k.heads", k, config.kvHeads, config.headDim);
  v = splitHeads("attn.v.heads", v, config.kvHeads, config.headDim);
  q = headNorm("attn.q.norm", "q_norm", q);
  k = headNorm("attn.k.norm", "k_norm", k);
  q = rope("attn.q.rope", q);
  k = rope("attn.k.rope", k);
}

/// Multi-head latent attention (arXiv:2405.04434, section 2.1). Each head of
/// queries and keys is a plain part and a rotated one; that of the keys is the
/// same in all heads.
void ModelBuilder::buildLatent(Value x, Value &q, Value &k, Value &v) {
  const LatentConfig &latent = config.latent;
  q = buildLatentQueries(x);
  Value down = linear("attn.kv.down", "kv_down", x, config.qkvBias);
  Value small = slice("attn.kv.small", down, 0, latent.keyRank);
  small = rmsNorm("attn.kv.norm", "kv_down_norm", small,
                  architecture.latent.epsilon);
  Value up = linear("attn.kv.up", "kv_up", small, /*bias=*/false);
  up = splitHeads("attn.kv.heads", up, config.heads,
                  latent.plainDim + config.valueDim);
  Value plain = slice("attn.k.plain", up, 0, latent.plainDim);
  v = slice("attn.v.heads", up, latent.plainDim, config.valueDim);
  Value turned = slice("attn.k.shared", down, latent.keyRank, latent.rotaryDim);
  turned = splitHeads("attn.k.shared.heads", turned, 1, latent.rotaryDim);
  turned = rope("attn.k.shared.rope", turned);
  turned = shareHead("attn.k.rope", turned);
  k = concatenate("attn.k.heads", plain, turned);
}

Value ModelBuilder::buildLatentQueries(Value x) {
  const LatentConfig &latent = config.latent;
  Value q;
  if (latent.queryRank) {
    Value small = linear("attn.q.down", "q_down", x, config.qkvBias);
    small = rmsNorm("attn.q.norm", "q_down_norm", small,
                    architecture.latent.epsilon);
    q = linear("attn.q.up", "q_up", small, /*bias=*/false);
  } else {
    q = linear("attn.q", "q", x, /*bias=*/false);
  }
  q = splitHeads("attn.q.both", q, config.heads, config.headDim);
  Value plain = slice("attn.q.plain", q, 0, latent.plainDim);
  Value turned = slice("attn.q.turned", q, latent.plainDim, latent.rotaryDim);
  turned = rope("attn.q.rope", turned);
  return concatenate("attn.q.heads", plain, turned);
}
