// RUN: parc-opt %s --parc-differentiate --nn-add-optimizer | FileCheck %s

// The norm counts each parameter once; layers are summed in a stack, whose
// gradients the update reads again; decay leaves out what is marked.

parc.param @x : tensor<4xf64> {no_decay}
parc.param @w : tensor<4xf64> layers 3

// CHECK-LABEL: parc.step @train
// CHECK: scalars ["lr", "beta1", "beta2", "eps", "weight_decay", "clip", "correction1", "correction2"]
// CHECK-SAME: results ["loss", "grad_norm"] update
// CHECK: %[[GX:.*]] = parc.load @x slot "grad"
// CHECK: %[[SX:.*]] = nn.sum_squares %[[GX]]
// CHECK: %[[NORMS:.*]]:2 = parc.stack @layers 0 to 3 reduce 1
// CHECK: %[[GW:.*]] = parc.load @w slot "grad"
// CHECK: nn.sum_squares %[[GW]]
// CHECK: parc.yield %{{.*}}, %[[GW]]
// CHECK: nn.add_n %[[SX]], %[[NORMS]]#0
// CHECK: math.sqrt
// CHECK: %[[NONE:.*]] = arith.constant dense<0.0
// CHECK: nn.adamw %{{.*}}, %[[GX]], %{{.*}} scalars(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[NONE]],
// CHECK: parc.store @x
// CHECK: parc.stack @layers 0 to 3 each(%[[NORMS]]#1)
// CHECK: nn.adamw
// CHECK: parc.store @w
parc.step @train inputs ["i"] micro {
^bb0(%i: tensor<2xi64>):
  %x = parc.load @x : tensor<4xf64>
  %y = parc.stack @layers 0 to 3 carry(%x) : (tensor<4xf64>) -> tensor<4xf64> {
  ^bb0(%layer: index, %h: tensor<4xf64>):
    %w = parc.load @w : tensor<4xf64>
    %n = arith.mulf %h, %w : tensor<4xf64>
    parc.yield %n : tensor<4xf64>
  }
  %zero = arith.constant dense<0.0> : tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  %loss = linalg.reduce { arith.addf } ins(%y : tensor<4xf64>) outs(%zero : tensor<f64>) dimensions = [0]
  parc.yield %loss, %one : tensor<f64>, tensor<f64>
} update {
}
