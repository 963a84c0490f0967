// RUN: parc-opt %s --parc-overlap --parc-verify-schedule -split-input-file | FileCheck %s

// Two values of one bucket are one group. A start stands where its operands are
// made, a wait before the first reader; starts keep their order.

// CHECK-LABEL: parc.role @values
// CHECK: ^bb0(%[[X:.*]]: tensor<4xf64>):
// CHECK-NEXT: %[[P:.*]]:2 = parc.start stream "tp" : !parc.pending<tensor<4xf64>>, !parc.pending<tensor<4xf64>> {
// CHECK-NEXT: parc.all_reduce sum %[[X]] over ["tp"] why "a"
// CHECK-NEXT: parc.all_reduce sum %[[X]] over ["tp"] why "b"
// CHECK-NEXT: parc.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[Q:.*]] = parc.start stream "dp_tp"
// CHECK-NEXT: parc.all_gather %[[X]] dim 0 of 16 over ["dp.0", "dp.1", "tp"]
// CHECK: }
// CHECK-NEXT: %[[H:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT: %[[Y:.*]]:2 = parc.wait %[[P]]#0, %[[P]]#1
// CHECK-NEXT: arith.addf %[[H]], %[[Y]]#0
// One rank alone has nobody to wait for.
// CHECK-NEXT: parc.all_reduce sum %[[Y]]#1 over ["pp"]
// CHECK-NEXT: %[[Z:.*]] = parc.wait %[[Q]]
// CHECK-NEXT: parc.yield %{{.*}}, %[[Z]]
// CHECK-NOT: bucket
parc.mesh ["tp", "dp.0", "dp.1", "pp"] sizes [2, 2, 2, 1]
parc.role @values stages [0] inputs ["x"] scalars [] results [] forward 0 {
^bb0(%x: tensor<4xf64>):
  %h = arith.mulf %x, %x : tensor<4xf64>
  %a = parc.all_reduce sum %x over ["tp"] why "a" {bucket = 0 : i64} : tensor<4xf64>
  %b = parc.all_reduce sum %x over ["tp"] why "b" {bucket = 0 : i64} : tensor<4xf64>
  %y = arith.addf %h, %a : tensor<4xf64>
  %alone = parc.all_reduce sum %b over ["pp"] why "" : tensor<4xf64>
  %z = parc.all_gather %x dim 0 of 16 over ["dp.0", "dp.1", "tp"] why "" : tensor<4xf64> -> tensor<16xf64>
  parc.yield %y, %z : tensor<4xf64>, tensor<16xf64>
} backward 0 {
^bb0(%x: tensor<4xf64>, %s: tensor<4xf64>, %t: tensor<16xf64>):
  parc.yield
} update {
  parc.yield
}

// -----

// Gradients that the update sums over dp and then over tp: dp in the last
// backward pass, a layer's at its end, those outside where they are final;
// over tp one group of all layers on the same stream.

// CHECK-LABEL: parc.role @gradients
// CHECK: backward
// CHECK: parc.accumulate @last
// CHECK-NEXT: parc.last_micro {
// CHECK-NEXT: parc.start stream "dp" {
// CHECK-NEXT: %[[L:.*]] = parc.load @last slot "grad"
// CHECK-NEXT: %[[S:.*]] = parc.reduce_scatter sum %[[L]] dim 0 of 4 over ["dp"]
// CHECK-NEXT: parc.store @last, %[[S]] slot "reduced"
// CHECK-NEXT: parc.yield
// CHECK-NEXT: }
// CHECK-NEXT: parc.yield
// CHECK: parc.stack @layers 0 to 2 reverse
// CHECK: parc.accumulate @w
// CHECK-NEXT: parc.last_micro {
// CHECK-NEXT: parc.start stream "dp" {
// CHECK-NEXT: parc.load @w slot "grad" : tensor<2x2xf64>
// CHECK-NEXT: tensor.collapse_shape
// CHECK-NEXT: parc.reduce_scatter sum %{{.*}} dim 0 of 4 over ["dp"]
// CHECK-NEXT: parc.store @w, %{{.*}} slot "reduced"
// CHECK: update
// CHECK-NEXT: parc.start stream "dp" {
// CHECK-NEXT: parc.load @last slot "reduced" : tensor<2xf64>
// CHECK-NEXT: parc.all_reduce sum %{{.*}} over ["tp"]
// CHECK-NEXT: parc.store @last, %{{.*}} slot "reduced"
// CHECK-NEXT: parc.stack @layers 0 to 2
// CHECK: parc.load @w slot "reduced" : tensor<2xf64>
// CHECK-NEXT: parc.all_reduce sum %{{.*}} over ["tp"]
// CHECK-NEXT: parc.store @w, %{{.*}} slot "reduced"
// CHECK: parc.wait stream "dp"
// CHECK-NEXT: %[[G:.*]] = parc.load @last slot "reduced" : tensor<2xf64>
// What another op changes in between stays, and so does what stages add up.
// CHECK: parc.load @other slot "grad"
// CHECK: arith.negf
// CHECK: parc.all_reduce sum %{{.*}} over ["dp"]
// CHECK: parc.load @tied slot "grad"
// CHECK: parc.all_reduce sum %{{.*}} over ["pp"] stages [0, 1]
// CHECK: parc.stack @layers 0 to 2
// CHECK-NOT: parc.reduce_scatter
// CHECK: parc.yield %[[G]]
parc.mesh ["tp", "dp", "pp"] sizes [2, 2, 2]
parc.param @w : tensor<2x2xf64> layers 2 {sharding = #parc.sharding<[{}, {}]>, slot_shardings = {state = #parc.sharding<[{}, {}], flat {"dp"}>}}
parc.param @last : tensor<4xf64> {sharding = #parc.sharding<[{}]>, slot_shardings = {state = #parc.sharding<[{}], flat {"dp"}>}}
parc.param @other : tensor<4xf64>
parc.param @tied : tensor<4xf64>
parc.schedule "1f1b" micro_batches 4 layers [@layers] counts [2] bounds [0, 1, 2]
parc.role @gradients stages [0, 1] inputs ["x"] scalars [] results ["r"] attributes {input_shardings = [#parc.sharding<[{"dp", "mb"}]>]} forward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.accumulate @last, %x : tensor<4xf64>
  parc.accumulate @other, %x : tensor<4xf64>
  parc.accumulate @tied, %x : tensor<4xf64>
  %m = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf64> into tensor<2x2xf64>
  parc.stack @layers 0 to 2 reverse : () -> () {
  ^bb0(%layer: index):
    parc.accumulate @w, %m : tensor<2x2xf64>
    parc.yield
  }
  parc.yield
} update {
  %g = parc.load @last slot "grad" : tensor<4xf64>
  %s = parc.reduce_scatter sum %g dim 0 of 4 over ["dp"] why "" : tensor<4xf64> -> tensor<2xf64>
  %t = parc.all_reduce sum %s over ["tp"] why "" : tensor<2xf64>
  parc.store @last, %t slot "reduced" : tensor<2xf64>
  %h = parc.load @other slot "grad" : tensor<4xf64>
  %n = arith.negf %h : tensor<4xf64>
  %o = parc.all_reduce sum %n over ["dp"] why "" : tensor<4xf64>
  parc.store @other, %o slot "grad" : tensor<4xf64>
  %i = parc.load @tied slot "grad" : tensor<4xf64>
  %j = parc.all_reduce sum %i over ["pp"] stages [0, 1] why "" : tensor<4xf64>
  %k = parc.all_reduce sum %j over ["dp"] why "" : tensor<4xf64>
  parc.store @tied, %k slot "grad" : tensor<4xf64>
  %all = parc.stack @layers 0 to 2 : () -> !parc.layers<tensor<2xf64>> {
  ^bb0(%layer: index):
    %gw = parc.load @w slot "grad" : tensor<2x2xf64>
    %list = tensor.collapse_shape %gw [[0, 1]] : tensor<2x2xf64> into tensor<4xf64>
    %sw = parc.reduce_scatter sum %list dim 0 of 4 over ["dp"] why "" : tensor<4xf64> -> tensor<2xf64>
    %tw = parc.all_reduce sum %sw over ["tp"] why "" : tensor<2xf64>
    parc.yield %tw : tensor<2xf64>
  }
  parc.stack @layers 0 to 2 each(%all) : (!parc.layers<tensor<2xf64>>) -> () {
  ^bb0(%layer: index, %tw: tensor<2xf64>):
    parc.store @w, %tw slot "reduced" : tensor<2xf64>
    parc.yield
  }
  parc.yield %t : tensor<2xf64>
}

// -----

// A layer's parameters are gathered a layer ahead; what is scattered and
// accumulated, the stream accumulates.

// CHECK-LABEL: parc.role @layers_of_parts
// CHECK: parc.stack @layers 0 to 2
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: tensor<4xf64>):
// CHECK-NEXT: %[[P:.*]] = parc.start stream "dp" ahead : !parc.pending<tensor<4xf64>> {
// CHECK-NEXT: %[[W:.*]] = parc.load @w : tensor<2xf64>
// CHECK-NEXT: %[[G:.*]] = parc.all_gather %[[W]] dim 0 of 4 over ["dp"]
// CHECK-NEXT: parc.yield %[[G]]
// CHECK-NEXT: }
// CHECK-NEXT: arith.negf
// CHECK-NEXT: parc.wait %[[P]]
// CHECK: backward
// CHECK: parc.start stream "dp" {
// CHECK-NEXT: %[[S:.*]] = parc.reduce_scatter
// CHECK-NEXT: parc.accumulate @w, %[[S]] : tensor<2xf64>
// CHECK-NEXT: parc.yield
// CHECK-NEXT: }
// CHECK-NEXT: parc.yield
// CHECK: update
// CHECK-NEXT: parc.wait stream "dp"
parc.mesh ["dp"] sizes [2]
parc.param @w : tensor<4xf64> layers 2 {sharding = #parc.sharding<[{}]>, slot_shardings = {value = #parc.sharding<[{}], flat {"dp"}>, grad = #parc.sharding<[{}], flat {"dp"}>}}
parc.schedule "1f1b" micro_batches 4 layers [@layers] counts [2] bounds [0, 2]
parc.role @layers_of_parts stages [0] inputs ["x"] scalars [] results [] attributes {input_shardings = [#parc.sharding<[{"dp", "mb"}]>]} forward 0 {
^bb0(%x: tensor<4xf64>):
  %y = parc.stack @layers 0 to 2 carry(%x) : (tensor<4xf64>) -> tensor<4xf64> {
  ^bb0(%layer: index, %h: tensor<4xf64>):
    %n = arith.negf %h : tensor<4xf64>
    %w = parc.load @w : tensor<2xf64>
    %g = parc.all_gather %w dim 0 of 4 over ["dp"] why "" : tensor<2xf64> -> tensor<4xf64>
    %o = arith.addf %n, %g : tensor<4xf64>
    parc.yield %o : tensor<4xf64>
  }
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  parc.stack @layers 0 to 2 reverse : () -> () {
  ^bb0(%layer: index):
    %s = parc.reduce_scatter sum %x dim 0 of 4 over ["dp"] why "" : tensor<4xf64> -> tensor<2xf64>
    parc.accumulate @w, %s : tensor<2xf64>
    parc.yield
  }
  parc.yield
} update {
  parc.stack @layers 0 to 2 : () -> () {
  ^bb0(%layer: index):
    %g = parc.load @w slot "grad" : tensor<2xf64>
    parc.store @w, %g : tensor<2xf64>
    parc.yield
  }
  parc.yield
}

// -----

// A weight's gradient, which nothing waits for, is computed while the sum of
// the input's gradients is under way.

// CHECK-LABEL: parc.role @work
// CHECK: backward
// CHECK: %[[P:.*]] = parc.start stream "tp"
// CHECK-NEXT: parc.all_reduce
// CHECK-NEXT: parc.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[D:.*]] = arith.mulf %[[X:.*]], %[[X]]
// CHECK-NEXT: parc.accumulate @w, %[[D]]
// CHECK-NEXT: parc.wait %[[P]]
parc.mesh ["tp"] sizes [2]
parc.param @w : tensor<4xf64>
parc.role @work stages [0] inputs ["x"] scalars [] results [] forward 0 {
^bb0(%x: tensor<4xf64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<4xf64>):
  %dw = arith.mulf %x, %x : tensor<4xf64>
  parc.accumulate @w, %dw : tensor<4xf64>
  %dx = arith.negf %x : tensor<4xf64>
  %sum = parc.all_reduce sum %dx over ["tp"] why "" : tensor<4xf64>
  parc.observe "dx", %sum : tensor<4xf64>
  parc.yield
} update {
  parc.yield
}
