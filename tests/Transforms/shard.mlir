// RUN: parc-opt %s --mlir-print-local-scope -split-input-file \
// RUN:   --pass-pipeline='builtin.module(parc-decompose-composites,parc-shard{micro-batches=2},parc-verify-sharded{micro-batches=2})' \
// RUN:   | FileCheck %s

// The built-in strategy splits what is between two matrix products, and the
// batch: one all-reduce where the second product leaves a partial sum.

parc.mesh ["tp", "dp"] sizes [2, 2]
parc.param @table : tensor<9x4xf64>
parc.param @up : tensor<6x4xf64>
parc.param @down : tensor<4x6xf64>
// The widths 9 and 6 are split, 4 is not: a norm reads it whole.
// CHECK: parc.param @table : tensor<9x4xf64> {sharding = #parc.sharding<[{"tp"}, {}]>}
// CHECK: parc.param @up : tensor<6x4xf64> {sharding = #parc.sharding<[{"tp"}, {}]>}
// CHECK: parc.param @down : tensor<4x6xf64> {sharding = #parc.sharding<[{}, {"tp"}]>}
parc.param @norm : tensor<4xf64>
// CHECK-LABEL: parc.step @train
parc.step @train inputs ["tokens", "labels"] micro {
// CHECK: ^bb0(%{{.*}}: tensor<4x3xi64, #parc.sharding<[{"dp", "mb"}, {}]>>
^bb0(%tokens: tensor<4x3xi64>, %labels: tensor<4x3xi64>):
  %table = parc.load @table : tensor<9x4xf64>
  // CHECK: %[[X:.*]] = nn.embedding
  // CHECK-SAME: -> tensor<4x3x4xf64, #parc.sharding<[{"dp", "mb"}, {}, {}], partial sum {"tp"}>>
  // CHECK: parc.reshard %[[X]] why <"table leaves a partial sum over tp, which norm reads whole" of "table" : tensor<4x3x4xf64>
  // CHECK-SAME: from <[{"dp", "mb"}, {}, {}], partial sum {"tp"}> to <[{"dp", "mb"}, {}, {}]>
  // CHECK-SAME: because ["tp splits dimension 0 of table"]>
  %x = nn.embedding %tokens, %table : tensor<4x3xi64>, tensor<9x4xf64> -> tensor<4x3x4xf64>
  %g = parc.load @norm : tensor<4xf64>
  %n = nn.rms_norm %x, %g epsilon 1.0e-5 : tensor<4x3x4xf64>, tensor<4xf64> loc("norm")
  %up = parc.load @up : tensor<6x4xf64>
  // CHECK: nn.linear
  // CHECK-SAME: -> tensor<4x3x6xf64, #parc.sharding<[{"dp", "mb"}, {}, {"tp"}]>>
  %u = nn.linear %n, %up : tensor<4x3x4xf64>, tensor<6x4xf64> -> tensor<4x3x6xf64>
  %s = nn.silu %u : tensor<4x3x6xf64>
  %down = parc.load @down : tensor<4x6xf64>
  // CHECK: %[[D:.*]] = nn.linear
  // CHECK-SAME: partial sum {"tp"}
  %d = nn.linear %s, %down : tensor<4x3x6xf64>, tensor<4x6xf64> -> tensor<4x3x4xf64>
  // Not linear in the partial sum alone, so it is reduced first.
  // CHECK: %[[R:.*]] = parc.reshard %[[D]]
  // CHECK: arith.addf %{{.*}}, %[[R]]
  %y = arith.addf %n, %d : tensor<4x3x4xf64>
  // CHECK: nn.linear
  // CHECK-SAME: -> tensor<4x3x9xf64, #parc.sharding<[{"dp", "mb"}, {}, {"tp"}]>>
  %logits = nn.linear %y, %table : tensor<4x3x4xf64>, tensor<9x4xf64> -> tensor<4x3x9xf64>
  // The statistics of a split vocabulary: a partial maximum, two partial sums.
  // CHECK: parc.reshard %{{.*}} why <"{{.*}}partial max over tp
  // CHECK: parc.reshard %{{.*}} why <"{{.*}}partial sum over tp
  // CHECK: parc.reshard %{{.*}} why <"{{.*}}partial sum over tp
  %loss, %count, %lse = nn.softmax_cross_entropy %logits, %labels :
      tensor<4x3x9xf64>, tensor<4x3xi64> -> tensor<f64>, tensor<f64>, tensor<4x3xf64>
  // The loss stays partial over what the step adds up.
  // CHECK: parc.yield %{{.*}} : tensor<f64, #parc.sharding<[], partial sum {"dp", "mb"}>>
  parc.yield %loss, %count : tensor<f64>, tensor<f64>
} update {
}

// -----

// A constraint decides; the strategy leaves an axis alone that one names.

parc.mesh ["tp"] sizes [2]
// CHECK: parc.param @up : tensor<6x4xf64> {sharding = #parc.sharding<[{}, {"tp"}]>}
parc.param @up : tensor<6x4xf64> {sharding = #parc.sharding<[{}, {"tp"}]>}
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<4xi64>):
  %up = parc.load @up : tensor<6x4xf64>
  %sq = arith.mulf %up, %up : tensor<6x4xf64>
  %zero = arith.constant dense<0.0> : tensor<f64>
  // CHECK: linalg.reduce
  // CHECK-SAME: partial sum {"tp"}
  %loss = linalg.reduce { arith.addf } ins(%sq : tensor<6x4xf64>) outs(%zero : tensor<f64>) dimensions = [0, 1]
  parc.yield %loss, %zero : tensor<f64>, tensor<f64>
} update {
}
