//===- NNRandom.cpp - Counter-based random decisions in IR ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The generator of NNRandom.h.
///
//===----------------------------------------------------------------------===//

#include "NN/NNRandom.h"
#include "NN/NNBuilders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>

using namespace mlir;
using namespace mlir::nn;

static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

/// `x ^ (x >> shift)`.
static Value xorShift(ImplicitLocOpBuilder &b, Value x, uint64_t shift) {
  Value shifted = arith::ShRUIOp::create(b, x, integerConstant(b, shift));
  return arith::XOrIOp::create(b, x, shifted);
}

static Value times(ImplicitLocOpBuilder &b, Value x, uint64_t factor) {
  return arith::MulIOp::create(b, x, integerConstant(b, factor));
}

/// The finaliser of splitmix64.
static Value mix(ImplicitLocOpBuilder &b, Value x) {
  x = times(b, xorShift(b, x, 30), 0xbf58476d1ce4e5b9);
  x = times(b, xorShift(b, x, 27), 0x94d049bb133111eb);
  return xorShift(b, x, 31);
}

/// Mixes one more word into a key.
static Value chain(ImplicitLocOpBuilder &b, Value key, Value word) {
  Value both = arith::XOrIOp::create(b, key, word);
  return mix(b, arith::AddIOp::create(b, both, integerConstant(b, kGolden)));
}

Value nn::randomKey(ImplicitLocOpBuilder &b, Value seed, int64_t site,
                    Value stream) {
  Value key = tensor::ExtractOp::create(b, seed, ValueRange());
  key = chain(b, key, integerConstant(b, site));
  Value layer =
      stream ? arith::IndexCastOp::create(b, b.getI64Type(), stream).getResult()
             : integerConstant(b, 0);
  return chain(b, key, layer);
}

Value nn::keepsElement(ImplicitLocOpBuilder &b, Value key, Value index,
                       double rate) {
  Value counter = arith::IndexCastOp::create(b, b.getI64Type(), index);
  counter = arith::AddIOp::create(b, counter, integerConstant(b, 1));
  Value bits =
      mix(b, arith::AddIOp::create(b, key, times(b, counter, kGolden)));
  Value uniform = arith::ShRUIOp::create(b, bits, integerConstant(b, 11));
  // `uniform * 2^-53 >= rate` over the integers.
  auto bound = static_cast<uint64_t>(std::ceil(std::ldexp(rate, 53)));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::uge, uniform,
                               integerConstant(b, bound));
}

Value nn::rowMajorIndex(ImplicitLocOpBuilder &b, ValueRange indices,
                        ArrayRef<OpFoldResult> sizes) {
  Value result;
  for (auto [index, size] : llvm::zip_equal(indices, sizes)) {
    if (!result) {
      result = index;
      continue;
    }
    result = arith::MulIOp::create(b, result, indexValue(b, size));
    result = arith::AddIOp::create(b, result, index);
  }
  return result ? result : indexConstant(b, 0);
}
