// RUN: parc-opt %s | parc-opt | FileCheck %s
// RUN: parc-opt %s --mlir-print-op-generic | parc-opt | FileCheck %s

// CHECK: parc.mesh ["tp", "pp"] sizes [2, 3] order ["pp", "tp"]
parc.mesh ["tp", "pp"] sizes [2, 3] order ["pp", "tp"]
// CHECK: parc.param @w : tensor<4x6xf32> layers 3 {checkpoint = #parc.checkpoint<"h.{}.w" shape[4, 18] offsets[0, 6]>, sharding = #parc.sharding<[{"tp" : 2}, {}]>, std = 2.000000e-02 : f64}
parc.param @w : tensor<4x6xf32> layers 3 {checkpoint = #parc.checkpoint<"h.{}.w" shape [4, 18] offsets [0, 6]>, sharding = #parc.sharding<[{"tp" : 2}, {}]>, std = 0.02 : f64}

// CHECK: parc.param @v : tensor<4x6xf32> {slot_shardings = {state = #parc.sharding<[{"tp"}, {}], flat {"dp", "cp"}>}}
parc.param @v : tensor<4x6xf32> {slot_shardings = {state = #parc.sharding<[{"tp"}, {}], flat {"dp", "cp"}>}}

// CHECK-LABEL: parc.step @train inputs ["x"] micro {
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  %a = arith.constant dense<1.0> : tensor<4x6xf32>
  // CHECK: parc.constraint %{{.*}} : tensor<4x6xf32> to #parc.sharding<[{"tp"}, {}]>
  %c = parc.constraint %a : tensor<4x6xf32> to #parc.sharding<[{"tp"}, {}]>
  // CHECK: parc.stack @layers 0 to 3 reverse reduce 1 carry(%{{.*}}) : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, !parc.layers<tensor<4x6xf32>>)
  %r:3 = parc.stack @layers 0 to 3 reverse reduce 1 carry(%c) : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, !parc.layers<tensor<4x6xf32>>) {
  ^bb0(%layer: index, %h: tensor<4x6xf32>):
    // CHECK: parc.load @w slot "m" : tensor<4x6xf32>
    %w = parc.load @w slot "m" : tensor<4x6xf32>
    // CHECK: parc.accumulate @w, %{{.*}} : tensor<4x6xf32>
    parc.accumulate @w, %w : tensor<4x6xf32>
    parc.yield %h, %w, %w : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
  }
  // CHECK: parc.observe "r", %{{.*}} : tensor<4x6xf32>
  parc.observe "r", %r#0 : tensor<4x6xf32>
  // CHECK: parc.part_start ["tp"] of 9 grain 3
  %s = parc.part_start ["tp"] of 9 grain 3
  // CHECK: parc.part_size ["tp", "mb"] of 9
  %n = parc.part_size ["tp", "mb"] of 9
  // CHECK: %[[LIST:.*]] = tensor.empty
  %list = tensor.empty(%n) : tensor<?xf32>
  // CHECK: parc.slice %[[LIST]] dim 0 of 0 as %{{.*}} over ["dp"] : tensor<?xf32> -> tensor<?xf32>
  %piece = parc.slice %list dim 0 of 0 as %n over ["dp"] : tensor<?xf32> -> tensor<?xf32>
  // CHECK: parc.reduce_scatter sum %[[LIST]] dim 0 of 0 as %{{.*}} over ["dp"] why "because" : tensor<?xf32> -> tensor<?xf32>
  %sum = parc.reduce_scatter sum %list dim 0 of 0 as %n over ["dp"] why "because" : tensor<?xf32> -> tensor<?xf32>
  // CHECK: parc.all_gather %{{.*}} dim 0 of 0 as %{{.*}} over ["dp"] why "because" : tensor<?xf32> -> tensor<?xf32>
  %all = parc.all_gather %sum dim 0 of 0 as %n over ["dp"] why "because" : tensor<?xf32> -> tensor<?xf32>
  // CHECK: parc.all_reduce max %{{.*}} over ["tp"] why "because" : tensor<4x6xf32>
  %1 = parc.all_reduce max %a over ["tp"] why "because" : tensor<4x6xf32>
  // CHECK: parc.all_reduce sum %{{.*}} over ["pp"] stages [0, 2] why "tied" : tensor<4x6xf32>
  %2 = parc.all_reduce sum %a over ["pp"] stages [0, 2] why "tied" : tensor<4x6xf32>
  // CHECK: parc.slice %{{.*}} dim 1 of 6 over ["tp"] : tensor<4x6xf32> -> tensor<4x3xf32>
  %3 = parc.slice %a dim 1 of 6 over ["tp"] : tensor<4x6xf32> -> tensor<4x3xf32>
  // CHECK: parc.all_gather %{{.*}} dim 1 of 6 grain 3 over ["tp"] outer ["pp"] why "" : tensor<4x3xf32> -> tensor<4x6xf32>
  %4 = parc.all_gather %3 dim 1 of 6 grain 3 over ["tp"] outer ["pp"] why "" : tensor<4x3xf32> -> tensor<4x6xf32>
  // CHECK: parc.reduce_scatter sum %{{.*}} dim 1 of 6 over ["tp"] why "" : tensor<4x6xf32> -> tensor<4x3xf32>
  %5 = parc.reduce_scatter sum %4 dim 1 of 6 over ["tp"] why "" : tensor<4x6xf32> -> tensor<4x3xf32>
  // CHECK: parc.all_to_all %{{.*}} gather 1 of 6 split 0 of 4 by 2 over ["tp"] why "" : tensor<4x3xf32> -> tensor<2x6xf32>
  %6 = parc.all_to_all %5 gather 1 of 6 split 0 of 4 by 2 over ["tp"] why "" : tensor<4x3xf32> -> tensor<2x6xf32>
  // CHECK: parc.all_to_all %{{.*}} gather 1 of 18 grain 3 outer ["dp"] split 0 of 16 by 2 below ["pp"] over ["tp"] why "" : tensor<4x3xf32> -> tensor<2x6xf32>
  %8 = parc.all_to_all %5 gather 1 of 18 grain 3 outer ["dp"] split 0 of 16 by 2 below ["pp"] over ["tp"] why "" : tensor<4x3xf32> -> tensor<2x6xf32>
  %before = arith.constant dense<1> : tensor<4x1xi64>
  %after = arith.constant dense<1> : tensor<2x2xi64>
  // CHECK: parc.all_to_all %{{.*}} rows 12 used(%{{.*}}, %{{.*}} : tensor<4x1xi64>, tensor<2x2xi64>) gather 1 of 6 split 0 of 4 over ["tp"] why "" : tensor<4x3xf32> -> tensor<2x6xf32>
  %rows = parc.all_to_all %5 rows 12 used(%before, %after : tensor<4x1xi64>, tensor<2x2xi64>) gather 1 of 6 split 0 of 4 over ["tp"] why "" : tensor<4x3xf32> -> tensor<2x6xf32>
  // CHECK: parc.shift %{{.*}} dim 1 of 6 grain 3 hops 1 over ["tp"] why "" : tensor<4x3xf32> -> tensor<4x3xf32>
  %shifted = parc.shift %3 dim 1 of 6 grain 3 hops 1 over ["tp"] why "" : tensor<4x3xf32> -> tensor<4x3xf32>
  // CHECK: parc.own %{{.*}} over ["tp"] : tensor<2x6xf32>
  %7 = parc.own %6 over ["tp"] : tensor<2x6xf32>
  %counts = arith.constant dense<2> : tensor<8xi64>
  // CHECK: parc.check_load %{{.*}} limit %{{.*}} : tensor<8xi64>
  %9 = parc.check_load %counts limit %s : tensor<8xi64>
  %zero = arith.constant dense<0.0> : tensor<f32>
  parc.yield %zero, %zero : tensor<f32>, tensor<f32>
  // CHECK: scalars ["lr"] results ["loss"] update {
} scalars ["lr"] results ["loss"] update {
^bb0(%loss: tensor<f32>, %count: tensor<f32>, %lr: tensor<f32>):
  parc.yield %loss : tensor<f32>
}

// CHECK: parc.schedule "1f1b" micro_batches 8 layers [@layers] counts [3] bounds [0, 2, 3]
parc.schedule "1f1b" micro_batches 8 layers [@layers] counts [3] bounds [0, 2, 3]

// CHECK: parc.role @only stages [0] inputs ["x"] scalars [] results [] forward 0 {
parc.role @only stages [0] inputs ["x"] scalars [] results [] forward 0 {
^bb0(%x: tensor<2xi64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<2xi64>):
  parc.yield
} update {
  parc.yield
}

parc.param @layered : tensor<4xf32> layers 2
parc.role @streams stages [0] inputs ["x"] scalars [] results [] forward 0 {
^bb0(%x: tensor<2xf32>):
  // CHECK: %[[P:.*]]:2 = parc.start stream "tp" : !parc.pending<tensor<2xf32>>, !parc.pending<tensor<2xf32>> {
  %p:2 = parc.start stream "tp" : !parc.pending<tensor<2xf32>>, !parc.pending<tensor<2xf32>> {
    %a = parc.all_reduce sum %x over ["tp"] why "" : tensor<2xf32>
    %b = parc.all_reduce max %x over ["tp"] why "" : tensor<2xf32>
    parc.yield %a, %b : tensor<2xf32>, tensor<2xf32>
  }
  // CHECK: parc.wait %[[P]]#0, %[[P]]#1 : !parc.pending<tensor<2xf32>>, !parc.pending<tensor<2xf32>> -> tensor<2xf32>, tensor<2xf32>
  %y:2 = parc.wait %p#0, %p#1 : !parc.pending<tensor<2xf32>>, !parc.pending<tensor<2xf32>> -> tensor<2xf32>, tensor<2xf32>
  parc.stack @layers 0 to 2 : () -> () {
  ^bb0(%layer: index):
    // CHECK: parc.start stream "dp" ahead : !parc.pending<tensor<8xf32>> {
    %q = parc.start stream "dp" ahead : !parc.pending<tensor<8xf32>> {
      %w = parc.load @layered : tensor<4xf32>
      %g = parc.all_gather %w dim 0 of 8 over ["dp"] why "" : tensor<4xf32> -> tensor<8xf32>
      parc.yield %g : tensor<8xf32>
    }
    %v = parc.wait %q : !parc.pending<tensor<8xf32>> -> tensor<8xf32>
    parc.yield
  }
  parc.yield
} backward 0 {
^bb0(%x: tensor<2xf32>):
  parc.stack @layers 0 to 2 reverse : () -> () {
  ^bb0(%layer: index):
    // CHECK: parc.last_micro {
    parc.last_micro {
      // CHECK-NEXT: parc.start stream "dp" {
      parc.start stream "dp" {
        %g = parc.load @layered slot "grad" : tensor<4xf32>
        %s = parc.all_reduce sum %g over ["dp"] why "" : tensor<4xf32>
        // CHECK: parc.store @layered, %{{.*}} slot "grad" : tensor<4xf32>
        parc.store @layered, %s slot "grad" : tensor<4xf32>
        parc.yield
      }
      parc.yield
    }
    parc.yield
  }
  parc.yield
} update {
  // CHECK: parc.wait stream "dp"
  parc.wait stream "dp"
  parc.yield
}
