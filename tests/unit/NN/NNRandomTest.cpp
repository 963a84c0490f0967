//===- NNRandomTest.cpp - Random decisions in IR --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The decisions that IR makes, folded on constants, are those of the generator
/// that the runtime documents, written down here once more.
///
//===----------------------------------------------------------------------===//

#include "NN/NNRandom.h"
#include "NN/NNBuilders.h"
#include "NNTestModule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::test;

static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

static uint64_t chain(uint64_t h, uint64_t word) {
  return mix((h ^ word) + kGolden);
}

static bool keeps(uint64_t seed, uint64_t site, uint64_t stream, uint64_t index,
                  double rate) {
  uint64_t key = chain(chain(seed, site), stream);
  return double(mix(key + (index + 1) * kGolden) >> 11) * 0x1p-53 >= rate;
}

/// Whether IR keeps the elements 0 to `count`, by folding it.
static SmallVector<bool> foldedDecisions(int64_t seed, int64_t site,
                                         int64_t stream, int64_t count,
                                         double rate) {
  Program program("func.func private @f()");
  auto module = *program.module;
  ImplicitLocOpBuilder b(module.getLoc(), &program.context);
  b.setInsertionPointToEnd(module.getBody());
  SmallVector<Type> types(count, b.getI1Type());
  auto function = func::FuncOp::create(b, "g", b.getFunctionType({}, types));
  b.setInsertionPointToStart(function.addEntryBlock());
  Value tensor = arith::ConstantOp::create(
      b, DenseElementsAttr::get(RankedTensorType::get({}, b.getI64Type()),
                                ArrayRef<int64_t>{seed}));
  Value key = randomKey(b, tensor, site, indexConstant(b, stream));
  SmallVector<Value> decisions;
  for (int64_t i = 0; i < count; ++i)
    decisions.push_back(keepsElement(b, key, indexConstant(b, i), rate));
  auto end = func::ReturnOp::create(b, decisions);
  EXPECT_TRUE(succeeded(
      applyPatternsGreedily(function, RewritePatternSet(&program.context))));
  SmallVector<bool> result;
  for (Value value : end.getOperands()) {
    APInt bit;
    EXPECT_TRUE(matchPattern(value, m_ConstantInt(&bit)));
    result.push_back(bit.isOne());
  }
  return result;
}

TEST(NNRandom, IsTheRuntimesGenerator) {
  for (double rate : {0.1, 0.3, 0.9}) {
    SmallVector<bool> folded = foldedDecisions(-7, 3, 11, 64, rate);
    for (auto [i, keep] : llvm::enumerate(folded))
      EXPECT_EQ(keep, keeps(uint64_t(-7), 3, 11, i, rate)) << i;
  }
}

TEST(NNRandom, LayersAndSitesDiffer) {
  auto base = foldedDecisions(5, 0, 0, 64, 0.5);
  EXPECT_NE(base, foldedDecisions(5, 0, 1, 64, 0.5));
  EXPECT_NE(base, foldedDecisions(5, 1, 0, 64, 0.5));
  EXPECT_NE(base, foldedDecisions(6, 0, 0, 64, 0.5));
}

TEST(NNRandom, KeepsAllAtRateZero) {
  for (bool keep : foldedDecisions(5, 0, 0, 16, 0))
    EXPECT_TRUE(keep);
}
