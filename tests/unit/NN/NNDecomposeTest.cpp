//===- NNDecomposeTest.cpp - What every op is made of ---------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every op's definition is legal upstream IR of the result types, whatever the
/// element type, with and without static sizes; its shape is checked where
/// other parts of the compiler rely on it.
///
//===----------------------------------------------------------------------===//

#include "NNTestModule.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::test;
using namespace mlir::parc;

/// Replaces each op by its definition.
static void decomposeAll(ModuleOp module) {
  SmallVector<DecomposableOpInterface> ops;
  module.walk([&](DecomposableOpInterface op) { ops.push_back(op); });
  ASSERT_EQ(ops.size(), 25u);
  for (DecomposableOpInterface op : ops) {
    SCOPED_TRACE(op->getName().getStringRef().str());
    OpBuilder builder(op);
    FailureOr<SmallVector<Value>> values = op.decompose(builder);
    ASSERT_TRUE(succeeded(values));
    ASSERT_EQ(TypeRange(ValueRange(*values)), op->getResultTypes());
    op->replaceAllUsesWith(*values);
    op->erase();
  }
}

class NNDecompose
    : public testing::TestWithParam<std::tuple<const char *, bool>> {};

TEST_P(NNDecompose, GivesLegalUpstreamOps) {
  auto [element, dynamic] = GetParam();
  Program program(everyOp(element, dynamic));
  ASSERT_TRUE(program.module);
  decomposeAll(*program.module);
  EXPECT_TRUE(succeeded(verify(*program.module)));
  program.module->walk([](Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    EXPECT_TRUE(llvm::is_contained(
        {"linalg", "tensor", "arith", "math", "func", "builtin"}, dialect))
        << op->getName().getStringRef().str();
  });
}

INSTANTIATE_TEST_SUITE_P(Types, NNDecompose,
                         testing::Combine(testing::Values("f32", "f64", "bf16"),
                                          testing::Bool()));

/// The ops that one op's definition consists of.
template <typename Op, typename Part>
static SmallVector<Part> partsOf(Program &program) {
  Op op = program.first<Op>();
  OpBuilder builder(op);
  Operation *before = op->getPrevNode();
  EXPECT_TRUE(succeeded(op.decompose(builder)));
  SmallVector<Part> parts;
  Operation *part = before ? before->getNextNode() : &op->getBlock()->front();
  for (; part != op.getOperation(); part = part->getNextNode())
    if (auto match = dyn_cast<Part>(part))
      parts.push_back(match);
  return parts;
}

TEST(NNDecomposition, LossReducesTheVocabularyThreeTimes) {
  Program program(everyOp("f32", false));
  int vocabulary = 0, toScalar = 0;
  for (auto part : partsOf<SoftmaxCrossEntropyOp, linalg::GenericOp>(program)) {
    vocabulary += part.getNumLoops() == 3 && part.getNumReductionLoops() == 1;
    toScalar += part.getNumLoops() == 2 && part.getNumReductionLoops() == 2;
    EXPECT_EQ(part.getNumResults(), 1u);
  }
  EXPECT_EQ(vocabulary, 3);
  EXPECT_EQ(toScalar, 2);
}

TEST(NNDecomposition, LossGradientReducesNothing) {
  Program program(everyOp("f32", false));
  auto parts = partsOf<SoftmaxCrossEntropyGradOp, linalg::GenericOp>(program);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].getNumReductionLoops(), 0u);
}

TEST(NNDecomposition, AttentionContractsTwiceAndItsGradientFiveTimes) {
  Program forward(everyOp("f32", false)), backward(everyOp("f32", false));
  EXPECT_EQ((partsOf<AttentionOp, linalg::ContractOp>(forward).size()), 2u);
  EXPECT_EQ((partsOf<AttentionGradOp, linalg::ContractOp>(backward).size()),
            5u);
}

TEST(NNDecomposition, EmbeddingGradientIsMarkedAsScatter) {
  Program program(everyOp("f32", false));
  auto parts = partsOf<EmbeddingGradOp, linalg::GenericOp>(program);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(parts[0]->hasAttr("parc.scatter"));
}

TEST(NNDecomposition, RowStatisticIsAnOpOfItsOwn) {
  Program program(everyOp("f32", false));
  auto parts = partsOf<RmsNormOp, linalg::GenericOp>(program);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].getNumReductionLoops(), 1u);
  EXPECT_EQ(parts[1].getNumLoops(), 2u);
  EXPECT_EQ(parts[2].getNumLoops(), 3u);
}

TEST(NNDecomposition, NarrowFloatsAreStoredOnly) {
  Program program(everyOp("bf16", false));
  decomposeAll(*program.module);
  program.module->walk([](Operation *op) {
    if (!op->getParentOfType<linalg::GenericOp>())
      return;
    StringRef name = op->getName().getStringRef();
    if (!name.starts_with("arith.") || name.contains("trunc") ||
        name.contains("select") || name.contains("constant"))
      return;
    for (Type type : op->getResultTypes())
      EXPECT_FALSE(type.isBF16()) << name.str();
  });
}
