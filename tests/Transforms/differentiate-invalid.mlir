// RUN: parc-opt %s --parc-differentiate -split-input-file -verify-diagnostics

parc.param @w : tensor<4xf64>
// expected-error @+1 {{yields a loss that depends on no parameter}}
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  %c = arith.constant dense<0.0> : tensor<f64>
  parc.yield %c, %c : tensor<f64>, tensor<f64>
} update {
}

// -----

parc.param @w : tensor<4xf64>
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  %w = parc.load @w : tensor<4xf64>
  // expected-error @+1 {{'math.powf' has no gradient rule, and the loss depends on it}}
  %p = math.powf %w, %w : tensor<4xf64>
  %zero = arith.constant dense<0.0> : tensor<f64>
  %loss = linalg.reduce { arith.addf } ins(%p : tensor<4xf64>) outs(%zero : tensor<f64>) dimensions = [0]
  parc.yield %loss, %zero : tensor<f64>, tensor<f64>
} update {
}

// -----

parc.param @w : tensor<4xf64>
// expected-error @+1 {{expected a loss of rank 0, got 'tensor<4xf64>'}}
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  %w = parc.load @w : tensor<4xf64>
  parc.yield %w, %w : tensor<4xf64>, tensor<4xf64>
} update {
}
