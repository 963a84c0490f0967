// RUN: parc-opt %s --parc-shard -split-input-file -verify-diagnostics

parc.mesh ["tp"] sizes [4]
// expected-error @+1 {{more parts than units: dimension 0 of parameter 'w', of size 3, has 3 units, expected at least 4 for tp=4; make the axis at most 3}}
parc.param @w : tensor<3x8xf64> {sharding = #parc.sharding<[{"tp"}, {}]>}

// -----

parc.mesh ["tp"] sizes [2]
// expected-error @+1 {{unknown axis 'pt' in a sharding; the mesh has no such axis}}
parc.param @w : tensor<3x8xf64> {sharding = #parc.sharding<[{"pt"}, {}]>}

// -----

parc.mesh ["tp"] sizes [2]
parc.param @w : tensor<4x8xf64> {sharding = #parc.sharding<[{"tp"}, {}]>}
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<4xi64>):
  %w = parc.load @w : tensor<4x8xf64>
  // expected-error @+1 {{conflicting shardings of one value: axis 'tp' splits dimension 0 and dimension 1; remove one}}
  %c = parc.constraint %w : tensor<4x8xf64> to #parc.sharding<[{}, {"tp"}]>
  %zero = arith.constant dense<0.0> : tensor<f64>
  parc.yield %zero, %zero : tensor<f64>, tensor<f64>
} update {
}

// -----

parc.mesh ["tp"] sizes [2]
parc.param @w : tensor<4x8xf64>
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<4xi64>):
  %w = parc.load @w : tensor<4x8xf64>
  // expected-error @+1 {{'tensor.pad' has no sharding rule; give the op ShardableOpInterface or a decomposition}}
  %p = tensor.pad %w low[0, 0] high[1, 0] {
  ^bb1(%i: index, %j: index):
    %c = arith.constant 0.0 : f64
    tensor.yield %c : f64
  } : tensor<4x8xf64> to tensor<5x8xf64>
  %zero = arith.constant dense<0.0> : tensor<f64>
  parc.yield %zero, %zero : tensor<f64>, tensor<f64>
} update {
}
