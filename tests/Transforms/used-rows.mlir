// RUN: parc-opt %s --pass-pipeline='builtin.module(parc-shard{expert-axes=dp},parc-verify-sharded,parc-local,parc-verify-local)' | FileCheck %s

// Experts' queues are exchanged after the numbers of their rows: these once, and
// there and back what they say. Nothing in between but products that keep unused
// rows zero.

parc.mesh ["dp"] sizes [2]
parc.param @w : tensor<4x8x6xf64>
// CHECK-LABEL: parc.step @train
parc.step @train inputs ["ids"] micro {
^bb0(%ids: tensor<2x3x2xi64>):
  %f = arith.sitofp %ids : tensor<2x3x2xi64> to tensor<2x3x2xf64>
  %e = tensor.empty() : tensor<2x3x6xf64>
  %null = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %x = linalg.fill ins(%one : f64) outs(%e : tensor<2x3x6xf64>) -> tensor<2x3x6xf64>
  // CHECK: %[[Q:.*]], %[[SLOT:.*]] = nn.dispatch
  %q, %slot = nn.dispatch %x, %ids : tensor<2x3x6xf64>, tensor<2x3x2xi64> -> tensor<4x10x6xf64>, tensor<2x3x2xi64>
  // CHECK: %[[START:.*]] = parc.part_start ["dp"] of 2
  // CHECK: %[[MINE:.*]] = nn.count_queues %{{.*}}, %[[SLOT]] slots 10 parts 2 from %[[START]] : tensor<1x3x2xi64>, tensor<1x3x2xi64> -> tensor<4x1xi64>
  // CHECK: %[[ALL:.*]] = parc.all_to_all %[[MINE]] gather 1 of 2 split 0 of 4 over ["dp"] why {{.*}}told before they move{{.*}} : tensor<4x1xi64> -> tensor<2x2xi64>
  // CHECK: parc.all_to_all %[[Q]] rows 12 used(%[[MINE]], %[[ALL]] : tensor<4x1xi64>, tensor<2x2xi64>) gather 1 of 10 split 0 of 4 over ["dp"] why {{.*}} sends 144 {{.*}} : tensor<4x5x6xf64> -> tensor<2x10x6xf64>
  %w = parc.load @w : tensor<4x8x6xf64>
  %g = tensor.empty() : tensor<4x10x8xf64>
  %zero = linalg.fill ins(%null : f64) outs(%g : tensor<4x10x8xf64>) -> tensor<4x10x8xf64>
  %h = linalg.contract indexing_maps = [
      affine_map<(e, c, n, k) -> (e, c, k)>, affine_map<(e, c, n, k) -> (e, n, k)>, affine_map<(e, c, n, k) -> (e, c, n)>]
      ins(%q, %w : tensor<4x10x6xf64>, tensor<4x8x6xf64>) outs(%zero : tensor<4x10x8xf64>) -> tensor<4x10x8xf64>
  // CHECK: parc.all_to_all %{{.*}} rows 12 used(%[[ALL]], %[[MINE]] : tensor<2x2xi64>, tensor<4x1xi64>) gather 0 of 4 split 1 of 10 over ["dp"] {{.*}} : tensor<2x10x8xf64> -> tensor<4x5x8xf64>
  // CHECK-NOT: parc.all_to_all
  // CHECK: nn.combine
  %y = nn.combine %h, %ids, %slot : tensor<4x10x8xf64>, tensor<2x3x2xi64>, tensor<2x3x2xi64> -> tensor<2x3x8xf64>
  %n = arith.constant dense<0.0> : tensor<f64>
  %loss = linalg.reduce { arith.addf } ins(%y : tensor<2x3x8xf64>) outs(%n : tensor<f64>) dimensions = [0, 1, 2]
  parc.yield %loss, %n : tensor<f64>, tensor<f64>
} update {
}
