// RUN: parc-opt %s --parc-verify-sharded -split-input-file -verify-diagnostics

// What a broken pass could leave behind, found at the op.

!whole = tensor<4xf64, #parc.sharding<[{}]>>
!partial = tensor<4xf64, #parc.sharding<[{}], partial sum {"tp"}>>
parc.mesh ["tp"] sizes [2]
parc.param @w : tensor<4xf64>
// expected-remark @+1 {{the sharded phase does not hold}}
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<4xi64, #parc.sharding<[{}]>>):
  %w = parc.load @w slot "grad" : !partial
  // expected-error @+1 {{'math.exp' reads a sum unfinished over {tp} in operand 0, in which it is not linear}}
  %e = math.exp %w : !partial
  %zero = arith.constant dense<0.0> : tensor<f64, #parc.sharding<[]>>
  parc.yield %zero, %zero : tensor<f64, #parc.sharding<[]>>, tensor<f64, #parc.sharding<[]>>
} update {
}

// -----

!rows = tensor<4x2xf64, #parc.sharding<[{"tp"}, {}]>>
!columns = tensor<4x2xf64, #parc.sharding<[{}, {"tp"}]>>
!out = tensor<4x2xf64, #parc.sharding<[{"tp"}, {}]>>
parc.mesh ["tp"] sizes [2]
parc.param @w : tensor<4x2xf64>
// expected-remark @+1 {{the sharded phase does not hold}}
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<4xi64, #parc.sharding<[{}]>>):
  %a = parc.load @w : !rows
  %b = parc.load @w : !columns
  // expected-error @+1 {{'linalg.add' expected dimension 0 of its operand 1 split over {tp}, got {}}}
  %s = linalg.add ins(%a, %b : !rows, !columns) outs(%a : !rows) -> !out
  %zero = arith.constant dense<0.0> : tensor<f64, #parc.sharding<[]>>
  parc.yield %zero, %zero : tensor<f64, #parc.sharding<[]>>, tensor<f64, #parc.sharding<[]>>
} update {
}

// -----

!in = tensor<4x2xf64, #parc.sharding<[{}, {"tp"}]>>
!weight = tensor<3x2xf64, #parc.sharding<[{}, {"tp"}]>>
!out = tensor<4x3xf64, #parc.sharding<[{}, {}]>>
parc.mesh ["tp"] sizes [2]
parc.param @x : tensor<4x2xf64>
parc.param @w : tensor<3x2xf64>
// expected-remark @+1 {{the sharded phase does not hold}}
parc.step @train inputs ["x"] micro {
^bb0(%i: tensor<4xi64, #parc.sharding<[{}]>>):
  %x = parc.load @x : !in
  %w = parc.load @w : !weight
  // expected-error @+1 {{'nn.linear' expected result 0 partial sum over {tp}, got sum over {}}}
  %y = nn.linear %x, %w : !in, !weight -> !out
  %zero = arith.constant dense<0.0> : tensor<f64, #parc.sharding<[]>>
  parc.yield %zero, %zero : tensor<f64, #parc.sharding<[]>>, tensor<f64, #parc.sharding<[]>>
} update {
}

// -----

// Slots dealt out on one order of axes mean nothing on another.
parc.mesh ["dp", "cp"] sizes [2, 2]
// expected-remark @+1 {{the sharded phase does not hold}}
parc.step @train inputs ["ids"] micro {
^bb0(%ids: tensor<4x8x2xi64, #parc.sharding<[{"dp"}, {"cp"}, {}]>>):
  %x = tensor.empty() : tensor<4x8x6xf32, #parc.sharding<[{"dp"}, {"cp"}, {}]>>
  // expected-note @+1 {{the places are made here}}
  %q, %slot = nn.dispatch %x, %ids : tensor<4x8x6xf32, #parc.sharding<[{"dp"}, {"cp"}, {}]>>, tensor<4x8x2xi64, #parc.sharding<[{"dp"}, {"cp"}, {}]>> -> tensor<8x64x6xf32, #parc.sharding<[{}, {"dp", "cp"}, {}]>>, tensor<4x8x2xi64, #parc.sharding<[{"dp"}, {"cp"}, {}]>>
  %r = parc.reshard %q why "other order" : tensor<8x64x6xf32, #parc.sharding<[{}, {"dp", "cp"}, {}]>> -> tensor<8x64x6xf32, #parc.sharding<[{}, {"cp", "dp"}, {}]>>
  // expected-error @+1 {{'nn.combine' reads places that 'nn.dispatch' gave where the set is split over {dp, cp}, but has it split over {cp, dp}; remove the constraint that moves them}}
  %y = nn.combine %r, %ids, %slot : tensor<8x64x6xf32, #parc.sharding<[{}, {"cp", "dp"}, {}]>>, tensor<4x8x2xi64, #parc.sharding<[{"dp"}, {"cp"}, {}]>>, tensor<4x8x2xi64, #parc.sharding<[{"dp"}, {"cp"}, {}]>> -> tensor<4x8x6xf32, #parc.sharding<[{"dp"}, {"cp"}, {}]>>
  %zero = arith.constant dense<0.0> : tensor<f32, #parc.sharding<[]>>
  parc.yield %zero, %zero : tensor<f32, #parc.sharding<[]>>, tensor<f32, #parc.sharding<[]>>
} update {
}

// -----

// A cast is not linear: what is partial is reduced first.
!narrow = tensor<4x3xbf16, #parc.sharding<[{}, {}], partial sum {"tp"}>>
!wide = tensor<4x3xf32, #parc.sharding<[{}, {}], partial sum {"tp"}>>
!in = tensor<4x2xbf16, #parc.sharding<[{}, {"tp"}]>>
!weight = tensor<3x2xbf16, #parc.sharding<[{}, {"tp"}]>>
parc.mesh ["tp"] sizes [2]
parc.param @x : tensor<4x2xbf16>
parc.param @w : tensor<3x2xbf16>
// expected-remark @+1 {{the sharded phase does not hold}}
parc.step @train inputs ["x"] micro {
^bb0(%i: tensor<4xi64, #parc.sharding<[{}]>>):
  %x = parc.load @x : !in
  %w = parc.load @w : !weight
  %y = nn.linear %x, %w {parc.accumulate = f32} : !in, !weight -> !narrow
  // expected-error @+1 {{'arith.extf' reads a sum unfinished over {tp} in operand 0, in which it is not linear}}
  %z = arith.extf %y : !narrow to !wide
  %zero = arith.constant dense<0.0> : tensor<f32, #parc.sharding<[]>>
  parc.yield %zero, %zero : tensor<f32, #parc.sharding<[]>>, tensor<f32, #parc.sharding<[]>>
} update {
}

// -----

!in = tensor<4x2xbf16, #parc.sharding<[{}, {}]>>
!weight = tensor<3x2xbf16, #parc.sharding<[{}, {}]>>
!out = tensor<4x3xbf16, #parc.sharding<[{}, {}]>>
parc.mesh ["tp"] sizes [2]
parc.param @x : tensor<4x2xbf16>
parc.param @w : tensor<3x2xbf16>
// expected-remark @+1 {{the sharded phase does not hold}}
parc.step @train inputs ["x"] micro {
^bb0(%i: tensor<4xi64, #parc.sharding<[{}]>>):
  %x = parc.load @x : !in
  %w = parc.load @w : !weight
  // expected-error @+1 {{'nn.linear' sums in 'bf16', expected 'parc.accumulate' of f32 or wider, got none; 'parc-accumulate-types' sets it}}
  %y = nn.linear %x, %w : !in, !weight -> !out
  %zero = arith.constant dense<0.0> : tensor<f32, #parc.sharding<[]>>
  parc.yield %zero, %zero : tensor<f32, #parc.sharding<[]>>, tensor<f32, #parc.sharding<[]>>
} update {
}
