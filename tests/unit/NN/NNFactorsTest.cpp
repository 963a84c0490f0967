//===- NNFactorsTest.cpp - What every op says of its factors --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every op's factors describe its own operands and results, whole and local;
/// some are checked in full.
///
//===----------------------------------------------------------------------===//

#include "NNTestModule.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::test;
using namespace mlir::parc;

/// A tensor type, with its sizes hidden if `dynamic`.
static std::string tensorText(ArrayRef<int64_t> shape, StringRef element,
                              bool dynamic) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += (dynamic ? "?" : std::to_string(size)) + "x";
  return text + element.str() + ">";
}

std::string test::everyOp(StringRef element, bool dynamic) {
  auto type = [&](ArrayRef<int64_t> shape) {
    return tensorText(shape, element, dynamic);
  };
  std::string x = type({2, 5, 6}), w = type({3, 6}), y = type({2, 5, 3});
  std::string n = type({6}), q = type({2, 5, 4, 4}), k = type({2, 5, 2, 4});
  std::string v = type({2, 5, 2, 6}), o = type({2, 5, 4, 6}),
              row = type({2, 5});
  std::string ids = tensorText({2, 5}, "i64", dynamic), seed = "tensor<i64>";
  std::string scalar = type({});
  // The number of frequencies is known.
  std::string c = "tensor<" + std::string(dynamic ? "?x?" : "2x5") + "x2x" +
                  element.str() + ">";
  std::string rope = dynamic ? "tensor<?x?x?x4x" + element.str() + ">" : q;
  std::string attention = " positions(%ids, %ids) causal window 3 scale 0.5 "
                          "dropout 0.25 site 1 seed %seed stream %i group 2 : ";
  return "func.func @f(%x: " + x + ", %w: " + w + ", %n: " + n + ", %q: " + q +
         ", %r: " + rope + ", %k: " + k + ", %v: " + v + ", %ids: " + ids +
         ", %seed: " + seed + ", %s: " + scalar + ", %i: index) {\n" +
         "%0 = nn.linear %x, %w : " + x + ", " + w + " -> " + y + "\n" +
         "%1 = nn.bias_add %x, %n : " + x + ", " + n + "\n" +
         "%2 = nn.embedding %ids, %w from %i : " + ids + ", " + w + " -> " + x +
         "\n" + "%3 = nn.embedding_grad %ids, %x from %i rows %i : " + ids +
         ", " + x + " -> " + w + "\n" +
         "%4 = nn.rms_norm %x, %n epsilon 1.0e-5 : " + x + ", " + n + "\n" +
         "%5 = nn.rms_norm_input_grad %x, %n, %x epsilon 1.0e-5 : " + x + ", " +
         n + ", " + x + " -> " + x + "\n" +
         "%6 = nn.rms_norm_weight_grad %x, %x epsilon 1.0e-5 : " + x + ", " +
         x + " -> " + n + "\n" +
         "%7 = nn.layer_norm %x, %n, %n epsilon 1.0e-5 : " + x + ", " + n +
         "\n" +
         "%8 = nn.layer_norm_input_grad %x, %n, %x epsilon 1.0e-5 : " + x +
         ", " + n + ", " + x + " -> " + x + "\n" +
         "%9 = nn.layer_norm_weight_grad %x, %x epsilon 1.0e-5 : " + x + ", " +
         x + " -> " + n + "\n" + "%10 = nn.silu %x : " + x + "\n" +
         "%11 = nn.silu_grad %x, %x : " + x + ", " + x + " -> " + x + "\n" +
         "%12 = nn.gelu %x : " + x + "\n" +
         "%13 = nn.gelu_grad %x, %x exact : " + x + ", " + x + " -> " + x +
         "\n" +
         "%cos, %sin = nn.rope_table %ids frequencies [1.0, 0.1] : " + ids +
         " -> " + c + "\n" + "%14 = nn.rope %r, %cos, %sin : " + rope + ", " +
         c + "\n" +
         "%15 = nn.rope %r, %cos, %sin interleaved inverse : " + rope + ", " +
         c + "\n" + "%16 = nn.attention %q, %k, %v" + attention + q + ", " + k +
         ", " + v + ", " + ids + ", " + ids + ", " + seed + " -> " + o + "\n" +
         "%17:3 = nn.attention_grad %q, %k, %v, %16" + attention + q + ", " +
         k + ", " + v + ", " + o + ", " + ids + ", " + ids + ", " + seed +
         " -> " + q + ", " + k + ", " + v + "\n" +
         "%18 = nn.dropout %x seed %seed stream %i rate 0.25 site 0 : " + x +
         ", " + seed + "\n" +
         "%loss, %count, %lse = nn.softmax_cross_entropy %x, %ids : " + x +
         ", " + ids + " -> " + scalar + ", " + scalar + ", " + row + "\n" +
         "%19 = nn.softmax_cross_entropy_grad %x, %ids, %lse, %s : " + x +
         ", " + ids + ", " + row + ", " + scalar + " -> " + x + "\n" +
         "%20 = nn.sum_squares %x : " + x + " -> " + scalar + "\n" +
         "%21 = nn.add_n %x, %1, %x : " + x + ", " + x + ", " + x + " -> " + x +
         "\n" + "%22:3 = nn.adamw %x, %x, %x, %x scalars(%s, %s, %s, %s, %s, " +
         "%s, %s, %s) : " + x + ", " + x + ", " + x + ", " + x + ", " + scalar +
         "\n" + "return\n}\n";
}

/// Each dimension's size is the product of its factors' sizes.
static void checkValue(Type type, const ValueFactors &dims,
                       const OpFactors &factors) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  ASSERT_EQ(dims.size(), tensor ? tensor.getRank() : 0u);
  for (auto [dim, members] : llvm::enumerate(dims)) {
    ASSERT_FALSE(members.empty());
    int64_t size = 1;
    for (unsigned factor : members) {
      ASSERT_LT(factor, factors.factors.size());
      int64_t extent = factors.factors[factor].size;
      size = ShapedType::isDynamic(extent) ? extent : size * extent;
    }
    if (!tensor.isDynamicDim(dim) && size >= 0) {
      EXPECT_EQ(size, tensor.getDimSize(dim));
    }
    // Only the major-most of a dimension's factors can be split, if it does not
    // say otherwise.
    if (members.cut != DimCut::Major)
      continue;
    for (unsigned factor : ArrayRef<unsigned>(members).drop_front())
      EXPECT_FALSE(factors.factors[factor].splittable);
  }
}

static void checkAllFactors(bool dynamic) {
  Program program(everyOp("f32", dynamic));
  ASSERT_TRUE(program.module);
  int count = 0;
  program.module->walk([&](ShardableOpInterface op) {
    SCOPED_TRACE(op->getName().getStringRef().str());
    FailureOr<OpFactors> factors = op.getFactors();
    ASSERT_TRUE(succeeded(factors));
    ASSERT_EQ(factors->operands.size(), op->getNumOperands());
    ASSERT_EQ(factors->results.size(), op->getNumResults());
    for (auto [type, dims] :
         llvm::zip(op->getOperandTypes(), factors->operands))
      checkValue(type, dims, *factors);
    for (auto [type, dims] : llvm::zip(op->getResultTypes(), factors->results))
      checkValue(type, dims, *factors);
    for (const auto &set : factors->linear)
      for (unsigned operand : set)
        EXPECT_LT(operand, op->getNumOperands());
    ++count;
  });
  EXPECT_EQ(count, 23);
}

TEST(NNFactors, DescribeEveryOp) { checkAllFactors(/*dynamic=*/false); }

TEST(NNFactors, DescribeEveryLocalOp) { checkAllFactors(/*dynamic=*/true); }

TEST(NNFactors, LinearContractsItsLastFactor) {
  Program program(everyOp("f32", false));
  OpFactors factors = *program.first<LinearOp>().getFactors();
  EXPECT_EQ(factors.operands[0], (ValueFactors{{0}, {1}, {3}}));
  EXPECT_EQ(factors.operands[1], (ValueFactors{{2}, {3}}));
  EXPECT_EQ(factors.results[0], (ValueFactors{{0}, {1}, {2}}));
  ASSERT_EQ(factors.linear.size(), 2u);
}

TEST(NNFactors, BiasIsJointlyLinear) {
  Program program(everyOp("f32", false));
  OpFactors factors = *program.first<BiasAddOp>().getFactors();
  ASSERT_EQ(factors.linear.size(), 1u);
  EXPECT_EQ(factors.linear[0], (SmallVector<unsigned, 2>{0, 1}));
}

TEST(NNFactors, NormNeedsItsRowWhole) {
  Program program(everyOp("f32", false));
  OpFactors factors = *program.first<RmsNormOp>().getFactors();
  EXPECT_TRUE(factors.factors[0].splittable);
  EXPECT_TRUE(factors.factors[1].splittable);
  EXPECT_FALSE(factors.factors[2].splittable);
}

TEST(NNFactors, VocabularyNeedsItsOffset) {
  Program program(everyOp("f32", false));
  OpFactors factors = *program.first<EmbeddingOp>().getFactors();
  unsigned vocabulary = factors.operands[1][0][0];
  EXPECT_TRUE(factors.factors[vocabulary].needsOffset);
  for (const DimFactors &dim : factors.results[0])
    EXPECT_NE(dim[0], vocabulary);
}

TEST(NNFactors, QueryHeadsGoByGroups) {
  Program program(everyOp("f32", false));
  OpFactors factors = *program.first<AttentionOp>().getFactors();
  const DimFactors &heads = factors.operands[0][2];
  ASSERT_EQ(heads.size(), 2u);
  EXPECT_EQ(factors.operands[1][2], (DimFactors{heads[0]}));
  EXPECT_EQ(factors.factors[heads[0]].size, 2);
  EXPECT_EQ(factors.factors[heads[1]].size, 2);
  EXPECT_TRUE(factors.factors[heads[0]].needsOffset);
  EXPECT_TRUE(factors.factors[heads[0]].splittable);
}
