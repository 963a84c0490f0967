//===- math.h - Vectorisable scalar functions -------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Scalar functions for kernels, spelled as in MLIR's math dialect. On the
/// host the float versions are branch-free polynomials that vectorise without
/// -ffast-math (g++ -O3 -fno-trapping-math); their error stays below about two
/// units in the last place (sin and cos: of 1, for |x| below 1e9). The double
/// versions are the C library's, and a device uses its own.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_MATH_H
#define PARC_MATH_H

#include "parc/macros.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace parc {
namespace math {

#define PARC_MATH_FN PARC_HD PARC_INLINE

namespace detail {
PARC_MATH_FN float fromBits(int32_t i) {
  float f;
  memcpy(&f, &i, 4);
  return f;
}
PARC_MATH_FN int32_t toBits(float f) {
  int32_t i;
  memcpy(&i, &f, 4);
  return i;
}
/// a * b + c; contracted to one instruction where the target has it.
PARC_MATH_FN float mad(float a, float b, float c) { return a * b + c; }

/// 2^n for n in [-126, 127].
PARC_MATH_FN float power2(int32_t n) { return fromBits((n + 127) << 23); }
} // namespace detail

/// e^x. Below -87.3 the result is exactly 0 (no subnormals), above 88.72 it is
/// infinite.
PARC_MATH_FN float exp(float x) {
#ifdef __CUDA_ARCH__
  return ::expf(x);
#else
  using namespace detail;
  const float low = -87.33654f, high = 88.72283f;
  float y = x < low ? low : x;
  y = y > high ? high : y;
  // Adding 1.5 * 2^23 rounds to the nearest integer, kept in the low bits.
  float shifted = mad(y, 1.44269504f, 12582912.0f);
  int32_t n = toBits(shifted) - 0x4b400000;
  float k = shifted - 12582912.0f;
  float r = mad(k, -0.693145752f, y);
  r = mad(k, -1.42860677e-6f, r);
  float p = 1.98756915e-4f;
  p = mad(p, r, 1.39819995e-3f);
  p = mad(p, r, 8.33345205e-3f);
  p = mad(p, r, 4.16657962e-2f);
  p = mad(p, r, 1.66666657e-1f);
  p = mad(p, r, 5.00000000e-1f);
  p = mad(p * r, r, r) + 1.0f;
  // Two factors, since 2^128 is no float.
  int32_t half = n >> 1;
  float e = p * power2(half) * power2(n - half);
  e = x < low ? 0.0f : e;
  return x > high ? HUGE_VALF : e;
#endif
}

/// Natural logarithm; -inf at 0, NaN below.
PARC_MATH_FN float log(float x) {
#ifdef __CUDA_ARCH__
  return ::logf(x);
#else
  using namespace detail;
  bool tiny = x < 1.17549435e-38f;
  float a = tiny ? x * 8388608.0f : x;
  int32_t e = (toBits(a) - 0x3f2aaaab) & int32_t(0xff800000);
  float m = fromBits(toBits(a) - e) - 1.0f; // in [-1/3, 1/3]
  float i = float(e) * 1.19209290e-7f + (tiny ? -23.0f : 0.0f);
  float s = m * m;
  float r = mad(-0.130310059f, s, -0.121483512f);
  float t = mad(0.140869141f, s, 0.139814854f);
  r = mad(r, s, -0.166846126f);
  t = mad(t, s, 0.200120345f);
  r = mad(r, s, -0.249996200f);
  r = mad(t, m, r);
  r = mad(r, m, 0.333331972f);
  r = mad(r, m, -0.500000000f);
  r = mad(r, s, m);
  r = mad(i, 0.693147182f, r);
  r = x == 0.0f ? -HUGE_VALF : r;
  r = x < 0.0f ? NAN : r;
  return x <= 3.40282347e38f || x < 0.0f ? r : x; // inf and NaN are kept
#endif
}

/// Hyperbolic tangent.
PARC_MATH_FN float tanh(float x) {
#ifdef __CUDA_ARCH__
  return ::tanhf(x);
#else
  using namespace detail;
  float a = fabsf(x), s = x * x;
  float p = mad(-5.70498872745e-3f, s, 2.06390887954e-2f);
  p = mad(p, s, -5.37397155531e-2f);
  p = mad(p, s, 1.33314422036e-1f);
  p = mad(p, s, -3.33332819422e-1f);
  float small = mad(p * s, x, x);
  float large = copysignf(1.0f - 2.0f / (exp(2.0f * a) + 1.0f), x);
  return a < 0.625f ? small : large;
#endif
}

/// Error function.
PARC_MATH_FN float erf(float x) {
#ifdef __CUDA_ARCH__
  return ::erff(x);
#else
  using namespace detail;
  float t = fabsf(x), s = x * x;
  float r = mad(-1.72853470e-5f, t, 3.83197126e-4f);
  float u = mad(-3.88396438e-3f, t, 2.42546219e-2f);
  r = mad(r, s, u);
  r = mad(r, t, -1.06777877e-1f);
  r = mad(r, t, -6.34846687e-1f);
  r = mad(r, t, -1.28717512e-1f);
  r = mad(r, t, -t);
  // Beyond 4 the result is 1 in float, and the polynomial no longer holds.
  float large = copysignf(t > 4.0f ? 1.0f : 1.0f - exp(r), x);
  r = mad(-5.96761703e-4f, s, 4.99119423e-3f);
  r = mad(r, s, -2.67681349e-2f);
  r = mad(r, s, 1.12819925e-1f);
  r = mad(r, s, -3.76125336e-1f);
  r = mad(r, s, 1.28379166e-1f);
  float small = mad(r, x, x);
  return t > 0.927734375f ? large : small;
#endif
}

namespace detail {
/// sin(x + quarter * pi/2). The reduction is done in double, so that rotary
/// angles of long sequences stay exact.
PARC_MATH_FN float sinQuarter(float x, int32_t quarter) {
  double d = x;
  double shifted = d * 0.63661977236758134 + 6755399441055744.0;
  int64_t q;
  memcpy(&q, &shifted, 8);
  double k = shifted - 6755399441055744.0;
  double r = (d - k * 1.5707963267341256) - k * 6.0771005065061922e-11;
  int32_t n = int32_t(q) + quarter;
  double s = r * r;
  double odd = 2.7557313707070068e-06;
  odd = odd * s - 1.9841269829857940e-04;
  odd = odd * s + 8.3333333333224895e-03;
  odd = odd * s - 1.6666666666666633e-01;
  odd = odd * s * r + r;
  double even = 2.4801587289476729e-05;
  even = even * s - 1.3888888888873056e-03;
  even = even * s + 4.1666666666666602e-02;
  even = even * s - 0.5;
  even = even * s + 1.0;
  double v = (n & 1) ? even : odd;
  return float((n & 2) ? -v : v);
}
} // namespace detail

PARC_MATH_FN float sin(float x) {
#ifdef __CUDA_ARCH__
  return ::sinf(x);
#else
  return detail::sinQuarter(x, 0);
#endif
}
PARC_MATH_FN float cos(float x) {
#ifdef __CUDA_ARCH__
  return ::cosf(x);
#else
  return detail::sinQuarter(x, 1);
#endif
}

PARC_MATH_FN float sqrt(float x) { return ::sqrtf(x); }
PARC_MATH_FN float rsqrt(float x) {
#ifdef __CUDA_ARCH__
  return ::rsqrtf(x);
#else
  return 1.0f / ::sqrtf(x);
#endif
}
PARC_MATH_FN float absf(float x) { return ::fabsf(x); }
PARC_MATH_FN float pow(float x, float y) { return ::powf(x, y); }
PARC_MATH_FN float floor(float x) { return ::floorf(x); }
PARC_MATH_FN float ceil(float x) { return ::ceilf(x); }

PARC_MATH_FN double exp(double x) { return ::exp(x); }
PARC_MATH_FN double log(double x) { return ::log(x); }
PARC_MATH_FN double tanh(double x) { return ::tanh(x); }
PARC_MATH_FN double erf(double x) { return ::erf(x); }
PARC_MATH_FN double sin(double x) { return ::sin(x); }
PARC_MATH_FN double cos(double x) { return ::cos(x); }
PARC_MATH_FN double sqrt(double x) { return ::sqrt(x); }
PARC_MATH_FN double rsqrt(double x) { return 1.0 / ::sqrt(x); }
PARC_MATH_FN double absf(double x) { return ::fabs(x); }
PARC_MATH_FN double pow(double x, double y) { return ::pow(x, y); }
PARC_MATH_FN double floor(double x) { return ::floor(x); }
PARC_MATH_FN double ceil(double x) { return ::ceil(x); }

#undef PARC_MATH_FN

} // namespace math
} // namespace parc

#endif // PARC_MATH_H
