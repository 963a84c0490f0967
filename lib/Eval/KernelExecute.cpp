//===- KernelExecute.cpp - Instructions on lanes --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What each instruction computes. Integers wrap as arith says; shifts by the
/// width or more, which arith leaves undefined, give 0 (or the sign).
///
//===----------------------------------------------------------------------===//

#include "KernelExecute.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::parc::eval;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

static uint64_t zeroExtend(int64_t value, unsigned width) {
  return width >= 64 ? uint64_t(value)
                     : uint64_t(value) & ((uint64_t(1) << width) - 1);
}

/// The value of the low `width` bits: by their sign, i1 as 0 and 1.
static int64_t wrap(uint64_t value, unsigned width) {
  if (width >= 64)
    return int64_t(value);
  if (width == 1)
    return int64_t(value & 1);
  return int64_t(value << (64 - width)) >> (64 - width);
}

/// By sign also for i1, whose only negative value is -1.
static int64_t signedOf(int64_t value, unsigned width) {
  return width == 1 ? -(value & 1) : value;
}

static int64_t compareInts(uint8_t predicate, int64_t a, int64_t b,
                           unsigned width) {
  int64_t sa = signedOf(a, width), sb = signedOf(b, width);
  uint64_t ua = zeroExtend(a, width), ub = zeroExtend(b, width);
  switch (arith::CmpIPredicate(predicate)) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return sa < sb;
  case arith::CmpIPredicate::sle:
    return sa <= sb;
  case arith::CmpIPredicate::sgt:
    return sa > sb;
  case arith::CmpIPredicate::sge:
    return sa >= sb;
  case arith::CmpIPredicate::ult:
    return ua < ub;
  case arith::CmpIPredicate::ule:
    return ua <= ub;
  case arith::CmpIPredicate::ugt:
    return ua > ub;
  case arith::CmpIPredicate::uge:
    return ua >= ub;
  }
  return 0;
}

static int64_t shift(OpCode code, int64_t value, int64_t amount,
                     unsigned width) {
  uint64_t by = zeroExtend(amount, width);
  if (by >= width)
    return code == OpCode::ShiftRightS && value < 0 ? -1 : 0;
  if (code == OpCode::ShiftLeft)
    return wrap(uint64_t(value) << by, width);
  if (code == OpCode::ShiftRightU)
    return wrap(zeroExtend(value, width) >> by, width);
  return wrap(uint64_t(signedOf(value, width) >> by), width);
}

/// Quotients and remainders; the divisor is not zero, and the most negative
/// number by -1 wraps.
static int64_t divide(OpCode code, int64_t a, int64_t b, unsigned width) {
  uint64_t ua = zeroExtend(a, width), ub = zeroExtend(b, width);
  if (code == OpCode::DivU)
    return wrap(ua / ub, width);
  if (code == OpCode::RemU)
    return wrap(ua % ub, width);
  if (code == OpCode::CeilDivU)
    return wrap(ua / ub + (ua % ub != 0), width);
  if (b == -1)
    return code == OpCode::RemS ? 0 : wrap(0 - uint64_t(a), width);
  int64_t quotient = a / b, rest = a % b;
  if (code == OpCode::RemS)
    return rest;
  if (code == OpCode::FloorDivS && rest != 0 && (rest < 0) != (b < 0))
    --quotient;
  if (code == OpCode::CeilDivS && rest != 0 && (rest < 0) == (b < 0))
    ++quotient;
  return quotient;
}

static int64_t integerBinary(OpCode code, int64_t a, int64_t b,
                             unsigned width) {
  uint64_t ua = uint64_t(a), ub = uint64_t(b);
  switch (code) {
  case OpCode::AddI:
    return wrap(ua + ub, width);
  case OpCode::SubI:
    return wrap(ua - ub, width);
  case OpCode::MulI:
    return wrap(ua * ub, width);
  case OpCode::MulHighU:
    return wrap(uint64_t((unsigned __int128)zeroExtend(a, width) *
                             zeroExtend(b, width) >>
                         width),
                width);
  case OpCode::MulHighS:
    return wrap(
        uint64_t((__int128)signedOf(a, width) * signedOf(b, width) >> width),
        width);
  case OpCode::And:
    return a & b;
  case OpCode::Or:
    return a | b;
  case OpCode::Xor:
    return a ^ b;
  case OpCode::MaxS:
    return signedOf(a, width) < signedOf(b, width) ? b : a;
  case OpCode::MinS:
    return signedOf(b, width) < signedOf(a, width) ? b : a;
  case OpCode::MaxU:
    return zeroExtend(a, width) < zeroExtend(b, width) ? b : a;
  case OpCode::MinU:
    return zeroExtend(b, width) < zeroExtend(a, width) ? b : a;
  default:
    return shift(code, a, b, width);
  }
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

template <class T> static int64_t compareFloats(uint8_t predicate, T a, T b) {
  using P = arith::CmpFPredicate;
  bool unordered = DomainOf<T>::isNaN(a) || DomainOf<T>::isNaN(b);
  switch (P(predicate)) {
  case P::AlwaysFalse:
    return 0;
  case P::OEQ:
    return !unordered && a == b;
  case P::OGT:
    return !unordered && a > b;
  case P::OGE:
    return !unordered && a >= b;
  case P::OLT:
    return !unordered && a < b;
  case P::OLE:
    return !unordered && a <= b;
  case P::ONE:
    return !unordered && a != b;
  case P::ORD:
    return !unordered;
  case P::UEQ:
    return unordered || a == b;
  case P::UGT:
    return unordered || a > b;
  case P::UGE:
    return unordered || a >= b;
  case P::ULT:
    return unordered || a < b;
  case P::ULE:
    return unordered || a <= b;
  case P::UNE:
    return unordered || a != b;
  case P::UNO:
    return unordered;
  case P::AlwaysTrue:
    return 1;
  }
  return 0;
}

/// Towards zero; what does not fit, which arith leaves undefined, gives 0.
template <class T>
static int64_t toInteger(T x, bool isSigned, unsigned width) {
  double value = std::trunc(DomainOf<T>::toDouble(x));
  double low = isSigned ? -std::ldexp(1.0, int(width) - 1) : 0.0;
  double high = std::ldexp(1.0, int(width) - (isSigned ? 1 : 0));
  if (!(value >= low && value < high))
    return 0;
  return wrap(isSigned ? uint64_t(int64_t(value)) : uint64_t(value), width);
}

//===----------------------------------------------------------------------===//
// One instruction
//===----------------------------------------------------------------------===//

template <class T>
static LogicalResult
extract(const Program<T> &program, const Instruction<T> &in, Lanes<T> &lanes,
        int64_t begin, int64_t end, const Tensor<T> &source) {
  ArrayRef<uint16_t> indices = program.extracts[in.extract].indices;
  Shape strides = rowMajorStrides(source.shape());
  for (int64_t lane = begin; lane < end; ++lane) {
    int64_t offset = 0;
    for (auto [dim, reg] : llvm::enumerate(indices)) {
      int64_t index = lanes.intLanes(reg)[lane];
      if (index < 0 || index >= source.shape()[dim])
        return in.op->emitOpError()
               << "reads index " << index << " of dimension " << dim
               << ", whose size is " << source.shape()[dim]
               << "; clamp or select the index before it is used";
      offset += index * strides[dim];
    }
    if (in.code == OpCode::ExtractI)
      lanes.intLanes(in.dst)[lane] = source.ints()[offset];
    else
      lanes.floatLanes(in.dst)[lane] = source.floats()[offset];
  }
  return success();
}

template <class T>
static LogicalResult integerDivision(const Instruction<T> &in, Lanes<T> &lanes,
                                     int64_t begin, int64_t end) {
  const int64_t *a = lanes.intLanes(in.a), *b = lanes.intLanes(in.b);
  for (int64_t lane = begin; lane < end; ++lane) {
    if (b[lane] == 0)
      return in.op->emitOpError() << "divides " << a[lane] << " by zero";
    lanes.intLanes(in.dst)[lane] = divide(in.code, a[lane], b[lane], in.width);
  }
  return success();
}

template <class T>
LogicalResult
mlir::parc::eval::execute(const Program<T> &program, const Instruction<T> &in,
                          Lanes<T> &lanes, int64_t begin, int64_t end,
                          ArrayRef<Tensor<T>> extracts) {
  using D = DomainOf<T>;
  T *f = lanes.floats.data();
  int64_t *n = lanes.ints.data();
  const T *fa = f + in.a * kLanes, *fb = f + in.b * kLanes,
          *fc = f + in.c * kLanes;
  const int64_t *ia = n + in.a * kLanes, *ib = n + in.b * kLanes,
                *ic = n + in.c * kLanes;
  T *fd = f + in.dst * kLanes;
  int64_t *id = n + in.dst * kLanes;
  auto floats = [&](auto value) {
    for (int64_t i = begin; i < end; ++i)
      fd[i] = value(i);
  };
  auto ints = [&](auto value) {
    for (int64_t i = begin; i < end; ++i)
      id[i] = value(i);
  };

  switch (in.code) {
  case OpCode::AddF:
    floats([&](int64_t i) { return fa[i] + fb[i]; });
    break;
  case OpCode::SubF:
    floats([&](int64_t i) { return fa[i] - fb[i]; });
    break;
  case OpCode::MulF:
    floats([&](int64_t i) { return fa[i] * fb[i]; });
    break;
  case OpCode::DivF:
    D::divide(fa + begin, fb + begin, fd + begin, end - begin);
    break;
  case OpCode::MaxF:
    floats([&](int64_t i) { return D::maximum(fa[i], fb[i]); });
    break;
  case OpCode::MinF:
    floats([&](int64_t i) { return D::minimum(fa[i], fb[i]); });
    break;
  case OpCode::MaxNumF:
    floats([&](int64_t i) {
      return D::isNaN(fa[i]) || fa[i] < fb[i] ? fb[i] : fa[i];
    });
    break;
  case OpCode::MinNumF:
    floats([&](int64_t i) {
      return D::isNaN(fa[i]) || fb[i] < fa[i] ? fb[i] : fa[i];
    });
    break;
  case OpCode::NegF:
    floats([&](int64_t i) { return -fa[i]; });
    break;
  case OpCode::FmaF:
    floats([&](int64_t i) { return fa[i] * fb[i] + fc[i]; });
    break;
  case OpCode::PowIntF:
    floats([&](int64_t i) { return D::powInt(fa[i], ib[i]); });
    break;
  case OpCode::CallUnary:
    floats([&](int64_t i) { return in.unary(in.key, fa[i]); });
    break;
  case OpCode::CallBinary:
    floats([&](int64_t i) { return in.binary(in.key, fa[i], fb[i]); });
    break;
  case OpCode::CopyF:
    floats([&](int64_t i) { return fa[i]; });
    break;
  case OpCode::SelectF:
    floats([&](int64_t i) { return ia[i] ? fb[i] : fc[i]; });
    break;
  case OpCode::SignedToFloat:
    floats([&](int64_t i) {
      return D::fromSigned(signedOf(ia[i], in.sourceWidth));
    });
    break;
  case OpCode::UnsignedToFloat:
    floats([&](int64_t i) {
      return D::fromUnsigned(zeroExtend(ia[i], in.sourceWidth));
    });
    break;
  case OpCode::CmpF:
    ints([&](int64_t i) { return compareFloats(in.predicate, fa[i], fb[i]); });
    break;
  case OpCode::CmpI:
    ints([&](int64_t i) {
      return compareInts(in.predicate, ia[i], ib[i], in.width);
    });
    break;
  case OpCode::SelectI:
    ints([&](int64_t i) { return ia[i] ? ib[i] : ic[i]; });
    break;
  case OpCode::CopyI:
    ints([&](int64_t i) { return ia[i]; });
    break;
  case OpCode::WrapI:
    ints([&](int64_t i) {
      return wrap(uint64_t(signedOf(ia[i], in.sourceWidth)), in.width);
    });
    break;
  case OpCode::ZeroExtend:
    ints([&](int64_t i) {
      return wrap(zeroExtend(ia[i], in.sourceWidth), in.width);
    });
    break;
  case OpCode::AbsI:
    ints([&](int64_t i) {
      return ia[i] < 0 ? wrap(0 - uint64_t(ia[i]), in.width) : ia[i];
    });
    break;
  case OpCode::FloatToSigned:
  case OpCode::FloatToUnsigned:
    ints([&](int64_t i) {
      return toInteger(fa[i], in.code == OpCode::FloatToSigned, in.width);
    });
    break;
  case OpCode::DivS:
  case OpCode::DivU:
  case OpCode::RemS:
  case OpCode::RemU:
  case OpCode::CeilDivS:
  case OpCode::CeilDivU:
  case OpCode::FloorDivS:
    return integerDivision(in, lanes, begin, end);
  case OpCode::ExtractF:
  case OpCode::ExtractI:
    return extract(program, in, lanes, begin, end, extracts[in.extract]);
  default:
    ints([&](int64_t i) {
      return integerBinary(in.code, ia[i], ib[i], in.width);
    });
  }
  if (in.round)
    for (int64_t i = begin; i < end; ++i)
      fd[i] = D::roundToBF16(fd[i]);
  return success();
}

#define PARC_INSTANTIATE(T)                                                    \
  template LogicalResult mlir::parc::eval::execute(                            \
      const Program<T> &, const Instruction<T> &, Lanes<T> &, int64_t,         \
      int64_t, ArrayRef<Tensor<T>>);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
