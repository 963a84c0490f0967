// RUN: parc-opt %s | parc-opt | FileCheck %s
// RUN: parc-opt %s --mlir-print-op-generic | parc-opt | FileCheck %s

// Every op is read and printed, with each of its optional parts.

// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<4x16x32xf32>, %w: tensor<56x32xf32>, %wt: tensor<32x56xf32>, %b: tensor<56xf32>) -> tensor<4x16x56xf32> {
  // CHECK: nn.linear %{{.*}}, %{{.*}} : tensor<4x16x32xf32>, tensor<56x32xf32> -> tensor<4x16x56xf32>
  %0 = nn.linear %x, %w : tensor<4x16x32xf32>, tensor<56x32xf32> -> tensor<4x16x56xf32>
  // CHECK: nn.linear %{{.*}}, %{{.*}} transposed : tensor<4x16x32xf32>, tensor<32x56xf32> -> tensor<4x16x56xf32>
  %1 = nn.linear %x, %wt transposed : tensor<4x16x32xf32>, tensor<32x56xf32> -> tensor<4x16x56xf32>
  // CHECK: nn.bias_add %{{.*}}, %{{.*}} : tensor<4x16x56xf32>, tensor<56xf32>
  %2 = nn.bias_add %1, %b : tensor<4x16x56xf32>, tensor<56xf32>
  // CHECK: nn.add_n %{{.*}}, %{{.*}} : tensor<4x16x56xf32>, tensor<4x16x56xf32> -> tensor<4x16x56xf32>
  %3 = nn.add_n %0, %2 : tensor<4x16x56xf32>, tensor<4x16x56xf32> -> tensor<4x16x56xf32>
  return %3 : tensor<4x16x56xf32>
}

// CHECK-LABEL: func.func @embedding
func.func @embedding(%ids: tensor<4x16xi64>, %t: tensor<97x32xf32>, %part: tensor<?x32xf32>, %start: index) -> tensor<?x32xf32> {
  // CHECK: nn.embedding %{{.*}}, %{{.*}} : tensor<4x16xi64>, tensor<97x32xf32> -> tensor<4x16x32xf32>
  %0 = nn.embedding %ids, %t : tensor<4x16xi64>, tensor<97x32xf32> -> tensor<4x16x32xf32>
  // CHECK: nn.embedding %{{.*}}, %{{.*}} from %{{.*}} : tensor<4x16xi64>, tensor<?x32xf32> -> tensor<4x16x32xf32>
  %1 = nn.embedding %ids, %part from %start : tensor<4x16xi64>, tensor<?x32xf32> -> tensor<4x16x32xf32>
  // CHECK: nn.embedding_grad %{{.*}}, %{{.*}} : tensor<4x16xi64>, tensor<4x16x32xf32> -> tensor<97x32xf32>
  %2 = nn.embedding_grad %ids, %0 : tensor<4x16xi64>, tensor<4x16x32xf32> -> tensor<97x32xf32>
  // CHECK: nn.embedding_grad %{{.*}}, %{{.*}} from %{{.*}} rows %{{.*}} : tensor<4x16xi64>, tensor<4x16x32xf32> -> tensor<?x32xf32>
  %3 = nn.embedding_grad %ids, %1 from %start rows %start : tensor<4x16xi64>, tensor<4x16x32xf32> -> tensor<?x32xf32>
  return %3 : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @norms
func.func @norms(%x: tensor<4x16x32xf32>, %w: tensor<32xf32>) -> tensor<32xf32> {
  // CHECK: nn.rms_norm %{{.*}}, %{{.*}} epsilon 1.000000e-05 : tensor<4x16x32xf32>, tensor<32xf32>
  %0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<32xf32>
  // CHECK: nn.layer_norm %{{.*}}, %{{.*}}, %{{.*}} epsilon 1.000000e-05 : tensor<4x16x32xf32>, tensor<32xf32>
  %1 = nn.layer_norm %0, %w, %w epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<32xf32>
  // CHECK: nn.rms_norm_input_grad
  %2 = nn.rms_norm_input_grad %x, %w, %1 epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<32xf32>, tensor<4x16x32xf32> -> tensor<4x16x32xf32>
  // CHECK: nn.rms_norm_weight_grad
  %3 = nn.rms_norm_weight_grad %x, %2 epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<4x16x32xf32> -> tensor<32xf32>
  // CHECK: nn.layer_norm_input_grad
  %4 = nn.layer_norm_input_grad %x, %3, %2 epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<32xf32>, tensor<4x16x32xf32> -> tensor<4x16x32xf32>
  // CHECK: nn.layer_norm_weight_grad
  %5 = nn.layer_norm_weight_grad %x, %4 epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<4x16x32xf32> -> tensor<32xf32>
  return %5 : tensor<32xf32>
}

// CHECK-LABEL: func.func @activations
func.func @activations(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: nn.silu %{{.*}} : tensor<4xf32>
  %0 = nn.silu %x : tensor<4xf32>
  // CHECK: nn.gelu %{{.*}} : tensor<4xf32>
  %1 = nn.gelu %0 : tensor<4xf32>
  // CHECK: nn.gelu %{{.*}} exact : tensor<4xf32>
  %2 = nn.gelu %1 exact : tensor<4xf32>
  // CHECK: nn.silu_grad %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %3 = nn.silu_grad %0, %2 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: nn.gelu_grad %{{.*}}, %{{.*}} exact : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %4 = nn.gelu_grad %0, %3 exact : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// CHECK-LABEL: func.func @rope
func.func @rope(%q: tensor<4x16x4x4xf32>, %p: tensor<4x16xi64>) -> tensor<4x16x4x4xf32> {
  // CHECK: nn.rope_table %{{.*}} frequencies [1.000000e+00, 1.000000e-01] : tensor<4x16xi64> -> tensor<4x16x2xf32>
  %c, %s = nn.rope_table %p frequencies [1.0, 0.1] : tensor<4x16xi64> -> tensor<4x16x2xf32>
  // CHECK: nn.rope_table %{{.*}} frequencies [1.000000e+00, 1.000000e-01] scale 2.000000e+00 : tensor<4x16xi64> -> tensor<4x16x2xf32>
  %c2, %s2 = nn.rope_table %p frequencies [1.0, 0.1] scale 2.0 : tensor<4x16xi64> -> tensor<4x16x2xf32>
  // CHECK: nn.rope %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x16x4x4xf32>, tensor<4x16x2xf32>
  %0 = nn.rope %q, %c, %s : tensor<4x16x4x4xf32>, tensor<4x16x2xf32>
  // CHECK: nn.rope %{{.*}}, %{{.*}}, %{{.*}} interleaved inverse : tensor<4x16x4x4xf32>, tensor<4x16x2xf32>
  %1 = nn.rope %0, %c2, %s2 interleaved inverse : tensor<4x16x4x4xf32>, tensor<4x16x2xf32>
  return %1 : tensor<4x16x4x4xf32>
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<4x16x4x8xf32>, %k: tensor<4x16x2x8xf32>, %p: tensor<4x16xi64>, %seed: tensor<i64>, %i: index) -> tensor<4x16x4x8xf32> {
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} positions(%{{.*}}, %{{.*}}) causal scale 3.500000e-01 : tensor<4x16x4x8xf32>
  %0 = nn.attention %q, %k, %k positions(%p, %p) causal scale 0.35 : tensor<4x16x4x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16xi64>, tensor<4x16xi64> -> tensor<4x16x4x8xf32>
  // CHECK: nn.attention %{{.*}} causal window 5 scale 3.500000e-01 dropout 1.000000e-01 site 3 seed %{{.*}} stream %{{.*}} batch_start %{{.*}} head_start %{{.*}} group 2 in [8, 8, 16, 16] :
  %1 = nn.attention %0, %k, %k positions(%p, %p) causal window 5 scale 0.35 dropout 0.1 site 3 seed %seed stream %i batch_start %i head_start %i group 2 in [8, 8, 16, 16] : tensor<4x16x4x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16xi64>, tensor<4x16xi64>, tensor<i64> -> tensor<4x16x4x8xf32>
  // CHECK: nn.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} positions(%{{.*}}, %{{.*}}) causal scale 3.500000e-01 dropout 1.000000e-01 seed %{{.*}} :
  %2:3 = nn.attention_grad %q, %k, %k, %1 positions(%p, %p) causal scale 0.35 dropout 0.1 seed %seed : tensor<4x16x4x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16x4x8xf32>, tensor<4x16xi64>, tensor<4x16xi64>, tensor<i64> -> tensor<4x16x4x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16x2x8xf32>
  // CHECK: nn.attention %{{.*}} causal scale 3.500000e-01 ring ["cp"] :
  %3 = nn.attention %q, %k, %k positions(%p, %p) causal scale 0.35 ring ["cp"] : tensor<4x16x4x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16xi64>, tensor<4x16xi64> -> tensor<4x16x4x8xf32>
  return %2#0 : tensor<4x16x4x8xf32>
}

// CHECK-LABEL: func.func @fold
func.func @fold(%tokens: tensor<4x16xi64>) -> tensor<4x16xi64> {
  // CHECK: nn.fold %{{.*}} dim 1 parts 4 : tensor<4x16xi64>
  %0 = nn.fold %tokens dim 1 parts 4 : tensor<4x16xi64>
  return %0 : tensor<4x16xi64>
}

// CHECK-LABEL: func.func @dropout
func.func @dropout(%x: tensor<4x?xf32>, %seed: tensor<i64>, %i: index) -> tensor<4x?xf32> {
  // CHECK: nn.dropout %{{.*}} seed %{{.*}} rate 1.000000e-01 site 2 : tensor<4x?xf32>, tensor<i64>
  %0 = nn.dropout %x seed %seed rate 0.1 site 2 : tensor<4x?xf32>, tensor<i64>
  // CHECK: nn.dropout %{{.*}} seed %{{.*}} stream %{{.*}} starts %{{.*}}, %{{.*}} in [8, 97] rate 1.000000e-01 site 2 : tensor<4x?xf32>, tensor<i64>
  %1 = nn.dropout %0 seed %seed stream %i starts %i, %i in [8, 97] rate 0.1 site 2 : tensor<4x?xf32>, tensor<i64>
  return %1 : tensor<4x?xf32>
}

// CHECK-LABEL: func.func @loss
func.func @loss(%l: tensor<4x16x97xf32>, %y: tensor<4x16xi64>) -> tensor<f32> {
  // CHECK: nn.softmax_cross_entropy %{{.*}}, %{{.*}} : tensor<4x16x97xf32>, tensor<4x16xi64> -> tensor<f32>, tensor<f32>, tensor<4x16xf32>
  %loss, %count, %lse = nn.softmax_cross_entropy %l, %y : tensor<4x16x97xf32>, tensor<4x16xi64> -> tensor<f32>, tensor<f32>, tensor<4x16xf32>
  // CHECK: nn.softmax_cross_entropy_grad
  %d = nn.softmax_cross_entropy_grad %l, %y, %lse, %loss : tensor<4x16x97xf32>, tensor<4x16xi64>, tensor<4x16xf32>, tensor<f32> -> tensor<4x16x97xf32>
  // CHECK: nn.sum_squares %{{.*}} : tensor<4x16x97xf32> -> tensor<f32>
  %s = nn.sum_squares %d : tensor<4x16x97xf32> -> tensor<f32>
  return %s : tensor<f32>
}

// CHECK-LABEL: func.func @adamw
func.func @adamw(%p: tensor<7x5xbf16>, %m: tensor<7x5xf32>, %s: tensor<f32>) -> tensor<7x5xbf16> {
  // CHECK: nn.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scalars(%{{.*}}, {{.*}}) : tensor<7x5xbf16>, tensor<7x5xbf16>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<f32>
  %0:3 = nn.adamw %p, %p, %m, %m scalars(%s, %s, %s, %s, %s, %s, %s, %s) : tensor<7x5xbf16>, tensor<7x5xbf16>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<f32>
  return %0#0 : tensor<7x5xbf16>
}

// CHECK-LABEL: func.func @experts
func.func @experts(%x: tensor<4x16x32xf32>, %s: tensor<4x16x8xf32>, %b: tensor<8xf32>, %w: tensor<4x16x2xf32>, %l: tensor<f32>) -> tensor<4x16x8xf32> {
  // CHECK: nn.softmax %{{.*}} : tensor<4x16x8xf32>
  %p = nn.softmax %s : tensor<4x16x8xf32>
  // CHECK: nn.softmax_grad %{{.*}}, %{{.*}} : tensor<4x16x8xf32>, tensor<4x16x8xf32>
  %dp = nn.softmax_grad %p, %s : tensor<4x16x8xf32>, tensor<4x16x8xf32>
  // CHECK: nn.select_experts %{{.*}} top_k 2 : tensor<4x16x8xf32> -> tensor<4x16x2xi64>
  %i = nn.select_experts %dp top_k 2 : tensor<4x16x8xf32> -> tensor<4x16x2xi64>
  // CHECK: nn.select_experts %{{.*}} bias %{{.*}} top_k 2 groups 4 keep 2 score "top2_sum" : tensor<4x16x8xf32>, tensor<8xf32> -> tensor<4x16x2xi64>
  %j = nn.select_experts %p bias %b top_k 2 groups 4 keep 2 score "top2_sum" : tensor<4x16x8xf32>, tensor<8xf32> -> tensor<4x16x2xi64>
  // CHECK: nn.limit_experts %{{.*}} capacity 5 scope 1 : tensor<4x16x2xi64>
  %ids = nn.limit_experts %j capacity 5 scope 1 : tensor<4x16x2xi64>
  // CHECK: nn.dispatch %{{.*}}, %{{.*}} : tensor<4x16x32xf32>, tensor<4x16x2xi64> -> tensor<8x64x32xf32>, tensor<4x16x2xi64>
  %q, %slot = nn.dispatch %x, %ids : tensor<4x16x32xf32>, tensor<4x16x2xi64> -> tensor<8x64x32xf32>, tensor<4x16x2xi64>
  // CHECK: nn.combine %{{.*}}, %{{.*}}, %{{.*}} weights %{{.*}} : tensor<8x64x32xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64>, tensor<4x16x2xf32> -> tensor<4x16x32xf32>
  %y = nn.combine %q, %ids, %slot weights %w : tensor<8x64x32xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64>, tensor<4x16x2xf32> -> tensor<4x16x32xf32>
  // CHECK: nn.fill_queues %{{.*}}, %{{.*}}, %{{.*}} weights %{{.*}} : tensor<4x16x32xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64>, tensor<4x16x2xf32> -> tensor<8x64x32xf32>
  %dq = nn.fill_queues %y, %ids, %slot weights %w : tensor<4x16x32xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64>, tensor<4x16x2xf32> -> tensor<8x64x32xf32>
  // CHECK: nn.count_queues %{{.*}}, %{{.*}} slots 64 parts 4 : tensor<4x16x2xi64>, tensor<4x16x2xi64> -> tensor<8x4xi64>
  %n = nn.count_queues %ids, %slot slots 64 parts 4 : tensor<4x16x2xi64>, tensor<4x16x2xi64> -> tensor<8x4xi64>
  // CHECK: nn.combine_weights_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<8x64x32xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64>, tensor<4x16x32xf32> -> tensor<4x16x2xf32>
  %dw = nn.combine_weights_grad %dq, %ids, %slot, %y : tensor<8x64x32xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64>, tensor<4x16x32xf32> -> tensor<4x16x2xf32>
  // CHECK: nn.balance_loss %{{.*}}, %{{.*}} coefficient 1.000000e-03 scope 1 : tensor<4x16x8xf32>, tensor<4x16x2xi64> -> tensor<f32>
  %a = nn.balance_loss %p, %i coefficient 1.0e-3 scope 1 : tensor<4x16x8xf32>, tensor<4x16x2xi64> -> tensor<f32>
  // CHECK: nn.balance_loss_grad %{{.*}}, %{{.*}} coefficient 1.000000e-03 scope 0 : tensor<4x16x2xi64>, tensor<f32> -> tensor<4x16x8xf32>
  %ds = nn.balance_loss_grad %i, %a coefficient 1.0e-3 scope 0 : tensor<4x16x2xi64>, tensor<f32> -> tensor<4x16x8xf32>
  return %ds : tensor<4x16x8xf32>
}

// CHECK-LABEL: func.func @local_experts
func.func @local_experts(%x: tensor<?x16x32xf32>, %ids: tensor<?x16x2xi64>, %w: tensor<?x16x2xf32>, %i: index) -> tensor<?x16x2xf32> {
  // CHECK: nn.dispatch %{{.*}}, %{{.*}} from %{{.*}} slots %{{.*}} : tensor<?x16x32xf32>, tensor<?x16x2xi64> -> tensor<8x?x32xf32>, tensor<?x16x2xi64>
  %q, %slot = nn.dispatch %x, %ids from %i slots %i : tensor<?x16x32xf32>, tensor<?x16x2xi64> -> tensor<8x?x32xf32>, tensor<?x16x2xi64>
  // CHECK: nn.combine %{{.*}}, %{{.*}}, %{{.*}} from %{{.*}} : tensor<8x?x32xf32>, tensor<?x16x2xi64>, tensor<?x16x2xi64> -> tensor<?x16x32xf32>
  %y = nn.combine %q, %ids, %slot from %i : tensor<8x?x32xf32>, tensor<?x16x2xi64>, tensor<?x16x2xi64> -> tensor<?x16x32xf32>
  // CHECK: nn.fill_queues %{{.*}}, %{{.*}}, %{{.*}} from %{{.*}} slots %{{.*}} : tensor<?x16x32xf32>, tensor<?x16x2xi64>, tensor<?x16x2xi64> -> tensor<8x?x32xf32>
  %r = nn.fill_queues %y, %ids, %slot from %i slots %i : tensor<?x16x32xf32>, tensor<?x16x2xi64>, tensor<?x16x2xi64> -> tensor<8x?x32xf32>
  // CHECK: nn.count_queues %{{.*}}, %{{.*}} slots 64 parts 4 from %{{.*}} : tensor<?x16x2xi64>, tensor<?x16x2xi64> -> tensor<8x1xi64>
  %n = nn.count_queues %ids, %slot slots 64 parts 4 from %i : tensor<?x16x2xi64>, tensor<?x16x2xi64> -> tensor<8x1xi64>
  // CHECK: nn.combine_weights_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} from %{{.*}} :
  %dw = nn.combine_weights_grad %r, %ids, %slot, %y from %i : tensor<8x?x32xf32>, tensor<?x16x2xi64>, tensor<?x16x2xi64>, tensor<?x16x32xf32> -> tensor<?x16x2xf32>
  return %dw : tensor<?x16x2xf32>
}
