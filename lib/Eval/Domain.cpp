//===- Domain.cpp - The number domains of the evaluator -------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The functions of each domain by op name, and exact division.
///
//===----------------------------------------------------------------------===//

#include "parc/Eval/Domain.h"

#include "llvm/ADT/SmallVector.h"

using namespace mlir::parc::eval;

uint64_t mlir::parc::eval::functionKey(llvm::StringRef name) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char c : name.bytes())
    hash = (hash ^ c) * 0x100000001b3ull;
  return hash;
}

//===----------------------------------------------------------------------===//
// Functions by name
//===----------------------------------------------------------------------===//

namespace {

template <class F> struct NamedUnary {
  llvm::StringLiteral name;
  UnaryFn<F> function;
};
template <class F> struct NamedBinary {
  llvm::StringLiteral name;
  BinaryFn<F> function;
};

#define PARC_UNARY(NAME, EXPR)                                                 \
  NamedUnary<F> {                                                              \
    NAME, [](uint64_t, F x) -> F { return F(EXPR); }                           \
  }
#define PARC_BINARY(NAME, EXPR)                                                \
  NamedBinary<F> {                                                             \
    NAME, [](uint64_t, F x, F y) -> F { return F(EXPR); }                      \
  }

template <class F> const auto &unaryTable() {
  static const NamedUnary<F> table[] = {
      PARC_UNARY("math.absf", std::fabs(x)),
      PARC_UNARY("math.acos", std::acos(x)),
      PARC_UNARY("math.acosh", std::acosh(x)),
      PARC_UNARY("math.asin", std::asin(x)),
      PARC_UNARY("math.asinh", std::asinh(x)),
      PARC_UNARY("math.atan", std::atan(x)),
      PARC_UNARY("math.atanh", std::atanh(x)),
      PARC_UNARY("math.cbrt", std::cbrt(x)),
      PARC_UNARY("math.ceil", std::ceil(x)),
      PARC_UNARY("math.cos", std::cos(x)),
      PARC_UNARY("math.cosh", std::cosh(x)),
      PARC_UNARY("math.erf", std::erf(x)),
      PARC_UNARY("math.erfc", std::erfc(x)),
      PARC_UNARY("math.exp", std::exp(x)),
      PARC_UNARY("math.exp2", std::exp2(x)),
      PARC_UNARY("math.expm1", std::expm1(x)),
      PARC_UNARY("math.floor", std::floor(x)),
      PARC_UNARY("math.log", std::log(x)),
      PARC_UNARY("math.log10", std::log10(x)),
      PARC_UNARY("math.log1p", std::log1p(x)),
      PARC_UNARY("math.log2", std::log2(x)),
      PARC_UNARY("math.round", std::round(x)),
      PARC_UNARY("math.roundeven", std::nearbyint(x)),
      PARC_UNARY("math.rsqrt", F(1) / std::sqrt(x)),
      PARC_UNARY("math.sin", std::sin(x)),
      PARC_UNARY("math.sinh", std::sinh(x)),
      PARC_UNARY("math.sqrt", std::sqrt(x)),
      PARC_UNARY("math.tan", std::tan(x)),
      PARC_UNARY("math.tanh", std::tanh(x)),
      PARC_UNARY("math.trunc", std::trunc(x)),
  };
  return table;
}

template <class F> const auto &binaryTable() {
  static const NamedBinary<F> table[] = {
      PARC_BINARY("arith.remf", std::fmod(x, y)),
      PARC_BINARY("math.atan2", std::atan2(x, y)),
      PARC_BINARY("math.copysign", std::copysign(x, y)),
      PARC_BINARY("math.powf", std::pow(x, y)),
  };
  return table;
}

#undef PARC_UNARY
#undef PARC_BINARY

/// A bijection of 64 bits that leaves no structure (splitmix64's finaliser).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// Never 0: what is uninterpreted can be divided by.
Zp toResult(uint64_t hash) {
  Zp result = Zp::fromResidue(hash);
  return result.v ? result : Zp(1);
}

Zp mixUnary(uint64_t key, Zp x) {
  return toResult(mix(mix(x.v + 0x9e3779b97f4a7c15ull) ^ key));
}

Zp mixBinary(uint64_t key, Zp x, Zp y) {
  return toResult(mix(mix(mix(x.v + 0x9e3779b97f4a7c15ull) ^ key) + y.v));
}

} // namespace

// The exact domain has a function wherever the reals have one.
template <class T>
UnaryFn<T> mlir::parc::eval::findUnaryFunction(llvm::StringRef name) {
  using F = std::conditional_t<DomainOf<T>::exact, double, T>;
  for (const NamedUnary<F> &entry : unaryTable<F>())
    if (entry.name == name) {
      if constexpr (DomainOf<T>::exact)
        return mixUnary;
      else
        return entry.function;
    }
  return nullptr;
}

template <class T>
BinaryFn<T> mlir::parc::eval::findBinaryFunction(llvm::StringRef name) {
  using F = std::conditional_t<DomainOf<T>::exact, double, T>;
  for (const NamedBinary<F> &entry : binaryTable<F>())
    if (entry.name == name) {
      if constexpr (DomainOf<T>::exact)
        return mixBinary;
      else
        return entry.function;
    }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The exact domain
//===----------------------------------------------------------------------===//

Zp ExactDomain::fromDouble(double x) {
  // The lowest bf16 is -0x1.fep127, the lowest float -0x1.fffffep127; parc
  // takes every number at or below the former as "minus infinity".
  if (x <= -0x1.fep127)
    return Zp();
  return Zp::fromDouble(x);
}

void ExactDomain::divide(const Zp *a, const Zp *b, Zp *out, int64_t n) {
  llvm::SmallVector<Zp, 64> prefix(n);
  Zp product(1);
  for (int64_t i = 0; i < n; ++i) {
    prefix[i] = product;
    if (b[i].v)
      product *= b[i];
  }
  Zp inverse = product.inverse();
  // `out` may be `b`: the divisor is read before the quotient is written.
  for (int64_t i = n - 1; i >= 0; --i) {
    Zp divisor = b[i];
    out[i] = divisor.v ? a[i] * (inverse * prefix[i]) : Zp();
    if (divisor.v)
      inverse *= divisor;
  }
}

#define PARC_INSTANTIATE(T)                                                    \
  template UnaryFn<T> mlir::parc::eval::findUnaryFunction<T>(llvm::StringRef); \
  template BinaryFn<T> mlir::parc::eval::findBinaryFunction<T>(llvm::StringRef);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
