// RUN: parc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected one size an axis, got 2 axes and 1 sizes}}
parc.mesh ["tp", "pp"] sizes [2]

// -----

// expected-error @+1 {{names axis 'tp' twice}}
parc.mesh ["tp", "tp"] sizes [2, 2]

// -----

// expected-error @+1 {{expected a size of at least 1 for axis 'pp', got 0}}
parc.mesh ["tp", "pp"] sizes [2, 0]

// -----

// expected-error @+1 {{has more than 1048576 devices}}
parc.mesh ["tp", "pp", "dp"] sizes [9223372036854775807, 9223372036854775807, 4]

// -----

// expected-error @+1 {{names axis 'mb', which counts micro-batches and not devices}}
parc.mesh ["mb"] sizes [2]

// -----

// expected-error @+1 {{expected an order of all 2 axes, got 1}}
parc.mesh ["tp", "pp"] sizes [2, 2] order ["pp"]

// -----

// expected-error @+1 {{orders axis 'dp', which it does not have}}
parc.mesh ["tp"] sizes [2] order ["dp"]

// -----

// expected-error @+1 {{expected a tensor of floats, got 'tensor<4xi32>'}}
parc.param @w : tensor<4xi32>

// -----

// expected-error @+1 {{expected at least 1 layer, got 0}}
parc.param @w : tensor<4xf32> layers 0

// -----

// expected-error @+1 {{has both 'std' and 'value'; remove one}}
parc.param @w : tensor<4xf32> {std = 0.1 : f64, value = 0.0 : f64}

// -----

// expected-error @+1 {{expected a sharding of 1 dimensions, got 2}}
parc.param @w : tensor<4xf32> {sharding = #parc.sharding<[{}, {}]>}

// -----

// expected-error @+1 {{cannot be partial; a parameter is stored whole or in parts}}
parc.param @w : tensor<4xf32> {sharding = #parc.sharding<[{}], partial sum {"tp"}>}

// -----

// expected-error @+1 {{lies at 3 with size 4 in dimension 0 of a checkpoint tensor of size 6}}
parc.param @w : tensor<4xf32> {checkpoint = #parc.checkpoint<"w" shape [6] offsets [3]>}

// -----

// expected-error @+1 {{expected a checkpoint box of 1 dimensions, got 2 and 1 offsets}}
parc.param @w : tensor<4xf32> {checkpoint = #parc.checkpoint<"w" shape [6, 6] offsets [3]>}

// -----

// expected-error @+1 {{axis 'tp' splits dimension 0 and dimension 1; remove one}}
parc.param @w : tensor<4x4xf32> {sharding = #parc.sharding<[{"tp"}, {"tp"}]>}

// -----

// expected-error @+1 {{axis 'tp' splits one dimension twice; remove one}}
parc.param @w : tensor<4x4xf32> {sharding = #parc.sharding<[{"tp", "tp"}, {}]>}

// -----

// expected-error @+1 {{expected a grain of at least 1, got 0}}
parc.param @w : tensor<4x4xf32> {sharding = #parc.sharding<[{"tp" : 0}, {}]>}

// -----

// expected-error @+1 {{axis 'tp' cuts the flat part and also splits a dimension, is partial, or is listed twice; remove one}}
parc.param @w : tensor<4x4xf32> {slot_shardings = {state = #parc.sharding<[{"tp"}, {}], flat {"tp"}>}}

// -----

// expected-error @+1 {{cannot be used in flat parts; 'slot_shardings' says how a slot is stored}}
parc.param @w : tensor<4x4xf32> {sharding = #parc.sharding<[{}, {}], flat {"dp"}>}

// -----

// expected-error @+1 {{expected a sharding of 2 dimensions, nothing partial, for slot 'state'}}
parc.param @w : tensor<4x4xf32> {slot_shardings = {state = #parc.sharding<[{}], flat {"dp"}>}}

// -----

// expected-error @+1 {{expected 'grad' or 'state' in 'slot_types', got 'm'}}
parc.param @w : tensor<4xbf16> {slot_types = {m = f32}}

// -----

// expected-error @+1 {{expected a float at least as wide as 'f32' for 'grad' in 'slot_types', got bf16}}
parc.param @w : tensor<4xf32> {slot_types = {grad = bf16}}

// -----

// expected-error @+1 {{expected a float at least as wide as 'bf16' for 'state' in 'slot_types', got i32}}
parc.param @w : tensor<4xbf16> {slot_types = {state = i32}}

// -----

parc.param @w : tensor<4xbf16> {slot_types = {grad = f32, state = f32}}
parc.step @train inputs ["i"] micro {
^bb0(%i: tensor<2xi64>):
  %w = parc.load @w : tensor<4xbf16>
  // expected-error @+1 {{expected elements of 'f32', as slot 'grad' of parameter @w has them, got 'bf16'}}
  parc.accumulate @w, %w : tensor<4xbf16>
  %loss = arith.constant dense<0.0> : tensor<f32>
  parc.yield %loss, %loss : tensor<f32>, tensor<f32>
} update {
}

// -----

// expected-error @+1 {{axis 'tp' is partial and also splits a dimension}}
parc.param @w : tensor<4x4xf32> {sharding = #parc.sharding<[{"tp"}, {}], partial sum {"tp"}>}

// -----

parc.param @w : tensor<4xf32> layers 2
parc.step @s inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  // expected-error @+1 {{uses parameter @w, which each layer has one of, outside a stack}}
  %w = parc.load @w : tensor<4xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  parc.yield %z, %z : tensor<f32>, tensor<f32>
} update {
}

// -----

parc.param @w : tensor<4xf32>
parc.step @s inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  // expected-error @+1 {{expected the shape of parameter @w, 'tensor<4xf32>', got 'tensor<5xf32>'}}
  %w = parc.load @w : tensor<5xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  parc.yield %z, %z : tensor<f32>, tensor<f32>
} update {
}

// -----

parc.step @s inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  // expected-error @+1 {{names parameter @nothing, which is not declared}}
  %w = parc.load @nothing : tensor<5xf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  parc.yield %z, %z : tensor<f32>, tensor<f32>
} update {
}

// -----

// expected-error @+1 {{expected one micro argument an input, got 1 for 2 inputs}}
parc.step @s inputs ["x", "y"] micro {
^bb0(%x: tensor<2xi64>):
  %z = arith.constant dense<0.0> : tensor<f32>
  parc.yield %z, %z : tensor<f32>, tensor<f32>
} update {
}

// -----

// expected-error @+1 {{expected input "x" to be a tensor whose first dimension is the batch, got 'tensor<i64>'}}
parc.step @s inputs ["x"] micro {
^bb0(%x: tensor<i64>):
  %z = arith.constant dense<0.0> : tensor<f32>
  parc.yield %z, %z : tensor<f32>, tensor<f32>
} update {
}

// -----

// expected-error @+1 {{expected the micro region to yield the summed loss and the number of valid tokens}}
parc.step @s inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  %z = arith.constant dense<0.0> : tensor<f32>
  parc.yield %z : tensor<f32>
} update {
}

// -----

// expected-error @+1 {{expected 2 sums and 1 scalars as update arguments, got 2}}
parc.step @s inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  %z = arith.constant dense<0.0> : tensor<f32>
  parc.yield %z, %z : tensor<f32>, tensor<f32>
} scalars ["lr"] update {
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  parc.yield
}

// -----

// expected-error @+1 {{expected the update region to yield 1 results, got 0}}
parc.step @s inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  %z = arith.constant dense<0.0> : tensor<f32>
  parc.yield %z, %z : tensor<f32>, tensor<f32>
} results ["loss"] update {
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  parc.yield
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{expected a range of layers, got 3 to 1}}
  %y = parc.stack @l 3 to 1 carry(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%i: index, %h: tensor<2xf32>):
    parc.yield %h : tensor<2xf32>
  }
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{expected a body of 2 arguments (layer, carried, each), got 1}}
  %y = parc.stack @l 0 to 1 carry(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%h: tensor<2xf32>):
    parc.yield %h : tensor<2xf32>
  }
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{carries 'tensor<2xf32>' into an argument of 'tensor<3xf32>'}}
  %y = parc.stack @l 0 to 1 carry(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%i: index, %h: tensor<3xf32>):
    parc.yield %h : tensor<3xf32>
  }
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{expected the body to yield 1 values (carried, reduced, each)}}
  %y = parc.stack @l 0 to 1 carry(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%i: index, %h: tensor<2xf32>):
    parc.yield
  }
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{yields 'tensor<2xf32>' for a result of type 'tensor<2xf32>'}}
  %y:2 = parc.stack @l 0 to 1 carry(%x) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  ^bb0(%i: index, %h: tensor<2xf32>):
    parc.yield %h, %h : tensor<2xf32>, tensor<2xf32>
  }
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{cannot ask for a partial value}}
  %y = parc.constraint %x : tensor<2xf32> to #parc.sharding<[{}], partial sum {"tp"}>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{expected a sharding on both types}}
  %y = parc.reshard %x why "" : tensor<2xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{expected the same shape and element type, got 'tensor<2xf32>' and 'tensor<3xf32>'}}
  %y = parc.reshard %x why "" : tensor<2xf32> -> tensor<3xf32>
  return
}

// -----

// expected-error @+1 {{expected a sharding of 1 dimensions, got 2}}
func.func private @f(tensor<2xf32, #parc.sharding<[{}, {}]>>)

// -----

// expected-error @+1 {{expected at least 1 micro-batch, got 0}}
parc.schedule "1f1b" micro_batches 0 layers [@l] counts [2] bounds [0, 2]

// -----

// expected-error @+1 {{expected one count a stack, got 1 and 2}}
parc.schedule "1f1b" micro_batches 1 layers [@l] counts [2, 3] bounds [0, 2]

// -----

// expected-error @+1 {{expected rising bounds, got 2 before 1}}
parc.schedule "1f1b" micro_batches 1 layers [@l] counts [2] bounds [0, 2, 1]

// -----

// expected-error @+1 {{expected at least one stage}}
parc.role @only stages [] inputs [] scalars [] results [] forward 0 {
  parc.yield
} backward 0 {
  parc.yield
} update {
  parc.yield
}

// -----

// expected-error @+1 {{expected forward to yield at least 1 values to send}}
parc.role @only stages [0] inputs [] scalars [] results [] forward 1 {
  parc.yield
} backward 0 {
  parc.yield
} update {
  parc.yield
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{expected two dimensions, got 1 both to gather and to split}}
  %y = parc.all_to_all %x gather 1 of 6 split 1 of 2 over ["tp"] why "" : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{expected dimensions below 2, the tensor's rank, got 2}}
  %y = parc.all_to_all %x gather 1 of 6 split 2 of 2 over ["tp"] why "" : tensor<2x3xf32> -> tensor<1x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x4xf32>, %n: tensor<2x1xi64>) {
  // expected-error @+1 {{expected rows of dimensions 0 and 1, got 1 and 2}}
  %y = parc.all_to_all %x rows 6 used(%n, %n : tensor<2x1xi64>, tensor<2x1xi64>) gather 1 of 6 split 2 of 4 over ["tp"] why "" : tensor<2x3x4xf32> -> tensor<2x6x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %n: tensor<2x1xi64>) {
  // expected-error @+1 {{expected the rows that are used before and after, and how many they are in all}}
  %y = parc.all_to_all %x rows 6 used(%n : tensor<2x1xi64>) gather 1 of 6 split 0 of 2 over ["tp"] why "" : tensor<2x3xf32> -> tensor<1x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{names axis 'dp' twice; an axis moves or stays}}
  %y = parc.all_to_all %x gather 1 of 6 outer ["dp"] split 0 of 2 below ["dp"] over ["tp"] why "" : tensor<2x3xf32> -> tensor<1x6xf32>
  return
}
