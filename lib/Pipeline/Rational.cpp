//===- Rational.cpp - Exact fractions -------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reduction and printing of exact fractions.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/Rational.h"

#include <cassert>
#include <numeric>

namespace mlir::parc {

Rational::Rational(int64_t numerator, int64_t denominator) {
  assert(denominator != 0 && "a fraction needs a denominator");
  int64_t divisor = std::gcd(numerator, denominator);
  if (denominator < 0)
    divisor = -divisor;
  num = numerator / divisor;
  den = denominator / divisor;
}

std::string Rational::str() const {
  std::string text = std::to_string(num);
  return den == 1 ? text : text + "/" + std::to_string(den);
}

std::string Rational::percent() const {
  assert(num >= 0 && "percentages are printed of shares");
  // Whole part first, so that only remainder * 2000 must fit.
  int64_t whole = num / den, rest = num % den;
  int64_t perMille = whole * 1000;
  if (den <= INT64_MAX / 2000)
    perMille += (rest * 2000 + den) / (2 * den);
  else
    perMille += (rest + den / 2000) / (den / 1000);
  return std::to_string(perMille / 10) + "." + std::to_string(perMille % 10) +
         " %";
}

} // namespace mlir::parc
