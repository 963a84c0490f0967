//===- NNOps.td - The transformer's own ops ----------------*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NN_OPS_TD
#define NN_OPS_TD

include "Parc/ParcInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::mlir::nn";
  let summary = "the ops that a transformer paper names and upstream lacks";
  let description = [{
    Each op has factors (what can be split in it), a gradient, and a
    decomposition into upstream ops, which is its definition. All of that lives
    with the op. Ops work on ranked tensors of floats; indices are i64.

    Wherever a description says `B`, `S`, `H`, `D`: sequences, positions, heads,
    elements a head. The first two dimensions of an activation are `B x S`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::parc::ParcDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, !listconcat([Pure,
        DeclareOpInterfaceMethods<Parc_DecomposableOpInterface>], traits)> {
  let hasVerifier = 1;
}

defvar Shardable = DeclareOpInterfaceMethods<Parc_ShardableOpInterface>;
defvar ShardableWithOffset =
    DeclareOpInterfaceMethods<Parc_ShardableOpInterface, ["setFactorOffset"]>;
defvar ShardableLocal = DeclareOpInterfaceMethods<
    Parc_ShardableOpInterface, ["setFactorOffset", "buildLocal"]>;
defvar ShardableFolded = DeclareOpInterfaceMethods<
    Parc_ShardableOpInterface, ["setFactorOffset", "setFactorFold", "buildLocal"]>;
defvar Queue = DeclareOpInterfaceMethods<Parc_QueueOpInterface>;
defvar Ring = DeclareOpInterfaceMethods<Parc_RingOpInterface>;
defvar ShardableWithLocal =
    DeclareOpInterfaceMethods<Parc_ShardableOpInterface, ["buildLocal"]>;
defvar Differentiable = DeclareOpInterfaceMethods<Parc_DifferentiableOpInterface>;

//===----------------------------------------------------------------------===//
// Linear maps and lookups
//===----------------------------------------------------------------------===//

def NN_LinearOp : NN_Op<"linear", [Shardable, Differentiable]> {
  let summary = "y = x W^T";
  let description = [{
    Contracts the last dimension of `input` (`... x K`) with a weight
    `N x K`, or `K x N` if `transposed` (the Conv1D layout). No bias: see
    `nn.bias_add`. Its gradients are contractions (`linalg.contract`).

    Factors: every leading dimension, N, and K (split: the result is partial).

    Example:
    ```mlir
    %y = nn.linear %x, %w : tensor<4x16x32xf32>, tensor<56x32xf32> -> tensor<4x16x56xf32>
    ```
    Made by hand and by import; decomposed by `parc-decompose`.

    Constraints: input's last dimension is the weight's K; result is the
    input's leading dimensions and N; one element type.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$weight, UnitAttr:$transposed);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`transposed` $transposed^)? attr-dict
    `:` type($input) `,` type($weight) `->` type($result)
  }];
}

def NN_BiasAddOp : NN_Op<"bias_add", [Shardable, Differentiable, AllTypesMatch<["input", "result"]>]> {
  let summary = "adds a vector to every row";
  let description = [{
    Adds `bias` (`N`) to `input` (`... x N`). Jointly linear in both, so a
    partial input is reduced before it: a bias is never added on every rank.

    Example: `%z = nn.bias_add %y, %b : tensor<4x16x56xf32>, tensor<56xf32>`

    Constraints: the bias's size is the input's last dimension.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$bias);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `,` $bias attr-dict `:` type($input) `,` type($bias)";
}

def NN_EmbeddingOp : NN_Op<"embedding", [ShardableWithOffset, Differentiable]> {
  let summary = "looks rows of a table up";
  let description = [{
    Row `ids[b, s]` of `table` (`V x N`) for each id. A row outside the local
    part of the table (which starts at `start`) gives zero, so that the result
    is partial where V is split: the vocabulary-parallel embedding of
    Megatron-LM (arXiv:1909.08053, section 3).

    Example:
    ```mlir
    %x = nn.embedding %ids, %table : tensor<4x16xi64>, tensor<97x32xf32> -> tensor<4x16x32xf32>
    ```
    Constraints: ids are i64; result is the shape of ids and N.
  }];
  let arguments = (ins AnyRankedTensor:$ids, AnyRankedTensor:$table, Optional<Index>:$start);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $ids `,` $table (`from` $start^)? attr-dict `:` type($ids) `,` type($table) `->` type($result)
  }];
}

def NN_EmbeddingGradOp : NN_Op<"embedding_grad", [AttrSizedOperandSegments, ShardableLocal]> {
  let summary = "adds rows into a table";
  let description = [{
    Row v of the result (`V x N`) is the sum of the rows of `grad` whose id is v.
    Rows outside the local part of the table (which starts at `start`) are left
    out. Partial where the ids' dimensions are split. `rows` is the number of
    rows, where the type does not say. Made by the gradient of `nn.embedding`.

    Example:
    ```mlir
    %dt = nn.embedding_grad %ids, %dx : tensor<4x16xi64>, tensor<4x16x32xf32> -> tensor<97x32xf32>
    ```
    Constraints: ids are i64; grad is the shape of ids and N; `rows` is given
    where the result's first dimension is dynamic.
  }];
  let arguments = (ins AnyRankedTensor:$ids, AnyRankedTensor:$grad, Optional<Index>:$start,
                       Optional<Index>:$rows);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $ids `,` $grad (`from` $start^)? (`rows` $rows^)? attr-dict `:` type($ids) `,` type($grad) `->` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

def NN_RmsNormOp : NN_Op<"rms_norm", [Shardable, Differentiable, AllTypesMatch<["input", "result"]>]> {
  let summary = "x / rms(x) * w over the last dimension";
  let description = [{
    `y = x * rsqrt(mean(x^2) + epsilon) * weight` (arXiv:1910.07467). The last
    dimension is needed whole.

    Example: `%y = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<32xf32>`

    Constraints: the weight's size is the last dimension; epsilon is positive.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$weight, F64Attr:$epsilon);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `,` $weight `epsilon` $epsilon attr-dict `:` type($input) `,` type($weight)";
}

def NN_RmsNormInputGradOp : NN_Op<"rms_norm_input_grad", [Shardable]> {
  let summary = "gradient of nn.rms_norm for its input";
  let description = [{
    Linear in `grad`. Made by the gradient of `nn.rms_norm`.

    Example: `%dx = nn.rms_norm_input_grad %x, %w, %dy epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<32xf32>, tensor<4x16x32xf32> -> tensor<4x16x32xf32>`

    Constraints: as `nn.rms_norm`; grad and result have the input's shape.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$weight, AnyRankedTensor:$grad, F64Attr:$epsilon);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `,` $weight `,` $grad `epsilon` $epsilon attr-dict `:` type($input) `,` type($weight) `,` type($grad) `->` type($result)";
}

def NN_RmsNormWeightGradOp : NN_Op<"rms_norm_weight_grad", [Shardable]> {
  let summary = "gradient of nn.rms_norm for its weight";
  let description = [{
    A sum over rows: partial where a leading dimension is split. Made by the
    gradient of `nn.rms_norm`.

    Example: `%dw = nn.rms_norm_weight_grad %x, %dy epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<4x16x32xf32> -> tensor<32xf32>`

    Constraints: grad has the input's shape; the result's size is the last
    dimension; epsilon is positive.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$grad, F64Attr:$epsilon);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `,` $grad `epsilon` $epsilon attr-dict `:` type($input) `,` type($grad) `->` type($result)";
}

def NN_LayerNormOp : NN_Op<"layer_norm", [Shardable, Differentiable, AllTypesMatch<["weight", "bias"]>, AllTypesMatch<["input", "result"]>]> {
  let summary = "(x - mean) / deviation * w + b over the last dimension";
  let description = [{
    `y = (x - mean(x)) * rsqrt(var(x) + epsilon) * weight + bias`, var being the
    biased variance (arXiv:1607.06450). The last dimension is needed whole.

    Example: `%y = nn.layer_norm %x, %w, %b epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<32xf32>`

    Constraints: weight and bias have the size of the last dimension; epsilon is positive.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$weight, AnyRankedTensor:$bias, F64Attr:$epsilon);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `,` $weight `,` $bias `epsilon` $epsilon attr-dict `:` type($input) `,` type($weight)";
}

def NN_LayerNormInputGradOp : NN_Op<"layer_norm_input_grad", [Shardable]> {
  let summary = "gradient of nn.layer_norm for its input";
  let description = [{
    Linear in `grad`. Made by the gradient of `nn.layer_norm`.

    Example: `%dx = nn.layer_norm_input_grad %x, %w, %dy epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<32xf32>, tensor<4x16x32xf32> -> tensor<4x16x32xf32>`

    Constraints: as `nn.layer_norm`; grad and result have the input's shape.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$weight, AnyRankedTensor:$grad, F64Attr:$epsilon);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `,` $weight `,` $grad `epsilon` $epsilon attr-dict `:` type($input) `,` type($weight) `,` type($grad) `->` type($result)";
}

def NN_LayerNormWeightGradOp : NN_Op<"layer_norm_weight_grad", [Shardable]> {
  let summary = "gradient of nn.layer_norm for its weight";
  let description = [{
    A sum over rows: partial where a leading dimension is split. The bias's
    gradient is a plain sum of `grad`. Made by the gradient of `nn.layer_norm`.

    Example: `%dw = nn.layer_norm_weight_grad %x, %dy epsilon 1.0e-5 : tensor<4x16x32xf32>, tensor<4x16x32xf32> -> tensor<32xf32>`

    Constraints: grad has the input's shape; the result's size is the last
    dimension; epsilon is positive.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$grad, F64Attr:$epsilon);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `,` $grad `epsilon` $epsilon attr-dict `:` type($input) `,` type($grad) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

class NN_ActivationOp<string mnemonic> : NN_Op<mnemonic, [Shardable, Differentiable, AllTypesMatch<["input", "result"]>]> {
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

class NN_ActivationGradOp<string mnemonic> : NN_Op<mnemonic, [Shardable]> {
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$grad);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `,` $grad attr-dict `:` type($input) `,` type($grad) `->` type($result)";
}

def NN_SiluOp : NN_ActivationOp<"silu"> {
  let summary = "x * sigmoid(x)";
  let description = [{
    Element by element (arXiv:1702.03118). Gated with `arith.mulf` it is SwiGLU.

    Example: `%y = nn.silu %x : tensor<4x16x56xf32>`
  }];
}
def NN_SiluGradOp : NN_ActivationGradOp<"silu_grad"> {
  let summary = "gradient of nn.silu";
  let description = [{
    `grad * s * (1 + x * (1 - s))` with `s = sigmoid(x)`. Made by the gradient
    of `nn.silu`.

    Example: `%dx = nn.silu_grad %x, %dy : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>`

    Constraints: one shape.
  }];
}
def NN_GeluOp : NN_ActivationOp<"gelu"> {
  let summary = "x * Phi(x), by its tanh approximation or exactly";
  let description = [{
    `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, or with `exact` the same
    with erf(x / sqrt(2)) (arXiv:1606.08415).

    Example: `%y = nn.gelu %x : tensor<4x16x128xf32>`
  }];
  let arguments = (ins AnyRankedTensor:$input, UnitAttr:$exact);
  let assemblyFormat = "$input (`exact` $exact^)? attr-dict `:` type($input)";
}
def NN_GeluGradOp : NN_ActivationGradOp<"gelu_grad"> {
  let summary = "gradient of nn.gelu";
  let description = [{
    The derivative of the same form times `grad`. Made by the gradient of `nn.gelu`.

    Example: `%dx = nn.gelu_grad %x, %dy : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>`

    Constraints: one shape.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$grad, UnitAttr:$exact);
  let assemblyFormat = "$input `,` $grad (`exact` $exact^)? attr-dict `:` type($input) `,` type($grad) `->` type($result)";
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def NN_RopeTableOp : NN_Op<"rope_table", [Shardable, AllTypesMatch<["cos", "sin"]>]> {
  let summary = "cosines and sines of rotary positions";
  let description = [{
    `cos[b, s, j] = scale * cos(positions[b, s] * frequencies[j])`, sin alike:
    results `B x S x D/2` (arXiv:2104.09864). Scaled variants differ in the
    frequencies only, which import computes.

    Example:
    ```mlir
    %c, %s = nn.rope_table %positions frequencies [1.0, 0.1] : tensor<4x16xi64> -> tensor<4x16x2xf32>
    ```
    Constraints: positions are i64; as many frequencies as the last dimension.
  }];
  let arguments = (ins AnyRankedTensor:$positions, DenseF64ArrayAttr:$frequencies,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let results = (outs AnyRankedTensor:$cos, AnyRankedTensor:$sin);
  let assemblyFormat = [{
    $positions `frequencies` custom<Doubles>($frequencies) (`scale` $scale^)? attr-dict `:` type($positions)
    `->` type($cos)
  }];
}

def NN_RopeOp : NN_Op<"rope", [Shardable, Differentiable, AllTypesMatch<["cos", "sin"]>, AllTypesMatch<["input", "result"]>]> {
  let summary = "rotates pairs of elements of each head";
  let description = [{
    `input` is `B x S x H x D`. Element j and j + D/2 (or 2j and 2j + 1 if
    `interleaved`) turn by the angle whose cosine and sine are
    `cos[b, s, j]`, `sin[b, s, j]`; backwards if `inverse` (the gradient).

    Example:
    ```mlir
    %r = nn.rope %q, %c, %s : tensor<4x16x4x8xf32>, tensor<4x16x4xf32>
    ```
    Constraints: D is even; the tables are `B x S x D/2`.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$cos, AnyRankedTensor:$sin,
                       UnitAttr:$interleaved, UnitAttr:$inverse);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `,` $cos `,` $sin (`interleaved` $interleaved^)? (`inverse` $inverse^)? attr-dict
    `:` type($input) `,` type($cos)
  }];
}

def NN_AttentionOp : NN_Op<"attention", [AttrSizedOperandSegments, ShardableFolded, Differentiable, Ring]> {
  let summary = "softmax(q k^T scale) v, grouped-query";
  let description = [{
    `query` is `B x S x H x D`, `key` `B x T x G x D`, `value` `B x T x G x E`,
    the result `B x S x H x E`; H is a multiple of G, and query head h reads
    key head h / (H/G). Position `query_positions[b, s]` sees
    `key_positions[b, t]` if that is not later (`causal`), and less than
    `window` earlier; a position that sees none gives no number. With `dropout`
    (a probability), a probability is dropped by the row-major index of its
    element in B x H x S x T, `seed` and `stream` (see `nn.dropout`).

    In a local op `batch_start`, `query_start` and `head_start` tell where the
    local part starts, `shape` the global B, H, S, T, and `fold` that S and T are
    folded for so many parts (all for dropout; see `nn.fold`), and `group` the H/G
    that dynamic sizes hide. `within_groups` says that the local query heads are
    a part of those that share the local key heads: query head h is then the
    global head `head_start + h`, and the first local key head is that of the
    part of G (an even split) that `head_start` lies in.

    Factors: B, S, T (needed whole), G (split:
    heads go by groups), H/G (split where there are more parts than groups:
    keys and values are then held by several ranks, and their gradients are
    partial), D and E (whole).

    With `ring` (axes), S and T are one factor, split: keys and values are split
    as queries are and pass by, only `key_positions` are whole. `of` says, in a
    local op, that factor's extent and grain.

    Example:
    ```mlir
    %o = nn.attention %q, %k, %v positions(%p, %p) causal scale 0.35355339059327379 :
        tensor<4x16x4x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16x2x8xf32>, tensor<4x16xi64>, tensor<4x16xi64> -> tensor<4x16x4x8xf32>
    ```
    Constraints: shapes as above; positions are i64; window, group and scale
    positive; dropout in [0, 1), with a scalar i64 seed.
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value,
                       AnyRankedTensor:$query_positions, AnyRankedTensor:$key_positions,
                       Optional<AnyRankedTensor>:$seed, Optional<Index>:$stream,
                       Optional<Index>:$batch_start, Optional<Index>:$query_start, Optional<Index>:$head_start,
                       UnitAttr:$causal, OptionalAttr<I64Attr>:$window, F64Attr:$scale,
                       DefaultValuedAttr<F64Attr, "0.0">:$dropout,
                       DefaultValuedAttr<I64Attr, "0">:$site,
                       OptionalAttr<I64Attr>:$group, UnitAttr:$within_groups,
                       OptionalAttr<DenseI64ArrayAttr>:$shape, OptionalAttr<I64Attr>:$fold,
                       OptionalAttr<StrArrayAttr>:$ring,
                       OptionalAttr<DenseI64ArrayAttr>:$ring_of);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value `positions` `(` $query_positions `,` $key_positions `)`
    (`causal` $causal^)? (`window` $window^)? `scale` $scale
    (`dropout` $dropout^)? (`site` $site^)? (`seed` $seed^)? (`stream` $stream^)?
    (`batch_start` $batch_start^)? (`query_start` $query_start^)? (`head_start` $head_start^)? (`group` $group^)? (`within_groups` $within_groups^)? (`in` $shape^)? (`fold` $fold^)?
    (`ring` $ring^)? (`of` $ring_of^)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($query_positions) `,` type($key_positions)
    (`,` type($seed)^)? `->` type($result)
  }];
}

def NN_AttentionGradOp : NN_Op<"attention_grad", [AttrSizedOperandSegments, ShardableFolded, Ring]> {
  let summary = "gradients of nn.attention";
  let description = [{
    The gradients for query, key and value. Probabilities are computed again.
    Made by the gradient of `nn.attention`.

    Example:
    ```mlir
    %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %do positions(%p, %p) causal scale 0.5 :
        tensor<4x16x4x4xf32>, tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>, tensor<4x16x4x4xf32>, tensor<4x16xi64>, tensor<4x16xi64>
        -> tensor<4x16x4x4xf32>, tensor<4x16x2x4xf32>, tensor<4x16x2x4xf32>
    ```
    Constraints: as `nn.attention`; grad has the shape of its result, and each
    result that of its operand.
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key, AnyRankedTensor:$value,
                       AnyRankedTensor:$grad,
                       AnyRankedTensor:$query_positions, AnyRankedTensor:$key_positions,
                       Optional<AnyRankedTensor>:$seed, Optional<Index>:$stream,
                       Optional<Index>:$batch_start, Optional<Index>:$query_start, Optional<Index>:$head_start,
                       UnitAttr:$causal, OptionalAttr<I64Attr>:$window, F64Attr:$scale,
                       DefaultValuedAttr<F64Attr, "0.0">:$dropout,
                       DefaultValuedAttr<I64Attr, "0">:$site,
                       OptionalAttr<I64Attr>:$group, UnitAttr:$within_groups,
                       OptionalAttr<DenseI64ArrayAttr>:$shape, OptionalAttr<I64Attr>:$fold,
                       OptionalAttr<StrArrayAttr>:$ring,
                       OptionalAttr<DenseI64ArrayAttr>:$ring_of);
  let results = (outs AnyRankedTensor:$query_grad, AnyRankedTensor:$key_grad, AnyRankedTensor:$value_grad);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $grad `positions` `(` $query_positions `,` $key_positions `)`
    (`causal` $causal^)? (`window` $window^)? `scale` $scale
    (`dropout` $dropout^)? (`site` $site^)? (`seed` $seed^)? (`stream` $stream^)?
    (`batch_start` $batch_start^)? (`query_start` $query_start^)? (`head_start` $head_start^)? (`group` $group^)? (`within_groups` $within_groups^)? (`in` $shape^)? (`fold` $fold^)?
    (`ring` $ring^)? (`of` $ring_of^)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($grad) `,` type($query_positions) `,` type($key_positions)
    (`,` type($seed)^)? `->` type($query_grad) `,` type($key_grad) `,` type($value_grad)
  }];
}

//===----------------------------------------------------------------------===//
// Dropout
//===----------------------------------------------------------------------===//

def NN_DropoutOp : NN_Op<"dropout", [AttrSizedOperandSegments, ShardableFolded, Differentiable, AllTypesMatch<["input", "result"]>]> {
  let summary = "drops elements by their global index";
  let description = [{
    Element with global (row-major) index i is zero with probability `rate`,
    else divided by `1 - rate`. The decision is a function of `seed` (an i64
    scalar that changes each step), `site` (which dropout of the body), `stream`
    (the layer, 0 unless given) and i alone: no layout or micro-batching changes
    it. `starts` are the global starts of the local part, one a dimension, and
    `shape` the global shape; both are set where the op is local. `fold` gives for
    each dimension the parts it is folded for (0: it is not; see `nn.fold`). Its
    gradient is itself.

    The generator is that of the runtime's `random.h`, modulo 2^64: with
    `chain(h, w) = mix((h ^ w) + G)`, mix being the finaliser of splitmix64 and
    G = 0x9e3779b97f4a7c15, the key is `chain(chain(seed, site), stream)`; the
    bits are `mix(key + (i + 1) G)`, and an element stays where
    `bits >> 11 >= ceil(rate * 2^53)`. So the seed operand is
    `chain(chain(0, seed), step)` of the run's seed and step.

    Example:
    ```mlir
    %y = nn.dropout %x seed %seed stream %layer rate 0.1 site 2 : tensor<4x16x32xf32>, tensor<i64>
    ```
    Constraints: rate in [0, 1); the seed is a scalar i64 tensor; starts and
    shape come together, one a dimension.
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$seed, Optional<Index>:$stream,
                       Variadic<Index>:$starts, F64Attr:$rate, I64Attr:$site,
                       OptionalAttr<DenseI64ArrayAttr>:$shape, OptionalAttr<DenseI64ArrayAttr>:$fold);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `seed` $seed (`stream` $stream^)? (`starts` $starts^ `in` $shape)? (`fold` $fold^)? `rate` $rate `site` $site attr-dict
    `:` type($input) `,` type($seed)
  }];
}

//===----------------------------------------------------------------------===//
// Order of the sequence
//===----------------------------------------------------------------------===//

def NN_FoldOp : NN_Op<"fold", [Shardable, AllTypesMatch<["input", "result"]>]> {
  let summary = "reorders a dimension so that each part gets both ends of it";
  let description = [{
    Index j of dimension `dim` of the result is index `foldedIndex(n, parts, j)`
    of the input: of `parts` equal parts of the result, part i holds block i from
    the front and block i from the back. A causal mask then leaves every part the
    same work (contiguous parts of four: 1.75 times the mean on the last). The
    program behind it runs on the folded sequence; positions and labels are
    folded with it, and ops that go by index are told (`setFactorFold`).

    Made by `parc-balance-sequence` at the step's inputs, before propagation.

    Factors: all dimensions; `dim` is needed whole.

    Example: `%t = nn.fold %tokens dim 1 parts 4 : tensor<4x16xi64>`

    Constraints: integers; dim is a dimension, of static size; parts is positive.
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$dim, I64Attr:$parts);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `dim` $dim `parts` $parts attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

def NN_SoftmaxCrossEntropyOp : NN_Op<"softmax_cross_entropy", [Differentiable]> {
  let summary = "summed negative log-likelihood of the labels";
  let description = [{
    Over `logits` (`B x S x V`) and `labels` (`B x S`, i64; a negative one, by convention -100, is ignored): the sum of
    `logsumexp(logits) - logits[label]` over valid tokens, the number of valid
    tokens (as a float), and the logsumexp of each row, kept for the gradient.
    It has no factors: it is decomposed before propagation, and a split
    vocabulary gives partial maxima and sums (three all-reduces, none backward).

    Example:
    ```mlir
    %loss, %count, %lse = nn.softmax_cross_entropy %logits, %labels :
        tensor<4x16x97xf32>, tensor<4x16xi64> -> tensor<f32>, tensor<f32>, tensor<4x16xf32>
    ```
    Constraints: shapes as above; results are of the logits' element type.
  }];
  let arguments = (ins AnyRankedTensor:$logits, AnyRankedTensor:$labels);
  let results = (outs AnyRankedTensor:$loss, AnyRankedTensor:$count, AnyRankedTensor:$log_sum_exp);
  let assemblyFormat = [{
    $logits `,` $labels attr-dict `:` type($logits) `,` type($labels) `->` type($loss) `,` type($count) `,` type($log_sum_exp)
  }];
}

def NN_SoftmaxCrossEntropyGradOp : NN_Op<"softmax_cross_entropy_grad"> {
  let summary = "gradient of nn.softmax_cross_entropy for its logits";
  let description = [{
    `(exp(logits - lse) - onehot(label)) * grad` in valid rows, zero in the others.
    Made by the gradient of `nn.softmax_cross_entropy`.

    Example:
    ```mlir
    %dl = nn.softmax_cross_entropy_grad %logits, %labels, %lse, %d :
        tensor<4x16x97xf32>, tensor<4x16xi64>, tensor<4x16xf32>, tensor<f32> -> tensor<4x16x97xf32>
    ```
    Constraints: shapes as above; grad is a scalar.
  }];
  let arguments = (ins AnyRankedTensor:$logits, AnyRankedTensor:$labels, AnyRankedTensor:$log_sum_exp, AnyRankedTensor:$grad);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $logits `,` $labels `,` $log_sum_exp `,` $grad attr-dict
    `:` type($logits) `,` type($labels) `,` type($log_sum_exp) `,` type($grad) `->` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

def NN_SumSquaresOp : NN_Op<"sum_squares", [Shardable]> {
  let summary = "sum of the squares of all elements";
  let description = [{
    A scalar; partial where a dimension is split. Used for the gradient norm.

    Example: `%s = nn.sum_squares %g : tensor<56x32xf32> -> tensor<f32>`

    Constraints: the result is a scalar float.
  }];
  let arguments = (ins AnyRankedTensor:$input);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def NN_AddNOp : NN_Op<"add_n", [Shardable]> {
  let summary = "the sum of its operands";
  let description = [{
    Element by element, jointly linear: partial and whole operands may be summed
    before one reduction.

    Example: `%s = nn.add_n %a, %b : tensor<f32>, tensor<f32> -> tensor<f32>`

    Constraints: at least one operand; one shape.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs) `->` type($result)";
}

def NN_AdamWOp : NN_Op<"adamw", [Shardable, AllTypesMatch<["param", "new_param"]>,
    AllTypesMatch<["m", "new_m"]>, AllTypesMatch<["v", "new_v"]>,
    AllTypesMatch<["lr", "beta1", "beta2", "eps", "decay", "correction1", "correction2", "grad_scale"]>]> {
  let summary = "one step of AdamW for one parameter";
  let description = [{
    With decoupled decay (arXiv:1711.05101): `g = grad * grad_scale`,
    `m' = b1 m + (1-b1) g`, `v' = b2 v + (1-b2) g^2`,
    `p' = p (1 - lr decay) - lr (m'/(1-b1^t)) / (sqrt(v'/(1-b2^t)) + eps)`.
    The scalars are rank-0 tensors: learning rate, b1, b2, eps, decay, the two
    bias corrections `1-b1^t` and `1-b2^t`, and the scale of the gradient
    (1 / valid tokens, times the clipping factor).

    Example:
    ```mlir
    %p2, %m2, %v2 = nn.adamw %p, %g, %m, %v scalars(%lr, %b1, %b2, %eps, %wd, %c1, %c2, %scale) :
        tensor<56x32xf32>, tensor<56x32xf32>, tensor<56x32xf32>, tensor<56x32xf32>, tensor<f32>
    ```
    Constraints: param, grad, m, v have one shape; the scalars have rank 0 and
    one type.
  }];
  let arguments = (ins AnyRankedTensor:$param, AnyRankedTensor:$grad, AnyRankedTensor:$m, AnyRankedTensor:$v,
                       AnyRankedTensor:$lr, AnyRankedTensor:$beta1, AnyRankedTensor:$beta2, AnyRankedTensor:$eps,
                       AnyRankedTensor:$decay, AnyRankedTensor:$correction1, AnyRankedTensor:$correction2,
                       AnyRankedTensor:$grad_scale);
  let results = (outs AnyRankedTensor:$new_param, AnyRankedTensor:$new_m, AnyRankedTensor:$new_v);
  let assemblyFormat = [{
    $param `,` $grad `,` $m `,` $v `scalars` `(` $lr `,` $beta1 `,` $beta2 `,` $eps `,`
    $decay `,` $correction1 `,` $correction2 `,` $grad_scale `)` attr-dict
    `:` type($param) `,` type($grad) `,` type($m) `,` type($v) `,` type($lr)
  }];
}

include "NN/NNExpertOps.td"

#endif // NN_OPS_TD
