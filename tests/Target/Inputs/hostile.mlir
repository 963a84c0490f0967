// Names that would be code if anyone pasted them.
parc.param @int : tensor<7x4xf32> {std = 0.02 : f64}
parc.param @"a;system(\22x\22)" : tensor<4xf32> {value = 1.0 : f64,
    checkpoint = #parc.checkpoint<"h.{}/*\5Cn#include \22??/">}
parc.param @"a(system{x}" : tensor<4xf32> {value = 1.0 : f64}
parc.param @"9 lives" : tensor<7x4xf32> {std = 0.02 : f64}
parc.step @train inputs ["tokens", "labels"] micro {
^bb0(%tokens: tensor<2x3xi64>, %labels: tensor<2x3xi64>):
  %w = parc.load @int : tensor<7x4xf32>
  %g = parc.load @"a;system(\22x\22)" : tensor<4xf32>
  %h = parc.load @"a(system{x}" : tensor<4xf32>
  %head = parc.load @"9 lives" : tensor<7x4xf32>
  %return = nn.embedding %tokens, %w : tensor<2x3xi64>, tensor<7x4xf32> -> tensor<2x3x4xf32>
  %c = nn.rms_norm %return, %g epsilon 1.0e-6 : tensor<2x3x4xf32>, tensor<4xf32>
  %r = nn.rms_norm %c, %h epsilon 1.0e-6 : tensor<2x3x4xf32>, tensor<4xf32>
  %kernels = nn.linear %r, %head : tensor<2x3x4xf32>, tensor<7x4xf32> -> tensor<2x3x7xf32>
  %loss, %count, %stats = nn.softmax_cross_entropy %kernels, %labels : tensor<2x3x7xf32>, tensor<2x3xi64> -> tensor<f32>, tensor<f32>, tensor<2x3xf32>
  parc.yield %loss, %count : tensor<f32>, tensor<f32>
} update {
}
