//===- ParcModelOps.td - Model, step and sharding ops -----------*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARC_MODEL_OPS_TD
#define PARC_MODEL_OPS_TD

include "ParcAttrs.td"
include "ParcInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

class Parc_Op<string mnemonic, list<Trait> traits = []>
    : Op<Parc_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Module-level declarations
//===----------------------------------------------------------------------===//

def Parc_MeshOp : Parc_Op<"mesh"> {
  let summary = "the named axes of devices";
  let description = [{
    Declares the mesh. A module has at most one; `--mesh` replaces it.
    `order` lists the axes from the one whose coordinate changes fastest with
    the rank; without it the mesh is row-major in its own order.

    Example:
    ```mlir
    parc.mesh ["tp", "pp", "dp"] sizes [8, 16, 4]
    ```
    Written by hand or by the driver; read by every pass from propagation on.

    Constraints: as many sizes as axes; no axis twice; sizes at least one.
  }];
  let arguments = (ins StrArrayAttr:$axes, DenseI64ArrayAttr:$sizes,
                       OptionalAttr<StrArrayAttr>:$order);
  let assemblyFormat = "$axes `sizes` $sizes (`order` $order^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The size of `axis`; 1 for an axis that the mesh does not have.
    int64_t sizeOf(StringRef axis);
    bool hasAxis(StringRef axis);
  }];
}

def Parc_ParamOp : Parc_Op<"param", [Symbol]> {
  let summary = "a parameter of the model";
  let description = [{
    A parameter: its type, and for a repeated layer how many `layers` have
    one. `std` is the deviation of its initial normal values, `value` a
    constant initial value instead. `checkpoint` says where a checkpoint keeps
    it; layer `l` is called `l * layer_stride + layer_base` there. `no_decay`
    leaves it out of weight decay. `sharding` is a constraint.
    `slot_shardings` says how slots lie that lie otherwise than `sharding`, the
    layout in which the model uses the value: `value`, `grad`, and `state` for
    all slots that only an update uses. `slot_types` says in which element type
    slots are kept that are not kept in the value's: `grad` (what gradients are
    accumulated and reduced in) and `state`.

    Beside its value it has slots: `grad`, and what the optimizer keeps (`m`,
    `v`). Where the state is wider than the value, the slot `master` has the
    value in that width: it is what an update changes, and the value is its
    rounding.

    Example:
    ```mlir
    parc.param @q : tensor<32x32xf32> layers 3 {
      std = 0.02 : f64, checkpoint = #parc.checkpoint<"layers.{}.q.weight">}
    parc.param @k : tensor<32x32xbf16> layers 3 {slot_types = {grad = f32, state = f32}}
    ```
    Written by hand or by import; `parc-slot-types` sets `slot_types`,
    propagation sets `sharding`, `parc-local` makes the type local.

    Constraints: a ranked tensor of floats; `std` and `value` exclude each
    other; a checkpoint box lies inside its tensor; rows that are tensors need
    a dimension and have no box; `slot_types` has floats at least as wide as
    the value, for `grad` and `state` only.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
                       OptionalAttr<I64Attr>:$layers,
                       OptionalAttr<F64Attr>:$std, OptionalAttr<F64Attr>:$value,
                       OptionalAttr<Parc_CheckpointAttr>:$checkpoint,
                       DefaultValuedAttr<I64Attr, "0">:$layer_base,
                       DefaultValuedAttr<I64Attr, "1">:$layer_stride,
                       UnitAttr:$no_decay,
                       OptionalAttr<Parc_ShardingAttr>:$sharding,
                       OptionalAttr<DictionaryAttr>:$slot_shardings,
                       OptionalAttr<DictionaryAttr>:$slot_types);
  let assemblyFormat = "$sym_name `:` $type (`layers` $layers^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    RankedTensorType getTensorType() { return cast<RankedTensorType>(getType()); }
    /// How a slot lies; null where nothing says so.
    ShardingAttr getSlotSharding(StringRef slot);
    /// The element type that a slot is kept in.
    FloatType getSlotElementType(StringRef slot);
    /// The type of a slot, in the shape of the value.
    RankedTensorType getSlotType(StringRef slot);
    /// True where an update works on a wider copy of the value.
    bool hasMaster();
    /// The checkpoint's name of layer `layer` (0 where there are no layers),
    /// and of row `row` where each row is a tensor.
    std::string getCheckpointName(int64_t layer, int64_t row = 0);
    /// How many tensors of the checkpoint hold a layer: 1, or one a row.
    int64_t getCheckpointRows();
    /// The shape of each of those tensors.
    ArrayRef<int64_t> getCheckpointShape();
  }];
}

//===----------------------------------------------------------------------===//
// Access to parameters
//===----------------------------------------------------------------------===//

class Parc_ParamAccessOp<string mnemonic>
    : Parc_Op<mnemonic, [DeclareOpInterfaceMethods<SymbolUserOpInterface>]>;

def Parc_LoadOp : Parc_ParamAccessOp<"load"> {
  let summary = "the value of a parameter, or of one of its slots";
  let description = [{
    Inside a stack, a parameter with layers gives this layer's. `slot` is
    `value` unless said: `grad` (as accumulated so far), `m`, `v`.

    Example: `%w = parc.load @q : tensor<32x32xf32>`

    Written by hand, by import and by the optimizer; becomes a pointer into
    the parameter arena on emission.

    Constraints: the parameter exists and its slot has this type (its layout
    aside); a parameter with layers is used inside a stack, one without is used anywhere.
  }];
  let arguments = (ins FlatSymbolRefAttr:$param,
                       DefaultValuedStrAttr<StrAttr, "value">:$slot);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$param (`slot` $slot^)? attr-dict `:` type($result)";
}

def Parc_StoreOp : Parc_ParamAccessOp<"store"> {
  let summary = "replaces a slot of a parameter";
  let description = [{
    Takes effect when the step ends; in a `parc.start`, when that is done. Made
    by the optimizer in the update region, and by `parc-overlap`.

    Example: `parc.store @q, %w : tensor<32x32xf32>`

    Constraints: as `parc.load`; only in an update region or a start.
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, AnyRankedTensor:$input,
                       DefaultValuedStrAttr<StrAttr, "value">:$slot);
  let assemblyFormat = "$param `,` $input (`slot` $slot^)? attr-dict `:` type($input)";
}

def Parc_AccumulateOp : Parc_ParamAccessOp<"accumulate"> {
  let summary = "adds to a slot of a parameter";
  let description = [{
    Adds to a slot that was zero when the step began: the sum over
    micro-batches and over all uses of the parameter. This is what discharges
    a value that is partial over micro-batches. Made by differentiation.

    Example: `parc.accumulate @q, %dw slot "grad" : tensor<32x32xf32>`

    Constraints: as `parc.load`; only in a micro-batch region.
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, AnyRankedTensor:$input,
                       DefaultValuedStrAttr<StrAttr, "grad">:$slot);
  let assemblyFormat = "$param `,` $input (`slot` $slot^)? attr-dict `:` type($input)";
}

def Parc_ObserveOp : Parc_Op<"observe"> {
  let summary = "names a value that a checker may want to see";
  let description = [{
    `parc run --save` writes it; emitted programs leave it out. It asks for no
    layout. `fold` says of a folded value (see `nn.fold`) which dimension is
    folded and for how many parts; what the checker sees is in natural order.

    Example: `parc.observe "logits", %logits : tensor<4x16x97xf32>`
  }];
  let arguments = (ins StrAttr:$name, AnyRankedTensor:$input,
                       OptionalAttr<DenseI64ArrayAttr>:$fold);
  let assemblyFormat = "$name `,` $input attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// Step and stack
//===----------------------------------------------------------------------===//

def Parc_StepOp : Parc_Op<"step", [IsolatedFromAbove, Symbol]> {
  let summary = "one optimizer step on the global batch";
  let description = [{
    The `micro` region computes, for a part of the batch, sums: first the loss
    summed over valid tokens, then the number of valid tokens. Its arguments
    are the step's `inputs`, whose first dimension is the batch. The step runs
    it on all micro-batches and adds the yielded values and accumulated
    gradients. The `update` region gets the sums, then the `scalars` (rank-0
    tensors: learning rate and so on), stores parameters, and yields the
    `results` that a step reports.

    Example:
    ```mlir
    parc.step @train inputs ["tokens", "labels", "positions"] micro {
    ^bb0(%tokens: tensor<4x16xi64>, %labels: tensor<4x16xi64>, %positions: tensor<4x16xi64>):
      ...
      parc.yield %loss, %count : tensor<f32>, tensor<f32>
    } scalars ["lr"] results ["loss", "grad_norm"] update {
    ^bb0(%loss: tensor<f32>, %count: tensor<f32>, %lr: tensor<f32>):
      ...
      parc.yield %mean, %norm : tensor<f32>, tensor<f32>
    }
    ```
    Written by hand or by import, with an empty update region;
    `parc-differentiate` adds the backward, `parc-add-optimizer` the update;
    `parc-stage` turns it into `parc.role`s.

    Constraints:
    - the micro region has one argument an input; rank at least one;
    - the update region is empty or has one argument a yielded sum and scalar;
    - it yields one value a result.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$inputs,
                       DefaultValuedAttr<StrArrayAttr, "{}">:$scalars,
                       DefaultValuedAttr<StrArrayAttr, "{}">:$results);
  let regions = (region SizedRegion<1>:$micro, MaxSizedRegion<1>:$update);
  let assemblyFormat = [{
    $sym_name `inputs` $inputs attr-dict-with-keyword `micro` $micro
    (`scalars` $scalars^)? (`results` $results^)? `update` $update
  }];
  let hasVerifier = 1;
}

def Parc_YieldOp : Parc_Op<"yield", [Pure, Terminator, ReturnLike,
    ParentOneOf<["StepOp", "StackOp", "RoleOp", "StartOp", "LastMicroOp"]>]> {
  let summary = "ends a region of a step, a stack or a role";
  let description = [{
    In a stack: the carried values, then the reduced ones, then one value for
    each per-layer result. In a start: what is waited for.

    Example: `parc.yield %loss, %count : tensor<f32>, tensor<f32>`
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Parc_StackOp : Parc_Op<"stack", [AttrSizedOperandSegments]> {
  let summary = "applies one body to each of a range of layers";
  let description = [{
    A scan over layers `begin` to `end` (excluded), downwards if `reverse`.
    Block arguments: the layer's index, the carried values, and this layer's
    element of each value in `each`. Results: the last carried values, then
    `reductions` values summed over the layers, then one `!parc.layers` a
    per-layer result. Values from outside may be used inside (invariants).

    Example:
    ```mlir
    %y, %saved = parc.stack @layers 0 to 3 carry(%x) : (tensor<4x32xf32>)
        -> (tensor<4x32xf32>, !parc.layers<tensor<4x32xf32>>) {
    ^bb0(%layer: index, %h: tensor<4x32xf32>):
      %w = parc.load @w : tensor<32x32xf32>
      ...
      parc.yield %next, %h : tensor<4x32xf32>, tensor<4x32xf32>
    }
    ```
    The symbol names the layers, so that forward, backward and update of the
    same layers are cut alike; a body is differentiated, partitioned, verified
    and emitted once. Written by hand or by import; `parc-differentiate` adds the
    reverse stack, `parc-add-optimizer` one over the parameters.

    Constraints:
    - `begin` <= `end`;
    - carried values keep their type;
    - the body yields carried, reduced and per-layer values of the result types.
  }];
  let arguments = (ins FlatSymbolRefAttr:$layers, I64Attr:$begin, I64Attr:$end,
                       UnitAttr:$reverse, DefaultValuedAttr<I64Attr, "0">:$reductions,
                       Variadic<AnyRankedTensor>:$carry,
                       Variadic<Parc_LayersType>:$each);
  let results = (outs Variadic<AnyType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $layers $begin `to` $end (`reverse` $reverse^)? (`reduce` $reductions^)?
    (`carry` `(` $carry^ `)`)? (`each` `(` $each^ `)`)? attr-dict `:`
    functional-type(operands, results) $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    Block *getBlock() { return &getBody().front(); }
    YieldOp getYield();
    BlockArgument getLayerIndex() { return getBlock()->getArgument(0); }
    Block::BlockArgListType getCarryArguments();
    Block::BlockArgListType getEachArguments();
    ResultRange getCarryResults();
    ResultRange getReducedResults();
    ResultRange getEachResults();
  }];
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

def Parc_ConstraintOp : Parc_Op<"constraint", [Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<Parc_DifferentiableOpInterface, ["onlyMoves"]>]> {
  let summary = "asks for a layout";
  let description = [{
    The value, with the wish that it lie on the mesh as `sharding` says.
    Propagation starts here. Its gradient gets the same constraint. Gone after
    `parc-shard`.

    Example:
    ```mlir
    %y = parc.constraint %x : tensor<4x16x32xf32> to #parc.sharding<[{"dp"}, {}, {"tp"} ]>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, Parc_ShardingAttr:$sharding);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input `:` type($result) `to` qualified($sharding) attr-dict";
  let hasVerifier = 1;
}

def Parc_ReshardOp : Parc_Op<"reshard", [Pure]> {
  let summary = "the same value in another layout";
  let description = [{
    The only op of the sharded phase that changes a layout. `why` says what
    asked for it. Made by `parc-shard`; `parc-local` turns it into collectives.

    Example:
    ```mlir
    %y = parc.reshard %x why "norm reads whole rows" :
        tensor<4x32xf32, #parc.sharding<[{}, {} ], partial sum {"tp"}>>
        -> tensor<4x32xf32, #parc.sharding<[{}, {} ]>>
    ```
    Where only the first rows of each part of dimension 1 are used (see
    `QueueOpInterface`), `used` are their numbers, as the value lies before and
    after; all other rows are zero, and need not be sent. `rows` is how many are
    used of all, where each part has its share: what bytes are stated for.

    Constraints: same shape and element type; both types have a sharding; `used`
    are two integer matrices, and come with `rows`.
  }];
  let arguments = (ins AnyRankedTensor:$input, Variadic<2DTensorOf<[I64]>>:$used,
                       OptionalAttr<I64Attr>:$rows, Parc_Why:$why);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input (`rows` $rows^ `used` `(` $used `:` type($used) `)`)?
    `why` custom<Why>($why) attr-dict `:` type($input) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "Type":$result, "Value":$input, "WhyAttr":$why), [{
    build($_builder, $_state, result, input, ValueRange(), nullptr, why);
  }]>];
  let hasVerifier = 1;
}

#endif // PARC_MODEL_OPS_TD
