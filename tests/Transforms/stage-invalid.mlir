// RUN: parc-opt %s --parc-stage -split-input-file -verify-diagnostics

parc.mesh ["pp"] sizes [2]
parc.param @w : tensor<4xf64>
// expected-error @+1 {{has no stack of layers to cut into pp=2 stages; use pp=1}}
parc.step @train inputs ["x"] micro {
^bb0(%x: tensor<2xi64>):
  %w = parc.load @w : tensor<4xf64>
  %zero = arith.constant dense<0.0> : tensor<f64>
  %loss = linalg.reduce { arith.addf } ins(%w : tensor<4xf64>) outs(%zero : tensor<f64>) dimensions = [0]
  parc.yield %loss, %zero : tensor<f64>, tensor<f64>
} update {
^bb0(%loss: tensor<f64>, %count: tensor<f64>):
  parc.yield
}

// -----

parc.mesh ["pp"] sizes [3]
parc.param @x : tensor<f64>
// expected-error @+1 {{expected at least one layer for each of pp=3 stages, got 2 layers; use pp=2 or less}}
parc.step @train inputs ["i"] micro {
^bb0(%i: tensor<2xi64>):
  %x = parc.load @x : tensor<f64>
  %y = parc.stack @layers 0 to 2 carry(%x) : (tensor<f64>) -> tensor<f64> {
  ^bb0(%layer: index, %h: tensor<f64>):
    %n = arith.addf %h, %h : tensor<f64>
    parc.yield %n : tensor<f64>
  }
  parc.yield %y, %x : tensor<f64>, tensor<f64>
} update {
^bb0(%loss: tensor<f64>, %count: tensor<f64>):
  parc.yield
}

// -----

parc.mesh ["pp"] sizes [2]
parc.param @x : tensor<f64>
parc.step @train inputs ["i"] micro {
^bb0(%i: tensor<2xi64>):
  %x = parc.load @x : tensor<f64>
  // expected-error @+1 {{sums a value over layers of several stages}}
  %y, %s = parc.stack @layers 0 to 2 reduce 1 carry(%x) : (tensor<f64>) -> (tensor<f64>, tensor<f64>) {
  ^bb0(%layer: index, %h: tensor<f64>):
    parc.yield %h, %h : tensor<f64>, tensor<f64>
  }
  parc.yield %y, %s : tensor<f64>, tensor<f64>
} update {
^bb0(%loss: tensor<f64>, %count: tensor<f64>):
  parc.yield
}
