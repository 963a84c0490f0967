// RUN: parc-opt %s -split-input-file \
// RUN:   --pass-pipeline='builtin.module(parc-ring{contract=true},parc-verify-local)' | FileCheck %s --check-prefixes=CHECK,MEANS
// RUN: parc-opt %s -split-input-file \
// RUN:   --pass-pipeline='builtin.module(parc-ring,parc-verify-local)' | FileCheck %s --check-prefixes=CHECK,RUNS

// Twelve positions on three ranks: keys and values of each of the two others
// pass by, and positions say what of a block is computed. What that means is
// attention with all keys.

parc.mesh ["cp"] sizes [3]
parc.param @q : tensor<2x4x4x8xf32>
parc.param @k : tensor<2x4x2x8xf32>
// CHECK-LABEL: parc.step @causal
parc.step @causal inputs ["p", "all"] micro {
^bb0(%p: tensor<2x4xi64>, %all: tensor<2x12xi64>):
  // CHECK: %[[Q:.*]] = parc.load @q
  // CHECK: %[[K:.*]] = parc.load @k
  %q = parc.load @q : tensor<2x4x4x8xf32>
  %k = parc.load @k : tensor<2x4x2x8xf32>
  // MEANS: %[[ALL:.*]] = parc.all_gather %[[K]] dim 1 of 12 over ["cp"] why "attention reads the keys of every rank" : tensor<2x4x2x8xf32> -> tensor<2x12x2x8xf32>
  // MEANS: nn.attention %[[Q]], %[[ALL]], %{{.*}} causal scale 5.000000e-01 group 2 : tensor<2x4x4x8xf32>, tensor<2x12x2x8xf32>,
  // RUNS-NOT: parc.all_gather
  // RUNS: %[[ONE:.*]] = parc.shift %[[K]] dim 1 of 12 hops 0 over ["cp"]
  // RUNS: parc.shift %[[K]] dim 1 of 12 hops 0 over ["cp"]
  // The first and last key that any query sees.
  // RUNS: arith.minsi
  // RUNS: %[[COUNT:.*]] = tensor.extract %{{.*}}[] : tensor<i64>
  // RUNS: tensor.extract_slice %[[ONE]][0, %{{.*}}, 0, 0] [2, %{{.*}}, 2, 8] [1, 1, 1, 1] : tensor<2x4x2x8xf32> to tensor<2x?x2x8xf32>
  // RUNS: parc.shift %[[ONE]] dim 1 of 12 hops 1 over ["cp"]
  // RUNS: parc.shift %{{.*}} dim 1 of 12 hops 1 over ["cp"]
  // RUNS-NOT: parc.shift
  // RUNS: parc.yield
  %o = nn.attention %q, %k, %k positions(%p, %all) causal scale 0.5 group 2 ring ["cp"] of [12, 1] : tensor<2x4x4x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4x2x8xf32>, tensor<2x4xi64>, tensor<2x12xi64> -> tensor<2x4x4x8xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  parc.yield %zero, %zero : tensor<f32>, tensor<f32>
} update {
}

// -----

// Gradients of keys follow the keys and come home; without a mask nothing is
// cut off, and no number is read.

parc.mesh ["cp"] sizes [2]
parc.param @q : tensor<2x?x4x8xf32>
parc.param @k : tensor<2x?x4x8xf32>
// CHECK-LABEL: parc.step @grad
parc.step @grad inputs ["p", "all"] micro {
^bb0(%p: tensor<2x?xi64>, %all: tensor<2x7xi64>):
  %q = parc.load @q : tensor<2x?x4x8xf32>
  %k = parc.load @k : tensor<2x?x4x8xf32>
  // MEANS-COUNT-2: parc.all_gather
  // MEANS: nn.attention_grad
  // MEANS-COUNT-2: parc.reduce_scatter sum %{{.*}} dim 1 of 7 over ["cp"] why "every rank's queries read these keys" : tensor<2x7x4x8xf32> -> tensor<2x?x4x8xf32>
  // RUNS-NOT: tensor.extract %
  // RUNS-COUNT-2: parc.shift %{{.*}} dim 1 of 7 hops 0
  // RUNS-NOT: tensor.extract %
  // RUNS-COUNT-2: parc.shift %{{.*}} dim 1 of 7 hops 1
  // RUNS-NOT: parc.shift
  // RUNS: parc.yield
  %g:3 = nn.attention_grad %q, %k, %k, %q positions(%p, %all) scale 0.5 group 1 ring ["cp"] of [7, 1] : tensor<2x?x4x8xf32>, tensor<2x?x4x8xf32>, tensor<2x?x4x8xf32>, tensor<2x?x4x8xf32>, tensor<2x?xi64>, tensor<2x7xi64> -> tensor<2x?x4x8xf32>, tensor<2x?x4x8xf32>, tensor<2x?x4x8xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  parc.yield %zero, %zero : tensor<f32>, tensor<f32>
} update {
}
