// RUN: parc-opt %s --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(parc-shard{zero=1},parc-verify-sharded)' | FileCheck %s --check-prefixes=ALL,ONE
// RUN: parc-opt %s --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(parc-shard{zero=2},parc-verify-sharded)' | FileCheck %s --check-prefixes=ALL,TWO
// RUN: parc-opt %s --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(parc-shard{zero=3},parc-verify-sharded)' | FileCheck %s --check-prefixes=ALL,THREE
// RUN: parc-opt %s --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(parc-shard{zero=1},parc-local,parc-verify-local)' | FileCheck %s --check-prefix=LOCAL

// Ranks that would hold the same state of @w hold parts of it. The model sees
// nothing of it: @w is used whole in its region.

parc.mesh ["dp"] sizes [2]
// ONE: parc.param @w : tensor<3x5xf64> {sharding = #parc.sharding<[{}, {}]>, slot_shardings = {state = #parc.sharding<[{}, {}], flat {"dp"}>}}
// TWO: slot_shardings = {grad = #parc.sharding<[{}, {}], flat {"dp"}>, state = #parc.sharding<[{}, {}], flat {"dp"}>}
// THREE: slot_shardings = {grad = {{.*}}, state = {{.*}}, value = #parc.sharding<[{}, {}], flat {"dp"}>}
parc.param @w : tensor<3x5xf64>
// ALL-LABEL: parc.step @train
// LOCAL-LABEL: parc.step @train
parc.step @train inputs ["tokens"] micro {
^bb0(%tokens: tensor<4x5xi64>):
  // ONE: %[[W:.*]] = parc.load @w : tensor<3x5xf64, #parc.sharding<[{}, {}]>>
  // THREE: %[[P:.*]] = parc.load @w : tensor<3x5xf64, #parc.sharding<[{}, {}], flat {"dp"}>>
  // THREE: %[[W:.*]] = parc.reshard %[[P]] why <"w is stored in parts over dp" {{.*}} -> tensor<3x5xf64, #parc.sharding<[{}, {}]>>
  // THREE: nn.embedding %{{.*}}, %[[W]]
  %w = parc.load @w : tensor<3x5xf64>
  %x = nn.embedding %tokens, %w : tensor<4x5xi64>, tensor<3x5xf64> -> tensor<4x5x5xf64>
  %s = nn.sum_squares %x : tensor<4x5x5xf64> -> tensor<f64>
  %g = nn.embedding_grad %tokens, %x : tensor<4x5xi64>, tensor<4x5x5xf64> -> tensor<3x5xf64>
  // Whole and still a sum under ZeRO 1, reduced into parts at once under 2.
  // ONE: parc.accumulate @w, %{{.*}} : tensor<3x5xf64, #parc.sharding<[{}, {}], partial sum {"dp"}>>
  // TWO: %[[G:.*]] = parc.reshard {{.*}} why <"nn.embedding_grad leaves a sum of which w keeps parts over dp" {{.*}} partial sum {"dp"}>> -> tensor<3x5xf64, #parc.sharding<[{}, {}], flat {"dp"}>>
  // TWO: parc.accumulate @w, %[[G]] :
  parc.accumulate @w, %g slot "grad" : tensor<3x5xf64>
  parc.yield %s, %s : tensor<f64>, tensor<f64>
} scalars ["lr"] results ["norm"] update {
^bb0(%loss: tensor<f64>, %count: tensor<f64>, %lr: tensor<f64>):
  // ONE: %[[SUM:.*]] = parc.load @w slot "grad" : tensor<3x5xf64, #parc.sharding<[{}, {}], partial sum {"dp"}>>
  // ONE: %[[PART:.*]] = parc.reshard %[[SUM]] why <"the state of w lies in parts over dp" of "w.grad" {{.*}} -> tensor<3x5xf64, #parc.sharding<[{}, {}], flat {"dp"}>>
  // ONE: nn.sum_squares %[[PART]] : {{.*}} -> tensor<f64, #parc.sharding<[], partial sum {"dp"}>>
  %grad = parc.load @w slot "grad" : tensor<3x5xf64>
  %norm = nn.sum_squares %grad : tensor<3x5xf64> -> tensor<f64>
  %value = parc.load @w : tensor<3x5xf64>
  // ALL: %[[NEXT:.*]] = arith.subf {{.*}} : tensor<3x5xf64, #parc.sharding<[{}, {}], flat {"dp"}>>
  %next = arith.subf %value, %grad : tensor<3x5xf64>
  // ONE: %[[GOT:.*]] = parc.reshard %[[NEXT]] why <"w is used whole, its state lies in parts over dp" {{.*}} -> tensor<3x5xf64, #parc.sharding<[{}, {}]>>
  // ONE: parc.store @w, %[[GOT]]
  // THREE: parc.store @w, %[[NEXT]]
  parc.store @w, %next : tensor<3x5xf64>
  // The sum of all ranks has a place of its own where the slot has another.
  // ONE: parc.store @w, %[[PART]] slot "reduced"
  // TWO: parc.store @w, %{{.*}} slot "grad"
  parc.store @w, %grad slot "grad" : tensor<3x5xf64>
  // On one rank: what needs no collective first, then those that need no other.
  // LOCAL: } scalars
  // LOCAL: %[[GRAD:.*]] = parc.load @w slot "grad" : tensor<3x5xf64>
  // LOCAL: %[[LIST:.*]] = tensor.collapse_shape %[[GRAD]]
  // LOCAL: %[[HERE:.*]] = parc.slice {{.*}} dim 0 of 15 over ["dp"] : tensor<15xf64> -> tensor<?xf64>
  // LOCAL: %[[PIECE:.*]] = parc.reduce_scatter sum %[[LIST]] dim 0 of 15 over ["dp"] {{.*}} : tensor<15xf64> -> tensor<?xf64>
  // LOCAL: %[[MADE:.*]] = arith.subf %[[HERE]], %[[PIECE]] : tensor<?xf64>
  // LOCAL: parc.store @w, %[[PIECE]] slot "reduced" : tensor<?xf64>
  // LOCAL: %[[WHOLE:.*]] = parc.all_gather %[[MADE]] dim 0 of 15 over ["dp"] {{.*}} : tensor<?xf64> -> tensor<15xf64>
  // LOCAL: %[[NEW:.*]] = tensor.expand_shape %[[WHOLE]]
  // LOCAL: parc.store @w, %[[NEW]] : tensor<3x5xf64>
  parc.yield %norm : tensor<f64>
}
