// RUN: parc-opt %s --parc-verify-local -split-input-file -verify-diagnostics

parc.mesh ["tp"] sizes [2]
parc.param @w : tensor<9x4xf64> {sharding = #parc.sharding<[{"tp"}, {}]>}
// expected-remark @+1 {{the local phase does not hold}}
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  // expected-error @+1 {{expected parameter @w as 'tensor<?x4xf64>', got 'tensor<9x4xf64>'}}
  %w = parc.load @w : tensor<9x4xf64>
  %zero = arith.constant dense<0.0> : tensor<f64>
  parc.yield %zero, %zero : tensor<f64>, tensor<f64>
} update {
}

// -----

parc.mesh ["tp"] sizes [2]
// expected-remark @+1 {{the local phase does not hold}}
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  %zero = arith.constant dense<0.0> : tensor<f64>
  // expected-error @+1 {{'parc.all_reduce' communicates over micro-batches, which follow each other in time}}
  %r = parc.all_reduce sum %zero over ["mb"] why "" : tensor<f64>
  parc.yield %r, %zero : tensor<f64>, tensor<f64>
} update {
}

// -----

parc.mesh ["tp"] sizes [2]
// expected-remark @+1 {{the local phase does not hold}}
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  %zero = arith.constant dense<0.0> : tensor<f64>
  // expected-error @+1 {{'parc.all_reduce' communicates over axis 'dp', which the mesh does not have}}
  %r = parc.all_reduce sum %zero over ["dp"] why "" : tensor<f64>
  parc.yield %r, %zero : tensor<f64>, tensor<f64>
} update {
}

// -----

parc.mesh ["tp"] sizes [2]
// expected-remark @+1 {{the local phase does not hold}}
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  // expected-error @+1 {{'arith.constant' expected a local type, got 'tensor<f64, #parc.sharding<[]>>'}}
  %zero = arith.constant dense<0.0> : tensor<f64, #parc.sharding<[]>>
  parc.yield %zero, %zero : tensor<f64, #parc.sharding<[]>>, tensor<f64, #parc.sharding<[]>>
} update {
}
