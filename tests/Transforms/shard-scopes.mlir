// RUN: parc-opt %s --parc-shard=micro-batches=2 -split-input-file -verify-diagnostics

parc.mesh ["dp"] sizes [1]
parc.step @train inputs ["ids"] micro {
^bb0(%ids: tensor<4x16x2xi64>):
  // expected-error @+1 {{'nn.limit_experts' looks at the whole batch together, but each of the 2 micro-batches has 4 sequences; give it a scope in sequences that divides them, or use one micro-batch}}
  %kept = nn.limit_experts %ids capacity 3 scope 0 : tensor<4x16x2xi64>
  %zero = arith.constant dense<0.0> : tensor<f32>
  parc.yield %zero, %zero : tensor<f32>, tensor<f32>
} update {
}

// -----

parc.mesh ["dp"] sizes [1]
parc.step @train inputs ["ids"] micro {
^bb0(%ids: tensor<4x16x2xi64>):
  // expected-error @+1 {{'nn.limit_experts' looks at 3 sequences together, but each of the 2 micro-batches has 4 sequences}}
  %kept = nn.limit_experts %ids capacity 3 scope 3 : tensor<4x16x2xi64>
  %zero = arith.constant dense<0.0> : tensor<f32>
  parc.yield %zero, %zero : tensor<f32>, tensor<f32>
} update {
}

// -----

parc.mesh ["dp"] sizes [1]
parc.param @scores : tensor<4x16x8xf32>
parc.step @train inputs ["ids"] micro {
^bb0(%ids: tensor<4x16x2xi64>):
  %s = parc.load @scores : tensor<4x16x8xf32>
  // expected-error @+1 {{'nn.balance_loss' looks at the whole batch together}}
  %l = nn.balance_loss %s, %ids coefficient 0.01 scope 0 : tensor<4x16x8xf32>, tensor<4x16x2xi64> -> tensor<f32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  parc.yield %l, %zero : tensor<f32>, tensor<f32>
} update {
}

// -----

parc.mesh ["dp"] sizes [1]
parc.step @train inputs ["ids"] micro {
^bb0(%ids: tensor<4x16x2xi64>):
  %kept = nn.limit_experts %ids capacity 3 scope 2 : tensor<4x16x2xi64>
  %zero = arith.constant dense<0.0> : tensor<f32>
  parc.yield %zero, %zero : tensor<f32>, tensor<f32>
} update {
}
