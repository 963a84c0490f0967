// RUN: parc-opt %s | parc-opt | FileCheck %s

// CHECK: rt.mesh ["pp", "tp"] sizes [2, 2] stage "pp"
rt.mesh ["pp", "tp"] sizes [2, 2] stage "pp"
// CHECK: rt.schedule micro_batches 2 stacks ["layers"] counts [3] bounds [0, 2, 3] in_flight [2, 1] loops {{\[\[}}array<i64: 2, 0, 0>], [array<i64: 2, 6, 1, 3, 0>]]
rt.schedule micro_batches 2 stacks ["layers"] counts [3] bounds [0, 2, 3] in_flight [2, 1]
    loops [[array<i64: 2, 0, 0>], [array<i64: 2, 6, 1, 3, 0>]]
// CHECK: rt.group @tp axes ["tp"]
rt.group @tp axes ["tp"]
// CHECK: rt.group @ends axes ["pp"] stages [0, 1]
rt.group @ends axes ["pp"] stages [0, 1]

func.func @ops(%x: tensor<4x?xf32>, %w: tensor<8x?xf32>, %ids: tensor<4xi64>, %n: index, %l: !rt.layers<tensor<4x?xf32>>) {
  // CHECK: rt.map(%{{.*}}) : tensor<4x?xf32> {
  %y = rt.map(%n) : tensor<4x?xf32> {
  ^bb0(%i: index, %j: index):
    // CHECK: rt.at %{{.*}}[%{{.*}}, %{{.*}}] : tensor<4x?xf32>
    %a = rt.at %x[%i, %j] : tensor<4x?xf32>
    rt.yield %a : f32
  }
  // CHECK: rt.reduce max() over [-9223372036854775808](%{{.*}}) : tensor<4xf32> {
  %s = rt.reduce max() over [-9223372036854775808](%n) : tensor<4xf32> {
  ^bb0(%i: index, %k: index):
    %a = rt.at %x[%i, %k] : tensor<4x?xf32>
    rt.yield %a : f32
  } finish {
  ^bb0(%i: index, %m: f32):
    rt.yield %m : f32
  }
  // CHECK: rt.contract "ac" %{{.*}}, "bc" %{{.*}} to "ab"
  %c = rt.contract "ac" %x, "bc" %w to "ab" : (tensor<4x?xf32>, tensor<8x?xf32>) -> tensor<4x8xf32>
  // CHECK: rt.scatter_rows %{{.*}} at %{{.*}} from %{{.*}}() : tensor<4x8xf32>, tensor<4xi64> -> tensor<9x8xf32>
  %t = rt.scatter_rows %c at %ids from %n() : tensor<4x8xf32>, tensor<4xi64> -> tensor<9x8xf32>
  // CHECK: rt.check_load %{{.*}} limit %{{.*}} : tensor<4xi64>
  rt.check_load %ids limit %n : tensor<4xi64>
  // CHECK: rt.all_reduce sum %{{.*}} in @tp why "a sum"
  %r = rt.all_reduce sum %c in @tp why "a sum" : tensor<4x8xf32>
  // CHECK: rt.all_gather %{{.*}} dim 1 of 9 grain 1 over ["tp"] outer [] in @tp why "whole" : tensor<4x?xf32> -> tensor<4x9xf32>
  %g = rt.all_gather %x dim 1 of 9 grain 1 over ["tp"] outer [] in @tp why "whole" : tensor<4x?xf32> -> tensor<4x9xf32>
  // CHECK: rt.reduce_scatter sum %{{.*}} dim 1 of 9 grain 1 over ["tp"] outer [] in @tp why "parts"
  %p = rt.reduce_scatter sum %g dim 1 of 9 grain 1 over ["tp"] outer [] in @tp why "parts" : tensor<4x9xf32> -> tensor<4x?xf32>
  // CHECK: rt.all_to_all %{{.*}} gather 0 of 8 grain 1 outer [] split 1 of 8 by 1 below ["dp"] over ["tp"] in @tp why "moved"
  %m = rt.all_to_all %c gather 0 of 8 grain 1 outer [] split 1 of 8 by 1 below ["dp"] over ["tp"] in @tp why "moved" : tensor<4x8xf32> -> tensor<8x4xf32>
  // CHECK: rt.shift %{{.*}} dim 1 of 9 grain 1 hops 0 over ["tp"] in @tp why "next" : tensor<4x?xf32> -> tensor<4x?xf32>
  %next = rt.shift %x dim 1 of 9 grain 1 hops 0 over ["tp"] in @tp why "next" : tensor<4x?xf32> -> tensor<4x?xf32>
  // CHECK: rt.read %{{.*}} : tensor<i64>
  %count = arith.constant dense<3> : tensor<i64>
  %number = rt.read %count : tensor<i64>
  // CHECK: rt.part_start ["tp"] of 97 grain 1
  %b = rt.part_start ["tp"] of 97 grain 1
  // CHECK: rt.stack "layers" 0 to 3 reverse reduce 0 carry(%{{.*}}) each(%{{.*}})
  %z = rt.stack "layers" 0 to 3 reverse reduce 0 carry(%x) each(%l) : (tensor<4x?xf32>, !rt.layers<tensor<4x?xf32>>) -> tensor<4x?xf32> {
  ^bb0(%layer: index, %h: tensor<4x?xf32>, %e: tensor<4x?xf32>):
    // CHECK: rt.accumulate @q slot "grad", %{{.*}} : tensor<4x?xf32>
    rt.accumulate @q slot "grad", %e : tensor<4x?xf32>
    rt.yield %h : tensor<4x?xf32>
  }
  // CHECK: %[[P:.*]] = rt.start stream "tp" : !rt.pending<tensor<4x8xf32>> {
  %pending = rt.start stream "tp" : !rt.pending<tensor<4x8xf32>> {
    %sum = rt.all_reduce sum %c in @tp why "a sum" : tensor<4x8xf32>
    rt.yield %sum : tensor<4x8xf32>
  }
  // CHECK: rt.wait %[[P]] : !rt.pending<tensor<4x8xf32>> -> tensor<4x8xf32>
  %waited = rt.wait %pending : !rt.pending<tensor<4x8xf32>> -> tensor<4x8xf32>
  // CHECK: rt.last_micro {
  rt.last_micro {
    // CHECK-NEXT: rt.start stream "dp" {
    rt.start stream "dp" {
      %grad = rt.load @q slot "grad" : tensor<4x?xf32>
      %total = rt.all_reduce sum %grad in @tp why "a sum" : tensor<4x?xf32>
      rt.store @q slot "grad", %total : tensor<4x?xf32>
      rt.yield
    }
    rt.yield
  }
  // CHECK: rt.wait stream "dp"
  rt.wait stream "dp"
  return
}
