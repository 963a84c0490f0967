//===- Domain.h - The number domains of the evaluator -----------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a number type must offer to the evaluator. Float and double compute
/// what the machine computes. Zp, the residues modulo 2^61 - 1, is exact:
/// constants map as dyadic rationals, sums, products and quotients are those of
/// the field, order is that of the representatives, and every other function is
/// uninterpreted: a keyed mixer, so that f(a) + f(b) differs from f(a + b).
///
//===----------------------------------------------------------------------===//

#ifndef PARC_EVAL_DOMAIN_H
#define PARC_EVAL_DOMAIN_H

#include "parc/dtype.h"
#include "parc/zp.h"

#include "llvm/ADT/StringRef.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace mlir::parc::eval {

using Zp = ::parc::Zp;

/// A function of one or two numbers; `key` names it in the exact domain.
template <class T> using UnaryFn = T (*)(uint64_t key, T x);
template <class T> using BinaryFn = T (*)(uint64_t key, T x, T y);

/// FNV-1a of `name`: the key of an uninterpreted function.
uint64_t functionKey(llvm::StringRef name);

/// The function that the op called `name` computes, null where it has none.
template <class T> UnaryFn<T> findUnaryFunction(llvm::StringRef name);
template <class T> BinaryFn<T> findBinaryFunction(llvm::StringRef name);

/// Float and double.
template <class F> struct RealDomain {
  static constexpr bool exact = false;
  static F fromDouble(double x) { return F(x); }
  static F fromSigned(int64_t x) { return F(x); }
  static F fromUnsigned(uint64_t x) { return F(x); }
  static double toDouble(F x) { return double(x); }
  static bool isNaN(F x) { return std::isnan(x); }
  /// x as a bf16-typed value: rounded where F is float.
  static F roundToBF16(F x) {
    if constexpr (std::is_same_v<F, float>)
      return float(::parc::BFloat16(x));
    return x;
  }
  static F maximum(F a, F b) {
    return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? b : a;
  }
  static F minimum(F a, F b) {
    return std::isnan(a) ? a : std::isnan(b) ? b : b < a ? b : a;
  }
  static F powInt(F x, int64_t n) { return F(std::pow(double(x), double(n))); }
  static void divide(const F *a, const F *b, F *out, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = a[i] / b[i];
  }
  /// Equal bit for bit.
  static bool identical(F a, F b) {
    return std::memcmp(&a, &b, sizeof(F)) == 0;
  }
};

/// Residues modulo 2^61 - 1.
struct ExactDomain {
  static constexpr bool exact = true;
  /// Infinities and the lowest numbers of f32, f64 and bf16 stand for "nothing
  /// yet" in a maximum: they map to 0, the bottom of the order.
  static Zp fromDouble(double x);
  static Zp fromSigned(int64_t x) { return Zp(x); }
  static Zp fromUnsigned(uint64_t x) { return Zp::fromResidue(x); }
  /// The representative, for printing only.
  static double toDouble(Zp x) { return double(x.v); }
  static bool isNaN(Zp) { return false; }
  static Zp roundToBF16(Zp x) { return x; }
  static Zp maximum(Zp a, Zp b) { return a < b ? b : a; }
  static Zp minimum(Zp a, Zp b) { return b < a ? b : a; }
  static Zp powInt(Zp x, int64_t n) {
    return n < 0 ? x.inverse().pow(uint64_t(-(n + 1)) + 1) : x.pow(uint64_t(n));
  }
  /// One inverse for all of them: prefix products, then backwards.
  static void divide(const Zp *a, const Zp *b, Zp *out, int64_t n);
  static bool identical(Zp a, Zp b) { return a == b; }
};

template <class T> struct DomainOf;
template <> struct DomainOf<float> : RealDomain<float> {};
template <> struct DomainOf<double> : RealDomain<double> {};
template <> struct DomainOf<Zp> : ExactDomain {};

} // namespace mlir::parc::eval

/// Instantiates MACRO for every number domain.
#define PARC_EVAL_FOR_EACH_DOMAIN(MACRO)                                       \
  MACRO(float)                                                                 \
  MACRO(double)                                                                \
  MACRO(::parc::Zp)

#endif // PARC_EVAL_DOMAIN_H
