// RUN: parc-opt %s --parc-to-scheduled=micro-batches=2 | FileCheck %s

// Four layers on three stages, with the table on the first and the last.

parc.mesh ["pp"] sizes [3]
parc.param @embed : tensor<5x4xf64>
parc.param @w : tensor<4x4xf64> layers 4

// The last stage has the head, so the first has the odd layer.
// CHECK: parc.schedule "1f1b" micro_batches 2 layers [@layers] counts [4] bounds [0, {{[12]}}, 3, 4]

// CHECK: parc.role @first stages [0]
// CHECK: forward 1 {
// CHECK: nn.embedding
// CHECK: parc.stack @layers 0 to 4 carry
// CHECK-NOT: nn.linear %{{.*}}5x4
// CHECK: backward 0 {
// CHECK: parc.stack @layers 0 to 4 reverse
// CHECK: nn.embedding_grad
// CHECK: parc.accumulate @embed
// The loss is made elsewhere: this stage adds zeros.
// CHECK: parc.yield %{{.*}}, %{{.*}} : tensor<f64>, tensor<f64>
// CHECK: update {
// The table's gradient is on two stages, its norm is counted on the first.
// CHECK: %[[G:.*]] = parc.load @embed slot "grad"
// CHECK: parc.all_reduce sum %[[G]] over ["pp"] stages [0, 2]
// CHECK: nn.add_n
// CHECK: parc.all_reduce sum %{{.*}} over ["pp"]
// CHECK: parc.store @embed

// CHECK: parc.role @middle stages [1]
// CHECK: forward 1 {
// CHECK: ^bb0(%{{.*}}: tensor<1x3xi64>, %{{.*}}: tensor<1x3xi64>, %{{.*}}: tensor<1x3x4xf64>):
// CHECK-NOT: nn.embedding
// CHECK: backward 1 {
// CHECK-NOT: @embed
// CHECK: update {
// CHECK-NOT: parc.store @embed

// CHECK: parc.role @last stages [2]
// CHECK: forward 0 {
// CHECK: parc.stack @layers
// CHECK: parc.load @embed
// CHECK: backward 1 {
// CHECK: parc.accumulate @embed
// CHECK: update {
// CHECK: parc.store @embed
parc.step @train inputs ["tokens", "labels"] micro {
^bb0(%tokens: tensor<2x3xi64>, %labels: tensor<2x3xi64>):
  %table = parc.load @embed : tensor<5x4xf64>
  %x = nn.embedding %tokens, %table : tensor<2x3xi64>, tensor<5x4xf64> -> tensor<2x3x4xf64>
  %y = parc.stack @layers 0 to 4 carry(%x) : (tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  ^bb0(%layer: index, %h: tensor<2x3x4xf64>):
    %w = parc.load @w : tensor<4x4xf64>
    %o = nn.linear %h, %w : tensor<2x3x4xf64>, tensor<4x4xf64> -> tensor<2x3x4xf64>
    %next = arith.addf %h, %o : tensor<2x3x4xf64>
    parc.yield %next : tensor<2x3x4xf64>
  }
  %logits = nn.linear %y, %table : tensor<2x3x4xf64>, tensor<5x4xf64> -> tensor<2x3x5xf64>
  %loss, %count, %lse = nn.softmax_cross_entropy %logits, %labels :
      tensor<2x3x5xf64>, tensor<2x3xi64> -> tensor<f64>, tensor<f64>, tensor<2x3xf64>
  parc.yield %loss, %count : tensor<f64>, tensor<f64>
} update {
}
