//===- dtype.h - Element types ----------------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The element types that the runtime moves and reduces, their sizes and
/// names, and the storage type of bfloat16.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DTYPE_H
#define PARC_DTYPE_H

#include "parc/macros.h"
#include "parc/zp.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace parc {

/// Element types of views, buffers and communication.
enum class DType : uint8_t { f32, f64, bf16, i32, i64, zp };

/// bfloat16 as storage: arithmetic happens in float, and only the explicit
/// conversion rounds (to nearest, ties to even; NaN stays a quiet NaN).
struct BFloat16 {
  uint16_t bits = 0;

  constexpr BFloat16() = default;
  PARC_HD explicit BFloat16(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
    uint32_t quiet = (u >> 16) | 0x40;
    bits = uint16_t((u & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
  }
  PARC_HD explicit BFloat16(double d) : BFloat16(float(d)) {}
  PARC_HD explicit BFloat16(int i) : BFloat16(float(i)) {}
  PARC_HD operator float() const {
    uint32_t u = uint32_t(bits) << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
  }
};

/// Bytes of one element.
constexpr size_t sizeOf(DType t) {
  return t == DType::bf16 ? 2 : t == DType::f32 || t == DType::i32 ? 4 : 8;
}

/// The spelling used in messages.
constexpr const char *nameOf(DType t) {
  switch (t) {
  case DType::f32:
    return "f32";
  case DType::f64:
    return "f64";
  case DType::bf16:
    return "bf16";
  case DType::i32:
    return "i32";
  case DType::i64:
    return "i64";
  case DType::zp:
    return "zp";
  }
  return "?";
}

/// The DType of a C++ element type.
template <class T> struct DTypeOf;
template <> struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <> struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <> struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <> struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <> struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};
template <> struct DTypeOf<Zp> {
  static constexpr DType value = DType::zp;
};
template <class T> struct DTypeOf<const T> : DTypeOf<T> {};

/// Calls \p f with a value of the element type that \p t stands for.
template <class F> auto dispatch(DType t, F &&f) {
  switch (t) {
  case DType::f32:
    return f(float());
  case DType::f64:
    return f(double());
  case DType::bf16:
    return f(BFloat16());
  case DType::i32:
    return f(int32_t());
  case DType::i64:
    return f(int64_t());
  case DType::zp:
    break;
  }
  return f(Zp());
}

} // namespace parc

#endif // PARC_DTYPE_H
