// RUN: parc-opt %s -split-input-file --parc-verify-rt -verify-diagnostics

// expected-error @below {{after parc-to-rt: expected one rt.mesh and one rt.schedule, got 0 and 0}}
module {
}

// -----

// expected-error @below {{expected one role for stage 0, got 0}}
module {
  rt.mesh ["tp"] sizes [1] stage "pp"
  rt.schedule micro_batches 1 stacks [] counts [] bounds [0, 0] in_flight [1] loops [[array<i64: 1, 0, 0, 1, 0>]]
}

// -----

module {
  rt.mesh ["tp"] sizes [1] stage "pp"
  rt.schedule micro_batches 1 stacks [] counts [] bounds [0, 0] in_flight [1] loops [[array<i64: 1, 0, 0, 1, 0>]]
  rt.role @only stages [0] inputs [] scalars [] results ["loss"]
      attributes {input_axes = [], input_grains = []} forward 0 {
    // expected-error @below {{names @w, which is not there}}
    %w = rt.load @w slot "value" : tensor<4xf32>
    // expected-error @below {{is left after parc-to-rt}}
    %x = arith.addf %w, %w : tensor<4xf32>
    rt.yield %x : tensor<4xf32>
  } backward 0 {
  ^bb0(%x: tensor<4xf32>):
    rt.yield
  } update {
    rt.yield
  }
}
