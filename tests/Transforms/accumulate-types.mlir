// RUN: parc-opt %s --parc-accumulate-types | FileCheck %s

// A narrow sum says what it is added up in. A wide one, a sum of two terms, and
// what was said before are left alone.

parc.param @table : tensor<5x4xbf16>
parc.param @w : tensor<8x4xbf16>

// CHECK-LABEL: parc.step @train
parc.step @train inputs ["i"] micro {
^bb0(%i: tensor<2x3xi64>):
  %table = parc.load @table : tensor<5x4xbf16>
  %w = parc.load @w : tensor<8x4xbf16>
  // A lookup in a table that may be split leaves a sum.
  // CHECK: nn.embedding {{.*}}parc.accumulate = f32
  %x = nn.embedding %i, %table : tensor<2x3xi64>, tensor<5x4xbf16> -> tensor<2x3x4xbf16>
  // CHECK: nn.linear %{{.*}}, %{{.*}} {parc.accumulate = f32} : tensor<2x3x4xbf16>
  %y = nn.linear %x, %w : tensor<2x3x4xbf16>, tensor<8x4xbf16> -> tensor<2x3x8xbf16>
  // CHECK: nn.linear %{{.*}}, %{{.*}} {parc.accumulate = f64} : tensor<2x3x4xbf16>
  %z = nn.linear %x, %w {parc.accumulate = f64} : tensor<2x3x4xbf16>, tensor<8x4xbf16> -> tensor<2x3x8xbf16>
  // CHECK: arith.addf %{{.*}}, %{{.*}} : tensor<2x3x8xbf16>
  %s = arith.addf %y, %z : tensor<2x3x8xbf16>
  %wide = arith.extf %s : tensor<2x3x8xbf16> to tensor<2x3x8xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  // CHECK: linalg.reduce
  // CHECK-NOT: parc.accumulate
  %loss = linalg.reduce { arith.addf } ins(%wide : tensor<2x3x8xf32>) outs(%zero : tensor<f32>) dimensions = [0, 1, 2]
  parc.yield %loss, %loss : tensor<f32>, tensor<f32>
} update {
}
