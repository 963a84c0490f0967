//===- HostExecute.cpp - Data movement of host collectives ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Moves and reduces the data of matched calls. Reductions run over blocks
/// small enough for the first cache level, read every member's block before
/// any is written (so in-place calls are safe), and add in the members' order
/// (so all ranks get the same bits, every time).
///
//===----------------------------------------------------------------------===//

#include "HostWorld.h"

#include <algorithm>
#include <type_traits>

namespace parc {
namespace host {

namespace {

constexpr int64_t Block = 2048;

/// bf16 sums are accumulated in float and rounded once.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;

template <class A> A combine(A a, A b, ReduceOp op) {
  if (op == ReduceOp::max)
    return a > b ? a : b;
  if (op == ReduceOp::min)
    return a < b ? a : b;
  if constexpr (std::is_integral_v<A>) // wraps, as devices do
    return A(std::make_unsigned_t<A>(a) + std::make_unsigned_t<A>(b));
  else
    return a + b;
}

/// acc[i] = op over members, in order, of element base + i.
template <class T>
void reduceBlock(const Match &match, int64_t base, int64_t n, ReduceOp op,
                 Accumulator<T> *acc) {
  using A = Accumulator<T>;
  const T *first = static_cast<const T *>(match[0]->src) + base;
  for (int64_t i = 0; i < n; ++i)
    acc[i] = A(first[i]);
  for (size_t m = 1; m < match.size(); ++m) {
    const T *src = static_cast<const T *>(match[m]->src) + base;
    for (int64_t i = 0; i < n; ++i)
      acc[i] = combine(acc[i], A(src[i]), op);
  }
}

template <class T>
void reduceRange(const Match &match, int64_t lo, int64_t n,
                 const std::vector<T *> &outputs) {
  Accumulator<T> acc[Block];
  for (int64_t done = 0; done < n; done += Block) {
    int64_t k = std::min(Block, n - done);
    reduceBlock<T>(match, lo + done, k, match[0]->reduce, acc);
    for (T *out : outputs)
      for (int64_t i = 0; i < k; ++i)
        out[done + i] = T(acc[i]);
  }
}

void allReduce(const Match &match) {
  dispatch(match[0]->type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T *> outputs;
    for (Call *call : match)
      outputs.push_back(static_cast<T *>(call->dst));
    reduceRange<T>(match, 0, match[0]->count, outputs);
  });
}

void reduceScatter(const Match &match) {
  dispatch(match[0]->type, [&](auto zero) {
    using T = decltype(zero);
    int64_t lo = 0;
    for (size_t m = 0; m < match.size(); ++m) {
      int64_t n = match[0]->counts[m];
      reduceRange<T>(match, lo, n, {static_cast<T *>(match[m]->dst)});
      lo += n;
    }
  });
}

/// Elements \p from of \p src to \p to of \p dst; the same place is skipped.
void copyElements(DType type, const void *src, int64_t from, void *dst,
                  int64_t to, int64_t n) {
  size_t width = sizeOf(type);
  const char *s = static_cast<const char *>(src) + from * width;
  char *d = static_cast<char *>(dst) + to * width;
  if (n > 0 && s != d)
    memmove(d, s, size_t(n) * width);
}

void allGather(const Match &match) {
  for (Call *to : match) {
    int64_t offset = 0;
    for (size_t m = 0; m < match.size(); ++m) {
      int64_t n = to->counts[m];
      copyElements(to->type, match[m]->src, 0, to->dst, offset, n);
      offset += n;
    }
  }
}

void allToAll(const Match &match) {
  std::vector<int64_t> sent(match.size(), 0);
  for (size_t j = 0; j < match.size(); ++j) {
    int64_t received = 0;
    for (size_t i = 0; i < match.size(); ++i) {
      int64_t n = match[i]->counts[j];
      copyElements(match[i]->type, match[i]->src, sent[i], match[j]->dst,
                   received, n);
      sent[i] += n;
      received += n;
    }
  }
}

void broadcast(const Match &match) {
  const Call &root = *match[match[0]->peer];
  for (Call *to : match)
    copyElements(to->type, root.dst, 0, to->dst, 0, to->count);
}

} // namespace

void execute(const Match &match) {
  switch (match[0]->kind) {
  case Kind::allReduce:
    return allReduce(match);
  case Kind::allGather:
    return allGather(match);
  case Kind::reduceScatter:
    return reduceScatter(match);
  case Kind::allToAll:
    return allToAll(match);
  case Kind::broadcast:
    return broadcast(match);
  case Kind::send:
    return copyElements(match[0]->type, match[0]->src, 0, match[1]->dst, 0,
                        match[0]->count);
  case Kind::recv:
  case Kind::create:
    return;
  }
}

} // namespace host
} // namespace parc
