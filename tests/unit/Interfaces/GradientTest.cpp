//===- GradientTest.cpp - Gradients of upstream ops -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The IR that each gradient rule builds.
///
//===----------------------------------------------------------------------===//

#include "ModelTest.h"

using namespace mlir;
using namespace mlir::parc::test;

namespace {

class GradientTest : public ModelTest {
protected:
  /// Builds the gradients of all operands of the marked op, whose result's
  /// gradient is the function's last argument, and erases what the function
  /// held before. They are wanted in `element`, where given. Returns the
  /// function's body, the gradients as operands of a `test.grads` op; "failure"
  /// and the diagnostics where the rule fails.
  std::string gradient(StringRef args, StringRef body,
                       ArrayRef<bool> wanted = {}, Type element = {}) {
    context.allowUnregisteredDialects();
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diag) {
      message += diag.str();
      return success();
    });
    auto op =
        dyn_cast_or_null<parc::DifferentiableOpInterface>(parse(args, body));
    if (!op)
      return "no interface" + message;
    SmallVector<Type> mask;
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      mask.push_back(wanted.empty() || (index < wanted.size() && wanted[index])
                         ? element ? element
                                   : getElementTypeOrSelf(operand.getType())
                         : Type());
    OpBuilder builder(op);
    builder.setInsertionPointAfter(op);
    SmallVector<Value> gradients;
    if (failed(op.buildGradient(builder,
                                op->getBlock()->getArguments().take_back(),
                                mask, gradients)))
      return "failure: " + message;
    EXPECT_EQ(gradients.size(), op->getNumOperands());
    SmallVector<Value> built;
    for (auto [value, operand] : llvm::zip(gradients, op->getOperands())) {
      if (!value)
        continue;
      EXPECT_EQ(value.getType(),
                element
                    ? cast<RankedTensorType>(operand.getType()).clone(element)
                    : operand.getType());
      built.push_back(value);
    }
    OperationState state(op.getLoc(), "test.grads");
    state.addOperands(built);
    builder.create(state);
    Operation *before = op.getOperation();
    while (before && before->use_empty()) {
      Operation *previous = before->getPrevNode();
      before->erase();
      before = previous;
    }
    return print() + message;
  }
};

} // namespace

#define EXPECT_IN(text, part)                                                  \
  EXPECT_TRUE(contains(text, part)) << "expected " << (part) << " in\n"        \
                                    << (text)
#define EXPECT_NOT_IN(text, part)                                              \
  EXPECT_FALSE(contains(text, part)) << "expected no " << (part) << " in\n"    \
                                     << (text)

TEST_F(GradientTest, Elementwise) {
  auto unary = [&](std::string op) {
    return gradient("%a: tensor<5xf32>, %g: tensor<5xf32>",
                    "%r = " + op + " %a {test} : tensor<5xf32>");
  };
  EXPECT_IN(unary("math.exp"), "arith.mulf %arg1, %0");
  EXPECT_IN(unary("math.log"), "arith.divf %arg1, %arg0");
  EXPECT_IN(unary("arith.negf"), "arith.negf %arg1");
  EXPECT_IN(unary("math.sin"), "math.cos %arg0");
  EXPECT_IN(unary("math.cos"), "math.sin %arg0");
  EXPECT_IN(unary("math.erf"), "1.12837923");
  EXPECT_IN(unary("math.sqrt"), "arith.addf %0, %0");
  EXPECT_IN(unary("math.rsqrt"), "arith.addf %arg0, %arg0");
  EXPECT_IN(unary("math.tanh"), "arith.mulf %0, %0");
  EXPECT_IN(unary("math.atan"), "no interface");
  auto binary = [&](std::string op, ArrayRef<bool> wanted = {}) {
    return gradient("%a: tensor<5xf32>, %b: tensor<5xf32>, %g: tensor<5xf32>",
                    "%r = " + op + " %a, %b {test} : tensor<5xf32>", wanted);
  };
  EXPECT_IN(binary("arith.addf"), "\"test.grads\"(%arg2, %arg2)");
  EXPECT_IN(binary("arith.subf"), "\"test.grads\"(%arg2, %0)");
  std::string mul = binary("arith.mulf");
  EXPECT_IN(mul, "arith.mulf %arg2, %arg1");
  EXPECT_IN(mul, "arith.mulf %arg2, %arg0");
  std::string one = binary("arith.mulf", {false, true});
  EXPECT_NOT_IN(one, "arith.mulf %arg2, %arg1");
  EXPECT_IN(one, "\"test.grads\"(%0)");
  std::string max = binary("arith.maximumf");
  EXPECT_IN(max, "arith.cmpf oge, %arg0, %arg1");
  EXPECT_IN(max, "arith.select %0, %arg2, %cst");
  EXPECT_IN(max, "arith.select %0, %cst, %arg2");
  std::string select =
      gradient("%p: tensor<5xi1>, %a: tensor<5xf32>, %g: tensor<5xf32>",
               "%r = arith.select %p, %a, %a {test} : tensor<5xi1>, "
               "tensor<5xf32>");
  EXPECT_IN(select, "arith.select %arg0, %arg2, %cst");
  EXPECT_IN(gradient("%a: tensor<5xbf16>, %g: tensor<5xf32>",
                     "%r = arith.extf %a {test} : tensor<5xbf16> to "
                     "tensor<5xf32>"),
            "arith.truncf %arg1 : tensor<5xf32> to tensor<5xbf16>");
}

TEST_F(GradientTest, Matmul) {
  std::string text =
      gradient("%a: tensor<5x7xf32>, %b: tensor<7x3xf32>, %c: tensor<5x3xf32>, "
               "%g: tensor<5x3xf32>",
               R"(%r = linalg.matmul {test} ins(%a, %b : tensor<5x7xf32>,
      tensor<7x3xf32>) outs(%c : tensor<5x3xf32>) -> tensor<5x3xf32>)");
  EXPECT_IN(text, "ins(%arg3, %arg1 : tensor<5x3xf32>, tensor<7x3xf32>)");
  EXPECT_IN(text, "ins(%arg3, %arg0 : tensor<5x3xf32>, tensor<5x7xf32>)");
  EXPECT_IN(text, "linalg.contract");
  EXPECT_NOT_IN(text, "linalg.generic");
  EXPECT_IN(text, ", %arg3) : (tensor<5x7xf32>, tensor<7x3xf32>, "
                  "tensor<5x3xf32>)");
}

TEST_F(GradientTest, LowPrecisionContractAccumulatesWide) {
  std::string text = gradient("%a: tensor<5x7xbf16>, %b: tensor<3x7xbf16>, "
                              "%c: tensor<5x3xf32>, %g: tensor<5x3xf32>",
                              R"(%r = linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>] {test}
      ins(%a, %b : tensor<5x7xbf16>, tensor<3x7xbf16>)
      outs(%c : tensor<5x3xf32>) -> tensor<5x3xf32>)",
                              {true, false, false});
  EXPECT_IN(text, "arith.truncf %arg3 : tensor<5x3xf32> to tensor<5x3xbf16>");
  EXPECT_IN(text, "tensor<5x3xbf16>, tensor<3x7xbf16>) outs(%2 : "
                  "tensor<5x7xf32>)");
  EXPECT_IN(text, "tensor<5x7xf32> to tensor<5x7xbf16>");
}

TEST_F(GradientTest, SumsComeOutWide) {
  Type wide = Float32Type::get(&context);
  std::string contract = gradient("%a: tensor<5x7xbf16>, %b: tensor<3x7xbf16>, "
                                  "%c: tensor<5x3xbf16>, %g: tensor<5x3xbf16>",
                                  R"(%r = linalg.contract indexing_maps = [
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>] {test}
      ins(%a, %b : tensor<5x7xbf16>, tensor<3x7xbf16>)
      outs(%c : tensor<5x3xbf16>) -> tensor<5x3xbf16>)",
                                  {false, true, false}, wide);
  EXPECT_IN(contract, "tensor<5x3xbf16>, tensor<5x7xbf16>) outs(%1 : "
                      "tensor<3x7xf32>)");
  EXPECT_NOT_IN(contract, "arith.extf");
  std::string broadcast =
      gradient("%a: tensor<5xbf16>, %c: tensor<5x7xbf16>, %g: tensor<5x7xbf16>",
               R"(%r = linalg.broadcast ins(%a : tensor<5xbf16>)
      outs(%c : tensor<5x7xbf16>) dimensions = [1] {test})",
               {true, false}, wide);
  EXPECT_IN(broadcast, "outs(%1 : tensor<5xf32>)");
  EXPECT_NOT_IN(broadcast, "arith.truncf");
  // What is moved or converted is so in the type that it comes in.
  EXPECT_IN(gradient("%a: tensor<5x7xbf16>, %c: tensor<7x5xbf16>, "
                     "%g: tensor<7x5xf32>",
                     R"(%r = linalg.transpose ins(%a : tensor<5x7xbf16>)
      outs(%c : tensor<7x5xbf16>) permutation = [1, 0] {test})",
                     {true, false}, wide),
            "linalg.transpose ins(%arg2 : tensor<7x5xf32>)");
  EXPECT_IN(gradient("%a: tensor<5xf32>, %g: tensor<5xf32>",
                     "%r = arith.truncf %a {test} : tensor<5xf32> to "
                     "tensor<5xbf16>"),
            "\"test.grads\"(%arg1)");
}

TEST_F(GradientTest, MatrixVector) {
  // The matrix's gradient is an outer product, which linalg.contract excludes.
  std::string text =
      gradient("%a: tensor<5x7xf32>, %b: tensor<7xf32>, %c: tensor<5xf32>, "
               "%g: tensor<5xf32>",
               R"(%r = linalg.matvec {test} ins(%a, %b : tensor<5x7xf32>,
      tensor<7xf32>) outs(%c : tensor<5xf32>) -> tensor<5xf32>)",
               {true, true, false});
  EXPECT_IN(text, "iterator_types = [\"parallel\", \"parallel\"]} ins(%arg1, "
                  "%arg3 : tensor<7xf32>, tensor<5xf32>)");
  EXPECT_IN(text, "ins(%arg3, %arg0 : tensor<5xf32>, tensor<5x7xf32>)");
}

TEST_F(GradientTest, MapAndElementwiseOps) {
  std::string text =
      gradient("%a: tensor<5xf32>, %b: tensor<5xf32>, %c: tensor<5xf32>, "
               "%g: tensor<5xf32>",
               R"(%r = linalg.map { arith.divf } ins(%a, %b : tensor<5xf32>,
      tensor<5xf32>) outs(%c : tensor<5xf32>) {test})");
  EXPECT_IN(text, "ins(%arg1, %arg3 : tensor<5xf32>, tensor<5xf32>)");
  EXPECT_IN(text, "ins(%arg0, %arg1, %arg3 :");
  text = gradient("%a: tensor<5xf32>, %c: tensor<5xf32>, %g: tensor<5xf32>",
                  R"(%r = linalg.exp {test} ins(%a : tensor<5xf32>)
      outs(%c : tensor<5xf32>) -> tensor<5xf32>)");
  EXPECT_IN(text, "math.exp");
  EXPECT_IN(text, "ins(%arg0, %arg2 : tensor<5xf32>, tensor<5xf32>)");
}

TEST_F(GradientTest, OuterProduct) {
  // Each gradient sums over the loop that its operand lacks.
  std::string text =
      gradient("%a: tensor<5xf32>, %b: tensor<3xf32>, %c: tensor<5x3xf32>, "
               "%g: tensor<5x3xf32>",
               R"(%r = linalg.generic {indexing_maps = [
      affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (n)>,
      affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<5xf32>, tensor<3xf32>) outs(%c : tensor<5x3xf32>)
      attrs = {test} {
        ^bb0(%x: f32, %y: f32, %o: f32):
          %p = arith.mulf %x, %y : f32
          linalg.yield %p : f32
        } -> tensor<5x3xf32>)");
  EXPECT_IN(text, "linalg.contract");
  EXPECT_NOT_IN(text, "%arg2,");
}

TEST_F(GradientTest, ReduceBroadcastTranspose) {
  std::string text =
      gradient("%a: tensor<5x7xf32>, %c: tensor<5xf32>, %g: tensor<5xf32>", R"(
      %r = linalg.reduce { arith.addf } ins(%a : tensor<5x7xf32>)
        outs(%c : tensor<5xf32>) dimensions = [1] {test})",
               {true, false});
  EXPECT_IN(text, "linalg.broadcast ins(%arg2 : tensor<5xf32>)");
  EXPECT_IN(text, "dimensions = [1]");
  EXPECT_NOT_IN(text, "linalg.generic");
  EXPECT_NOT_IN(text, "linalg.fill");

  text = gradient("%a: tensor<5xf32>, %c: tensor<5x7xf32>, %g: tensor<5x7xf32>",
                  R"(%r = linalg.broadcast ins(%a : tensor<5xf32>)
      outs(%c : tensor<5x7xf32>) dimensions = [1] {test})");
  EXPECT_IN(text, "linalg.reduce { arith.addf } ins(%arg2 : tensor<5x7xf32>)");
  EXPECT_IN(text, "linalg.fill");

  text = gradient("%a: tensor<5x7x3xf32>, %c: tensor<3x5x7xf32>, "
                  "%g: tensor<3x5x7xf32>",
                  R"(%r = linalg.transpose ins(%a : tensor<5x7x3xf32>)
      outs(%c : tensor<3x5x7xf32>) permutation = [2, 0, 1] {test})");
  EXPECT_IN(text, "linalg.transpose ins(%arg2 : tensor<3x5x7xf32>)");
  EXPECT_IN(text, "permutation = [1, 2, 0]");
}

TEST_F(GradientTest, NonlinearSum) {
  std::string text =
      gradient("%a: tensor<5x7xf32>, %c: tensor<5xf32>, %g: tensor<5xf32>", R"(
      %r = linalg.reduce ins(%a : tensor<5x7xf32>) outs(%c : tensor<5xf32>)
        dimensions = [1] {test} (%x: f32, %acc: f32) {
          %q = arith.mulf %x, %x : f32
          %s = arith.addf %acc, %q : f32
          linalg.yield %s : f32
        })");
  EXPECT_IN(text, "iterator_types = [\"parallel\", \"parallel\"]");
  EXPECT_IN(text, "ins(%arg0, %arg2 : tensor<5x7xf32>, tensor<5xf32>)");
}

TEST_F(GradientTest, ElementwiseGenericSumsOverMissingLoops) {
  // y = tanh(x * w) with w a row, computed in f32.
  std::string text = gradient(
      "%x: tensor<5x7xbf16>, %w: tensor<7xbf16>, %c: tensor<5x7xbf16>, "
      "%g: tensor<5x7xbf16>",
      R"(%r = linalg.generic {indexing_maps = [
      affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
      affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<5x7xbf16>, tensor<7xbf16>)
      outs(%c : tensor<5x7xbf16>) attrs = {test} {
        ^bb0(%x1: bf16, %w1: bf16, %o: bf16):
          %x2 = arith.extf %x1 : bf16 to f32
          %w2 = arith.extf %w1 : bf16 to f32
          %p = arith.mulf %x2, %w2 : f32
          %t = math.tanh %p : f32
          %t2 = arith.truncf %t : f32 to bf16
          linalg.yield %t2 : bf16
        } -> tensor<5x7xbf16>)");
  EXPECT_IN(text, "iterator_types = [\"reduction\", \"parallel\"]");
  EXPECT_IN(text, "outs(%3 : tensor<7xf32>)");
  EXPECT_IN(text, "arith.truncf %4 : tensor<7xf32> to tensor<7xbf16>");
  EXPECT_NOT_IN(text, "%arg2,");
}

TEST_F(GradientTest, SharedOperandAndIndex) {
  std::string text = gradient("%x: tensor<5xf32>, %g: tensor<5xf32>", R"(
      %e = tensor.empty() : tensor<5xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>,
          affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]} ins(%x, %x : tensor<5xf32>,
          tensor<5xf32>) outs(%e : tensor<5xf32>) attrs = {test} {
        ^bb0(%a: f32, %b: f32, %o: f32):
          %i = linalg.index 0 : index
          %k = arith.constant 3 : index
          %in = arith.cmpi slt, %i, %k : index
          %y = arith.select %in, %a, %b : f32
          linalg.yield %y : f32
        } -> tensor<5xf32>)");
  EXPECT_IN(text, "linalg.index 0");
  // The branches are linear: no forward value is read.
  EXPECT_NOT_IN(text, "ins(%arg0");
}

TEST_F(GradientTest, NoRule) {
  std::string text =
      gradient("%a: tensor<5x7xf32>, %c: tensor<5xf32>, %g: tensor<5xf32>", R"(
      %r = linalg.reduce { arith.maximumf } ins(%a : tensor<5x7xf32>)
        outs(%c : tensor<5xf32>) dimensions = [1] {test})");
  EXPECT_IN(text, "failure: 'linalg.reduce' has no gradient rule for result 0");
  auto generic = [&](std::string body) {
    return gradient("%x: tensor<5xf32>, %s: f32, %c: tensor<5xf32>, "
                    "%g: tensor<5xf32>",
                    R"(%r = linalg.generic {indexing_maps = [
          affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]} ins(%x : tensor<5xf32>)
          outs(%c : tensor<5xf32>) attrs = {test} {
        ^bb0(%a: f32, %o: f32):
          %y = )" + body +
                        R"( : f32
          linalg.yield %y : f32
        } -> tensor<5xf32>)");
  };
  EXPECT_IN(generic("math.atan %a"),
            "'math.atan' in the body of 'linalg.generic' has no gradient rule");
  EXPECT_IN(generic("arith.mulf %a, %s"), "it would get no gradient");
}

TEST_F(GradientTest, FillAndConstants) {
  EXPECT_IN(gradient("%s: f32, %c: tensor<5xf32>, %g: tensor<5xf32>",
                     R"(%r = linalg.fill {test} ins(%s : f32)
      outs(%c : tensor<5xf32>) -> tensor<5xf32>)"),
            "\"test.grads\"() : () -> ()");
  EXPECT_IN(gradient("%g: tensor<5xf32>",
                     "%r = tensor.empty() {test} : tensor<5xf32>"),
            "\"test.grads\"() : () -> ()");
}

TEST_F(GradientTest, ShapesAndSlices) {
  EXPECT_IN(gradient("%a: tensor<5x24xf32>, %g: tensor<5x6x4xf32>",
                     "%r = tensor.expand_shape %a [[0], [1, 2]] output_shape "
                     "[5, 6, 4] {test} : tensor<5x24xf32> into "
                     "tensor<5x6x4xf32>"),
            "tensor.collapse_shape %arg1 [[0], [1, 2]]");
  EXPECT_IN(gradient("%a: tensor<5x6x4xf32>, %g: tensor<5x24xf32>",
                     "%r = tensor.collapse_shape %a [[0], [1, 2]] {test} : "
                     "tensor<5x6x4xf32> into tensor<5x24xf32>"),
            "tensor.expand_shape %arg1 [[0], [1, 2]] output_shape [5, 6, 4]");
  std::string text = gradient(
      "%a: tensor<3x5x8xf32>, %g: tensor<5x4xf32>",
      "%r = tensor.extract_slice %a[2, 0, 4] [1, 5, 4] [1, 1, 1] {test} : "
      "tensor<3x5x8xf32> to tensor<5x4xf32>");
  EXPECT_IN(text, "tensor.insert_slice %arg1 into %1[2, 0, 4] [1, 5, 4]");
  text = gradient(
      "%a: tensor<5x4xf32>, %d: tensor<3x5x8xf32>, %g: tensor<3x5x8xf32>",
      "%r = tensor.insert_slice %a into %d[2, 0, 4] [1, 5, 4] [1, 1, 1] {test} "
      ": tensor<5x4xf32> into tensor<3x5x8xf32>");
  EXPECT_IN(text, "tensor.extract_slice %arg2[2, 0, 4] [1, 5, 4]");
  EXPECT_IN(text, "into %arg2[2, 0, 4] [1, 5, 4]");
}
