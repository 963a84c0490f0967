//===- NNLocalTest.cpp - How ops become local -----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a local op is told that its types no longer tell, and gradients that
/// are not wanted.
///
//===----------------------------------------------------------------------===//

#include "NNTestModule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::test;
using namespace mlir::parc;

/// The same types with dimension `dim` of each value hidden.
static SmallVector<Type> hide(TypeRange types, int64_t dim) {
  SmallVector<Type> result;
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape(tensor.getShape());
    shape[dim] = ShapedType::kDynamic;
    result.push_back(tensor.clone(shape));
  }
  return result;
}

TEST(NNLocal, AttentionKeepsGlobalShapeGroupAndStarts) {
  Program program(everyOp("f32", false));
  auto op = program.first<AttentionOp>();
  OpBuilder builder(op);
  Value start = arith::ConstantIndexOp::create(builder, op.getLoc(), 1);
  auto local = cast<AttentionOp>(op.buildLocal(
      builder, op->getOperands(), hide(op->getResultTypes(), 2), {}));
  ASSERT_TRUE(local.getShape());
  EXPECT_EQ(*local.getShape(), (ArrayRef<int64_t>{2, 4, 5, 5}));
  EXPECT_EQ(local.getGroup(), 2u);
  local.setFactorOffset(builder, 0, start);
  local.setFactorOffset(builder, 3, start);
  EXPECT_EQ(local.getBatchStart(), start);
  // In query heads, of which each key head has two.
  auto heads = local.getHeadStart().getDefiningOp<arith::MulIOp>();
  ASSERT_TRUE(heads);
  EXPECT_EQ(heads.getLhs(), start);
  EXPECT_TRUE(succeeded(verify(*program.module)));
}

TEST(NNLocal, AttentionOnDynamicHeadsNeedsItsGroup) {
  Program program(everyOp("f32", true));
  auto op = program.first<AttentionOp>();
  op.removeGroupAttr();
  std::string message;
  ScopedDiagnosticHandler handler(&program.context, [&](Diagnostic &error) {
    message = error.str();
    return success();
  });
  OpBuilder builder(op);
  EXPECT_TRUE(failed(op.decompose(builder)));
  EXPECT_NE(message.find("expected `group`"), std::string::npos);
}

TEST(NNLocal, DropoutKeepsGlobalShapeAndStarts) {
  Program program(everyOp("f32", false));
  auto op = program.first<DropoutOp>();
  OpBuilder builder(op);
  Value start = arith::ConstantIndexOp::create(builder, op.getLoc(), 3);
  auto local = cast<DropoutOp>(
      op.buildLocal(builder, op->getOperands(), op->getResultTypes(), {}));
  ASSERT_EQ(local.getStarts().size(), 3u);
  EXPECT_EQ(*local.getShape(), (ArrayRef<int64_t>{2, 5, 6}));
  local.setFactorOffset(builder, 1, start);
  EXPECT_NE(local.getStarts()[0], start);
  EXPECT_EQ(local.getStarts()[1], start);
  EXPECT_TRUE(succeeded(verify(*program.module)));
}

TEST(NNLocal, EmbeddingGradientIsToldItsRows) {
  Program program(everyOp("f32", false));
  auto op = program.first<EmbeddingGradOp>();
  op.getRowsMutable().clear();
  OpBuilder builder(op);
  Value rows = arith::ConstantIndexOp::create(builder, op.getLoc(), 2);
  SmallVector<SmallVector<OpFoldResult>> sizes{
      {OpFoldResult(rows), builder.getIndexAttr(6)}};
  auto local = cast<EmbeddingGradOp>(op.buildLocal(
      builder, op->getOperands(), hide(op->getResultTypes(), 0), sizes));
  EXPECT_EQ(local.getRows(), rows);
  EXPECT_TRUE(succeeded(verify(*program.module)));
}

/// Every gradient has its operand's type; what is not wanted is not built.
TEST(NNGradient, HasTheOperandsTypesAndNothingUnwanted) {
  Program program(everyOp("bf16", false));
  SmallVector<DifferentiableOpInterface> ops;
  program.module->walk(
      [&](DifferentiableOpInterface op) { ops.push_back(op); });
  ASSERT_EQ(ops.size(), 12u);
  for (DifferentiableOpInterface op : ops) {
    SCOPED_TRACE(op->getName().getStringRef().str());
    OpBuilder builder(op->getBlock()->getTerminator());
    // The first result stands for its own gradient.
    SmallVector<Value> grads(op->getNumResults());
    grads[0] = op->getResult(0);
    SmallVector<Type> none(op->getNumOperands());
    SmallVector<Value> results;
    Operation *last = op->getBlock()->getTerminator()->getPrevNode();
    ASSERT_TRUE(succeeded(op.buildGradient(builder, grads, none, results)));
    EXPECT_EQ(last, op->getBlock()->getTerminator()->getPrevNode());
    ASSERT_EQ(results.size(), op->getNumOperands());
    for (Value value : results)
      EXPECT_FALSE(value);
    SmallVector<Type> wanted(op->getNumOperands());
    for (auto [i, type] : llvm::enumerate(op->getOperandTypes()))
      if (auto tensor = dyn_cast<RankedTensorType>(type))
        if (isa<FloatType>(tensor.getElementType()) &&
            !(isa<RopeOp>(op) && i > 0))
          wanted[i] = tensor.getElementType();
    results.clear();
    ASSERT_TRUE(succeeded(op.buildGradient(builder, grads, wanted, results)));
    for (auto [i, value] : llvm::enumerate(results)) {
      EXPECT_EQ(static_cast<bool>(value), static_cast<bool>(wanted[i]));
      if (value) {
        EXPECT_EQ(value.getType(), op->getOperand(i).getType());
      }
    }
  }
  EXPECT_TRUE(succeeded(verify(*program.module)));
}
