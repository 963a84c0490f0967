// RUN: parc-opt %s -split-input-file --parc-to-rt --parc-verify-rt -verify-diagnostics | FileCheck %s

// A norm, a product, a scatter: the row's statistic is a kernel of its own,
// with its root as the end of the sum; products and sums of rows are calls.

// CHECK: rt.mesh ["dp", "tp"] sizes [2, 2] stage "pp"
// CHECK: rt.schedule micro_batches 1 stacks [] counts [] bounds [0, 0] in_flight [1] loops {{\[\[}}array<i64: 1, 0, 0, 1, 0>]]
// CHECK: rt.param @w : tensor<7x4xf32> {axes = {{\[\[}}"tp"], []]
// CHECK-SAME: first_stage = 0
// CHECK: rt.group @tp axes ["tp"]
// CHECK-LABEL: rt.role @only
// CHECK: %[[W:.*]] = rt.load @w slot "value" : tensor<?x4xf32>
// CHECK: %[[R:.*]] = rt.reduce sum() over [4]() : tensor<3xf32> {
// CHECK: } finish {
// CHECK: math.rsqrt
// CHECK: %[[Y:.*]] = rt.map() : tensor<3x4xf32> {
// CHECK-NOT: math.rsqrt
// CHECK: rt.at %[[R]][
// CHECK: rt.contract "ac" %[[Y]], "bc" %[[W]] to "ab" : (tensor<3x4xf32>, tensor<?x4xf32>) -> tensor<3x?xf32>
// CHECK: rt.yield
// CHECK: backward 0
// CHECK: rt.scatter_rows %{{.*}} at %{{.*}} from %{{.*}}(%{{.*}}) : tensor<3x4xf32>, tensor<3xi64> -> tensor<?x4xf32>
// CHECK: rt.accumulate @w slot "grad"
// CHECK: update
// CHECK: rt.all_reduce sum %{{.*}} in @tp why "the norm is whole" : tensor<f32>
// A reduction over an axis of one rank is nothing.
// CHECK-NOT: rt.all_reduce

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#line = affine_map<(i) -> (i)>
parc.mesh ["tp", "dp"] sizes [2, 2] order ["tp", "dp"]
parc.param @w : tensor<7x4xf32> {sharding = #parc.sharding<[{"tp"}, {}]>}
parc.schedule "1f1b" micro_batches 1 layers [] counts [] bounds [0, 0]
parc.role @only stages [0] inputs ["tokens"] scalars ["lr"] results ["loss"] forward 0 {
^bb0(%tokens: tensor<3xi64>):
  %w = parc.load @w : tensor<?x4xf32>
  %x = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 2.0, 2.0], [0.0, 1.0, 0.0, 1.0]]> : tensor<3x4xf32>
  %zero = arith.constant 0.0 : f32
  %four = arith.constant 4.0 : f32
  %e = tensor.empty() : tensor<3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x4xf32>) outs(%f : tensor<3xf32>) {
  ^bb0(%a: f32, %s: f32):
    %q = arith.mulf %a, %a : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %root = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]}
      ins(%sum : tensor<3xf32>) outs(%e : tensor<3xf32>) {
  ^bb0(%a: f32, %s: f32):
    %m = arith.divf %a, %four : f32
    %t = math.rsqrt %m : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  %e2 = tensor.empty() : tensor<3x4xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %root : tensor<3x4xf32>, tensor<3xf32>) outs(%e2 : tensor<3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<3x4xf32>
  %n = parc.part_size ["tp"] of 7
  %e3 = tensor.empty(%n) : tensor<3x?xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<3x?xf32>) -> tensor<3x?xf32>
  %z = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%y, %w : tensor<3x4xf32>, tensor<?x4xf32>) outs(%f3 : tensor<3x?xf32>) -> tensor<3x?xf32>
  parc.observe "logits", %z : tensor<3x?xf32>
  parc.yield %y, %z : tensor<3x4xf32>, tensor<3x?xf32>
} backward 0 {
^bb0(%tokens: tensor<3xi64>, %y: tensor<3x4xf32>, %z: tensor<3x?xf32>):
  %zero = arith.constant 0.0 : f32
  %start = parc.part_start ["tp"] of 7
  %n = parc.part_size ["tp"] of 7
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(v, j, t) -> (t)>, affine_map<(v, j, t) -> (t, j)>, affine_map<(v, j, t) -> (v, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%tokens, %y : tensor<3xi64>, tensor<3x4xf32>) outs(%f : tensor<?x4xf32>) attrs = {parc.scatter} {
  ^bb0(%id: i64, %a: f32, %s: f32):
    %i = arith.index_cast %id : i64 to index
    %v = linalg.index 0 : index
    %r = arith.addi %v, %start : index
    %is = arith.cmpi eq, %i, %r : index
    %t = arith.select %is, %a, %zero : f32
    %u = arith.addf %s, %t : f32
    linalg.yield %u : f32
  } -> tensor<?x4xf32>
  parc.accumulate @w, %g : tensor<?x4xf32>
  %one = arith.constant dense<1.0> : tensor<f32>
  parc.yield %one : tensor<f32>
} update {
^bb0(%loss: tensor<f32>, %lr: tensor<f32>):
  %all = parc.all_reduce sum %loss over ["tp"] why "the norm is whole" : tensor<f32>
  %same = parc.all_reduce sum %all over ["pp"] why "nothing" : tensor<f32>
  parc.yield %same : tensor<f32>
}

// -----

// What is neither a sum, a maximum nor a minimum has no call.
parc.mesh ["tp"] sizes [1]
parc.param @w : tensor<4xf32>
parc.schedule "1f1b" micro_batches 1 layers [] counts [] bounds [0, 0]
parc.role @only stages [0] inputs [] scalars [] results ["loss"] forward 0 {
  %w = parc.load @w : tensor<4xf32>
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%one : f32) outs(%e : tensor<f32>) -> tensor<f32>
  // expected-error @below {{is a reduction that is no sum, maximum or minimum of a value}}
  %p = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%w : tensor<4xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %s: f32):
    %t = arith.mulf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  parc.yield %p : tensor<f32>
} backward 0 {
^bb0(%p: tensor<f32>):
  parc.yield %p : tensor<f32>
} update {
^bb0(%p: tensor<f32>):
  parc.yield %p : tensor<f32>
}
