// RUN: parc-opt %s --parc-verify-staged -split-input-file -verify-diagnostics

// What one stage sends is not what the next receives.

// expected-remark @+1 {{the staged phase does not hold}}
parc.schedule "1f1b" micro_batches 1 layers [@layers] counts [2] bounds [0, 1, 2]
// expected-error @+1 {{role @first sends 1 values forward that are not what role @last receives}}
parc.role @first stages [0] inputs ["x"] scalars [] results [] forward 1 {
^bb0(%x: tensor<2xi64>):
  %c = arith.constant dense<0.0> : tensor<4xf64>
  parc.yield %c : tensor<4xf64>
} backward 0 {
^bb0(%x: tensor<2xi64>):
  parc.yield
} update {
  parc.yield
}
parc.role @last stages [1] inputs ["x"] scalars [] results [] forward 0 {
^bb0(%x: tensor<2xi64>, %a: tensor<5xf64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<2xi64>):
  parc.yield
} update {
  parc.yield
}

// -----

// expected-remark @+2 {{the staged phase does not hold}}
// expected-error @+1 {{stage 1 has no role}}
parc.schedule "1f1b" micro_batches 1 layers [@layers] counts [2] bounds [0, 1, 2]
parc.role @first stages [0] inputs ["x"] scalars [] results [] forward 0 {
^bb0(%x: tensor<2xi64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<2xi64>):
  parc.yield
} update {
  parc.yield
}

// -----

// A gradient that nobody uses was accumulated for a parameter on another stage.

parc.param @w : tensor<4xf64>
// expected-remark @+1 {{the staged phase does not hold}}
parc.schedule "1f1b" micro_batches 1 layers [] counts [] bounds [0, 0]
parc.role @only stages [0] inputs ["x"] scalars [] results [] forward 0 {
^bb0(%x: tensor<2xi64>):
  parc.yield
} backward 0 {
^bb0(%x: tensor<2xi64>):
  %c = arith.constant dense<0.0> : tensor<4xf64>
  // expected-error @+1 {{role @only accumulates a gradient of @w that its update never uses}}
  parc.accumulate @w, %c : tensor<4xf64>
  // A stage waits for stages that are elsewhere in time.
  parc.yield
} update {
  parc.yield
}
