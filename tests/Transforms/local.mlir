// RUN: parc-opt %s -split-input-file \
// RUN:   --pass-pipeline='builtin.module(parc-shard,parc-local,parc-verify-local)' | FileCheck %s

// 9 rows on 2 ranks are 4 and 5: dynamic extents, no padding. The embedding is
// told where its rows start, and its partial sum is reduced.

parc.mesh ["tp"] sizes [2]
parc.param @table : tensor<9x4xf64> {sharding = #parc.sharding<[{"tp"}, {}]>}
// CHECK-LABEL: parc.step @train
parc.step @train inputs ["tokens"] micro {
^bb0(%tokens: tensor<2x3xi64>):
  // CHECK: %[[T:.*]] = parc.load @table : tensor<?x4xf64>
  %table = parc.load @table : tensor<9x4xf64>
  // CHECK: %[[START:.*]] = parc.part_start ["tp"] of 9
  // CHECK: %[[X:.*]] = nn.embedding %{{.*}}, %[[T]] from %[[START]] : tensor<2x3xi64>, tensor<?x4xf64> -> tensor<2x3x4xf64>
  // CHECK: parc.all_reduce sum %[[X]] over ["tp"] why <"table leaves a partial sum over tp, which math.exp reads whole" of "table" : tensor<2x3x4xf64> from <[{}, {}, {}], partial sum {"tp"}> to <[{}, {}, {}]> sends 192 because ["the model's sharding of 'table' at {{.*}}"]> : tensor<2x3x4xf64>
  %x = nn.embedding %tokens, %table : tensor<2x3xi64>, tensor<9x4xf64> -> tensor<2x3x4xf64>
  %e = math.exp %x : tensor<2x3x4xf64>
  %zero = arith.constant dense<0.0> : tensor<f64>
  %loss = linalg.reduce { arith.addf } ins(%e : tensor<2x3x4xf64>) outs(%zero : tensor<f64>) dimensions = [0, 1, 2]
  parc.yield %loss, %zero : tensor<f64>, tensor<f64>
} update {
}

// -----

// Each change of layout is one collective: a split that is needed whole is
// gathered, one that changes dimensions goes all-to-all, a whole value is cut.

parc.mesh ["tp"] sizes [2]
parc.param @a : tensor<6x4xf64> {sharding = #parc.sharding<[{"tp"}, {}]>}
parc.param @b : tensor<6x4xf64> {sharding = #parc.sharding<[{}, {"tp"}]>}
parc.param @c : tensor<6x4xf64> {sharding = #parc.sharding<[{}, {"tp"}]>}
parc.param @g : tensor<4xf64>
// CHECK-LABEL: parc.step @train
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  %a = parc.load @a : tensor<6x4xf64>
  %b = parc.load @b : tensor<6x4xf64>
  %c = parc.load @c : tensor<6x4xf64>
  %g = parc.load @g : tensor<4xf64>
  // The sum runs in rows, so the split columns move to the rows.
  // CHECK: parc.all_to_all %{{.*}} gather 1 of 4 split 0 of 6 over ["tp"] why {{.*}} : tensor<6x2xf64> -> tensor<3x4xf64>
  %s = arith.addf %a, %b : tensor<6x4xf64>
  // The rows of the norm are whole.
  // CHECK: %[[WHOLE:.*]] = parc.all_gather %{{.*}} dim 1 of 4 over ["tp"] why {{.*}} : tensor<6x2xf64> -> tensor<6x4xf64>
  %n = nn.rms_norm %c, %g epsilon 1.0e-5 : tensor<6x4xf64>, tensor<4xf64>
  // What is there whole already is cut.
  // CHECK: parc.slice %[[WHOLE]] dim 0 of 6 over ["tp"] : tensor<6x4xf64> -> tensor<3x4xf64>
  %s2 = arith.addf %a, %c : tensor<6x4xf64>
  %zero = arith.constant dense<0.0> : tensor<f64>
  %loss = linalg.reduce { arith.addf } ins(%s : tensor<6x4xf64>) outs(%zero : tensor<f64>) dimensions = [0, 1]
  // CHECK: parc.yield
  parc.yield %loss, %zero : tensor<f64>, tensor<f64>
} update {
}
