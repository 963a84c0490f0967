// RUN: parc-opt %s --parc-differentiate -split-input-file | FileCheck %s

// The gradient of a load is an accumulation; a stack gets a second one in
// reverse, which reads what the first saved and loads parameters again.

parc.param @embed : tensor<5x4xf64>
parc.param @w : tensor<4x4xf64> layers 3

// CHECK-LABEL: parc.step @train
parc.step @train inputs ["tokens", "labels"] micro {
^bb0(%tokens: tensor<2x3xi64>, %labels: tensor<2x3xi64>):
  %table = parc.load @embed : tensor<5x4xf64>
  %x = nn.embedding %tokens, %table : tensor<2x3xi64>, tensor<5x4xf64> -> tensor<2x3x4xf64>
  // The layer's input is needed for the weight's gradient, so it is saved.
  // CHECK: %[[FORWARD:.*]]:2 = parc.stack @layers 0 to 3 carry
  // CHECK-SAME: -> (tensor<2x3x4xf64>, !parc.layers<tensor<2x3x4xf64>>)
  // CHECK: ^bb0(%{{.*}}: index, %[[H:.*]]: tensor<2x3x4xf64>):
  // CHECK: %[[NEXT:.*]] = arith.addf
  // CHECK: parc.yield %[[NEXT]], %[[H]]
  %y = parc.stack @layers 0 to 3 carry(%x) : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  ^bb0(%layer: index, %h: tensor<2x3x4xf64>):
    %w = parc.load @w : tensor<4x4xf64>
    %o = nn.linear %h, %w : tensor<2x3x4xf64>, tensor<4x4xf64> -> tensor<2x3x4xf64>
    %next = arith.addf %h, %o : tensor<2x3x4xf64>
    parc.yield %next : tensor<2x3x4xf64>
  }
  %logits = nn.linear %y, %table : tensor<2x3x4xf64>, tensor<5x4xf64> -> tensor<2x3x5xf64>
  %loss, %count, %lse = nn.softmax_cross_entropy %logits, %labels :
      tensor<2x3x5xf64>, tensor<2x3xi64> -> tensor<f64>, tensor<f64>, tensor<2x3xf64>
  // CHECK: nn.softmax_cross_entropy_grad
  // Each use of a tied table accumulates where it is.
  // CHECK: parc.accumulate @embed, %{{.*}} : tensor<5x4xf64>
  // CHECK: %[[BACKWARD:.*]] = parc.stack @layers 0 to 3 reverse carry(%{{.*}}) each(%[[FORWARD]]#1)
  // CHECK: ^bb0(%{{.*}}: index, %[[D:.*]]: tensor<2x3x4xf64>, %{{.*}}: tensor<2x3x4xf64>):
  // CHECK: parc.load @w
  // CHECK: parc.accumulate @w, %{{.*}} : tensor<4x4xf64>
  // CHECK: parc.yield
  // CHECK: nn.embedding_grad %{{.*}}, %[[BACKWARD]]
  // CHECK: parc.accumulate @embed, %{{.*}} : tensor<5x4xf64>
  // CHECK-NOT: parc.accumulate
  parc.yield %loss, %count : tensor<f64>, tensor<f64>
} update {
}

// -----

// A parameter that all layers share accumulates inside; another value from
// outside gets the sum over the layers of its gradients.

parc.param @shared : tensor<4xf64>
parc.param @start : tensor<4xf64>

// CHECK-LABEL: parc.step @captures
parc.step @captures inputs ["i"] micro {
^bb0(%i: tensor<2xi64>):
  %shared = parc.load @shared : tensor<4xf64>
  %x = parc.load @start : tensor<4xf64>
  %twice = arith.addf %x, %x : tensor<4xf64>
  %y = parc.stack @layers 0 to 3 carry(%twice) : (tensor<4xf64>) -> tensor<4xf64> {
  ^bb0(%layer: index, %h: tensor<4xf64>):
    %a = arith.mulf %h, %shared : tensor<4xf64>
    %b = arith.addf %a, %twice : tensor<4xf64>
    parc.yield %b : tensor<4xf64>
  }
  // CHECK: %[[R:.*]]:2 = parc.stack @layers 0 to 3 reverse reduce 1 carry
  // CHECK: parc.accumulate @shared
  // CHECK: parc.yield
  // CHECK: arith.addf %{{.*}}#0, %{{.*}}#1
  // CHECK-NOT: parc.accumulate @shared
  %zero = arith.constant dense<0.0> : tensor<f64>
  %loss = linalg.reduce { arith.addf } ins(%y : tensor<4xf64>) outs(%zero : tensor<f64>) dimensions = [0]
  parc.yield %loss, %zero : tensor<f64>, tensor<f64>
} update {
}
