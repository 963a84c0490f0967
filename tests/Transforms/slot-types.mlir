// RUN: parc-opt %s -split-input-file --parc-slot-types | FileCheck %s
// RUN: parc-opt %s -split-input-file --parc-slot-types --parc-differentiate --nn-add-optimizer \
// RUN:   | FileCheck %s --check-prefix=STEP


// What is narrower than f32 gets f32 slots, unless it says otherwise.
// CHECK: parc.param @table : tensor<5x4xbf16> {slot_types = {grad = f32, state = f32}}
parc.param @table : tensor<5x4xbf16>
// CHECK: parc.param @w : tensor<8x4xbf16> layers 3 {slot_types = {grad = f32, state = f32}}
parc.param @w : tensor<8x4xbf16> layers 3
// CHECK: parc.param @down : tensor<4x8xbf16> layers 3 {slot_types = {grad = bf16}}
parc.param @down : tensor<4x8xbf16> layers 3 {slot_types = {grad = bf16}}
// CHECK: parc.param @norm : tensor<4xbf16> layers 3 {slot_types = {grad = f32, state = f32}}
parc.param @norm : tensor<4xbf16> layers 3
// CHECK: parc.param @bias : tensor<8xbf16> layers 3 {slot_types = {grad = f32, state = f32}}
parc.param @bias : tensor<8xbf16> layers 3
// CHECK: parc.param @scale : tensor<f32>{{$}}
parc.param @scale : tensor<f32>

// Sums over tokens come out in the slot's type, from narrow terms: nothing is
// rounded on the way. What runs through the layers stays narrow.
// STEP-LABEL: parc.step @train
// STEP: nn.softmax_cross_entropy_grad
// STEP: linalg.contract {{.*}} ins({{.*}}tensor<2x3x5xbf16>, tensor<2x3x4xbf16>) outs({{.*}}tensor<5x4xf32>)
// STEP: parc.accumulate @table, %{{.*}} : tensor<5x4xf32>
// STEP: parc.stack @layers 0 to 3 reverse carry(%{{.*}}) {{.*}} : (tensor<2x3x4xbf16>
// STEP: linalg.contract {{.*}} -> tensor<4x8xbf16>
// STEP: parc.accumulate @down, %{{.*}} : tensor<4x8xbf16>
// STEP: linalg.generic {{.*}} ins(%{{.*}} : tensor<2x3x8xbf16>) outs(%{{.*}} : tensor<8xf32>)
// STEP: parc.accumulate @bias, %{{.*}} : tensor<8xf32>
// A gradient of moved elements is moved in the slot's type.
// STEP: linalg.contract {{.*}} outs({{.*}}tensor<8x4xf32>)
// STEP: tensor.collapse_shape %{{.*}} : tensor<2x4x4xf32> into tensor<8x4xf32>
// STEP: parc.accumulate @w, %{{.*}} : tensor<8x4xf32>
// STEP: nn.rms_norm_weight_grad {{.*}} -> tensor<4xf32>
// STEP: parc.accumulate @norm, %{{.*}} : tensor<4xf32>
// STEP: nn.embedding_grad {{.*}} : tensor<2x3xi64>, tensor<2x3x4xbf16> -> tensor<5x4xf32>
// STEP: parc.accumulate @table, %{{.*}} : tensor<5x4xf32>

// The update works on the master; the value is its rounding.
// STEP: update {
// STEP: parc.load @table slot "grad" : tensor<5x4xf32>
// STEP: %[[MASTER:.*]] = parc.load @table slot "master" : tensor<5x4xf32>
// STEP: %[[NEW:.*]], %{{.*}}, %{{.*}} = nn.adamw %[[MASTER]]
// STEP: parc.store @table, %[[NEW]] slot "master" : tensor<5x4xf32>
// STEP: %[[VALUE:.*]] = arith.truncf %[[NEW]] : tensor<5x4xf32> to tensor<5x4xbf16>
// STEP: parc.store @table, %[[VALUE]] : tensor<5x4xbf16>
// Without a wider state there is no master.
// STEP-NOT: @down slot "master"
// STEP-NOT: @scale slot "master"

parc.step @train inputs ["tokens", "labels"] micro {
^bb0(%tokens: tensor<2x3xi64>, %labels: tensor<2x3xi64>):
  %table = parc.load @table : tensor<5x4xbf16>
  %x = nn.embedding %tokens, %table : tensor<2x3xi64>, tensor<5x4xbf16> -> tensor<2x3x4xbf16>
  %y = parc.stack @layers 0 to 3 carry(%x) : (tensor<2x3x4xbf16>) -> tensor<2x3x4xbf16> {
  ^bb0(%layer: index, %h: tensor<2x3x4xbf16>):
    %norm = parc.load @norm : tensor<4xbf16>
    %n = nn.rms_norm %h, %norm epsilon 1.0e-5 : tensor<2x3x4xbf16>, tensor<4xbf16>
    %w = parc.load @w : tensor<8x4xbf16>
    %split = tensor.expand_shape %w [[0, 1], [2]] output_shape [2, 4, 4] : tensor<8x4xbf16> into tensor<2x4x4xbf16>
    %joined = tensor.collapse_shape %split [[0, 1], [2]] : tensor<2x4x4xbf16> into tensor<8x4xbf16>
    %up = nn.linear %n, %joined : tensor<2x3x4xbf16>, tensor<8x4xbf16> -> tensor<2x3x8xbf16>
    %bias = parc.load @bias : tensor<8xbf16>
    %biased = nn.bias_add %up, %bias : tensor<2x3x8xbf16>, tensor<8xbf16>
    %down = parc.load @down : tensor<4x8xbf16>
    %o = nn.linear %biased, %down : tensor<2x3x8xbf16>, tensor<4x8xbf16> -> tensor<2x3x4xbf16>
    %next = arith.addf %h, %o : tensor<2x3x4xbf16>
    parc.yield %next : tensor<2x3x4xbf16>
  }
  %logits = nn.linear %y, %table : tensor<2x3x4xbf16>, tensor<5x4xbf16> -> tensor<2x3x5xbf16>
  %wide = arith.extf %logits : tensor<2x3x5xbf16> to tensor<2x3x5xf32>
  %loss, %count, %lse = nn.softmax_cross_entropy %wide, %labels :
      tensor<2x3x5xf32>, tensor<2x3xi64> -> tensor<f32>, tensor<f32>, tensor<2x3xf32>
  %scale = parc.load @scale : tensor<f32>
  %scaled = arith.mulf %loss, %scale : tensor<f32>
  parc.yield %scaled, %count : tensor<f32>, tensor<f32>
} update {
}

// -----

// Parameters kept in f32, cast where they are used, and transposed: gradients
// arrive in f32, not rounded on the way.
// STEP-LABEL: parc.step @cast
// STEP: linalg.contract {{.*}} outs({{.*}}tensor<4x8xf32>)
// STEP: linalg.transpose ins(%{{.*}} : tensor<4x8xf32>) outs(%{{.*}} : tensor<8x4xf32>)
// STEP-NOT: arith.extf
// STEP-NOT: arith.truncf
// STEP: parc.accumulate @w
parc.param @w : tensor<8x4xf32>
parc.step @cast inputs ["x"] micro {
^bb0(%i: tensor<2x4xbf16>):
  %w = parc.load @w : tensor<8x4xf32>
  %narrow = arith.truncf %w : tensor<8x4xf32> to tensor<8x4xbf16>
  %empty = tensor.empty() : tensor<4x8xbf16>
  %t = linalg.transpose ins(%narrow : tensor<8x4xbf16>) outs(%empty : tensor<4x8xbf16>) permutation = [1, 0]
  %zero = arith.constant dense<0.0> : tensor<2x8xbf16>
  %y = linalg.matmul ins(%i, %t : tensor<2x4xbf16>, tensor<4x8xbf16>) outs(%zero : tensor<2x8xbf16>) -> tensor<2x8xbf16>
  %wide = arith.extf %y : tensor<2x8xbf16> to tensor<2x8xf32>
  %start = arith.constant dense<0.0> : tensor<f32>
  %loss = linalg.reduce { arith.addf } ins(%wide : tensor<2x8xf32>) outs(%start : tensor<f32>) dimensions = [0, 1]
  parc.yield %loss, %loss : tensor<f32>, tensor<f32>
} update {
}
