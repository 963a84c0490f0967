//===- contract.h - Products by named dimensions ----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A sum of products, its dimensions named by letters as in an einsum, done
/// with as few matrix products as the strides allow.
///
///   contract(r, y, "abc", x, "abd", w, "cd"); // y[a,b,c] = x[a,b,d] w[c,d]
///
//===----------------------------------------------------------------------===//

#ifndef PARC_CONTRACT_H
#define PARC_CONTRACT_H

#include "parc/rank.h"

namespace parc {

/// c (+)= a * b, summed over the letters that c lacks. Letters of c and one
/// factor are joined to the rows or columns of a matrix where they lie one
/// after the other in both; what cannot be joined is a batch, or a sum of
/// several products.
void contract(Rank &r, const AnyView &c, const char *cDims, const AnyView &a,
              const char *aDims, const AnyView &b, const char *bDims,
              bool accumulate = false);

} // namespace parc

#endif // PARC_CONTRACT_H
