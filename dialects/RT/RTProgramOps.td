//===- RTProgramOps.td - Tables and control of a program ---*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef RT_PROGRAM_OPS_TD
#define RT_PROGRAM_OPS_TD

include "RTDialect.td"
include "RTEnums.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class RT_Op<string mnemonic, list<Trait> traits = []>
    : Op<RT_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

def RT_MeshOp : RT_Op<"mesh"> {
  let summary = "the axes of ranks, the one that varies slowest first";
  let description = [{
    Rank numbers are row-major in this order. `stage` names the axis whose
    coordinate is the stage.

    Example: `rt.mesh ["pp", "dp", "tp"] sizes [2, 2, 2] stage "pp"`
  }];
  let arguments = (ins StrArrayAttr:$axes, DenseI64ArrayAttr:$sizes, StrAttr:$stage);
  let assemblyFormat = "$axes `sizes` $sizes `stage` $stage attr-dict";
  let hasVerifier = 1;
}

def RT_GroupOp : RT_Op<"group", [Symbol]> {
  let summary = "communicators over axes";
  let description = [{
    One communicator for each set of ranks that differ on `axes` only, in the
    order of their coordinate on them, major to minor; of the stages only
    `stages`, where given. Created in the order of these ops.

    Example: `rt.group @dp_pp axes ["dp", "pp"]`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axes,
                       OptionalAttr<DenseI64ArrayAttr>:$stages);
  let assemblyFormat = "$sym_name `axes` $axes (`stages` $stages^)? attr-dict";
}

def RT_ParamOp : RT_Op<"param", [Symbol]> {
  let summary = "a row of the parameter table";
  let description = [{
    The whole parameter's type; `axes` that split each dimension, major to
    minor, and their `grains`; `first_stage`, the first one that holds it.
    `flat` are, for each slot that is cut further, the axes that cut its
    row-major elements; `slot_types`, for each that is kept in another element
    type than the value, that type. A parameter with `layers` has one value a layer, called `checkpoint` with the
    layer's number in place of `{}`. Where `full` is given, it is the box at
    `offsets` of a checkpoint's tensor of that shape; with `{i}` in the name,
    each row `i` is a tensor of its own. `std` or `value` is how it begins.

    Example:
    ```mlir
    rt.param @q : tensor<32x32xf32> layers 3 {axes = [["tp"], []],
        grains = array<i64: 16, 1>, checkpoint = "layers.{}.q.weight", ...}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
                       OptionalAttr<I64Attr>:$layers, StrAttr:$checkpoint,
                       ArrayAttr:$axes, DenseI64ArrayAttr:$grains,
                       DenseI64ArrayAttr:$full, DenseI64ArrayAttr:$offsets,
                       I64Attr:$layer_base, I64Attr:$layer_stride,
                       OptionalAttr<F64Attr>:$std, OptionalAttr<F64Attr>:$value,
                       I64Attr:$first_stage, OptionalAttr<DictionaryAttr>:$flat,
                       OptionalAttr<DictionaryAttr>:$slot_types);
  let assemblyFormat = "$sym_name `:` $type (`layers` $layers^)? attr-dict";
  let hasVerifier = 1;
}

def RT_ScheduleOp : RT_Op<"schedule"> {
  let summary = "which layers a stage runs, and in which order the passes";
  let description = [{
    Stage `s` runs the layers `bounds[s]` to `bounds[s+1]` of all `stacks`
    counted through. `loops` has for each stage its loops, each an array:
    the number of iterations, then pairs of an event's kind and its micro-batch
    in the first iteration; later iterations add one. Kinds: 0 forward, 1
    backward, 2 send forward, 3 receive forward, 4 send backward, 5 receive
    backward; 6 opens a group of as many transfers as its number says.
    `in_flight` is for each stage how many micro-batches are kept at once.

    Example:
    ```mlir
    rt.schedule micro_batches 2 stacks ["layers"] counts [3] bounds [0, 3]
        in_flight [1] loops [[array<i64: 2, 0, 0, 1, 0>]]
    ```
  }];
  let arguments = (ins I64Attr:$micro_batches, StrArrayAttr:$stacks,
                       DenseI64ArrayAttr:$counts, DenseI64ArrayAttr:$bounds,
                       DenseI64ArrayAttr:$in_flight, ArrayAttr:$loops);
  let assemblyFormat = [{
    `micro_batches` $micro_batches `stacks` $stacks `counts` $counts `bounds` $bounds
    `in_flight` $in_flight `loops` $loops attr-dict
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

def RT_RoleOp : RT_Op<"role", [IsolatedFromAbove, Symbol]> {
  let summary = "the program of the stages that do the same";
  let description = [{
    `forward` and `backward` run once a micro-batch, `update` once a step.
    Arguments of `forward`: the step's inputs, then received values; it yields
    `forward_sends` values for the next stage, then those kept for `backward`.
    `backward`: inputs, received gradients, kept values; it yields
    `backward_sends` gradients, then the step's sums. `update`: sums and
    scalars; it yields the results. `input_axes` are, for each input, the axes
    that split its dimensions and `input_grains` their grains.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$stages,
                       StrArrayAttr:$inputs, ArrayAttr:$input_axes,
                       ArrayAttr:$input_grains, StrArrayAttr:$scalars,
                       StrArrayAttr:$results, I64Attr:$forward_sends,
                       I64Attr:$backward_sends);
  let regions = (region SizedRegion<1>:$forward, SizedRegion<1>:$backward,
                        SizedRegion<1>:$update);
  let assemblyFormat = [{
    $sym_name `stages` $stages `inputs` $inputs `scalars` $scalars `results` $results
    attr-dict-with-keyword `forward` $forward_sends $forward
    `backward` $backward_sends $backward `update` $update
  }];
}

def RT_YieldOp : RT_Op<"yield", [Pure, Terminator, ReturnLike,
    ParentOneOf<["RoleOp", "StackOp", "MapOp", "ReduceOp", "StartOp", "LastMicroOp"]>]> {
  let summary = "ends a region";
  let description = [{
    Values of a role, a stack or a kernel.

    Example: `rt.yield %loss, %count : tensor<f32>, tensor<f32>`
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def RT_StackOp : RT_Op<"stack", [AttrSizedOperandSegments]> {
  let summary = "a loop over the rank's own layers";
  let description = [{
    Runs the body for those layers from `begin` to `end` (excluded) that are
    this rank's, downwards if `reverse`. Block arguments: the layer's index,
    carried values, this layer's element of each value in `each`. The body
    yields carried values, `reductions` values that are summed over the layers,
    then one value for each `!rt.layers` result.
  }];
  let arguments = (ins StrAttr:$layers, I64Attr:$begin, I64Attr:$end,
                       UnitAttr:$reverse, I64Attr:$reductions,
                       Variadic<AnyRankedTensor>:$carry, Variadic<RT_LayersType>:$each);
  let results = (outs Variadic<AnyType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $layers $begin `to` $end (`reverse` $reverse^)? `reduce` $reductions
    (`carry` `(` $carry^ `)`)? (`each` `(` $each^ `)`)? attr-dict `:`
    functional-type(operands, results) $body
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Parameters and coordinates
//===----------------------------------------------------------------------===//

def RT_LoadOp : RT_Op<"load"> {
  let summary = "a view of a parameter's slot";
  let description = [{
    In a stack, of this layer where the parameter has layers.

    Example: `%w = rt.load @q slot "value" : tensor<16x32xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, StrAttr:$slot);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$param `slot` $slot attr-dict `:` type($result)";
}

def RT_StoreOp : RT_Op<"store"> {
  let summary = "replaces a parameter's slot when the step ends";
  let description = [{
    Example: `rt.store @q slot "value", %w : tensor<16x32xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, StrAttr:$slot, AnyRankedTensor:$input);
  let assemblyFormat = "$param `slot` $slot `,` $input attr-dict `:` type($input)";
}

def RT_AccumulateOp : RT_Op<"accumulate"> {
  let summary = "adds to a parameter's slot, which is zero when the step begins";
  let description = [{
    Example: `rt.accumulate @q slot "grad", %dw : tensor<16x32xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$param, StrAttr:$slot, AnyRankedTensor:$input);
  let assemblyFormat = "$param `slot` $slot `,` $input attr-dict `:` type($input)";
}

class RT_PartOp<string mnemonic> : RT_Op<mnemonic, [Pure]> {
  let arguments = (ins StrArrayAttr:$axes, I64Attr:$extent, I64Attr:$grain);
  let results = (outs Index:$result);
  let assemblyFormat = "$axes `of` $extent `grain` $grain attr-dict";
}

def RT_PartStartOp : RT_PartOp<"part_start"> {
  let summary = "where this rank's part of a dimension starts";
  let description = [{
    Parts of `extent` elements in units of `grain`, over the axes' sizes, at
    this rank's coordinate; axis `mb` counts micro-batches.

    Example: `%s = rt.part_start ["tp"] of 97 grain 1`
  }];
}

def RT_PartSizeOp : RT_PartOp<"part_size"> {
  let summary = "the size of this rank's part of a dimension";
  let description = [{
    Example: `%n = rt.part_size ["tp"] of 97 grain 1`
  }];
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

def RT_StartOp : RT_Op<"start", [SingleBlock]> {
  let summary = "a group of collectives on a stream";
  let description = [{
    Calls Context::start, the body, and Context::finish: the stream waits for
    what was issued before; several collectives are one group. Slots that the
    body stores to are written in place. With `ahead`, in a stack, the body is a
    function of its own: the loop calls it for the first layer, and each layer
    for the next one.

    Example:
    ```mlir
    %p = rt.start stream "tp" : !rt.pending<tensor<4xf32>> {
      %y = rt.all_reduce sum %x in @tp why "..." : tensor<4xf32>
      rt.yield %y : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$stream, UnitAttr:$ahead);
  let results = (outs Variadic<RT_PendingType>:$pending);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `stream` $stream (`ahead` $ahead^)? attr-dict-with-keyword (`:` type($pending)^)? $body
  }];
  let extraClassDeclaration = [{
    Block *getBlock() { return &getBody().front(); }
  }];
}

def RT_WaitOp : RT_Op<"wait"> {
  let summary = "the compute stream waits for a group or for a stream";
  let description = [{
    Calls Context::wait. The results are what the group's body yields.

    Example: `%y = rt.wait %p : !rt.pending<tensor<4xf32>> -> tensor<4xf32>`
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$stream,
                       Variadic<RT_PendingType>:$pending);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    (`stream` $stream^) : ($pending `:` type($pending) `->` type($outputs))? attr-dict
  }];
}

def RT_LastMicroOp : RT_Op<"last_micro", [SingleBlock]> {
  let summary = "in the step's last backward pass only";
  let description = [{
    Prints as a test of Context::lastMicroBatch.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    Block *getBlock() { return &getBody().front(); }
  }];
}

#endif // RT_PROGRAM_OPS_TD
