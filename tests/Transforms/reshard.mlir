// RUN: parc-opt %s -split-input-file --pass-pipeline='builtin.module(parc-local,parc-verify-local)' \
// RUN:   | FileCheck %s

// BR-17: two axes leave two dimensions for a third. Two all-to-alls, the second
// below the axis that the first one brought; nothing is gathered.

parc.mesh ["x", "y"] sizes [4, 2]
parc.param @a : tensor<16x16x16xf32> {sharding = #parc.sharding<[{"y"}, {}, {"x"}]>}
// CHECK-LABEL: parc.step @two_axes
parc.step @two_axes inputs [] micro {
  %a = parc.load @a : tensor<16x16x16xf32, #parc.sharding<[{"y"}, {}, {"x"}]>>
  // CHECK: %[[M:.*]] = parc.all_to_all %{{.*}} gather 2 of 16 split 1 of 16 over ["x"] why <"moved" from <[{{.*}}]> to <[{{.*}}]> sends {{[0-9]+}}> : tensor<8x16x4xf32> -> tensor<8x4x16xf32>
  // CHECK: parc.all_to_all %[[M]] gather 0 of 16 split 1 of 16 below ["x"] over ["y"] why <"moved" from <[{{.*}}]> to <[{{.*}}]> sends {{[0-9]+}}> : tensor<8x4x16xf32> -> tensor<16x2x16xf32>
  // CHECK-NOT: parc.all_gather
  %b = parc.reshard %a why "moved" : tensor<16x16x16xf32, #parc.sharding<[{"y"}, {}, {"x"}]>> -> tensor<16x16x16xf32, #parc.sharding<[{}, {"x", "y"}, {}]>>
  parc.observe "b", %b : tensor<16x16x16xf32, #parc.sharding<[{}, {"x", "y"}, {}]>>
  %zero = arith.constant dense<0.0> : tensor<f32, #parc.sharding<[]>>
  parc.yield %zero, %zero : tensor<f32, #parc.sharding<[]>>, tensor<f32, #parc.sharding<[]>>
} update {
}

// -----

// The exchange of a queue's slots for experts: `dp` stays on the slots, and 7
// slots are not equal parts.

parc.mesh ["ep", "dp"] sizes [2, 3]
parc.param @q : tensor<4x7x6xf32> {sharding = #parc.sharding<[{}, {"dp", "ep"}, {}]>}
// CHECK-LABEL: parc.step @queue
parc.step @queue inputs [] micro {
  %q = parc.load @q : tensor<4x7x6xf32, #parc.sharding<[{}, {"dp", "ep"}, {}]>>
  // CHECK: parc.all_to_all %{{.*}} gather 1 of 7 outer ["dp"] split 0 of 4 over ["ep"] why <"experts" from <[{{.*}}]> to <[{{.*}}]> sends {{[0-9]+}}> : tensor<4x?x6xf32> -> tensor<2x?x6xf32>
  %e = parc.reshard %q why "experts" : tensor<4x7x6xf32, #parc.sharding<[{}, {"dp", "ep"}, {}]>> -> tensor<4x7x6xf32, #parc.sharding<[{"ep"}, {"dp"}, {}]>>
  parc.observe "e", %e : tensor<4x7x6xf32, #parc.sharding<[{"ep"}, {"dp"}, {}]>>
  %zero = arith.constant dense<0.0> : tensor<f32, #parc.sharding<[]>>
  parc.yield %zero, %zero : tensor<f32, #parc.sharding<[]>>, tensor<f32, #parc.sharding<[]>>
} update {
}

// -----

// A dimension in other grains: 3 units of 2 on two ranks are 2 and 4, 6 units
// of 1 are 3 and 3. The parts have to be made anew.

parc.mesh ["tp"] sizes [2]
parc.param @w : tensor<6x2xf32> {sharding = #parc.sharding<[{"tp" : 2}, {}]>}
// CHECK-LABEL: parc.step @grains
parc.step @grains inputs [] micro {
  %w = parc.load @w : tensor<6x2xf32, #parc.sharding<[{"tp" : 2}, {}]>>
  // CHECK: %[[C:.*]] = parc.all_gather %{{.*}} dim 0 of 6 grain 2 over ["tp"] why <"grain" from <[{{.*}}]> to <[{{.*}}]> sends {{[0-9]+}}> : tensor<?x2xf32> -> tensor<6x2xf32>
  // CHECK: parc.slice %[[C]] dim 0 of 6 over ["tp"] : tensor<6x2xf32> -> tensor<3x2xf32>
  %e = parc.reshard %w why "grain" : tensor<6x2xf32, #parc.sharding<[{"tp" : 2}, {}]>> -> tensor<6x2xf32, #parc.sharding<[{"tp"}, {}]>>
  parc.observe "e", %e : tensor<6x2xf32, #parc.sharding<[{"tp"}, {}]>>
  %zero = arith.constant dense<0.0> : tensor<f32, #parc.sharding<[]>>
  parc.yield %zero, %zero : tensor<f32, #parc.sharding<[]>>, tensor<f32, #parc.sharding<[]>>
} update {
}
