//===- NNExpertOps.td - Mixtures of experts ----------------*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Routing of tokens to experts, and the queues that experts read. In every
/// description `E` is the number of experts, `K` how many a token chooses, `C`
/// the slots of an expert's queue.
///
//===----------------------------------------------------------------------===//

#ifndef NN_EXPERT_OPS_TD
#define NN_EXPERT_OPS_TD

//===----------------------------------------------------------------------===//
// Scores and choice
//===----------------------------------------------------------------------===//

def NN_SoftmaxOp : NN_Op<"softmax", [Shardable, Differentiable, AllTypesMatch<["input", "result"]>]> {
  let summary = "exp(x - max) / sum over the last dimension";
  let description = [{
    The last dimension is needed whole.

    Example: `%p = nn.softmax %x : tensor<4x16x8xf32>`

    Constraints: floats, of rank one or more.
  }];
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def NN_SoftmaxGradOp : NN_Op<"softmax_grad", [Shardable, AllTypesMatch<["output", "result"]>]> {
  let summary = "gradient of nn.softmax";
  let description = [{
    `p * (grad - sum(grad * p))` for the softmax's result p. Linear in `grad`.
    Made by the gradient of `nn.softmax`.

    Example: `%dx = nn.softmax_grad %p, %dp : tensor<4x16x8xf32>, tensor<4x16x8xf32>`

    Constraints: one shape, one element type.
  }];
  let arguments = (ins AnyRankedTensor:$output, AnyRankedTensor:$grad);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$output `,` $grad attr-dict `:` type($output) `,` type($grad)";
}

def NN_SelectExpertsOp : NN_Op<"select_experts", [Shardable]> {
  let summary = "the experts of largest score, best first";
  let description = [{
    For each row of `scores` (`... x E`) the numbers of the K (`top_k`) experts
    of largest `score + bias`, the lower number first where two are equal. With
    `groups` of E/groups consecutive experts only those of the `group_top_k`
    best groups are allowed. A group is as good as its best expert (`max`,
    arXiv:2405.04434) or as the sum of its two best (`top2_sum`,
    arXiv:2412.19437). The bias moves the choice only: weights are
    made of the scores. In the exact domain the order is that of the
    representatives. A row that is not numbers has experts -1, which are none.
    Not differentiable.

    Factors: every leading dimension; E and K are whole.

    Example:
    ```mlir
    %ids = nn.select_experts %scores bias %b top_k 2 groups 4 keep 2 score "top2_sum" :
        tensor<4x16x8xf32>, tensor<8xf32> -> tensor<4x16x2xi64>
    ```
    Constraints: groups divides E; at least 1 and at most `groups` are kept, of
    which K experts can be chosen; `top2_sum` needs groups of two.
  }];
  let arguments = (ins AnyRankedTensor:$scores, Optional<AnyRankedTensor>:$bias, I64Attr:$top_k,
                       DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedAttr<I64Attr, "1">:$group_top_k,
                       DefaultValuedStrAttr<StrAttr, "max">:$group_score);
  let results = (outs AnyRankedTensor:$ids);
  let assemblyFormat = [{
    $scores (`bias` $bias^)? `top_k` $top_k (`groups` $groups^)? (`keep` $group_top_k^)? (`score` $group_score^)?
    attr-dict `:` type($scores) (`,` type($bias)^)? `->` type($ids)
  }];
}

def NN_LimitExpertsOp : NN_Op<"limit_experts", [Shardable, AllTypesMatch<["ids", "result"]>, DeclareOpInterfaceMethods<Parc_BatchScopedOpInterface>]> {
  let summary = "drops the choices that exceed an expert's capacity";
  let description = [{
    `ids` (`B x S x K`), with -1 for each choice that comes after `capacity`
    others of the same expert in its scope. Choices come in global order: by
    sequence, token, then choice. A scope is `scope` consecutive sequences, or
    the whole batch where it is 0 (GShard, arXiv:2006.16668, drops like this).

    Factors: B in units of a scope; S and K are whole, so that the same choices
    are dropped on every mesh.

    Example:
    ```mlir
    %kept = nn.limit_experts %ids capacity 5 scope 1 : tensor<4x16x2xi64>
    ```
    Constraints: ids are i64; capacity is at least 1, scope at least 0; one type.
  }];
  let arguments = (ins AnyRankedTensor:$ids, I64Attr:$capacity, I64Attr:$scope);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$ids `capacity` $capacity `scope` $scope attr-dict `:` type($ids)";
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

def NN_DispatchOp : NN_Op<"dispatch", [AttrSizedOperandSegments, ShardableWithLocal, Differentiable, Queue]> {
  let summary = "puts tokens into the queues of their experts";
  let description = [{
    A copy of token `x[b, s, :]` (`B x S x H`) goes to a slot of its own in the
    queue of each expert in `ids[b, s, :]` (`B x S x K`); an id outside 0 to E-1
    is a choice that was dropped. `queues` is `E x C x H`, unused slots are
    zero; `slot[b, s, k]` is the token's slot in the queue, or -1.

    Which slot a token gets is not specified: whatever is done with queues has
    to treat slots alike. A local op deals out its own part of the slots, which
    starts at slot `start`, in the order of the tokens it sees. An expert that
    gets more than its slots stops the step (`parc.check_load`). `slots` is the
    number of slots, where the type does not say.

    Factors: B and S; H, K and E are whole. C belongs to B and S: it is split
    as they are.

    Example:
    ```mlir
    %q, %slot = nn.dispatch %x, %ids :
        tensor<4x16x32xf32>, tensor<4x16x2xi64> -> tensor<8x64x32xf32>, tensor<4x16x2xi64>
    ```
    Constraints: shapes as above; ids and slot are i64; `slots` is given where C
    is dynamic; E is static.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$ids, Optional<Index>:$start,
                       Optional<Index>:$slots);
  let results = (outs AnyRankedTensor:$queues, AnyRankedTensor:$slot);
  let assemblyFormat = [{
    $input `,` $ids (`from` $start^)? (`slots` $slots^)? attr-dict
    `:` type($input) `,` type($ids) `->` type($queues) `,` type($slot)
  }];
}

def NN_FillQueuesOp : NN_Op<"fill_queues", [AttrSizedOperandSegments, ShardableWithLocal, Differentiable, Queue]> {
  let summary = "puts tokens into given slots of their experts' queues";
  let description = [{
    As `nn.dispatch`, into the slots that it dealt out: `queues[ids, slot, :]`
    is the token's row, times its weight (`B x S x K`) where `weights` are given;
    all else is zero. The gradient of `nn.combine` for its queues.

    Factors: those of `nn.dispatch`, and H. Linear in input, and in weights.

    Example:
    ```mlir
    %dq = nn.fill_queues %dy, %ids, %slot weights %w :
        tensor<4x16x32xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64>, tensor<4x16x2xf32> -> tensor<8x64x32xf32>
    ```
    Constraints: as `nn.dispatch`; weights are floats of the shape of ids.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$ids, AnyRankedTensor:$slot,
                       Optional<AnyRankedTensor>:$weights, Optional<Index>:$start,
                       Optional<Index>:$slots);
  let results = (outs AnyRankedTensor:$queues);
  let assemblyFormat = [{
    $input `,` $ids `,` $slot (`weights` $weights^)? (`from` $start^)? (`slots` $slots^)? attr-dict
    `:` type($input) `,` type($ids) `,` type($slot) (`,` type($weights)^)? `->` type($queues)
  }];
}

def NN_CombineOp : NN_Op<"combine", [AttrSizedOperandSegments, ShardableWithLocal, Differentiable]> {
  let summary = "sums each token's rows of its experts' queues";
  let description = [{
    `result[b, s, :] = sum over k of weights[b, s, k] * queues[ids[b, s, k], slot[b, s, k], :]`
    with `slot` as `nn.dispatch` gave it; without `weights` each is one. A
    choice without a slot adds nothing. Without weights it is the gradient of
    `nn.dispatch`.

    Factors: those of `nn.dispatch`, and H. Linear in queues, and in weights.

    Example:
    ```mlir
    %y = nn.combine %q, %ids, %slot weights %w :
        tensor<8x64x32xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64>, tensor<4x16x2xf32> -> tensor<4x16x32xf32>
    ```
    Constraints: as `nn.fill_queues`.
  }];
  let arguments = (ins AnyRankedTensor:$queues, AnyRankedTensor:$ids, AnyRankedTensor:$slot,
                       Optional<AnyRankedTensor>:$weights, Optional<Index>:$start);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $queues `,` $ids `,` $slot (`weights` $weights^)? (`from` $start^)? attr-dict
    `:` type($queues) `,` type($ids) `,` type($slot) (`,` type($weights)^)? `->` type($result)
  }];
}

def NN_CombineWeightsGradOp : NN_Op<"combine_weights_grad", [ShardableWithLocal]> {
  let summary = "gradient of nn.combine for its weights";
  let description = [{
    The product of each row that was read with its token's row of `grad`
    (`B x S x H`): a sum over H, partial where that is split. Zero for a choice
    without a slot. Made by the gradients of `nn.combine` and `nn.fill_queues`.

    Example:
    ```mlir
    %dw = nn.combine_weights_grad %q, %ids, %slot, %dy :
        tensor<8x64x32xf32>, tensor<4x16x2xi64>, tensor<4x16x2xi64>, tensor<4x16x32xf32> -> tensor<4x16x2xf32>
    ```
    Constraints: as `nn.combine`.
  }];
  let arguments = (ins AnyRankedTensor:$queues, AnyRankedTensor:$ids, AnyRankedTensor:$slot,
                       AnyRankedTensor:$grad, Optional<Index>:$start);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $queues `,` $ids `,` $slot `,` $grad (`from` $start^)? attr-dict
    `:` type($queues) `,` type($ids) `,` type($slot) `,` type($grad) `->` type($result)
  }];
}

def NN_CountQueuesOp : NN_Op<"count_queues", [ShardableWithLocal]> {
  let summary = "how many slots of each part of queues are taken";
  let description = [{
    `result[e, p]`: the choices of expert e whose slot is in part p of `parts`
    equal ones (`parc.part_start`) of `slots`. `ids` and `slot` (`B x S x K`) are as
    `nn.dispatch` gave them. Made where queues are exchanged: the counts go first,
    then only what is there. A local op counts for its own parts, which start at
    part `start`.

    Factors: those of `nn.dispatch`; the parts belong to B and S, as the slots do.

    Example:
    ```mlir
    %n = nn.count_queues %ids, %slot slots 64 parts 4 :
        tensor<4x16x2xi64>, tensor<4x16x2xi64> -> tensor<8x4xi64>
    ```
    Constraints: shapes as above; all are i64; at least one slot and part. Axes
    that split B and S cut the slots where they cut the parts: the product of
    their sizes divides `parts`.
  }];
  let arguments = (ins AnyRankedTensor:$ids, AnyRankedTensor:$slot, I64Attr:$slots,
                       I64Attr:$parts, Optional<Index>:$start);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $ids `,` $slot `slots` $slots `parts` $parts (`from` $start^)? attr-dict
    `:` type($ids) `,` type($slot) `->` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Balance
//===----------------------------------------------------------------------===//

def NN_BalanceLossOp : NN_Op<"balance_loss", [Shardable, Differentiable, DeclareOpInterfaceMethods<Parc_BatchScopedOpInterface>]> {
  let summary = "the loss that makes routers spread tokens over experts";
  let description = [{
    `coefficient * E * sum over e of f_e * P_e` of each scope, times the scope's
    tokens: like the loss of the labels it is a sum over tokens, to be divided
    by their number. `f_e` is the fraction of the scope's choices (`ids`,
    `B x S x K`) that are e, `P_e` the mean of its `scores` (`B x S x E`)
    (Switch Transformer, arXiv:2101.03961; K times less than where f_e counts
    choices a token). A scope is each sequence (`scope` 1) or the whole batch
    (0). Differentiable in the scores.

    Factors: B, unless the scope is the batch; S, E and K are whole.

    Example:
    ```mlir
    %l = nn.balance_loss %scores, %ids coefficient 1.0e-3 scope 1 :
        tensor<4x16x8xf32>, tensor<4x16x2xi64> -> tensor<f32>
    ```
    Constraints: shapes as above; scope is 0 or 1; a scalar of the scores' type.
  }];
  let arguments = (ins AnyRankedTensor:$scores, AnyRankedTensor:$ids, F64Attr:$coefficient, I64Attr:$scope);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $scores `,` $ids `coefficient` $coefficient `scope` $scope attr-dict
    `:` type($scores) `,` type($ids) `->` type($result)
  }];
}

def NN_BalanceLossGradOp : NN_Op<"balance_loss_grad", [Shardable, DeclareOpInterfaceMethods<Parc_BatchScopedOpInterface>]> {
  let summary = "gradient of nn.balance_loss for its scores";
  let description = [{
    `grad * coefficient * E * f_e` for every token of a scope. Made by the
    gradient of `nn.balance_loss`.

    Example:
    ```mlir
    %ds = nn.balance_loss_grad %ids, %d coefficient 1.0e-3 scope 1 :
        tensor<4x16x2xi64>, tensor<f32> -> tensor<4x16x8xf32>
    ```
    Constraints: as `nn.balance_loss`.
  }];
  let arguments = (ins AnyRankedTensor:$ids, AnyRankedTensor:$grad, F64Attr:$coefficient, I64Attr:$scope);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $ids `,` $grad `coefficient` $coefficient `scope` $scope attr-dict
    `:` type($ids) `,` type($grad) `->` type($result)
  }];
}

#endif // NN_EXPERT_OPS_TD
