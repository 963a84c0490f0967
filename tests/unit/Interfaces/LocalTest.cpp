//===- LocalTest.cpp - Upstream ops on local operands ---------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// buildLocal with static and dynamic (uneven) extents, and offset rewriting.
///
//===----------------------------------------------------------------------===//

#include "ModelTest.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::parc::test;

namespace {

class LocalTest : public ModelTest {
protected:
  /// Builds the local op of the marked op right after it. Its operands are the
  /// function's arguments from number `first` on; -1 in `sizes` stands for the
  /// function's last argument, an index.
  Operation *build(Operation *op, unsigned first, Type type,
                   ArrayRef<int64_t> sizes) {
    OpBuilder builder(op);
    builder.setInsertionPointAfter(op);
    Block &entry = *op->getBlock();
    SmallVector<OpFoldResult> results;
    for (int64_t size : sizes)
      results.push_back(size < 0 ? OpFoldResult(entry.getArguments().back())
                                 : OpFoldResult(builder.getIndexAttr(size)));
    ValueRange operands =
        entry.getArguments().slice(first, op->getNumOperands());
    return cast<parc::ShardableOpInterface>(op).buildLocal(builder, operands,
                                                           type, {results});
  }

  Type type(StringRef text) { return parseType(text, &context); }
};

} // namespace

TEST_F(LocalTest, UnevenMatmul) {
  Operation *op = parse("%a: tensor<5x7xf32>, %b: tensor<7x3xf32>, "
                        "%c: tensor<5x3xf32>, %la: tensor<5x?xf32>, "
                        "%lb: tensor<?x3xf32>, %lc: tensor<5x3xf32>, %n: index",
                        R"(%r = linalg.matmul {test}
      ins(%a, %b : tensor<5x7xf32>, tensor<7x3xf32>)
      outs(%c : tensor<5x3xf32>) -> tensor<5x3xf32>)");
  build(op, 3, type("tensor<5x3xf32>"), {5, 3});
  EXPECT_TRUE(contains(print(), "linalg.matmul {test} ins(%arg3, %arg4 : "
                                "tensor<5x?xf32>, tensor<?x3xf32>)"))
      << print();
}

TEST_F(LocalTest, OffsetOfIndexAndCapturedConstant) {
  Operation *op = parse("%c: tensor<7xf32>, %l: tensor<?xf32>, %n: index", R"(
      %k = arith.constant 3 : index
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]} outs(%c : tensor<7xf32>)
          attrs = {test} {
        ^bb0(%o: f32):
          %i = linalg.index 0 : index
          %in = arith.cmpi slt, %i, %k : index
          %y = arith.uitofp %in : i1 to f32
          linalg.yield %y : f32
        } -> tensor<7xf32>)");
  Operation *local = build(op, 1, type("tensor<?xf32>"), {-1});
  OpBuilder builder(local);
  Value start = op->getBlock()->getArgument(2);
  cast<parc::ShardableOpInterface>(local).setFactorOffset(builder, 0, start);
  // The original is gone in the local function, and its constant with it.
  Operation *constant = &op->getBlock()->front();
  op->erase();
  EXPECT_TRUE(constant->use_empty());
  print();
  Block &body = local->getRegion(0).front();
  auto index = *body.getOps<linalg::IndexOp>().begin();
  ASSERT_TRUE(index->hasOneUse());
  Operation *sum = *index->user_begin();
  EXPECT_EQ(sum->getName().getStringRef(), "arith.addi");
  EXPECT_EQ(sum->getOperand(1), start);
  EXPECT_EQ((*sum->user_begin())->getName().getStringRef(), "arith.cmpi");
}

TEST_F(LocalTest, ConstantAndEmpty) {
  Operation *op = parse("%n: index", "%r = arith.constant {test} dense<2.0> : "
                                     "tensor<7x4xf32>");
  build(op, 0, type("tensor<?x4xf32>"), {-1, 4});
  EXPECT_TRUE(contains(print(), "tensor.empty(%arg0) : tensor<?x4xf32>"));
  EXPECT_TRUE(contains(print(), "-> tensor<?x4xf32>"));
  build(op, 0, type("tensor<2x4xf32>"), {2, 4});
  EXPECT_TRUE(contains(print(), "dense<2.000000e+00> : tensor<2x4xf32>"));

  op = parse("%n: index", "%r = tensor.empty() {test} : tensor<7x4xf32>");
  build(op, 0, type("tensor<?x4xf32>"), {-1, 4});
  EXPECT_TRUE(contains(print(), "tensor.empty(%arg0) : tensor<?x4xf32>"));
}

TEST_F(LocalTest, Reshapes) {
  Operation *op = parse("%a: tensor<5x24xf32>, %l: tensor<5x?xf32>, %n: index",
                        "%r = tensor.expand_shape %a [[0], [1, 2]] "
                        "output_shape [5, 6, 4] {test} : tensor<5x24xf32> into "
                        "tensor<5x6x4xf32>");
  build(op, 1, type("tensor<5x?x4xf32>"), {5, -1, 4});
  EXPECT_TRUE(contains(print(), "tensor.expand_shape %arg1 [[0], [1, 2]] "
                                "output_shape [5, %arg2, 4] : tensor<5x?xf32> "
                                "into tensor<5x?x4xf32>"))
      << print();
  op = parse("%a: tensor<5x6x4xf32>, %l: tensor<5x?x4xf32>, %n: index",
             "%r = tensor.collapse_shape %a [[0], [1, 2]] {test} : "
             "tensor<5x6x4xf32> into tensor<5x24xf32>");
  build(op, 1, type("tensor<5x?xf32>"), {5, -1});
  EXPECT_TRUE(contains(print(), "tensor<5x?x4xf32> into tensor<5x?xf32>"))
      << print();
}

TEST_F(LocalTest, Slices) {
  Operation *op =
      parse("%a: tensor<3x5x8xf32>, %l: tensor<3x?x8xf32>, %n: index",
            "%r = tensor.extract_slice %a[2, 0, 4] [1, 5, 4] [1, 1, 1] {test} "
            ": tensor<3x5x8xf32> to tensor<5x4xf32>");
  build(op, 1, type("tensor<?x4xf32>"), {-1, 4});
  EXPECT_TRUE(contains(print(), "tensor.extract_slice %arg1[2, 0, 4] "
                                "[1, %arg2, 4] [1, 1, 1] : tensor<3x?x8xf32> "
                                "to tensor<?x4xf32>"))
      << print();
  op = parse("%a: tensor<5x4xf32>, %d: tensor<3x5x8xf32>, %i: index, "
             "%la: tensor<?x4xf32>, %ld: tensor<3x?x8xf32>, %li: index, "
             "%n: index",
             "%r = tensor.insert_slice %a into %d[%i, 0, 4] [1, 5, 4] "
             "[1, 1, 1] {test} : tensor<5x4xf32> into tensor<3x5x8xf32>");
  build(op, 3, type("tensor<3x?x8xf32>"), {3, -1, 8});
  EXPECT_TRUE(contains(print(), "tensor.insert_slice %arg3 into %arg4[%arg5, "
                                "0, 4] [1, %arg6, 4] [1, 1, 1] : "
                                "tensor<?x4xf32> into tensor<3x?x8xf32>"))
      << print();
}
