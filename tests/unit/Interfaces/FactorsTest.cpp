//===- FactorsTest.cpp - Factors of upstream ops --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What each upstream op tells the engine: factors, reductions, linear sets.
///
//===----------------------------------------------------------------------===//

#include "ModelTest.h"

using namespace mlir::parc::test;

TEST_F(ModelTest, Contract) {
  EXPECT_EQ(factors("%a: tensor<5x7xf32>, %b: tensor<3x7xf32>, "
                    "%c: tensor<5x3xf32>",
                    R"(%r = linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>] {test}
      ins(%a, %b : tensor<5x7xf32>, tensor<3x7xf32>)
      outs(%c : tensor<5x3xf32>) -> tensor<5x3xf32>)"),
            "5 3 7 ; (0)(2) (1)(2) (0)(1) -> (0)(1) ; {0, 2} {1, 2}");
}

TEST_F(ModelTest, ContractThatCastsIsNotLinear) {
  // A partial bf16 operand may not be extended; the f32 sum still splits.
  EXPECT_EQ(factors("%a: tensor<5x7xbf16>, %b: tensor<3x7xbf16>",
                    R"(%zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<5x3xf32>
      %c = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>)
        -> tensor<5x3xf32>
      %r = linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>] {test}
      ins(%a, %b : tensor<5x7xbf16>, tensor<3x7xbf16>)
      outs(%c : tensor<5x3xf32>) -> tensor<5x3xf32>)"),
            "5 3 7 ; (0)(2) (1)(2) (0)(1) -> (0)(1) ;");
}

TEST_F(ModelTest, MatmulAndBatchMatmul) {
  EXPECT_EQ(factors("%a: tensor<5x7xf32>, %b: tensor<7x3xf32>, "
                    "%c: tensor<5x3xf32>",
                    R"(%r = linalg.matmul {test}
      ins(%a, %b : tensor<5x7xf32>, tensor<7x3xf32>)
      outs(%c : tensor<5x3xf32>) -> tensor<5x3xf32>)"),
            "5 3 7 ; (0)(2) (2)(1) (0)(1) -> (0)(1) ; {0, 2} {1, 2}");
  EXPECT_EQ(factors("%a: tensor<2x5x7xf32>, %b: tensor<2x7x3xf32>, "
                    "%c: tensor<2x5x3xf32>",
                    R"(%r = linalg.batch_matmul {test}
      ins(%a, %b : tensor<2x5x7xf32>, tensor<2x7x3xf32>)
      outs(%c : tensor<2x5x3xf32>) -> tensor<2x5x3xf32>)"),
            "2 5 3 7 ; (0)(1)(3) (0)(3)(2) (0)(1)(2) -> (0)(1)(2) ; "
            "{0, 2} {1, 2}");
}

TEST_F(ModelTest, ReduceCombiners) {
  auto reduce = [&](std::string combiner) {
    return factors("%a: tensor<5x7xf32>, %c: tensor<5xf32>",
                   "%r = linalg.reduce ins(%a : tensor<5x7xf32>) "
                   "outs(%c : tensor<5xf32>) dimensions = [1] {test}\n"
                   "(%x: f32, %acc: f32) {\n" +
                       combiner + "\nlinalg.yield %s : f32 }");
  };
  EXPECT_EQ(reduce("%s = arith.addf %acc, %x : f32"),
            "5 7 ; (0)(1) (0) -> (0) ; {0, 1}");
  EXPECT_EQ(reduce("%s = arith.maximumf %x, %acc : f32"),
            "5 7max ; (0)(1) (0) -> (0) ;");
  EXPECT_EQ(reduce("%s = arith.minnumf %x, %acc : f32"),
            "5 7min ; (0)(1) (0) -> (0) ;");
  // A product of partial products is no partial value.
  EXPECT_EQ(reduce("%s = arith.mulf %x, %acc : f32"),
            "5 7! ; (0)(1) (0) -> (0) ; {1}");
  // (acc - x) sums; (x - acc) does not.
  EXPECT_EQ(reduce("%s = arith.subf %acc, %x : f32"),
            "5 7 ; (0)(1) (0) -> (0) ; {0, 1}");
  EXPECT_EQ(reduce("%s = arith.subf %x, %acc : f32"),
            "5 7! ; (0)(1) (0) -> (0) ; {0, 1}");
  // Not linear, but a sum.
  EXPECT_EQ(reduce("%e = math.exp %x : f32\n%s = arith.addf %acc, %e : f32"),
            "5 7 ; (0)(1) (0) -> (0) ;");
  // The accumulator used twice.
  EXPECT_EQ(reduce("%e = arith.mulf %acc, %x : f32\n"
                   "%s = arith.addf %acc, %e : f32"),
            "5 7! ; (0)(1) (0) -> (0) ; {1}");
}

TEST_F(ModelTest, TwoResults) {
  auto reduce = [&](std::string body) {
    return factors("%a: tensor<5x7xf32>, %c: tensor<5xf32>, %d: tensor<5xf32>",
                   R"(%r:2 = linalg.generic {indexing_maps = [
      affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<5x7xf32>) outs(%c, %d : tensor<5xf32>, tensor<5xf32>)
      attrs = {test} { ^bb0(%x: f32, %p: f32, %q: f32):
      )" + body + R"(
      linalg.yield %s, %t : f32, f32
    } -> (tensor<5xf32>, tensor<5xf32>))");
  };
  EXPECT_EQ(reduce("%s = arith.addf %p, %x : f32\n"
                   "%t = arith.subf %q, %x : f32"),
            "5 7 ; (0)(1) (0) (0) -> (0) (0) ; {0, 1, 2}");
  // One factor has one way to combine.
  EXPECT_EQ(reduce("%s = arith.addf %p, %x : f32\n"
                   "%t = arith.maximumf %q, %x : f32"),
            "5 7! ; (0)(1) (0) (0) -> (0) (0) ;");
  // The second sum adds prefixes of the first.
  EXPECT_EQ(reduce("%s = arith.addf %p, %x : f32\n"
                   "%t = arith.addf %q, %s : f32"),
            "5 7! ; (0)(1) (0) (0) -> (0) (0) ; {0, 1, 2}");
}

TEST_F(ModelTest, BroadcastTransposeFill) {
  EXPECT_EQ(factors("%a: tensor<5xf32>, %c: tensor<5x7xf32>",
                    R"(%r = linalg.broadcast ins(%a : tensor<5xf32>)
      outs(%c : tensor<5x7xf32>) dimensions = [1] {test})"),
            "5 7 ; (0) (0)(1) -> (0)(1) ; {0}");
  EXPECT_EQ(factors("%a: tensor<5x7xf32>, %c: tensor<7x5xf32>",
                    R"(%r = linalg.transpose ins(%a : tensor<5x7xf32>)
      outs(%c : tensor<7x5xf32>) permutation = [1, 0] {test})"),
            "7 5 ; (1)(0) (0)(1) -> (0)(1) ; {0}");
  EXPECT_EQ(factors("%a: f32, %c: tensor<5x7xf32>",
                    R"(%r = linalg.fill {test} ins(%a : f32)
      outs(%c : tensor<5x7xf32>) -> tensor<5x7xf32>)"),
            "5 7 ; . (0)(1) -> (0)(1) ; {0}");
}

TEST_F(ModelTest, GenericUnitDimensionAndIndex) {
  EXPECT_EQ(factors("%a: tensor<5x1xf32>, %c: tensor<5x7xf32>", R"(
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, 0)>,
          affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel",
          "parallel"]} ins(%a : tensor<5x1xf32>) outs(%c : tensor<5x7xf32>)
          attrs = {test} {
        ^bb0(%x: f32, %o: f32):
          %j = linalg.index 1 : index
          %k = arith.constant 3 : index
          %zero = arith.constant 0.0 : f32
          %in = arith.cmpi slt, %j, %k : index
          %y = arith.select %in, %x, %zero : f32
          linalg.yield %y : f32
        } -> tensor<5x7xf32>)"),
            "5 7@ ; (0)() (0)(1) -> (0)(1) ; {0}");
}

TEST_F(ModelTest, IrregularMapsAreNotSplit) {
  EXPECT_EQ(factors("%a: tensor<9xf32>, %w: tensor<3xf32>, %c: tensor<7xf32>",
                    R"(%r = linalg.conv_1d {test}
      ins(%a, %w : tensor<9xf32>, tensor<3xf32>)
      outs(%c : tensor<7xf32>) -> tensor<7xf32>)"),
            "7! 3! 9! ; (2) (1) (0) -> (0) ; {0, 2} {1, 2}");
  // A diagonal.
  EXPECT_EQ(factors("%a: tensor<5x5xf32>, %c: tensor<5xf32>", R"(
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i, i)>,
          affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
          ins(%a : tensor<5x5xf32>) outs(%c : tensor<5xf32>) attrs = {test} {
        ^bb0(%x: f32, %o: f32):
          linalg.yield %x : f32
        } -> tensor<5xf32>)"),
            "5! ; (0)(0) (0) -> (0) ; {0}");
}

TEST_F(ModelTest, LinearSetsOfBodies) {
  auto generic = [&](std::string body) {
    std::string text =
        factors("%a: tensor<5xf32>, %b: tensor<5xf32>, %c: tensor<5xf32>", R"(
      %two = arith.constant 2.0 : f32
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>,
          affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}
          ins(%a, %b : tensor<5xf32>, tensor<5xf32>) outs(%c : tensor<5xf32>)
          attrs = {test} {
        ^bb0(%x: f32, %y: f32, %o: f32):
          )" + body + R"(
          linalg.yield %s : f32
        } -> tensor<5xf32>)");
    return text.substr(text.rfind(';') + 1);
  };
  EXPECT_EQ(generic("%s = arith.addf %x, %y : f32"), " {0, 1}");
  EXPECT_EQ(generic("%s = arith.divf %x, %y : f32"), " {0}");
  EXPECT_EQ(generic("%s = arith.mulf %x, %two : f32"), " {0}");
  EXPECT_EQ(generic("%s = arith.addf %x, %two : f32"), "");
  EXPECT_EQ(generic("%s = math.tanh %x : f32"), "");
  EXPECT_EQ(generic("%s = arith.mulf %x, %x : f32"), "");
  EXPECT_EQ(generic("%p = arith.mulf %x, %y : f32\n"
                    "%s = arith.addf %p, %o : f32"),
            " {0, 2} {1, 2}");
  EXPECT_EQ(generic("%p = arith.addf %x, %y : f32\n"
                    "%s = arith.subf %p, %o : f32"),
            " {0, 1, 2}");
  // An init has the layout of its result: a product with it is not linear in
  // the other operand alone.
  EXPECT_EQ(generic("%s = arith.mulf %x, %o : f32"), " {2}");
  // The condition reads a partial value: no set holds operand 0.
  EXPECT_EQ(generic("%p = arith.cmpf ogt, %x, %two : f32\n"
                    "%s = arith.select %p, %y, %o : f32"),
            " {1, 2}");
}

TEST_F(ModelTest, CapturedTensorFails) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diag) {
    message = diag.str();
    return mlir::success();
  });
  EXPECT_EQ(factors("%t: tensor<9xf32>, %c: tensor<5xf32>", R"(
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]} outs(%c : tensor<5xf32>)
          attrs = {test} {
        ^bb0(%o: f32):
          %i = linalg.index 0 : index
          %x = tensor.extract %t[%i] : tensor<9xf32>
          linalg.yield %x : f32
        } -> tensor<5xf32>)"),
            "failure");
  EXPECT_TRUE(contains(message, "the body reads a tensor of type "
                                "'tensor<9xf32>' that is not an operand"))
      << message;
}

TEST_F(ModelTest, Elementwise) {
  auto binary = [&](std::string op) {
    return factors("%a: tensor<5x7xf32>, %b: tensor<5x7xf32>, %p: i1",
                   "%r = " + op);
  };
  EXPECT_EQ(binary("arith.addf %a, %b {test} : tensor<5x7xf32>"),
            "5 7 ; (0)(1) (0)(1) -> (0)(1) ; {0, 1}");
  EXPECT_EQ(binary("arith.mulf %a, %b {test} : tensor<5x7xf32>"),
            "5 7 ; (0)(1) (0)(1) -> (0)(1) ; {0} {1}");
  EXPECT_EQ(binary("arith.divf %a, %b {test} : tensor<5x7xf32>"),
            "5 7 ; (0)(1) (0)(1) -> (0)(1) ; {0}");
  EXPECT_EQ(binary("arith.select %p, %a, %b {test} : tensor<5x7xf32>"),
            "5 7 ; . (0)(1) (0)(1) -> (0)(1) ; {1, 2}");
  EXPECT_EQ(binary("math.exp %a {test} : tensor<5x7xf32>"),
            "5 7 ; (0)(1) -> (0)(1) ;");
  EXPECT_EQ(binary("arith.truncf %a {test} : tensor<5x7xf32> to "
                   "tensor<5x7xbf16>"),
            "5 7 ; (0)(1) -> (0)(1) ;");
  EXPECT_EQ(factors("%a: f32", "%r = arith.addf %a, %a {test} : f32"),
            " ; . . -> . ; {0, 1}");
}

TEST_F(ModelTest, Constants) {
  EXPECT_EQ(factors("", "%r = arith.constant {test} dense<1.0> : "
                        "tensor<5x7xf32>"),
            "5 7 ; -> (0)(1) ;");
  EXPECT_EQ(factors("", "%r = arith.constant {test} dense<[1, 2, 3]> : "
                        "tensor<3xi32>"),
            "3! ; -> (0) ;");
  EXPECT_EQ(factors("", "%r = arith.constant {test} 1.0 : f32"), " ; -> . ;");
  EXPECT_EQ(factors("", "%r = tensor.empty() {test} : tensor<5x7xf32>"),
            "5 7 ; -> (0)(1) ;");
}

TEST_F(ModelTest, Reshapes) {
  EXPECT_EQ(factors("%a: tensor<5x24xf32>",
                    "%r = tensor.expand_shape %a [[0, 1], [2, 3]] output_shape "
                    "[1, 5, 6, 4] {test} : tensor<5x24xf32> into "
                    "tensor<1x5x6x4xf32>"),
            "5 6 4! ; (0)(1, 2) -> ()(0)(1)(2) ; {0}");
  EXPECT_EQ(factors("%a: tensor<5x6x4xf32>",
                    "%r = tensor.collapse_shape %a [[0], [1, 2]] {test} : "
                    "tensor<5x6x4xf32> into tensor<5x24xf32>"),
            "5 6 4! ; (0)(1)(2) -> (0)(1, 2) ; {0}");
  EXPECT_EQ(factors("%a: tensor<f32>",
                    "%r = tensor.expand_shape %a [] output_shape [1, 1] {test} "
                    ": tensor<f32> into tensor<1x1xf32>"),
            " ; . -> ()() ; {0}");
}

TEST_F(ModelTest, Slices) {
  EXPECT_EQ(factors("%a: tensor<3x5x8xf32>",
                    "%r = tensor.extract_slice %a[2, 0, 4] [1, 5, 4] "
                    "[1, 1, 1] {test} : tensor<3x5x8xf32> to tensor<5x4xf32>"),
            "3! 5 8! 4! ; (0)(1)(2) -> (1)(3) ; {0}");
  EXPECT_EQ(factors("%a: tensor<5x4xf32>, %d: tensor<3x5x8xf32>, %i: index",
                    "%r = tensor.insert_slice %a into %d[%i, 0, 4] [1, 5, 4] "
                    "[1, 1, 1] {test} : tensor<5x4xf32> into "
                    "tensor<3x5x8xf32>"),
            "3! 5 8! 4! ; (1)(3) (0)(1)(2) . -> (0)(1)(2) ; {0, 1}");
}
