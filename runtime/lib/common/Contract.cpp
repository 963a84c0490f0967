//===- Contract.cpp - Products by named dimensions ------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Chooses rows, columns, sum and batch of the matrix products.
///
//===----------------------------------------------------------------------===//

#include "parc/contract.h"

#include "parc/gemm.h"

#include <cstring>

namespace parc {
namespace {

/// One letter: its size, and its stride in each operand that has it.
struct Letter {
  int64_t size = 1;
  int64_t a = 0, b = 0, c = 0;
  bool inA = false, inB = false, inC = false;
};

/// Letters joined to one dimension.
using Joined = Letter;

/// Adds the dimensions of one operand; false where sizes disagree.
bool read(Letter (&letters)[26], const AnyView &v, const char *dims,
          int64_t Letter::*stride, bool Letter::*in) {
  if (int(std::strlen(dims)) != v.rank)
    return false;
  for (int d = 0; d < v.rank; ++d) {
    if (dims[d] < 'a' || dims[d] > 'z')
      return false;
    Letter &letter = letters[dims[d] - 'a'];
    bool known = letter.inA || letter.inB || letter.inC;
    if (letter.*in || (known && letter.size != v.dims[d]))
      return false;
    letter.size = v.dims[d];
    letter.*stride = v.strides[d];
    letter.*in = true;
  }
  return true;
}

/// True where \p outer steps over all of \p inner, in every operand.
bool follows(const Letter &outer, const Letter &inner) {
  return outer.a == inner.a * inner.size && outer.b == inner.b * inner.size &&
         outer.c == inner.c * inner.size;
}

/// Joins letters that follow each other until none do.
void join(std::vector<Joined> &letters) {
  for (size_t i = 0; i < letters.size(); ++i)
    for (size_t j = 0; j < letters.size(); ++j)
      if (i != j && follows(letters[i], letters[j])) {
        letters[j].size *= letters[i].size;
        letters.erase(letters.begin() + int64_t(i));
        return join(letters);
      }
}

/// Takes the largest out of \p letters; one of size 1 where there is none.
Joined takeLargest(std::vector<Joined> &letters) {
  if (letters.empty())
    return Joined();
  size_t best = 0;
  for (size_t i = 1; i < letters.size(); ++i)
    if (letters[i].size > letters[best].size)
      best = i;
  Joined result = letters[best];
  letters.erase(letters.begin() + int64_t(best));
  return result;
}

AnyView matrix(const AnyView &v, const std::vector<Joined> &batch,
               const Joined &rows, const Joined &cols,
               int64_t Letter::*stride) {
  AnyView m;
  m.data = v.data;
  m.type = v.type;
  for (const Joined &letter : batch) {
    m.dims[m.rank] = letter.size;
    m.strides[m.rank++] = letter.*stride;
  }
  m.dims[m.rank] = rows.size;
  m.strides[m.rank++] = rows.*stride;
  m.dims[m.rank] = cols.size;
  m.strides[m.rank++] = cols.*stride;
  return m;
}

/// All products of the sums that could not be joined, one after the other.
void run(Rank &r, AnyView c, AnyView a, AnyView b,
         const std::vector<Joined> &sums, size_t at, int64_t stepA,
         int64_t stepB, bool &accumulate) {
  if (at == sums.size()) {
    size_t width = sizeOf(a.type);
    a.data = static_cast<char *>(a.data) + stepA * int64_t(width);
    b.data = static_cast<char *>(b.data) + stepB * int64_t(width);
    gemm(r, c, a, b, accumulate);
    accumulate = true;
    return;
  }
  for (int64_t i = 0; i < sums[at].size; ++i)
    run(r, c, a, b, sums, at + 1, stepA + i * sums[at].a,
        stepB + i * sums[at].b, accumulate);
}

} // namespace

void contract(Rank &r, const AnyView &c, const char *cDims, const AnyView &a,
              const char *aDims, const AnyView &b, const char *bDims,
              bool accumulate) {
  Letter letters[26];
  if (!read(letters, a, aDims, &Letter::a, &Letter::inA) ||
      !read(letters, b, bDims, &Letter::b, &Letter::inB) ||
      !read(letters, c, cDims, &Letter::c, &Letter::inC))
    return r.fail(Status(Code::InvalidArgument,
                         std::string("contract: sizes do not fit ") + aDims +
                             ", " + bDims + " -> " + cDims));
  std::vector<Joined> batch, rows, cols, sums;
  bool empty = false;
  for (const Letter &l : letters) {
    if (!l.inA && !l.inB && !l.inC)
      continue;
    if (l.size == 0 && !l.inC)
      empty = true;
    if (l.size == 1)
      continue;
    (!l.inC ? sums : l.inA && l.inB ? batch : l.inA ? rows : cols).push_back(l);
  }
  join(rows);
  join(cols);
  join(sums);
  join(batch);
  Joined m = takeLargest(rows), n = takeLargest(cols), k = takeLargest(sums);
  batch.insert(batch.end(), rows.begin(), rows.end());
  batch.insert(batch.end(), cols.begin(), cols.end());
  if (batch.size() + 2 > size_t(MaxRank))
    return r.fail(Status(Code::Unsupported,
                         std::string("contract: too many dimensions in ") +
                             aDims + ", " + bDims + " -> " + cDims));
  if (empty)
    k.size = 0;
  AnyView cv = matrix(c, batch, m, n, &Letter::c);
  AnyView av = matrix(a, batch, m, k, &Letter::a);
  AnyView bv = matrix(b, batch, k, n, &Letter::b);
  bool add = accumulate;
  if (empty)
    sums.clear();
  run(r, cv, av, bv, sums, 0, 0, 0, add);
}

} // namespace parc
