// A decoder of 175 billion parameters, written by hand, with its layout
// annotated in the model: 96 layers of width 12288, 96 heads of 128.
//
//   parc docs/examples/gpt-175b.mlir --mesh 8x16x4 --batch 2048 -o out
//
// Read it from the bottom of each layer upwards to see why so few annotations
// do: everything else follows from what ops do with their dimensions.
//   - q, k, v and up are split along their outputs ("column"): heads, and the
//     feed-forward width, are split from there on, biases included.
//   - o and down contract what is split, so their weights must be split along
//     their inputs ("row"), and their results are partial sums: one all-reduce each.
//   - the tables are split along their rows (words, positions): each rank looks up
//     what it has, and the two lookups are added before one all-reduce.
//   - the batch is split over replicas and over micro-batches.
// Change one annotation and compile again; `parc show comms` tells what followed.

!hidden = tensor<2048x2048x12288xbf16>
!wide = tensor<2048x2048x49152xbf16>
!heads = tensor<2048x2048x96x128xbf16>
!ids = tensor<2048x2048xi64>
!vector = tensor<12288xbf16>
!square = tensor<12288x12288xbf16>
!table = tensor<50257x12288xbf16>
!up = tensor<49152x12288xbf16>
!down = tensor<12288x49152xbf16>
!logits = tensor<2048x2048x50257xf32>

#column = #parc.sharding<[{"tp"}, {}]>
#rows = #parc.sharding<[{"tp"}, {}]>
#batch = #parc.sharding<[{"dp", "mb"}, {}]>

module {
  // tp inside a node of 8, then dp, then the stages: pp is outermost.
  parc.mesh ["tp", "pp", "dp"] sizes [8, 16, 4] order ["tp", "dp", "pp"]

  parc.param @embed : !table {std = 0.02 : f64, sharding = #rows}
  parc.param @position : tensor<2048x12288xbf16> {std = 0.02 : f64, sharding = #rows}

  parc.param @attn_norm : !vector layers 96 {value = 1.0 : f64}
  parc.param @attn_norm_bias : !vector layers 96 {value = 0.0 : f64}
  parc.param @q : !square layers 96 {std = 0.02 : f64, sharding = #column}
  parc.param @q_bias : !vector layers 96 {value = 0.0 : f64}
  parc.param @k : !square layers 96 {std = 0.02 : f64, sharding = #column}
  parc.param @k_bias : !vector layers 96 {value = 0.0 : f64}
  parc.param @v : !square layers 96 {std = 0.02 : f64, sharding = #column}
  parc.param @v_bias : !vector layers 96 {value = 0.0 : f64}
  parc.param @o : !square layers 96 {std = 0.0014434 : f64}
  parc.param @o_bias : !vector layers 96 {value = 0.0 : f64}

  parc.param @mlp_norm : !vector layers 96 {value = 1.0 : f64}
  parc.param @mlp_norm_bias : !vector layers 96 {value = 0.0 : f64}
  parc.param @up : !up layers 96 {std = 0.02 : f64, sharding = #column}
  parc.param @up_bias : tensor<49152xbf16> layers 96 {value = 0.0 : f64}
  parc.param @down : !down layers 96 {std = 0.0014434 : f64}
  parc.param @down_bias : !vector layers 96 {value = 0.0 : f64}

  parc.param @final_norm : !vector {value = 1.0 : f64}
  parc.param @final_norm_bias : !vector {value = 0.0 : f64}

  parc.step @train inputs ["tokens", "labels", "positions"] micro {
  ^bb0(%all_tokens: !ids, %all_labels: !ids, %all_positions: !ids):
    %tokens = parc.constraint %all_tokens : !ids to #batch
    %labels = parc.constraint %all_labels : !ids to #batch
    %positions = parc.constraint %all_positions : !ids to #batch

    %table = parc.load @embed : !table
    %words = nn.embedding %tokens, %table : !ids, !table -> !hidden
    %places = parc.load @position : tensor<2048x12288xbf16>
    %where = nn.embedding %positions, %places : !ids, tensor<2048x12288xbf16> -> !hidden
    %x0 = arith.addf %words, %where : !hidden

    %y = parc.stack @layers 0 to 96 carry(%x0) : (!hidden) -> !hidden {
    ^bb0(%layer: index, %x: !hidden):
      // Attention.
      %an = parc.load @attn_norm : !vector
      %anb = parc.load @attn_norm_bias : !vector
      %a = nn.layer_norm %x, %an, %anb epsilon 1.0e-05 : !hidden, !vector
      %wq = parc.load @q : !square
      %bq = parc.load @q_bias : !vector
      %q1 = nn.linear %a, %wq : !hidden, !square -> !hidden
      %q2 = nn.bias_add %q1, %bq : !hidden, !vector
      %wk = parc.load @k : !square
      %bk = parc.load @k_bias : !vector
      %k1 = nn.linear %a, %wk : !hidden, !square -> !hidden
      %k2 = nn.bias_add %k1, %bk : !hidden, !vector
      %wv = parc.load @v : !square
      %bv = parc.load @v_bias : !vector
      %v1 = nn.linear %a, %wv : !hidden, !square -> !hidden
      %v2 = nn.bias_add %v1, %bv : !hidden, !vector
      %q = tensor.expand_shape %q2 [[0], [1], [2, 3]] output_shape [2048, 2048, 96, 128] : !hidden into !heads
      %k = tensor.expand_shape %k2 [[0], [1], [2, 3]] output_shape [2048, 2048, 96, 128] : !hidden into !heads
      %v = tensor.expand_shape %v2 [[0], [1], [2, 3]] output_shape [2048, 2048, 96, 128] : !hidden into !heads
      %context = nn.attention %q, %k, %v positions(%positions, %positions) causal
          scale 0.088388347648318447 : !heads, !heads, !heads, !ids, !ids -> !heads
      %joined = tensor.collapse_shape %context [[0], [1], [2, 3]] : !heads into !hidden
      %wo = parc.load @o : !square
      %bo = parc.load @o_bias : !vector
      %o1 = nn.linear %joined, %wo : !hidden, !square -> !hidden
      %o2 = nn.bias_add %o1, %bo : !hidden, !vector
      %x1 = arith.addf %x, %o2 : !hidden

      // Feed-forward.
      %mn = parc.load @mlp_norm : !vector
      %mnb = parc.load @mlp_norm_bias : !vector
      %m = nn.layer_norm %x1, %mn, %mnb epsilon 1.0e-05 : !hidden, !vector
      %wu = parc.load @up : !up
      %bu = parc.load @up_bias : tensor<49152xbf16>
      %u1 = nn.linear %m, %wu : !hidden, !up -> !wide
      %u2 = nn.bias_add %u1, %bu : !wide, tensor<49152xbf16>
      %g = nn.gelu %u2 : !wide
      %wd = parc.load @down : !down
      %bd = parc.load @down_bias : !vector
      %d1 = nn.linear %g, %wd : !wide, !down -> !hidden
      %d2 = nn.bias_add %d1, %bd : !hidden, !vector
      %x2 = arith.addf %x1, %d2 : !hidden
      parc.yield %x2 : !hidden
    }

    %fn = parc.load @final_norm : !vector
    %fnb = parc.load @final_norm_bias : !vector
    %z = nn.layer_norm %y, %fn, %fnb epsilon 1.0e-05 : !hidden, !vector
    // The head is the table again: one parameter on the first and last stage.
    %head = parc.load @embed : !table
    %low = nn.linear %z, %head : !hidden, !table -> tensor<2048x2048x50257xbf16>
    %logits = arith.extf %low : tensor<2048x2048x50257xbf16> to !logits
    %loss, %count, %lse = nn.softmax_cross_entropy %logits, %labels :
        !logits, !ids -> tensor<f32>, tensor<f32>, tensor<2048x2048xf32>
    parc.yield %loss, %count : tensor<f32>, tensor<f32>
  } update {
  }
}
