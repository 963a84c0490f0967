// RUN: parc-opt %s --parc-balance-sequence | FileCheck %s
// RUN: parc-opt %s --parc-balance-sequence --parc-shard='context-kind=all-gather' --parc-verify-sharded | FileCheck %s --check-prefix=SHARD

// Inputs are folded for the two parts of the sequence; the attention's keys are
// gathered in the same order, so that nothing else changes.

parc.mesh ["cp"] sizes [2]
parc.param @w : tensor<11x8xf64>
parc.param @h : tensor<11x8xf64>

// CHECK-LABEL: parc.step @train
// CHECK-SAME: parc.fold = 2
parc.step @train inputs ["tokens", "labels", "positions"] micro {
^bb0(%tokens: tensor<2x6xi64>, %labels: tensor<2x6xi64>, %positions: tensor<2x6xi64>):
  // CHECK: %[[T:.*]] = nn.fold %{{.*}} dim 1 parts 2 : tensor<2x6xi64>
  // CHECK: %[[L:.*]] = nn.fold %{{.*}} dim 1 parts 2 : tensor<2x6xi64>
  // CHECK: %[[P:.*]] = nn.fold %{{.*}} dim 1 parts 2 : tensor<2x6xi64>
  %w = parc.load @w : tensor<11x8xf64>
  // CHECK: nn.embedding %[[T]]
  %x = nn.embedding %tokens, %w : tensor<2x6xi64>, tensor<11x8xf64> -> tensor<2x6x8xf64>
  %q = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [2, 6, 2, 4] : tensor<2x6x8xf64> into tensor<2x6x2x4xf64>
  // CHECK: nn.attention {{.*}} positions(%[[P]], %[[P]]) causal
  // SHARD: nn.attention {{.*}} tensor<2x6x2x4xf64, #parc.sharding<[{}, {"cp"}, {}, {}]>>, tensor<2x6x2x4xf64, #parc.sharding<[{}, {}, {}, {}]>>
  %a = nn.attention %q, %q, %q positions(%positions, %positions) causal scale 0.5 :
      tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6x2x4xf64>, tensor<2x6xi64>, tensor<2x6xi64> -> tensor<2x6x2x4xf64>
  %y = tensor.collapse_shape %a [[0], [1], [2, 3]] : tensor<2x6x2x4xf64> into tensor<2x6x8xf64>
  %h = parc.load @h : tensor<11x8xf64>
  %logits = nn.linear %y, %h : tensor<2x6x8xf64>, tensor<11x8xf64> -> tensor<2x6x11xf64>
  // CHECK: parc.observe "logits", %{{.*}} {fold = array<i64: 1, 2>}
  parc.observe "logits", %logits : tensor<2x6x11xf64>
  // CHECK: nn.sum_squares
  %loss = nn.sum_squares %logits : tensor<2x6x11xf64> -> tensor<f64>
  %count = arith.constant dense<1.0> : tensor<f64>
  parc.yield %loss, %count : tensor<f64>, tensor<f64>
} update {
}
