// Two parameters of the batch's shape that lie differently: to multiply them, tp
// leaves the rows, which dp still splits, for the columns. Uneven: 5 rows, 7
// columns.
parc.mesh ["tp", "pp", "dp"] sizes [2, 1, 2] order ["tp", "dp", "pp"]
parc.param @table : tensor<9x7xf64> {std = 0.5 : f64}
parc.param @columns : tensor<5x3x7xf64> {std = 0.5 : f64, sharding = #parc.sharding<[{"dp"}, {}, {"tp"}]>}
parc.param @rows : tensor<5x3x7xf64> {std = 0.5 : f64, sharding = #parc.sharding<[{"dp", "tp"}, {}, {}]>}
parc.param @head : tensor<11x7xf64> {std = 0.5 : f64}
parc.step @train inputs ["tokens", "labels"] micro {
^bb0(%tokens: tensor<5x3xi64>, %labels: tensor<5x3xi64>):
  %table = parc.load @table : tensor<9x7xf64>
  %columns = parc.load @columns : tensor<5x3x7xf64>
  %rows = parc.load @rows : tensor<5x3x7xf64>
  %head = parc.load @head : tensor<11x7xf64>
  %x = nn.embedding %tokens, %table : tensor<5x3xi64>, tensor<9x7xf64> -> tensor<5x3x7xf64>
  %both = arith.mulf %columns, %rows : tensor<5x3x7xf64>
  %y = arith.mulf %x, %both : tensor<5x3x7xf64>
  %logits = nn.linear %y, %head : tensor<5x3x7xf64>, tensor<11x7xf64> -> tensor<5x3x11xf64>
  %loss, %count, %stats = nn.softmax_cross_entropy %logits, %labels : tensor<5x3x11xf64>, tensor<5x3xi64> -> tensor<f64>, tensor<f64>, tensor<5x3xf64>
  parc.yield %loss, %count : tensor<f64>, tensor<f64>
} update {
}
