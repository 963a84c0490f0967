// RUN: parc-opt %s -verify-diagnostics -split-input-file

func.func @softmax_1(%x: tensor<4x8xi64>) {
  // expected-error @below {{expected input of floats, got 'tensor<4x8xi64>'}}
  %0 = nn.softmax %x : tensor<4x8xi64>
  return
}

// -----

func.func @softmax_2(%x: tensor<f32>) {
  // expected-error @below {{expected input of rank 1 or more, got 'tensor<f32>'}}
  %0 = nn.softmax %x : tensor<f32>
  return
}

// -----

func.func @softmax_grad_3(%x: tensor<4x8xf32>, %g: tensor<4x7xf32>) {
  // expected-error @below {{expected dimension 1 of grad to be 8 (as the output), got 7}}
  %0 = nn.softmax_grad %x, %g : tensor<4x8xf32>, tensor<4x7xf32>
  return
}

// -----

func.func @select_experts_4(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected groups that divide the 8 experts evenly, got 3}}
  %0 = nn.select_experts %x top_k 2 groups 3 : tensor<4x8xf32> -> tensor<4x2xi64>
  return
}

// -----

func.func @select_experts_5(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected to keep 1 to 4 groups, got 5}}
  %0 = nn.select_experts %x top_k 2 groups 4 keep 5 : tensor<4x8xf32> -> tensor<4x2xi64>
  return
}

// -----

func.func @select_experts_6(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected top_k of 1 to 2, the experts in 1 of 4 groups, got 3}}
  %0 = nn.select_experts %x top_k 3 groups 4 keep 1 : tensor<4x8xf32> -> tensor<4x3xi64>
  return
}

// -----

func.func @select_experts_7(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected the score "max" or "top2_sum" of a group, got "mean"}}
  %0 = nn.select_experts %x top_k 1 groups 4 keep 1 score "mean" : tensor<4x8xf32> -> tensor<4x1xi64>
  return
}

// -----

func.func @select_experts_8(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected groups of at least 2 experts for "top2_sum", got 1}}
  %0 = nn.select_experts %x top_k 1 groups 8 keep 1 score "top2_sum" : tensor<4x8xf32> -> tensor<4x1xi64>
  return
}

// -----

func.func @select_experts_9(%x: tensor<4x8xf32>, %b: tensor<7xf32>) {
  // expected-error @below {{expected dimension 0 of bias to be 8 (the number of experts), got 7}}
  %0 = nn.select_experts %x bias %b top_k 1 : tensor<4x8xf32>, tensor<7xf32> -> tensor<4x1xi64>
  return
}

// -----

func.func @select_experts_10(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected dimension 1 of ids to be 2 (the scores' leading dimensions and top_k), got 3}}
  %0 = nn.select_experts %x top_k 2 : tensor<4x8xf32> -> tensor<4x3xi64>
  return
}

// -----

func.func @select_experts_11(%x: tensor<4x?xf32>) {
  // expected-error @below {{expected a static number of experts, got 'tensor<4x?xf32>'}}
  %0 = nn.select_experts %x top_k 2 : tensor<4x?xf32> -> tensor<4x2xi64>
  return
}

// -----

func.func @limit_experts_12(%i: tensor<4x16x2xi64>) {
  // expected-error @below {{expected a capacity of at least 1, got 0; with none every token would be dropped}}
  %0 = nn.limit_experts %i capacity 0 scope 1 : tensor<4x16x2xi64>
  return
}

// -----

func.func @limit_experts_13(%i: tensor<4x16x2xi64>) {
  // expected-error @below {{expected a scope of at least 1 sequence, or 0 for the whole batch, got -1}}
  %0 = nn.limit_experts %i capacity 1 scope -1 : tensor<4x16x2xi64>
  return
}

// -----

func.func @limit_experts_14(%i: tensor<4x16xi64>) {
  // expected-error @below {{expected ids of rank 3, got 'tensor<4x16xi64>'}}
  %0 = nn.limit_experts %i capacity 1 scope 1 : tensor<4x16xi64>
  return
}

// -----

func.func @dispatch_15(%x: tensor<4x16x32xf32>, %i: tensor<4x15x2xi64>) {
  // expected-error @below {{expected dimension 1 of tokens to be 15 (the positions of ids and a row of the queues), got 16}}
  %0:2 = nn.dispatch %x, %i : tensor<4x16x32xf32>, tensor<4x15x2xi64> -> tensor<8x64x32xf32>, tensor<4x15x2xi64>
  return
}

// -----

func.func @dispatch_16(%x: tensor<4x16x32xf32>, %i: tensor<4x16x2xi64>) {
  // expected-error @below {{expected `slots`, as dimension 1 of the queues is dynamic}}
  %0:2 = nn.dispatch %x, %i : tensor<4x16x32xf32>, tensor<4x16x2xi64> -> tensor<8x?x32xf32>, tensor<4x16x2xi64>
  return
}

// -----

func.func @dispatch_17(%x: tensor<4x16x32xf32>, %i: tensor<4x16x2xi64>) {
  // expected-error @below {{expected queues of a static number of experts, got 'tensor<?x64x32xf32>'}}
  %0:2 = nn.dispatch %x, %i : tensor<4x16x32xf32>, tensor<4x16x2xi64> -> tensor<?x64x32xf32>, tensor<4x16x2xi64>
  return
}

// -----

func.func @dispatch_18(%x: tensor<4x16x32xf32>, %i: tensor<4x16x2xi64>) {
  // expected-error @below {{expected dimension 2 of slot to be 2 (as ids), got 3}}
  %0:2 = nn.dispatch %x, %i : tensor<4x16x32xf32>, tensor<4x16x2xi64> -> tensor<8x64x32xf32>, tensor<4x16x3xi64>
  return
}

// -----

func.func @combine_19(%q: tensor<8x64x32xf32>, %i: tensor<4x16x2xi64>, %w: tensor<4x16x3xf32>) {
  // expected-error @below {{expected dimension 2 of weights to be 2 (as ids), got 3}}
  %0 = nn.combine %q, %i, %i weights %w : tensor<8x64x32xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64>, tensor<4x16x3xf32> -> tensor<4x16x32xf32>
  return
}

// -----

func.func @combine_20(%q: tensor<8x64x32xf32>, %i: tensor<4x16x2xi64>) {
  // expected-error @below {{expected tokens of 'f32', as the queues, got 'tensor<4x16x32xbf16>'}}
  %0 = nn.combine %q, %i, %i : tensor<8x64x32xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64> -> tensor<4x16x32xbf16>
  return
}

// -----

func.func @fill_queues_21(%x: tensor<4x16x32xf32>, %i: tensor<4x16x2xi64>) {
  // expected-error @below {{expected dimension 2 of tokens to be 31 (the positions of ids and a row of the queues), got 32}}
  %0 = nn.fill_queues %x, %i, %i : tensor<4x16x32xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64> -> tensor<8x64x31xf32>
  return
}

// -----

func.func @combine_weights_grad_22(%q: tensor<8x64xf32>, %i: tensor<4x16x2xi64>, %g: tensor<4x16x32xf32>) {
  // expected-error @below {{expected queues of rank 3, got 'tensor<8x64xf32>'}}
  %0 = nn.combine_weights_grad %q, %i, %i, %g : tensor<8x64xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64>, tensor<4x16x32xf32> -> tensor<4x16x2xf32>
  return
}

// -----

func.func @balance_loss_23(%s: tensor<4x16x8xf32>, %i: tensor<4x16x2xi64>) {
  // expected-error @below {{expected the scope 1 (each sequence) or 0 (the whole batch), got 2}}
  %0 = nn.balance_loss %s, %i coefficient 0.1 scope 2 : tensor<4x16x8xf32>, tensor<4x16x2xi64> -> tensor<f32>
  return
}

// -----

func.func @balance_loss_24(%s: tensor<4x16x8xf32>, %i: tensor<4x16x2xi64>) {
  // expected-error @below {{expected a positive coefficient, got -1.000000e-01}}
  %0 = nn.balance_loss %s, %i coefficient -0.1 scope 1 : tensor<4x16x8xf32>, tensor<4x16x2xi64> -> tensor<f32>
  return
}

// -----

func.func @balance_loss_25(%s: tensor<4x16x8xf32>, %i: tensor<4x15x2xi64>) {
  // expected-error @below {{expected dimension 1 of ids to be 16 (the positions of the scores), got 15}}
  %0 = nn.balance_loss %s, %i coefficient 0.1 scope 1 : tensor<4x16x8xf32>, tensor<4x15x2xi64> -> tensor<f32>
  return
}

// -----

func.func @balance_loss_26(%s: tensor<?x16x8xf32>, %i: tensor<?x16x2xi64>) {
  // expected-error @below {{expected dimension 0 of scores and ids to be static}}
  %0 = nn.balance_loss %s, %i coefficient 0.1 scope 0 : tensor<?x16x8xf32>, tensor<?x16x2xi64> -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_27(%i: tensor<4x16x2xi64>, %g: tensor<1xf32>) {
  // expected-error @below {{expected grad of rank 0, got 'tensor<1xf32>'}}
  %0 = nn.balance_loss_grad %i, %g coefficient 0.1 scope 1 : tensor<4x16x2xi64>, tensor<1xf32> -> tensor<4x16x8xf32>
  return
}

// -----

func.func @count_queues_26(%i: tensor<4x16x2xi64>, %s: tensor<4x15x2xi64>) {
  // expected-error @below {{expected dimension 1 of slot to be 16 (as ids), got 15}}
  %0 = nn.count_queues %i, %s slots 64 parts 4 : tensor<4x16x2xi64>, tensor<4x15x2xi64> -> tensor<8x4xi64>
  return
}

// -----

func.func @count_queues_27(%i: tensor<4x16x2xi64>) {
  // expected-error @below {{expected at least 1 slot and 1 part, got 64 and 0}}
  %0 = nn.count_queues %i, %i slots 64 parts 0 : tensor<4x16x2xi64>, tensor<4x16x2xi64> -> tensor<8x4xi64>
  return
}

// -----

func.func @count_queues_28(%i: tensor<4x16x2xi64>) {
  // expected-error @below {{expected counts of a static shape, got 'tensor<8x?xi64>'}}
  %0 = nn.count_queues %i, %i slots 64 parts 4 : tensor<4x16x2xi64>, tensor<4x16x2xi64> -> tensor<8x?xi64>
  return
}
