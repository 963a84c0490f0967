// RUN: parc-opt %s | parc-opt | FileCheck %s
// RUN: parc-opt %s --mlir-print-op-generic | parc-opt | FileCheck %s

// A reason is its text, or all that is known of a move.

// CHECK-LABEL: func.func @moves
func.func @moves(%a: tensor<4x6xf32>) {
  // CHECK: parc.all_reduce sum %{{.*}} over ["tp"] why "a \22sum\22" : tensor<4x6xf32>
  %0 = parc.all_reduce sum %a over ["tp"] why "a \"sum\"" : tensor<4x6xf32>
  // CHECK: parc.all_reduce sum %{{.*}} over ["tp"] why "plain" : tensor<4x6xf32>
  %1 = parc.all_reduce sum %a over ["tp"] why <"plain"> : tensor<4x6xf32>
  // CHECK: parc.all_reduce sum %{{.*}} over ["tp"] stages [0, 1] why <"o is a sum" of "o" : tensor<8x6xf32> from <[{"dp"}, {}], partial sum {"tp"}> to <[{"dp"}, {}]> sends 96 because ["dp splits the batch", "tp splits heads"]> : tensor<4x6xf32>
  %2 = parc.all_reduce sum %a over ["tp"] stages [0, 1] why <"o is a sum" of "o" : tensor<8x6xf32> from <[{"dp"}, {}], partial sum {"tp"}> to <[{"dp"}, {}]> sends 96 because ["dp splits the batch", "tp splits heads"]> : tensor<4x6xf32>
  // CHECK: parc.all_gather %{{.*}} dim 1 of 12 over ["tp"] why <"whole" sends 0> : tensor<4x6xf32> -> tensor<4x12xf32>
  %3 = parc.all_gather %a dim 1 of 12 over ["tp"] why <"whole" sends 0> : tensor<4x6xf32> -> tensor<4x12xf32>
  // CHECK: parc.all_gather %{{.*}} dim 1 of 12 over ["tp"] why <"whole" of "q"> : tensor<4x6xf32> -> tensor<4x12xf32>
  %4 = parc.all_gather %a dim 1 of 12 over ["tp"] why <"whole" of "q"> : tensor<4x6xf32> -> tensor<4x12xf32>
  return
}
