//===- Rational.h - Exact fractions -----------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A reduced fraction of two 64-bit integers, for shares that must be exact
/// (the bubble of a pipeline), and its text as a percentage.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_PIPELINE_RATIONAL_H
#define PARC_PIPELINE_RATIONAL_H

#include <cstdint>
#include <string>

namespace mlir::parc {

/// A fraction in lowest terms with a positive denominator.
class Rational {
public:
  Rational() = default;
  /// `denominator` must not be zero.
  Rational(int64_t numerator, int64_t denominator);

  int64_t numerator() const { return num; }
  int64_t denominator() const { return den; }
  double toDouble() const { return double(num) / double(den); }

  /// `3/19`, or `2` for a whole number.
  std::string str() const;
  /// The value as a percentage with one decimal, halves away from zero:
  /// `15.8 %`. Integer arithmetic, so equal on every host. The fraction must
  /// not be negative.
  std::string percent() const;

  friend bool operator==(const Rational &a, const Rational &b) {
    return a.num == b.num && a.den == b.den;
  }
  friend bool operator!=(const Rational &a, const Rational &b) {
    return !(a == b);
  }

private:
  int64_t num = 0;
  int64_t den = 1;
};

} // namespace mlir::parc

#endif // PARC_PIPELINE_RATIONAL_H
