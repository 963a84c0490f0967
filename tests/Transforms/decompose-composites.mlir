// RUN: parc-opt %s --parc-decompose-composites | FileCheck %s

// Only what propagation could not see through is decomposed.

parc.param @w : tensor<4x6xf64>

// CHECK-LABEL: parc.step @train
parc.step @train inputs ["tokens", "labels"] micro {
^bb0(%tokens: tensor<2x3xi64>, %labels: tensor<2x3xi64>):
  %w = parc.load @w : tensor<4x6xf64>
  // CHECK: nn.embedding
  %x = nn.embedding %tokens, %w : tensor<2x3xi64>, tensor<4x6xf64> -> tensor<2x3x6xf64>
  // CHECK-NOT: nn.softmax_cross_entropy
  // CHECK: arith.maximumf
  %loss, %count, %lse = nn.softmax_cross_entropy %x, %labels :
      tensor<2x3x6xf64>, tensor<2x3xi64> -> tensor<f64>, tensor<f64>, tensor<2x3xf64>
  parc.yield %loss, %count : tensor<f64>, tensor<f64>
} update {
}
