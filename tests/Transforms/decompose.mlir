// RUN: parc-opt %s --parc-decompose | FileCheck %s

parc.param @w : tensor<4x6xf64>

// Every nn op is gone.
// CHECK-LABEL: parc.step @train
// CHECK-NOT: nn.
parc.step @train inputs ["tokens", "labels"] micro {
^bb0(%tokens: tensor<2x3xi64>, %labels: tensor<2x3xi64>):
  %w = parc.load @w : tensor<4x6xf64>
  // CHECK: linalg.generic
  // CHECK: tensor.extract
  %x = nn.embedding %tokens, %w : tensor<2x3xi64>, tensor<4x6xf64> -> tensor<2x3x6xf64>
  // The loss reduces the vocabulary three times: maximum, exponentials, label.
  // CHECK: arith.maximumf
  // CHECK: math.exp
  // CHECK: linalg.index 2
  %loss, %count, %lse = nn.softmax_cross_entropy %x, %labels :
      tensor<2x3x6xf64>, tensor<2x3xi64> -> tensor<f64>, tensor<f64>, tensor<2x3xf64>
  parc.yield %loss, %count : tensor<f64>, tensor<f64>
} update {
}
