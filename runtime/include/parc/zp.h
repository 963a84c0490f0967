//===- zp.h - Exact arithmetic modulo 2^61 - 1 ------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The exact number domain: residues modulo the Mersenne prime p = 2^61 - 1.
/// Sums and products are exact and associative, so two programs that compute
/// the same polynomial function give the same bits whatever their order of
/// summation. Order is that of the representatives in [0, p), with 0 as its
/// bottom: it is what `max` means here, and has no arithmetic meaning.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_ZP_H
#define PARC_ZP_H

#include "parc/macros.h"

#include <cmath>
#include <cstdint>

namespace parc {

/// A residue modulo p = 2^61 - 1, always kept in [0, p).
struct Zp {
  static constexpr uint64_t P = (uint64_t(1) << 61) - 1;

  uint64_t v = 0;

  constexpr Zp() = default;
  /// Wraps any integer into [0, p), negative ones included.
  PARC_HD constexpr Zp(int64_t x)
      : v(x >= 0 ? fold(uint64_t(x)) : negate(fold(uint64_t(-(x + 1)) + 1))) {}
  PARC_HD constexpr Zp(int x) : Zp(int64_t(x)) {}

  /// The representative \p x, which may be any 64-bit number.
  PARC_HD static constexpr Zp fromResidue(uint64_t x) {
    Zp z;
    z.v = fold(x);
    return z;
  }

  /// The exact image of a finite double, which is m * 2^e with integer m and
  /// e: 2 has the inverse 2^60, and 2^61 = 1. Infinities and NaN have no image
  /// and give 0, the bottom of the order.
  static Zp fromDouble(double x) {
    if (!std::isfinite(x) || x == 0)
      return Zp();
    int e;
    double m = std::frexp(x, &e);
    int64_t whole = int64_t(std::ldexp(m, 53)); // exact: 53 bits of mantissa
    int shift = ((e - 53) % 61 + 61) % 61;
    return Zp(whole) * fromResidue(uint64_t(1) << shift);
  }

  PARC_HD friend constexpr Zp operator+(Zp a, Zp b) {
    return fromResidue(a.v + b.v);
  }
  PARC_HD friend constexpr Zp operator-(Zp a, Zp b) {
    return fromResidue(a.v + negate(b.v));
  }
  PARC_HD constexpr Zp operator-() const { return fromResidue(negate(v)); }
  PARC_HD friend constexpr Zp operator*(Zp a, Zp b) {
    unsigned __int128 w = (unsigned __int128)a.v * b.v; // < 2^122
    return fromResidue((uint64_t(w) & P) + uint64_t(w >> 61));
  }
  /// Division by 0 gives 0.
  PARC_HD friend constexpr Zp operator/(Zp a, Zp b) { return a * b.inverse(); }

  PARC_HD constexpr Zp &operator+=(Zp o) { return *this = *this + o; }
  PARC_HD constexpr Zp &operator-=(Zp o) { return *this = *this - o; }
  PARC_HD constexpr Zp &operator*=(Zp o) { return *this = *this * o; }
  PARC_HD constexpr Zp &operator/=(Zp o) { return *this = *this / o; }

  PARC_HD constexpr Zp pow(uint64_t e) const {
    Zp r = fromResidue(1), b = *this;
    for (; e; e >>= 1, b *= b)
      if (e & 1)
        r *= b;
    return r;
  }
  /// By Fermat: x^(p-2). The inverse of 0 is 0.
  PARC_HD constexpr Zp inverse() const { return pow(P - 2); }

  PARC_HD friend constexpr bool operator==(Zp a, Zp b) { return a.v == b.v; }
  PARC_HD friend constexpr bool operator!=(Zp a, Zp b) { return a.v != b.v; }
  PARC_HD friend constexpr bool operator<(Zp a, Zp b) { return a.v < b.v; }
  PARC_HD friend constexpr bool operator>(Zp a, Zp b) { return a.v > b.v; }
  PARC_HD friend constexpr bool operator<=(Zp a, Zp b) { return a.v <= b.v; }
  PARC_HD friend constexpr bool operator>=(Zp a, Zp b) { return a.v >= b.v; }

private:
  PARC_HD static constexpr uint64_t fold(uint64_t x) {
    x = (x & P) + (x >> 61);
    return x >= P ? x - P : x;
  }
  PARC_HD static constexpr uint64_t negate(uint64_t x) { return x ? P - x : 0; }
};

static_assert(sizeof(Zp) == 8, "a residue is stored as one 64-bit word");

} // namespace parc

#endif // PARC_ZP_H
