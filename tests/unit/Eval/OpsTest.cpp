//===- OpsTest.cpp - Each group of ops in each domain ---------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Small modules of arith, math, linalg and tensor ops against results worked
/// out in the test.
///
//===----------------------------------------------------------------------===//

#include "TestModule.h"

using namespace mlir;
using namespace mlir::parc::eval;

template <class T> class Ops : public ::testing::Test {};
using Domains = ::testing::Types<float, double, Zp>;
TYPED_TEST_SUITE(Ops, Domains);

TYPED_TEST(Ops, MatmulContractsAndAccumulates) {
  using T = TypeParam;
  TestModule test(R"mlir(
    func.func @f(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>, %c: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %r = linalg.matmul ins(%a, %b : tensor<2x3xf32>, tensor<3x2xf32>) outs(%c : tensor<2x2xf32>) -> tensor<2x2xf32>
      return %r : tensor<2x2xf32>
    })mlir");
  auto c = floats<T>({2, 2}, {1, 1, 1, 1});
  auto results = test.call<T>({ramp<T>({2, 3}), ramp<T>({3, 2}), c});
  ASSERT_EQ(results.size(), 1u) << test.errors;
  EXPECT_TRUE(sameTensor(results[0], floats<T>({2, 2}, {23, 29, 50, 65})));
  // The caller's tensor is not written.
  EXPECT_TRUE(sameTensor(c, floats<T>({2, 2}, {1, 1, 1, 1})));
}

TYPED_TEST(Ops, TransposedContractionOfDynamicShapes) {
  using T = TypeParam;
  TestModule test(R"mlir(
    func.func @f(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      %m = tensor.dim %a, %c0 : tensor<?x?xf32>
      %n = tensor.dim %b, %c0 : tensor<?x?xf32>
      %e = tensor.empty(%m, %n) : tensor<?x?xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
      %r = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
        ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%z : tensor<?x?xf32>) -> tensor<?x?xf32>
      return %r : tensor<?x?xf32>
    })mlir");
  auto results = test.call<T>({ramp<T>({2, 3}), ramp<T>({3, 3})});
  ASSERT_EQ(results.size(), 1u) << test.errors;
  EXPECT_TRUE(
      sameTensor(results[0], floats<T>({2, 3}, {14, 32, 50, 32, 77, 122})));
}

TYPED_TEST(Ops, ReduceBroadcastTranspose) {
  using T = TypeParam;
  TestModule test(R"mlir(
    func.func @f(%a: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<f32>, tensor<3x2xf32>, tensor<2x3xf32>) {
      %low = arith.constant 0xFF800000 : f32
      %zero = arith.constant 0.0 : f32
      %e2 = tensor.empty() : tensor<2xf32>
      %m2 = linalg.fill ins(%low : f32) outs(%e2 : tensor<2xf32>) -> tensor<2xf32>
      %max = linalg.reduce { arith.maximumf } ins(%a : tensor<2x3xf32>) outs(%m2 : tensor<2xf32>) dimensions = [1]
      %e0 = tensor.empty() : tensor<f32>
      %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
      %sum = linalg.reduce { arith.addf } ins(%a : tensor<2x3xf32>) outs(%z0 : tensor<f32>) dimensions = [0, 1]
      %e32 = tensor.empty() : tensor<3x2xf32>
      %t = linalg.transpose ins(%a : tensor<2x3xf32>) outs(%e32 : tensor<3x2xf32>) permutation = [1, 0]
      %e23 = tensor.empty() : tensor<2x3xf32>
      %b = linalg.broadcast ins(%max : tensor<2xf32>) outs(%e23 : tensor<2x3xf32>) dimensions = [1]
      return %max, %sum, %t, %b : tensor<2xf32>, tensor<f32>, tensor<3x2xf32>, tensor<2x3xf32>
    })mlir");
  auto results = test.call<T>({ramp<T>({2, 3})});
  ASSERT_EQ(results.size(), 4u) << test.errors;
  EXPECT_TRUE(sameTensor(results[0], floats<T>({2}, {3, 6})));
  EXPECT_TRUE(sameTensor(results[1], floats<T>({}, {21})));
  EXPECT_TRUE(sameTensor(results[2], floats<T>({3, 2}, {1, 4, 2, 5, 3, 6})));
  EXPECT_TRUE(sameTensor(results[3], floats<T>({2, 3}, {3, 3, 3, 6, 6, 6})));
}

TYPED_TEST(Ops, LongReductionsCrossTheLanes) {
  using T = TypeParam;
  TestModule test(R"mlir(
    func.func @f(%a: tensor<300x3xf32>, %k: f32) -> (tensor<f32>, tensor<3xf32>) {
      %e0 = arith.constant dense<0.0> : tensor<f32>
      %e3 = arith.constant dense<0.0> : tensor<3xf32>
      %all = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
        ins(%a : tensor<300x3xf32>) outs(%e0 : tensor<f32>) {
      ^bb0(%x: f32, %acc: f32):
        %s = arith.mulf %x, %k : f32
        %r = arith.addf %acc, %s : f32
        linalg.yield %r : f32
      } -> tensor<f32>
      %cols = linalg.reduce { arith.addf } ins(%a : tensor<300x3xf32>) outs(%e3 : tensor<3xf32>) dimensions = [0]
      return %all, %cols : tensor<f32>, tensor<3xf32>
    })mlir");
  auto results = test.call<T>({ramp<T>({300, 3}), floats<T>({}, {2})});
  ASSERT_EQ(results.size(), 2u) << test.errors;
  EXPECT_TRUE(sameTensor(results[0], floats<T>({}, {900 * 901})));
  // Column j is the sum of 3 i + j + 1 for i below 300.
  EXPECT_TRUE(sameTensor(results[1], floats<T>({3}, {134850, 135150, 135450})));
}

TYPED_TEST(Ops, GatherByExtractAndScatterBySum) {
  using T = TypeParam;
  TestModule test(R"mlir(
    func.func @f(%table: tensor<5x2xf32>, %ids: tensor<3xi64>) -> (tensor<3x2xf32>, tensor<5x2xf32>) {
      %e = tensor.empty() : tensor<3x2xf32>
      %rows = linalg.generic {indexing_maps = [affine_map<(t, d) -> (t)>, affine_map<(t, d) -> (t, d)>], iterator_types = ["parallel", "parallel"]}
        ins(%ids : tensor<3xi64>) outs(%e : tensor<3x2xf32>) {
      ^bb0(%id: i64, %o: f32):
        %row = arith.index_cast %id : i64 to index
        %d = linalg.index 1 : index
        %v = tensor.extract %table[%row, %d] : tensor<5x2xf32>
        linalg.yield %v : f32
      } -> tensor<3x2xf32>
      %zero = arith.constant 0.0 : f32
      %z = arith.constant dense<0.0> : tensor<5x2xf32>
      %grad = linalg.generic {indexing_maps = [affine_map<(v, t, d) -> (t)>, affine_map<(v, t, d) -> (t, d)>, affine_map<(v, t, d) -> (v, d)>],
          iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%ids, %rows : tensor<3xi64>, tensor<3x2xf32>) outs(%z : tensor<5x2xf32>) attrs = {parc.scatter} {
      ^bb0(%id: i64, %dy: f32, %acc: f32):
        %v = linalg.index 0 : index
        %row = arith.index_cast %id : i64 to index
        %here = arith.cmpi eq, %row, %v : index
        %s = arith.select %here, %dy, %zero : f32
        %r = arith.addf %acc, %s : f32
        linalg.yield %r : f32
      } -> tensor<5x2xf32>
      return %rows, %grad : tensor<3x2xf32>, tensor<5x2xf32>
    })mlir");
  auto ids = Tensor<T>::ofInts({3}, {4, 1, 4});
  auto results = test.call<T>({ramp<T>({5, 2}), ids});
  ASSERT_EQ(results.size(), 2u) << test.errors;
  EXPECT_TRUE(sameTensor(results[0], floats<T>({3, 2}, {9, 10, 3, 4, 9, 10})));
  EXPECT_TRUE(sameTensor(results[1],
                         floats<T>({5, 2}, {0, 0, 3, 4, 0, 0, 0, 0, 18, 20})));

  auto bad = Tensor<T>::ofInts({3}, {4, 5, 4});
  EXPECT_TRUE(test.call<T>({ramp<T>({5, 2}), bad}).empty());
  EXPECT_NE(test.errors.find("reads index 5 of dimension 0, whose size is 5"),
            std::string::npos)
      << test.errors;
}

TYPED_TEST(Ops, ScatterIsTheBodyItReplaces) {
  using T = TypeParam;
  // A vocabulary shard of four rows from row 3: ids outside add nothing.
  std::string text = R"mlir(
    func.func @f(%ids: tensor<2x3xi64>, %rows: tensor<2x3x5xf32>, %init: tensor<4x5xf32>, %start: index) -> tensor<4x5xf32> {
      %zero = arith.constant 0.0 : f32
      %grad = linalg.generic {indexing_maps = [affine_map<(v, b, t, d) -> (b, t)>, affine_map<(v, b, t, d) -> (b, t, d)>, affine_map<(v, b, t, d) -> (v, d)>],
          iterator_types = ["parallel", "reduction", "reduction", "parallel"]}
        ins(%ids, %rows : tensor<2x3xi64>, tensor<2x3x5xf32>) outs(%init : tensor<4x5xf32>) ATTR {
      ^bb0(%id: i64, %dy: f32, %acc: f32):
        %v = linalg.index 0 : index
        %at = arith.addi %v, %start : index
        %row = arith.index_cast %at : index to i64
        %here = arith.cmpi eq, %row, %id : i64
        %s = arith.select %here, %dy, %zero : f32
        %r = arith.addf %s, %acc : f32
        linalg.yield %r : f32
      } -> tensor<4x5xf32>
      return %grad : tensor<4x5xf32>
    })mlir";
  std::vector<Tensor<T>> found;
  for (const char *attr : {"", "attrs = {parc.scatter}"}) {
    std::string variant = text;
    variant.replace(variant.find("ATTR"), 4, attr);
    TestModule test(variant);
    auto results = test.call<T>({Tensor<T>::ofInts({2, 3}, {3, 6, 2, 3, 7, 5}),
                                 ramp<T>({2, 3, 5}), ramp<T>({4, 5}),
                                 Tensor<T>::integer(3)});
    ASSERT_EQ(results.size(), 1u) << test.errors;
    found.push_back(results[0]);
  }
  EXPECT_TRUE(sameTensor(found[1], found[0]));
  // Row 3 is hit by tokens 0 and 3: 1 + 1 + 16 in the first column.
  EXPECT_TRUE(found[1].floats()[0] == DomainOf<T>::fromDouble(18));
}

TYPED_TEST(Ops, SlicesAndShapes) {
  using T = TypeParam;
  TestModule test(R"mlir(
    func.func @f(%a: tensor<4x6xf32>, %n: index) -> (tensor<6xf32>, tensor<2x?xf32>, tensor<4x6xf32>, tensor<4x2x?xf32>, tensor<24xf32>, f32) {
      %c2 = arith.constant 2 : index
      %row = tensor.extract_slice %a[2, 0] [1, 6] [1, 1] : tensor<4x6xf32> to tensor<6xf32>
      %box = tensor.extract_slice %a[1, %n] [2, %n] [2, 1] : tensor<4x6xf32> to tensor<2x?xf32>
      %ins = tensor.insert_slice %row into %a[0, 0] [1, 6] [1, 1] : tensor<6xf32> into tensor<4x6xf32>
      %d = tensor.cast %a : tensor<4x6xf32> to tensor<4x?xf32>
      %half = arith.constant 3 : index
      %x = tensor.expand_shape %d [[0], [1, 2]] output_shape [4, 2, %half] : tensor<4x?xf32> into tensor<4x2x?xf32>
      %flat = tensor.collapse_shape %a [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
      %one = tensor.extract %a[%c2, %n] : tensor<4x6xf32>
      return %row, %box, %ins, %x, %flat, %one : tensor<6xf32>, tensor<2x?xf32>, tensor<4x6xf32>, tensor<4x2x?xf32>, tensor<24xf32>, f32
    })mlir");
  auto results = test.call<T>({ramp<T>({4, 6}), Tensor<T>::integer(2)});
  ASSERT_EQ(results.size(), 6u) << test.errors;
  EXPECT_TRUE(sameTensor(results[0], floats<T>({6}, {13, 14, 15, 16, 17, 18})));
  EXPECT_TRUE(sameTensor(results[1], floats<T>({2, 2}, {9, 10, 21, 22})));
  EXPECT_TRUE(sameTensor(
      results[2].reshaped({24}),
      floats<T>({24}, {13, 14, 15, 16, 17, 18, 7,  8,  9,  10, 11, 12,
                       13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24})));
  EXPECT_TRUE(sameTensor(results[3], ramp<T>({4, 2, 3})));
  EXPECT_TRUE(sameTensor(results[4], ramp<T>({24})));
  EXPECT_TRUE(sameTensor(results[5], floats<T>({}, {15})));
}

TYPED_TEST(Ops, IntegersWrapAndCompare) {
  using T = TypeParam;
  TestModule test(R"mlir(
    func.func @f(%a: i8, %b: i8) -> (i8, i8, i1, i1, i64, i64, f32, f32, i32, i32) {
      %sum = arith.addi %a, %b : i8
      %shift = arith.shrui %a, %b : i8
      %slt = arith.cmpi slt, %a, %b : i8
      %ult = arith.cmpi ult, %a, %b : i8
      %sext = arith.extsi %a : i8 to i64
      %zext = arith.extui %a : i8 to i64
      %sf = arith.sitofp %a : i8 to f32
      %uf = arith.uitofp %a : i8 to f32
      %k = arith.constant -1 : i32
      %low, %high = arith.mului_extended %k, %k : i32
      return %sum, %shift, %slt, %ult, %sext, %zext, %sf, %uf, %low, %high : i8, i8, i1, i1, i64, i64, f32, f32, i32, i32
    })mlir");
  auto results =
      test.call<T>({Tensor<T>::integer(-100), Tensor<T>::integer(3)});
  ASSERT_EQ(results.size(), 10u) << test.errors;
  EXPECT_EQ(results[0].asInt(), -97);
  EXPECT_EQ(results[1].asInt(), 156 >> 3);
  EXPECT_EQ(results[2].asInt(), 1);
  EXPECT_EQ(results[3].asInt(), 0);
  EXPECT_EQ(results[4].asInt(), -100);
  EXPECT_EQ(results[5].asInt(), 156);
  EXPECT_TRUE(results[6].asFloat() == DomainOf<T>::fromDouble(-100));
  EXPECT_TRUE(results[7].asFloat() == DomainOf<T>::fromDouble(156));
  EXPECT_EQ(results[8].asInt(), 1);
  EXPECT_EQ(results[9].asInt(), -2);
}

TYPED_TEST(Ops, NonLinearMapsAndConstants) {
  using T = TypeParam;
  TestModule test(R"mlir(
    func.func @f(%a: tensor<2x3xf32>) -> (tensor<6xf32>, tensor<3xi64>) {
      %c = arith.constant dense<[0.5, -0.25, 2.0, 1.0, 1.0, 1.0]> : tensor<6xf32>
      %i = arith.constant dense<[7, -3, 9]> : tensor<3xi64>
      %r = linalg.generic {indexing_maps = [affine_map<(d) -> (d floordiv 3, d mod 3)>, affine_map<(d) -> (d)>, affine_map<(d) -> (d)>], iterator_types = ["parallel"]}
        ins(%a, %c : tensor<2x3xf32>, tensor<6xf32>) outs(%c : tensor<6xf32>) {
      ^bb0(%x: f32, %y: f32, %o: f32):
        %p = arith.mulf %x, %y : f32
        linalg.yield %p : f32
      } -> tensor<6xf32>
      return %r, %i : tensor<6xf32>, tensor<3xi64>
    })mlir");
  auto results = test.call<T>({ramp<T>({2, 3})});
  ASSERT_EQ(results.size(), 2u) << test.errors;
  EXPECT_TRUE(sameTensor(results[0], floats<T>({6}, {0.5, -0.5, 6, 4, 5, 6})));
  EXPECT_TRUE(sameTensor(results[1], Tensor<T>::ofInts({3}, {7, -3, 9})));
}

TYPED_TEST(Ops, ElementwiseOnTensorsAndDivision) {
  using T = TypeParam;
  TestModule test(R"mlir(
    func.func @f(%a: tensor<?xf32>, %b: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xi1>, tensor<?xf32>) {
      %q = arith.divf %a, %b : tensor<?xf32>
      %lt = arith.cmpf olt, %a, %b : tensor<?xf32>
      %s = arith.select %lt, %a, %b : tensor<?xi1>, tensor<?xf32>
      return %q, %lt, %s : tensor<?xf32>, tensor<?xi1>, tensor<?xf32>
    })mlir");
  auto results = test.call<T>({ramp<T>({3}), floats<T>({3}, {4, 2, 2})});
  ASSERT_EQ(results.size(), 3u) << test.errors;
  EXPECT_TRUE(sameTensor(results[0], floats<T>({3}, {0.25, 1, 1.5})));
  EXPECT_TRUE(sameTensor(results[1], Tensor<T>::ofInts({3}, {1, 0, 0})));
  EXPECT_TRUE(sameTensor(results[2], floats<T>({3}, {1, 2, 2})));
  EXPECT_TRUE(test.call<T>({ramp<T>({3}), ramp<T>({4})}).empty());
  EXPECT_NE(test.errors.find("expected operands of one shape, got 3 and, for "
                             "operand 1, 4"),
            std::string::npos)
      << test.errors;
}

TYPED_TEST(Ops, ShapesMustAgree) {
  using T = TypeParam;
  TestModule test(R"mlir(
    func.func @f(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%c : tensor<2x2xf32>) -> tensor<2x2xf32>
      return %r : tensor<2x2xf32>
    })mlir");
  EXPECT_TRUE(test.call<T>({ramp<T>({2, 3}), ramp<T>({4, 2}), ramp<T>({2, 2})})
                  .empty());
  EXPECT_NE(test.errors.find("expected extent 3 of loop 2"), std::string::npos)
      << test.errors;
  EXPECT_TRUE(test.call<T>({ramp<T>({2, 3}), ramp<T>({3, 2}), ramp<T>({2, 3})})
                  .empty());
  EXPECT_NE(test.errors.find("expected shape 2x2, got 2x3"), std::string::npos)
      << test.errors;
}

//===----------------------------------------------------------------------===//
// What differs between domains
//===----------------------------------------------------------------------===//

static constexpr const char *functions = R"mlir(
    func.func @f(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %e = math.exp %a : tensor<2xf32>
      %r = math.rsqrt %a : tensor<2xf32>
      %p = math.powf %a, %b : tensor<2xf32>
      %t = math.erf %a : tensor<2xf32>
      return %e, %r, %p, %t : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    })mlir";

TEST(Domains, FunctionsInTheReals) {
  TestModule test(functions);
  auto results = test.call<double>(
      {floats<double>({2}, {1, 4}), floats<double>({2}, {2, 0.5})});
  ASSERT_EQ(results.size(), 4u) << test.errors;
  EXPECT_TRUE(sameTensor(results[0],
                         floats<double>({2}, {std::exp(1.0), std::exp(4.0)})));
  EXPECT_TRUE(sameTensor(results[1], floats<double>({2}, {1, 0.5})));
  EXPECT_TRUE(sameTensor(results[2], floats<double>({2}, {1, 2})));
  EXPECT_TRUE(sameTensor(results[3],
                         floats<double>({2}, {std::erf(1.0), std::erf(4.0)})));
}

TEST(Domains, FunctionsAreUninterpretedInZp) {
  TestModule test(functions);
  auto results =
      test.call<Zp>({floats<Zp>({2}, {1, 1}), floats<Zp>({2}, {2, 3})});
  ASSERT_EQ(results.size(), 4u) << test.errors;
  EXPECT_EQ(results[0].floats()[0], results[0].floats()[1]);
  EXPECT_NE(results[0].floats()[0], results[1].floats()[0]);
  EXPECT_NE(results[2].floats()[0], results[2].floats()[1]);
  EXPECT_NE(results[0].floats()[0], Zp());
}

TEST(Domains, BF16RoundsInFloatOnly) {
  const char *text = R"mlir(
    func.func @f(%a: f32) -> (bf16, f32) {
      %t = arith.truncf %a : f32 to bf16
      %s = arith.addf %t, %t : bf16
      %e = arith.extf %s : bf16 to f32
      return %t, %e : bf16, f32
    })mlir";
  TestModule test(text);
  double x = 1.0 + 1.0 / 1024;
  auto rounded = test.call<float>({floats<float>({}, {x})});
  ASSERT_EQ(rounded.size(), 2u) << test.errors;
  EXPECT_EQ(rounded[0].asFloat(), 1.0f);
  EXPECT_EQ(rounded[1].asFloat(), 2.0f);
  auto kept = test.call<double>({floats<double>({}, {x})});
  ASSERT_EQ(kept.size(), 2u) << test.errors;
  EXPECT_EQ(kept[1].asFloat(), 2 * x);
  auto exact = test.call<Zp>({floats<Zp>({}, {x})});
  ASSERT_EQ(exact.size(), 2u) << test.errors;
  EXPECT_EQ(exact[1].asFloat(), Zp::fromDouble(2 * x));
}

TEST(Domains, BF16SumsAreRoundedOnce) {
  // In bf16 256 + 1 is 256.
  const char *text = R"mlir(
    func.func @f(%a: tensor<2x512xbf16>) -> (tensor<2xbf16>, tensor<2x2xbf16>) {
      %zero = arith.constant 0.0 : bf16
      %e1 = tensor.empty() : tensor<2xbf16>
      %z1 = linalg.fill ins(%zero : bf16) outs(%e1 : tensor<2xbf16>) -> tensor<2xbf16>
      %sum = linalg.reduce { arith.addf } ins(%a : tensor<2x512xbf16>) outs(%z1 : tensor<2xbf16>) dimensions = [1]
      %e2 = tensor.empty() : tensor<2x2xbf16>
      %z2 = linalg.fill ins(%zero : bf16) outs(%e2 : tensor<2x2xbf16>) -> tensor<2x2xbf16>
      %product = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
        ins(%a, %a : tensor<2x512xbf16>, tensor<2x512xbf16>) outs(%z2 : tensor<2x2xbf16>) -> tensor<2x2xbf16>
      return %sum, %product : tensor<2xbf16>, tensor<2x2xbf16>
    })mlir";
  TestModule test(text);
  std::vector<double> ones(1024, 1);
  ones.back() = 2;
  auto sums = test.call<float>({floats<float>({2, 512}, ones)});
  ASSERT_EQ(sums.size(), 2u) << test.errors;
  EXPECT_TRUE(sameTensor(sums[0], floats<float>({2}, {512, 512})));
  // 515 is between two bf16 numbers, 512 and 516.
  EXPECT_TRUE(sameTensor(sums[1], floats<float>({2, 2}, {512, 512, 512, 516})));
}

TEST(Domains, LowestIsTheBottomOfZp) {
  EXPECT_EQ(ExactDomain::fromDouble(-HUGE_VAL), Zp());
  EXPECT_EQ(ExactDomain::fromDouble(std::numeric_limits<float>::lowest()),
            Zp());
  EXPECT_EQ(ExactDomain::fromDouble(-1) + Zp(1), Zp());
  EXPECT_EQ(ExactDomain::fromDouble(0.375) * Zp(8), Zp(3));
}

TEST(Domains, DivisionInZpIsByTheInverse) {
  Zp a[3] = {Zp(6), Zp(5), Zp(7)}, b[3] = {Zp(4), Zp(), Zp(-2)};
  ExactDomain::divide(a, b, b, 3);
  EXPECT_EQ(b[0] * Zp(4), Zp(6));
  EXPECT_EQ(b[1], Zp());
  EXPECT_EQ(b[2] * Zp(-2), Zp(7));
}

TEST(Domains, FloatToIntegerHasNoMeaningInZp) {
  TestModule test(R"mlir(
    func.func @f(%a: f32) -> i64 {
      %i = arith.fptosi %a : f32 to i64
      return %i : i64
    })mlir");
  auto results = test.call<double>({floats<double>({}, {-2.75})});
  ASSERT_EQ(results.size(), 1u) << test.errors;
  EXPECT_EQ(results[0].asInt(), -2);
  EXPECT_TRUE(test.call<Zp>({floats<Zp>({}, {2})}).empty());
  EXPECT_NE(test.errors.find("no meaning in the exact domain"),
            std::string::npos)
      << test.errors;
}

TEST(Errors, UnknownOpsAreNamedAndLocated) {
  TestModule test(R"mlir(
    func.func private @g()
    func.func @f(%a: f32) -> f32 {
      func.call @g() : () -> ()
      return %a : f32
    })mlir");
  EXPECT_TRUE(test.call<double>({floats<double>({}, {1})}).empty());
  EXPECT_NE(
      test.errors.find("'func.call' is an op that the evaluator does not know"),
      std::string::npos)
      << test.errors;
  ASSERT_EQ(test.lines.size(), 1u);
  EXPECT_EQ(test.lines[0], 4u);
}

TEST(Errors, DivisionByZeroIsLocated) {
  TestModule test(R"mlir(
    func.func @f(%a: i64) -> i64 {
      %zero = arith.constant 0 : i64
      %q = arith.remsi %a, %zero : i64
      return %q : i64
    })mlir");
  EXPECT_TRUE(test.call<double>({Tensor<double>::integer(5)}).empty());
  EXPECT_NE(test.errors.find("divides 5 by zero"), std::string::npos)
      << test.errors;
}

TEST(Errors, BadSizesAndSlices) {
  TestModule test(R"mlir(
    func.func @f(%a: tensor<4xf32>, %n: index) -> tensor<?xf32> {
      %s = tensor.extract_slice %a[%n] [3] [1] : tensor<4xf32> to tensor<3xf32>
      %e = tensor.empty(%n) : tensor<?xf32>
      return %e : tensor<?xf32>
    })mlir");
  EXPECT_TRUE(test.call<double>({ramp<double>({4}), Tensor<double>::integer(2)})
                  .empty());
  EXPECT_NE(
      test.errors.find("takes sizes 3 at offsets 2 of a tensor of shape 4"),
      std::string::npos)
      << test.errors;
}

TEST(Errors, SizesThatFitNowhere) {
  TestModule test(R"mlir(
    func.func @f() -> tensor<4611686018427387904x2xf32> {
      %c = arith.constant dense<0.0> : tensor<4611686018427387904x2xf32>
      return %c : tensor<4611686018427387904x2xf32>
    })mlir");
  EXPECT_TRUE(test.call<double>({}).empty());
  EXPECT_NE(test.errors.find("has more than 2^33 elements"), std::string::npos)
      << test.errors;
}

TEST(Errors, OtherTypesAreRefused) {
  TestModule test(R"mlir(
    func.func @f(%a: f16) -> f16 {
      %b = arith.addf %a, %a : f16
      return %b : f16
    })mlir");
  EXPECT_TRUE(test.call<double>({floats<double>({}, {1})}).empty());
  EXPECT_NE(test.errors.find("expected elements of type f64, f32, bf16, index "
                             "or an integer, got 'f16'"),
            std::string::npos)
      << test.errors;
}
