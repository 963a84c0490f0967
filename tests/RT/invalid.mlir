// RUN: parc-opt %s -verify-diagnostics -split-input-file

// expected-error @below {{expected one size an axis, got 1 for 2}}
rt.mesh ["tp", "dp"] sizes [2] stage "pp"

// -----

// expected-error @below {{expected axes, grains, full and offsets of 2 dimensions}}
rt.param @w : tensor<2x2xf32> {axes = [[]], checkpoint = "w", first_stage = 0 : i64, full = array<i64: 2, 2>, grains = array<i64: 1, 1>, layer_base = 0 : i64, layer_stride = 1 : i64, offsets = array<i64: 0, 0>}

// -----

// expected-error @below {{expected loops of a count and pairs, got array<i64: 1, 0>}}
rt.schedule micro_batches 1 stacks [] counts [] bounds [0, 0] in_flight [1] loops [[array<i64: 1, 0>]]

// -----

// expected-error @below {{expected bounds, in_flight and loops of as many stages, got 1, 2 and 1}}
rt.schedule micro_batches 1 stacks [] counts [] bounds [0, 0] in_flight [1, 1] loops [[array<i64: 1, 0, 0>]]

// -----

func.func @map(%x: tensor<4x4xf32>) {
  // expected-error @below {{expected 2 indices and 0 values as arguments, got 1}}
  %y = rt.map() : tensor<4x4xf32> {
  ^bb0(%i: index):
    %v = rt.at %x[%i, %i] : tensor<4x4xf32>
    rt.yield %v : f32
  }
  return
}

// -----

func.func @extents(%x: tensor<?xf32>) {
  // expected-error @below {{expected 1 extents for 'tensor<?xf32>', got 0}}
  %y = rt.map() : tensor<?xf32> {
  ^bb0(%i: index):
    %v = rt.at %x[%i] : tensor<?xf32>
    rt.yield %v : f32
  }
  return
}

// -----

func.func @at(%x: tensor<4x4xf32>) {
  %y = rt.map() : tensor<4xf32> {
  ^bb0(%i: index):
    // expected-error @below {{expected 2 indices, got 1}}
    %v = rt.at %x[%i] : tensor<4x4xf32>
    rt.yield %v : f32
  }
  return
}

// -----

func.func @contract(%a: tensor<4x2xf32>, %b: tensor<2x3xf32>) {
  // expected-error @below {{expected letter 'a' in two operands, got it in 'ab' only}}
  %c = rt.contract "ab" %a, "bc" %b to "c" : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @twice(%a: tensor<4x4xf32>, %b: tensor<4x3xf32>) {
  // expected-error @below {{has letter 'a' twice in 'aa'}}
  %c = rt.contract "aa" %a, "ab" %b to "b" : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @stack(%x: tensor<4xf32>) {
  // expected-error @below {{expected the body to yield one value a result}}
  %y = rt.stack "layers" 0 to 3 reduce 0 carry(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%layer: index, %h: tensor<4xf32>):
    rt.yield
  }
  return
}
