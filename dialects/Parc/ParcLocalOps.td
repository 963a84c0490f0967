//===- ParcLocalOps.td - Collectives and local programs ----*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARC_LOCAL_OPS_TD
#define PARC_LOCAL_OPS_TD

include "ParcModelOps.td"

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

class Parc_PartOp<string mnemonic>
    : Parc_Op<mnemonic, [Pure]> {
  let arguments = (ins StrArrayAttr:$axes, I64Attr:$extent,
                       DefaultValuedAttr<I64Attr, "1">:$grain);
  let results = (outs Index:$result);
  let assemblyFormat = "$axes `of` $extent (`grain` $grain^)? attr-dict";
}

def Parc_PartStartOp : Parc_PartOp<"part_start"> {
  let summary = "where this coordinate's part of a dimension starts";
  let description = [{
    `grain * floor(i * u / P)` with `u = extent / grain` units, `P` the product
    of the axes' sizes and `i` the coordinate on them, major to minor. The axis
    `mb` counts micro-batches. Made by `parc-local`.

    Example: `%start = parc.part_start ["tp"] of 97`
  }];
}

def Parc_PartSizeOp : Parc_PartOp<"part_size"> {
  let summary = "the size of this coordinate's part of a dimension";
  let description = [{
    The next part's start less this one's; see `parc.part_start`. Made by
    `parc-local` where the parts are not all equal.

    Example: `%n = parc.part_size ["tp"] of 97`
  }];
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

class Parc_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : Parc_Op<mnemonic, traits> {
  let results = (outs AnyRankedTensor:$result);
}

def Parc_AllReduceOp : Parc_CollectiveOp<"all_reduce", [SameOperandsAndResultType]> {
  let summary = "reduces a value over axes; every rank gets the result";
  let description = [{
    Local types. Made by `parc-local` and `parc-stage`, equal to ncclAllReduce.
    `why` is the reshard's. `stages`, where given, are the members along the
    stage axis (a value that lives on these stages only).

    Example:
    ```mlir
    %y = parc.all_reduce sum %x over ["tp"] why "o contracts heads" : tensor<4x32xf32>
    ```
  }];
  let arguments = (ins Parc_ReductionKind:$kind, AnyRankedTensor:$input,
                       StrArrayAttr:$axes, Parc_Why:$why,
                       OptionalAttr<DenseI64ArrayAttr>:$stages);
  let assemblyFormat = [{
    $kind $input `over` $axes (`stages` $stages^)? `why` custom<Why>($why) attr-dict `:` type($result)
  }];
  let builders = [OpBuilder<(ins "ReductionKind":$kind, "Value":$input,
                                 "ArrayAttr":$axes, "WhyAttr":$why)>,
                  OpBuilder<(ins "ReductionKind":$kind, "Value":$input,
                                 "ArrayAttr":$axes, "StringAttr":$why)>];
}

def Parc_AllGatherOp : Parc_CollectiveOp<"all_gather"> {
  let summary = "joins the parts of a dimension; every rank gets the whole";
  let description = [{
    `dim` is split over `axes` (the minor-most of those that split it): a
    part of `extent` elements with `grain` becomes whole. `outer` are the axes
    that still split the dimension afterwards. `size` is the extent where that
    is no constant (`extent` is 0 then); it is the same on all members. Local types; made by
    `parc-local`, equal to ncclAllGather (a broadcast a member where uneven).

    Example:
    ```mlir
    %y = parc.all_gather %x dim 1 of 97 over ["tp"] why "..." : tensor<4x?xf32> -> tensor<4x97xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$dim, I64Attr:$extent,
                       DefaultValuedAttr<I64Attr, "1">:$grain, StrArrayAttr:$axes,
                       DefaultValuedAttr<StrArrayAttr, "{}">:$outer, Parc_Why:$why,
                       Optional<Index>:$size);
  let assemblyFormat = [{
    $input `dim` $dim `of` $extent (`as` $size^)? (`grain` $grain^)? `over` $axes (`outer` $outer^)?
    `why` custom<Why>($why) attr-dict `:` type($input) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "Type":$result, "Value":$input, "IntegerAttr":$dim,
      "IntegerAttr":$extent, "IntegerAttr":$grain, "ArrayAttr":$axes,
      "ArrayAttr":$outer, "WhyAttr":$why), [{
    build($_builder, $_state, result, input, dim, extent, grain, axes, outer, why, Value());
  }]>];
}

def Parc_ReduceScatterOp : Parc_CollectiveOp<"reduce_scatter"> {
  let summary = "reduces a value over axes; every rank gets its part of a dimension";
  let description = [{
    The reverse of `parc.all_gather`, with a reduction. Made by `parc-local`,
    equal to ncclReduceScatter.

    Example:
    ```mlir
    %y = parc.reduce_scatter sum %x dim 1 of 97 over ["tp"] why "..." : tensor<4x97xf32> -> tensor<4x?xf32>
    ```
  }];
  let arguments = (ins Parc_ReductionKind:$kind, AnyRankedTensor:$input,
                       I64Attr:$dim, I64Attr:$extent,
                       DefaultValuedAttr<I64Attr, "1">:$grain, StrArrayAttr:$axes,
                       DefaultValuedAttr<StrArrayAttr, "{}">:$outer, Parc_Why:$why,
                       Optional<Index>:$size);
  let assemblyFormat = [{
    $kind $input `dim` $dim `of` $extent (`as` $size^)? (`grain` $grain^)? `over` $axes (`outer` $outer^)?
    `why` custom<Why>($why) attr-dict `:` type($input) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "Type":$result, "ReductionKindAttr":$kind, "Value":$input,
      "IntegerAttr":$dim, "IntegerAttr":$extent, "IntegerAttr":$grain, "ArrayAttr":$axes,
      "ArrayAttr":$outer, "WhyAttr":$why), [{
    build($_builder, $_state, result, kind, input, dim, extent, grain, axes, outer, why, Value());
  }]>];
}

def Parc_AllToAllOp : Parc_CollectiveOp<"all_to_all"> {
  let summary = "moves a split from one dimension to another";
  let description = [{
    `axes`, the minor-most of those that split `gather_dim` (of
    `gather_extent`), become the minor-most of those that split `split_dim` (of
    `split_extent`). `gather_outer` still split the gathered dimension
    afterwards; `split_outer` split the other one before and after. So a part
    of `gather_dim` over `gather_outer` becomes whole, and a part of `split_dim`
    over `split_outer` is cut. Local types; made by `parc-local`, equal to a
    grouped ncclSend and ncclRecv with every member.

    Example, on `ep=2,dp=3`, where rows split over both leave `ep` for columns:
    ```mlir
    %y = parc.all_to_all %x gather 0 of 12 outer ["dp"] split 1 of 6 over ["ep"] why "..." :
        tensor<2x6xf32> -> tensor<4x3xf32>
    ```
    With `used`, the dimensions are 0 and 1, and only the first rows of each part
    of dimension 1 are sent; the others arrive as zero. `used` are their numbers
    for each index of dimension 0 and each part, of the input and of the result:
    the part that is not joined or cut yet is one column, the other one a column a
    member. As the members know both, the sizes of messages are known before they
    are sent. `rows` is how many rows of all are used in balance: what bytes are
    stated for.

    Constraints: the dimensions differ and exist; an axis appears once; `used` are
    two integer matrices, and come with `rows`.
  }];
  let arguments = (ins AnyRankedTensor:$input, Variadic<2DTensorOf<[I64]>>:$used,
                       OptionalAttr<I64Attr>:$rows, I64Attr:$gather_dim, I64Attr:$gather_extent,
                       DefaultValuedAttr<I64Attr, "1">:$gather_grain,
                       DefaultValuedAttr<StrArrayAttr, "{}">:$gather_outer,
                       I64Attr:$split_dim, I64Attr:$split_extent,
                       DefaultValuedAttr<I64Attr, "1">:$split_grain,
                       DefaultValuedAttr<StrArrayAttr, "{}">:$split_outer,
                       StrArrayAttr:$axes, Parc_Why:$why);
  let assemblyFormat = [{
    $input (`rows` $rows^ `used` `(` $used `:` type($used) `)`)?
    `gather` $gather_dim `of` $gather_extent (`grain` $gather_grain^)?
    (`outer` $gather_outer^)? `split` $split_dim `of` $split_extent
    (`by` $split_grain^)? (`below` $split_outer^)? `over` $axes
    `why` custom<Why>($why) attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Parc_ShiftOp : Parc_CollectiveOp<"shift"> {
  let summary = "passes a part of a dimension to the next coordinate";
  let description = [{
    Coordinate i over `axes` gives what it holds to coordinate i + 1, and the
    last to the first. `dim` of `extent` elements is split over `axes`; after
    `hops` shifts coordinate i holds part i - hops, and gets part i - hops - 1,
    whose size may be another. Made by `parc-ring`, equal to a grouped ncclSend
    and ncclRecv.

    Example:
    ```mlir
    %y = parc.shift %x dim 1 of 16 hops 0 over ["cp"] why "..." : tensor<2x?xf32> -> tensor<2x?xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$dim, I64Attr:$extent,
                       DefaultValuedAttr<I64Attr, "1">:$grain, I64Attr:$hops,
                       StrArrayAttr:$axes, Parc_Why:$why);
  let assemblyFormat = [{
    $input `dim` $dim `of` $extent (`grain` $grain^)? `hops` $hops `over` $axes
    `why` custom<Why>($why) attr-dict `:` type($input) `->` type($result)
  }];
}

def Parc_SliceOp : Parc_CollectiveOp<"slice", [Pure]> {
  let summary = "this coordinate's part of a dimension of a whole value";
  let description = [{
    No communication. Made by `parc-local` where a value becomes split.

    Example:
    ```mlir
    %y = parc.slice %x dim 1 of 97 over ["tp"] : tensor<4x97xf32> -> tensor<4x?xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$dim, I64Attr:$extent,
                       DefaultValuedAttr<I64Attr, "1">:$grain, StrArrayAttr:$axes,
                       DefaultValuedAttr<StrArrayAttr, "{}">:$outer,
                       Optional<Index>:$size);
  let assemblyFormat = [{
    $input `dim` $dim `of` $extent (`as` $size^)? (`grain` $grain^)? `over` $axes (`outer` $outer^)?
    attr-dict `:` type($input) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "Type":$result, "Value":$input, "IntegerAttr":$dim,
      "IntegerAttr":$extent, "IntegerAttr":$grain, "ArrayAttr":$axes,
      "ArrayAttr":$outer), [{
    build($_builder, $_state, result, input, dim, extent, grain, axes, outer, Value());
  }]>];
}

def Parc_OwnOp : Parc_CollectiveOp<"own", [Pure, SameOperandsAndResultType]> {
  let summary = "the value on the first coordinate, zero on the others";
  let description = [{
    Turns a replicated value into a partial sum, so that it can be added to
    one before the reduction. No communication. Made by `parc-local`.

    Example: `%y = parc.own %x over ["tp"] : tensor<f32>`
  }];
  let arguments = (ins AnyRankedTensor:$input, StrArrayAttr:$axes);
  let assemblyFormat = "$input `over` $axes attr-dict `:` type($result)";
}

def Parc_CheckLoadOp : Parc_Op<"check_load", [AllTypesMatch<["counts", "result"]>]> {
  let summary = "stops where an expert got more than its queue holds";
  let description = [{
    Passes `counts` (one i64 an expert) on. Where one of them exceeds `limit`,
    the slots of an expert's queue, the step fails with the expert, layer and
    rank, and the value of `limit`. Made by the definition of `nn.dispatch`.

    Example: `%n = parc.check_load %counts limit %slots : tensor<8xi64>`

    Constraints: counts are a tensor of rank 1 of i64.
  }];
  let arguments = (ins 1DTensorOf<[I64]>:$counts, Index:$limit);
  let results = (outs 1DTensorOf<[I64]>:$result);
  let assemblyFormat = "$counts `limit` $limit attr-dict `:` type($counts)";
}

//===----------------------------------------------------------------------===//
// Staged programs
//===----------------------------------------------------------------------===//

def Parc_RoleOp : Parc_Op<"role", [IsolatedFromAbove, Symbol]> {
  let summary = "the program of the stages that do the same";
  let description = [{
    One program for each set of stages that run the same ops (first, middle,
    last, or the only one). `forward` and `backward` run once a micro-batch,
    `update` once a step. Arguments of `forward`: the step's inputs, then the
    values received from the stage before. It yields the values sent to the
    next stage, then those saved for `backward`; `sends` says how many are sent.
    `backward`: inputs, received gradients, saved values; it yields the
    gradients sent to the stage before, then the step's sums. `update`: the sums,
    then the step's scalars; it yields the step's results. Stacks run the
    layers of the rank's own stage, which `parc.schedule` lists.

    Made by `parc-stage`; evaluated by `parc run`; lowered by `parc-to-rt`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$stages,
                       StrArrayAttr:$inputs, StrArrayAttr:$scalars, StrArrayAttr:$results,
                       I64Attr:$forward_sends, I64Attr:$backward_sends);
  let regions = (region SizedRegion<1>:$forward, SizedRegion<1>:$backward,
                        SizedRegion<1>:$update);
  let assemblyFormat = [{
    $sym_name `stages` $stages `inputs` $inputs `scalars` $scalars `results` $results
    attr-dict-with-keyword `forward` $forward_sends $forward
    `backward` $backward_sends $backward `update` $update
  }];
  let hasVerifier = 1;
}

def Parc_ScheduleOp : Parc_Op<"schedule"> {
  let summary = "micro-batches, stage table and order of the step";
  let description = [{
    `layers` names the layers of a model's stacks and `bounds` cuts them: stage
    `s` runs the layers `bounds[s]` to `bounds[s+1]`. Where a model has several stacks the
    bounds count through them in order. `rule` names the order of forward and backward.

    Example:
    ```mlir
    parc.schedule "1f1b" micro_batches 8 layers [@layers] counts [3] bounds [0, 2, 3]
    ```
    Made by `parc-stage`; `parc-schedule` checks it and `parc-to-rt` turns it into tables.
  }];
  let arguments = (ins StrAttr:$rule, I64Attr:$micro_batches,
                       FlatSymbolRefArrayAttr:$layers, DenseI64ArrayAttr:$counts,
                       DenseI64ArrayAttr:$bounds);
  let assemblyFormat = [{
    $rule `micro_batches` $micro_batches `layers` $layers `counts` $counts
    `bounds` $bounds attr-dict
  }];
  let hasVerifier = 1;
}

#endif // PARC_LOCAL_OPS_TD
