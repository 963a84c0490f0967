// RUN: parc-opt %s -verify-diagnostics -split-input-file

// One case a constraint: what was expected, then what was got.

func.func @linear_0(%x: tensor<4x16x32xf32>, %w: tensor<56x31xf32>) {
  // expected-error @below {{expected dimension 1 of weight to be 32 (the input's last dimension), got 31}}
  %0 = nn.linear %x, %w : tensor<4x16x32xf32>, tensor<56x31xf32> -> tensor<4x16x56xf32>
  return
}

// -----

func.func @linear_1(%x: tensor<4x16x32xf32>, %w: tensor<31x56xf32>) {
  // expected-error @below {{expected dimension 0 of weight to be 32 (the input's last dimension), got 31}}
  %0 = nn.linear %x, %w transposed : tensor<4x16x32xf32>, tensor<31x56xf32> -> tensor<4x16x56xf32>
  return
}

// -----

func.func @linear_2(%x: tensor<4x16x32xf32>, %w: tensor<56x32xf32>) {
  // expected-error @below {{expected dimension 1 of result to be 16 (the input's leading dimensions and the weight's rows), got 17}}
  %0 = nn.linear %x, %w : tensor<4x16x32xf32>, tensor<56x32xf32> -> tensor<4x17x56xf32>
  return
}

// -----

func.func @linear_3(%x: tensor<4x16x32xf32>, %w: tensor<56x32xf32>) {
  // expected-error @below {{expected dimension 2 of result to be 56}}
  %0 = nn.linear %x, %w : tensor<4x16x32xf32>, tensor<56x32xf32> -> tensor<4x16x55xf32>
  return
}

// -----

func.func @linear_4(%x: tensor<4x16x32xf32>, %w: tensor<56x32xf32>) {
  // expected-error @below {{expected result of rank 3, got 'tensor<64x56xf32>'}}
  %0 = nn.linear %x, %w : tensor<4x16x32xf32>, tensor<56x32xf32> -> tensor<64x56xf32>
  return
}

// -----

func.func @linear_5(%x: tensor<4x16x32xf32>, %w: tensor<2x56x32xf32>) {
  // expected-error @below {{expected weight of rank 2, got 'tensor<2x56x32xf32>'}}
  %0 = nn.linear %x, %w : tensor<4x16x32xf32>, tensor<2x56x32xf32> -> tensor<4x16x56xf32>
  return
}

// -----

func.func @linear_6(%x: tensor<f32>, %w: tensor<56x32xf32>) {
  // expected-error @below {{expected input of rank 1 or more, got 'tensor<f32>'}}
  %0 = nn.linear %x, %w : tensor<f32>, tensor<56x32xf32> -> tensor<56xf32>
  return
}

// -----

func.func @linear_7(%x: tensor<4x16x32xf32>, %w: tensor<56x32xf64>) {
  // expected-error @below {{expected weight of 'f32', as the input, got 'tensor<56x32xf64>'}}
  %0 = nn.linear %x, %w : tensor<4x16x32xf32>, tensor<56x32xf64> -> tensor<4x16x56xf32>
  return
}

// -----

func.func @linear_8(%x: tensor<4x16x32xf32>, %w: tensor<56x32xf32>) {
  // expected-error @below {{expected result of 'f32', as the input, got 'tensor<4x16x56xf64>'}}
  %0 = nn.linear %x, %w : tensor<4x16x32xf32>, tensor<56x32xf32> -> tensor<4x16x56xf64>
  return
}

// -----

func.func @linear_9(%x: tensor<4x32xi32>, %w: tensor<56x32xi32>) {
  // expected-error @below {{expected input of floats, got 'tensor<4x32xi32>'}}
  %0 = nn.linear %x, %w : tensor<4x32xi32>, tensor<56x32xi32> -> tensor<4x56xi32>
  return
}

// -----

func.func @bias_add_10(%x: tensor<4x16x32xf32>, %b: tensor<31xf32>) {
  // expected-error @below {{expected dimension 0 of bias to be 32 (the input's last dimension), got 31}}
  %0 = nn.bias_add %x, %b : tensor<4x16x32xf32>, tensor<31xf32>
  return
}

// -----

func.func @bias_add_11(%x: tensor<4x16x32xf32>, %b: tensor<32xbf16>) {
  // expected-error @below {{expected bias of 'f32', as the input, got 'tensor<32xbf16>'}}
  %0 = nn.bias_add %x, %b : tensor<4x16x32xf32>, tensor<32xbf16>
  return
}

// -----

func.func @embedding_12(%i: tensor<4x16xi32>, %t: tensor<97x32xf32>) {
  // expected-error @below {{expected ids of i64, got 'tensor<4x16xi32>'}}
  %0 = nn.embedding %i, %t : tensor<4x16xi32>, tensor<97x32xf32> -> tensor<4x16x32xf32>
  return
}

// -----

func.func @embedding_13(%i: tensor<4x16xi64>, %t: tensor<97x32xf32>) {
  // expected-error @below {{expected dimension 2 of result to be 32 (the shape of ids and a row of the table), got 31}}
  %0 = nn.embedding %i, %t : tensor<4x16xi64>, tensor<97x32xf32> -> tensor<4x16x31xf32>
  return
}

// -----

func.func @embedding_14(%i: tensor<4x16xi64>, %t: tensor<97xf32>) {
  // expected-error @below {{expected table of rank 2, got 'tensor<97xf32>'}}
  %0 = nn.embedding %i, %t : tensor<4x16xi64>, tensor<97xf32> -> tensor<4x16xf32>
  return
}

// -----

func.func @embedding_grad_15(%i: tensor<4x16xi64>, %d: tensor<4x15x32xf32>) {
  // expected-error @below {{expected dimension 1 of grad to be 16 (the shape of ids and a row of the result), got 15}}
  %0 = nn.embedding_grad %i, %d : tensor<4x16xi64>, tensor<4x15x32xf32> -> tensor<97x32xf32>
  return
}

// -----

func.func @embedding_grad_16(%i: tensor<4x16xi64>, %d: tensor<4x16x32xf32>) {
  // expected-error @below {{expected `rows`, as dimension 0 of the result is dynamic}}
  %0 = nn.embedding_grad %i, %d : tensor<4x16xi64>, tensor<4x16x32xf32> -> tensor<?x32xf32>
  return
}

// -----

func.func @rms_norm_17(%x: tensor<4x16x32xf32>, %w: tensor<31xf32>) {
  // expected-error @below {{expected dimension 0 of weight to be 32 (the input's last dimension), got 31}}
  %0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<31xf32>
  return
}

// -----

func.func @rms_norm_18(%x: tensor<4x16x32xf32>, %w: tensor<32xf32>) {
  // expected-error @below {{expected a positive epsilon, got 0}}
  %0 = nn.rms_norm %x, %w epsilon 0.0 : tensor<4x16x32xf32>, tensor<32xf32>
  return
}

// -----

func.func @rms_norm_input_grad_19(%x: tensor<4x16x32xf32>, %w: tensor<32xf32>, %d: tensor<4x16x31xf32>) {
  // expected-error @below {{expected dimension 2 of grad to be 32 (as the input), got 31}}
  %0 = nn.rms_norm_input_grad %x, %w, %d epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<32xf32>, tensor<4x16x31xf32> -> tensor<4x16x32xf32>
  return
}

// -----

func.func @rms_norm_input_grad_20(%x: tensor<4x16x32xf32>, %w: tensor<32xf32>) {
  // expected-error @below {{expected dimension 1 of result to be 16 (as the input), got 15}}
  %0 = nn.rms_norm_input_grad %x, %w, %x epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<32xf32>, tensor<4x16x32xf32> -> tensor<4x15x32xf32>
  return
}

// -----

func.func @rms_norm_weight_grad_21(%x: tensor<4x16x32xf32>) {
  // expected-error @below {{expected dimension 0 of result to be 32 (the input's last dimension), got 16}}
  %0 = nn.rms_norm_weight_grad %x, %x epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<4x16x32xf32> -> tensor<16xf32>
  return
}

// -----

func.func @rms_norm_weight_grad_22(%x: tensor<4x16x32xf32>) {
  // expected-error @below {{expected a positive epsilon, got -1}}
  %0 = nn.rms_norm_weight_grad %x, %x epsilon -1.0 : tensor<4x16x32xf32>, tensor<4x16x32xf32> -> tensor<32xf32>
  return
}

// -----

func.func @layer_norm_23(%x: tensor<4x16x32xf32>, %w: tensor<33xf32>) {
  // expected-error @below {{expected dimension 0 of weight to be 32 (the input's last dimension), got 33}}
  %0 = nn.layer_norm %x, %w, %w epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<33xf32>
  return
}

// -----

func.func @layer_norm_24(%x: tensor<4x16x32xf32>, %w: tensor<32xf32>) {
  // expected-error @below {{expected a positive epsilon, got 0}}
  %0 = nn.layer_norm %x, %w, %w epsilon 0.0 : tensor<4x16x32xf32>, tensor<32xf32>
  return
}

// -----

func.func @layer_norm_input_grad_25(%x: tensor<4x16x32xf32>, %w: tensor<32xf32>, %d: tensor<4x32xf32>) {
  // expected-error @below {{expected grad of rank 3, got 'tensor<4x32xf32>'}}
  %0 = nn.layer_norm_input_grad %x, %w, %d epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<32xf32>, tensor<4x32xf32> -> tensor<4x16x32xf32>
  return
}

// -----

func.func @layer_norm_weight_grad_26(%x: tensor<4x16x32xf32>, %d: tensor<5x16x32xf32>) {
  // expected-error @below {{expected dimension 0 of grad to be 4 (as the input), got 5}}
  %0 = nn.layer_norm_weight_grad %x, %d epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<5x16x32xf32> -> tensor<32xf32>
  return
}

// -----

func.func @silu_27(%x: tensor<4xi64>) {
  // expected-error @below {{expected input of floats, got 'tensor<4xi64>'}}
  %0 = nn.silu %x : tensor<4xi64>
  return
}

// -----

func.func @gelu_28(%x: tensor<4xi64>) {
  // expected-error @below {{expected input of floats, got 'tensor<4xi64>'}}
  %0 = nn.gelu %x : tensor<4xi64>
  return
}

// -----

func.func @silu_grad_29(%x: tensor<4xf32>, %d: tensor<5xf32>) {
  // expected-error @below {{expected dimension 0 of grad to be 4 (as the input), got 5}}
  %0 = nn.silu_grad %x, %d : tensor<4xf32>, tensor<5xf32> -> tensor<4xf32>
  return
}

// -----

func.func @gelu_grad_30(%x: tensor<4xf32>) {
  // expected-error @below {{expected dimension 0 of result to be 4 (as the input), got 3}}
  %0 = nn.gelu_grad %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @rope_table_31(%p: tensor<4x16xi64>) {
  // expected-error @below {{expected dimension 2 of the tables to be 2 (the shape of positions and the number of frequencies), got 3}}
  %c, %s = nn.rope_table %p frequencies [1.0, 0.1] : tensor<4x16xi64> -> tensor<4x16x3xf32>
  return
}

// -----

func.func @rope_table_32(%p: tensor<4x16xf32>) {
  // expected-error @below {{expected positions of i64, got 'tensor<4x16xf32>'}}
  %c, %s = nn.rope_table %p frequencies [1.0, 0.1] : tensor<4x16xf32> -> tensor<4x16x2xf32>
  return
}

// -----

func.func @rope_33(%q: tensor<4x16x4x7xf32>, %c: tensor<4x16x3xf32>) {
  // expected-error @below {{expected an even dimension 3 of input, got 7}}
  %0 = nn.rope %q, %c, %c : tensor<4x16x4x7xf32>, tensor<4x16x3xf32>
  return
}

// -----

func.func @rope_34(%q: tensor<4x16x4x8xf32>, %c: tensor<4x16x8xf32>) {
  // expected-error @below {{expected dimension 2 of the tables to be 4 (B x S x D/2 of the input B x S x H x D), got 8}}
  %0 = nn.rope %q, %c, %c : tensor<4x16x4x8xf32>, tensor<4x16x8xf32>
  return
}

// -----

func.func @rope_35(%q: tensor<4x16x32xf32>, %c: tensor<4x16x16xf32>) {
  // expected-error @below {{expected input of rank 4, got 'tensor<4x16x32xf32>'}}
  %0 = nn.rope %q, %c, %c : tensor<4x16x32xf32>, tensor<4x16x16xf32>
  return
}

// -----

func.func @attention_36(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x3x8xf32>, %v: tensor<4x12x3x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected the query's heads to be a multiple of the key's 3, got 4}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) causal scale 0.5 : tensor<4x16x4x8xf32>, tensor<4x12x3x8xf32>, tensor<4x12x3x6xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_37(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x7xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected dimension 3 of key to be 8 (the query's head size), got 7}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) causal scale 0.5 : tensor<4x16x4x8xf32>, tensor<4x12x2x7xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_38(%q: tensor<4x16x4x8xf32>, %k: tensor<3x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected dimension 0 of key to be 4 (the query's batch), got 3}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) causal scale 0.5 : tensor<4x16x4x8xf32>, tensor<3x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_39(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x11x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected dimension 1 of value to be 12 (as the key), got 11}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) causal scale 0.5 : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x11x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_40(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x1x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected dimension 2 of value to be 2 (as the key), got 1}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) causal scale 0.5 : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x1x6xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_41(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf64>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected value of 'f32', as the query, got 'tensor<4x12x2x6xf64>'}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) causal scale 0.5 : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf64>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_42(%q: tensor<4x16x32xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected query of rank 4, got 'tensor<4x16x32xf32>'}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) causal scale 0.5 : tensor<4x16x32xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_43(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x15xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected dimension 1 of query positions to be 16 (B x S of the query), got 15}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) causal scale 0.5 : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x15xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_44(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x13xi64>) {
  // expected-error @below {{expected dimension 1 of key positions to be 12 (B x T of the key), got 13}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) causal scale 0.5 : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x13xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_45(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi32>, %kp: tensor<4x12xi32>) {
  // expected-error @below {{expected query positions of i64, got 'tensor<4x16xi32>'}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) causal scale 0.5 : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi32>, tensor<4x12xi32> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_46(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected dimension 3 of result to be 6 (the query's shape with the value's head size), got 8}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) causal scale 0.5 : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x8xf32>
  return
}

// -----

func.func @attention_47(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected a positive window, got 0}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) causal window 0 scale 0.5 : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_48(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected a positive scale, got 0}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) scale 0.0 : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_49(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected a positive group, got 0}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) scale 0.5 group 0 : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_50(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected group to be 2 (query heads a key head), got 4}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) scale 0.5 group 4 : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_51(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>, %seed: tensor<i64>) {
  // expected-error @below {{expected dropout of at least 0 and less than 1, got 1}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) scale 0.5 dropout 1.0 seed %seed : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64>, tensor<i64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_52(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected a seed, as dropout is}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) scale 0.5 dropout 0.5 : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_53(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>, %seed: tensor<1xi64>) {
  // expected-error @below {{expected seed of rank 0, got 'tensor<1xi64>'}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) scale 0.5 dropout 0.5 seed %seed : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64>, tensor<1xi64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_54(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %v: tensor<4x12x2x6xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>, %seed: tensor<i64>) {
  // expected-error @below {{expected 4 sizes B, H, S, T in shape, got 2}}
  %0 = nn.attention %q, %k, %v positions(%qp, %kp) scale 0.5 dropout 0.5 seed %seed in [4, 4] : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x6xf32>, tensor<4x16xi64>, tensor<4x12xi64>, tensor<i64> -> tensor<4x16x4x6xf32>
  return
}

// -----

func.func @attention_grad_55(%q: tensor<4x16x4x8xf32>, %k: tensor<4x16x2x8xf32>, %p: tensor<4x16xi64>) {
  // expected-error @below {{expected dimension 2 of grad to be 4 (the query's shape with the value's head size), got 2}}
  %0:3 = nn.attention_grad %q, %k, %k, %k positions(%p, %p) causal scale 0.5 : tensor<4x16x4x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16xi64>, tensor<4x16xi64> -> tensor<4x16x4x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16x2x8xf32>
  return
}

// -----

func.func @attention_grad_56(%q: tensor<4x16x4x8xf32>, %k: tensor<4x16x2x8xf32>, %p: tensor<4x16xi64>) {
  // expected-error @below {{expected dimension 2 of key_grad to be 2 (as its operand), got 4}}
  %0:3 = nn.attention_grad %q, %k, %k, %q positions(%p, %p) causal scale 0.5 : tensor<4x16x4x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16x4x8xf32>, tensor<4x16xi64>, tensor<4x16xi64> -> tensor<4x16x4x8xf32>, tensor<4x16x4x8xf32>, tensor<4x16x2x8xf32>
  return
}

// -----

func.func @dropout_57(%x: tensor<4x8xf32>, %seed: tensor<i64>) {
  // expected-error @below {{expected rate of at least 0 and less than 1, got 1}}
  %0 = nn.dropout %x seed %seed rate 1.0 site 0 : tensor<4x8xf32>, tensor<i64>
  return
}

// -----

func.func @dropout_58(%x: tensor<4x8xf32>, %seed: tensor<i64>) {
  // expected-error @below {{expected rate of at least 0 and less than 1, got -5.000000e-01}}
  %0 = nn.dropout %x seed %seed rate -0.5 site 0 : tensor<4x8xf32>, tensor<i64>
  return
}

// -----

func.func @dropout_59(%x: tensor<4x8xf32>, %seed: tensor<f32>) {
  // expected-error @below {{expected seed of i64, got 'tensor<f32>'}}
  %0 = nn.dropout %x seed %seed rate 0.5 site 0 : tensor<4x8xf32>, tensor<f32>
  return
}

// -----

func.func @dropout_60(%x: tensor<4x8xf32>, %seed: tensor<2xi64>) {
  // expected-error @below {{expected seed of rank 0, got 'tensor<2xi64>'}}
  %0 = nn.dropout %x seed %seed rate 0.5 site 0 : tensor<4x8xf32>, tensor<2xi64>
  return
}

// -----

func.func @dropout_61(%x: tensor<4x8xf32>, %seed: tensor<i64>, %i: index) {
  // expected-error @below {{expected as many starts as sizes in shape, got 1 and 2}}
  %0 = nn.dropout %x seed %seed starts %i in [8, 8] rate 0.5 site 0 : tensor<4x8xf32>, tensor<i64>
  return
}

// -----

func.func @dropout_62(%x: tensor<4x8xf32>, %seed: tensor<i64>, %i: index) {
  // expected-error @below {{expected 2 starts, one a dimension of input, got 1}}
  %0 = nn.dropout %x seed %seed starts %i in [8] rate 0.5 site 0 : tensor<4x8xf32>, tensor<i64>
  return
}

// -----

func.func @softmax_cross_entropy_63(%l: tensor<4x16x97xf32>, %y: tensor<4x15xi64>) {
  // expected-error @below {{expected dimension 1 of labels to be 16 (the logits' leading dimensions), got 15}}
  %0:3 = nn.softmax_cross_entropy %l, %y : tensor<4x16x97xf32>, tensor<4x15xi64> -> tensor<f32>, tensor<f32>, tensor<4x16xf32>
  return
}

// -----

func.func @softmax_cross_entropy_64(%l: tensor<4x16x97xf32>, %y: tensor<4x16xf32>) {
  // expected-error @below {{expected labels of i64, got 'tensor<4x16xf32>'}}
  %0:3 = nn.softmax_cross_entropy %l, %y : tensor<4x16x97xf32>, tensor<4x16xf32> -> tensor<f32>, tensor<f32>, tensor<4x16xf32>
  return
}

// -----

func.func @softmax_cross_entropy_65(%l: tensor<f32>, %y: tensor<4x16xi64>) {
  // expected-error @below {{expected logits of rank 1 or more, got 'tensor<f32>'}}
  %0:3 = nn.softmax_cross_entropy %l, %y : tensor<f32>, tensor<4x16xi64> -> tensor<f32>, tensor<f32>, tensor<4x16xf32>
  return
}

// -----

func.func @softmax_cross_entropy_66(%l: tensor<4x16x97xf32>, %y: tensor<4x16xi64>) {
  // expected-error @below {{expected loss of rank 0, got 'tensor<1xf32>'}}
  %0:3 = nn.softmax_cross_entropy %l, %y : tensor<4x16x97xf32>, tensor<4x16xi64> -> tensor<1xf32>, tensor<f32>, tensor<4x16xf32>
  return
}

// -----

func.func @softmax_cross_entropy_67(%l: tensor<4x16x97xf32>, %y: tensor<4x16xi64>) {
  // expected-error @below {{expected count of 'f32', as the logits, got 'tensor<i64>'}}
  %0:3 = nn.softmax_cross_entropy %l, %y : tensor<4x16x97xf32>, tensor<4x16xi64> -> tensor<f32>, tensor<i64>, tensor<4x16xf32>
  return
}

// -----

func.func @softmax_cross_entropy_68(%l: tensor<4x16x97xf32>, %y: tensor<4x16xi64>) {
  // expected-error @below {{expected log_sum_exp of rank 2, got 'tensor<4xf32>'}}
  %0:3 = nn.softmax_cross_entropy %l, %y : tensor<4x16x97xf32>, tensor<4x16xi64> -> tensor<f32>, tensor<f32>, tensor<4xf32>
  return
}

// -----

func.func @softmax_cross_entropy_grad_69(%l: tensor<4x16x97xf32>, %y: tensor<4x16xi64>, %z: tensor<4x16xf32>, %d: tensor<4xf32>) {
  // expected-error @below {{expected grad of rank 0, got 'tensor<4xf32>'}}
  %0 = nn.softmax_cross_entropy_grad %l, %y, %z, %d : tensor<4x16x97xf32>, tensor<4x16xi64>, tensor<4x16xf32>, tensor<4xf32> -> tensor<4x16x97xf32>
  return
}

// -----

func.func @softmax_cross_entropy_grad_70(%l: tensor<4x16x97xf32>, %y: tensor<4x16xi64>, %z: tensor<4x16xf32>, %d: tensor<f32>) {
  // expected-error @below {{expected dimension 2 of result to be 97 (as the logits), got 96}}
  %0 = nn.softmax_cross_entropy_grad %l, %y, %z, %d : tensor<4x16x97xf32>, tensor<4x16xi64>, tensor<4x16xf32>, tensor<f32> -> tensor<4x16x96xf32>
  return
}

// -----

func.func @sum_squares_71(%x: tensor<4xf32>) {
  // expected-error @below {{expected result of rank 0, got 'tensor<1xf32>'}}
  %0 = nn.sum_squares %x : tensor<4xf32> -> tensor<1xf32>
  return
}

// -----

func.func @sum_squares_72(%x: tensor<4xi64>) {
  // expected-error @below {{expected input of floats, got 'tensor<4xi64>'}}
  %0 = nn.sum_squares %x : tensor<4xi64> -> tensor<f32>
  return
}

// -----

func.func @add_n_73() {
  // expected-error @below {{expected at least one operand, got none}}
  %0 = "nn.add_n"() : () -> tensor<4xf32>
  return
}

// -----

func.func @add_n_74(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @below {{expected dimension 0 of operand 1 to be 4 (as the result), got 5}}
  %0 = nn.add_n %x, %y : tensor<4xf32>, tensor<5xf32> -> tensor<4xf32>
  return
}

// -----

func.func @adamw_75(%p: tensor<7x5xf32>, %g: tensor<7x4xf32>, %s: tensor<f32>) {
  // expected-error @below {{expected dimension 1 of grad to be 5 (as param), got 4}}
  %0:3 = nn.adamw %p, %g, %p, %p scalars(%s, %s, %s, %s, %s, %s, %s, %s) : tensor<7x5xf32>, tensor<7x4xf32>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<f32>
  return
}

// -----

func.func @adamw_76(%p: tensor<7x5xf32>, %g: tensor<7x5xf32>, %s: tensor<1xf32>) {
  // expected-error @below {{expected the scalars of rank 0, got 'tensor<1xf32>'}}
  %0:3 = nn.adamw %p, %g, %p, %p scalars(%s, %s, %s, %s, %s, %s, %s, %s) : tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<7x5xf32>, tensor<1xf32>
  return
}

// -----

func.func @attention_ring_keys(%q: tensor<4x16x4x8xf32>, %k: tensor<4x12x2x8xf32>, %qp: tensor<4x16xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{cannot be on a ring: it has another number of keys than of queries}}
  %0 = nn.attention %q, %k, %k positions(%qp, %kp) scale 0.5 ring ["cp"] : tensor<4x16x4x8xf32>, tensor<4x12x2x8xf32>, tensor<4x12x2x8xf32>, tensor<4x16xi64>, tensor<4x12xi64> -> tensor<4x16x4x8xf32>
  return
}

// -----

func.func @attention_ring_of(%q: tensor<4x6x4x8xf32>, %k: tensor<4x6x2x8xf32>, %p: tensor<4x6xi64>, %kp: tensor<4x12xi64>) {
  // expected-error @below {{expected `of` to be an extent and its grain, on a ring}}
  %0 = nn.attention %q, %k, %k positions(%p, %kp) scale 0.5 ring ["cp"] of [12, 5] : tensor<4x6x4x8xf32>, tensor<4x6x2x8xf32>, tensor<4x6x2x8xf32>, tensor<4x6xi64>, tensor<4x12xi64> -> tensor<4x6x4x8xf32>
  return
}

// -----

func.func @fold_dim(%tokens: tensor<4x16xi64>) {
  // expected-error @below {{expected dim below the input's rank 2, got 2}}
  %0 = nn.fold %tokens dim 2 parts 4 : tensor<4x16xi64>
  return
}

// -----

func.func @fold_parts(%tokens: tensor<4x16xi64>) {
  // expected-error @below {{expected at least one part, got 0}}
  %0 = nn.fold %tokens dim 1 parts 0 : tensor<4x16xi64>
  return
}

// -----

func.func @fold_floats(%x: tensor<4x16xf32>) {
  // expected-error @below {{expected input of i64}}
  %0 = nn.fold %x dim 1 parts 2 : tensor<4x16xf32>
  return
}
