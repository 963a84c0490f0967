//===- random.h - Counter-based random numbers ------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Random numbers as a pure function of (seed, step, op, layer, index), where
/// index is the global element index: no layout, recompute or micro-batching
/// changes them. Only 64-bit integer additions, multiplications, shifts and
/// exclusive-ors are used, so that compiler IR can say the same.
///
///   mix(x)   = the finaliser of splitmix64:
///                x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
///                x = (x ^ (x >> 27)) * 0x94d049bb133111eb
///                x =  x ^ (x >> 31)
///   G        = 0x9e3779b97f4a7c15
///   chain(h, w) = mix((h ^ w) + G)
///   key(seed, step, op, layer)
///            = chain(chain(chain(chain(0, seed), step), op), layer)
///   bits(key, index) = mix(key + (index + 1) * G)
///
/// All arithmetic wraps modulo 2^64.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_RANDOM_H
#define PARC_RANDOM_H

#include "parc/macros.h"

#include <cmath>
#include <cstdint>

namespace parc {
namespace random {

constexpr uint64_t Golden = 0x9e3779b97f4a7c15ull;

PARC_HD constexpr uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

PARC_HD constexpr uint64_t chain(uint64_t h, uint64_t word) {
  return mix((h ^ word) + Golden);
}

/// One stream of numbers.
PARC_HD constexpr uint64_t key(uint64_t seed, uint64_t step, uint64_t op,
                               uint64_t layer) {
  return chain(chain(chain(chain(0, seed), step), op), layer);
}

/// 64 random bits for one global element index.
PARC_HD constexpr uint64_t bits(uint64_t key, uint64_t index) {
  return mix(key + (index + 1) * Golden);
}

/// Uniform in [0, 1), from the upper 53 bits.
PARC_HD constexpr double uniform(uint64_t key, uint64_t index) {
  return double(bits(key, index) >> 11) * 0x1p-53;
}

/// Whether dropout with probability \p drop keeps this element.
PARC_HD constexpr bool keep(uint64_t key, uint64_t index, double drop) {
  return uniform(key, index) >= drop;
}

/// Standard normal, by Box and Muller from bits 2*index and 2*index + 1.
inline double normal(uint64_t key, uint64_t index) {
  double u = (double(bits(key, 2 * index) >> 11) + 1) * 0x1p-53; // (0, 1]
  double v = uniform(key, 2 * index + 1);
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586477 * v);
}

/// The op word of a named parameter: FNV-1a of its checkpoint name.
constexpr uint64_t nameWord(const char *name) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (; *name; ++name)
    h = (h ^ uint8_t(*name)) * 0x100000001b3ull;
  return h;
}

} // namespace random
} // namespace parc

#endif // PARC_RANDOM_H
