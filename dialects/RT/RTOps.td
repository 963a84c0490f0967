//===- RTOps.td - Calls of the runtime ---------------------*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef RT_OPS_TD
#define RT_OPS_TD

include "RTProgramOps.td"

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def RT_AtOp : RT_Op<"at", [Pure, ParentOneOf<["MapOp", "ReduceOp"]>,
    TypesMatchWith<"the result is an element", "tensor", "result",
                   "::llvm::cast<::mlir::ShapedType>($_self).getElementType()">]> {
  let summary = "an element of a tensor, in a kernel";
  let description = [{
    Example: `%v = rt.at %x[%i, %j] : tensor<4x?xf32>`
  }];
  let arguments = (ins AnyRankedTensor:$tensor, Variadic<Index>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$tensor `[` $indices `]` attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def RT_MapOp : RT_Op<"map", [Pure]> {
  let summary = "one kernel over every element of its results";
  let description = [{
    Calls `parc::map`. All results have one shape; the body's arguments are an
    element's indices, and it yields that element of each. `extents` are the
    sizes of the dimensions that the type leaves open, in order.

    Example:
    ```mlir
    %y = rt.map(%n) : tensor<4x?xf32> {
    ^bb0(%i: index, %j: index):
      %a = rt.at %x[%i, %j] : tensor<4x?xf32>
      %b = math.exp %a : f32
      rt.yield %b : f32
    }
    ```
    Constraints: as many index arguments as dimensions; one scalar a result.
  }];
  let arguments = (ins Variadic<Index>:$extents);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $extents `)` attr-dict `:` type($outputs) $body";
  let hasVerifier = 1;
}

def RT_ReduceOp : RT_Op<"reduce", [Pure, AttrSizedOperandSegments]> {
  let summary = "one kernel that combines values for every element of its results";
  let description = [{
    Calls `parc::reduce`. For every index of the results, the values that
    `body` yields over all reduction indices are combined; `finish` makes the
    results' elements of the combined value. `body` takes the results' indices
    and the reduction's, `finish` the results' and the value. `sizes` are the
    reduction's extents, those left open follow in `open_sizes`.

    Example:
    ```mlir
    %s = rt.reduce sum() over [32]() : tensor<16xf32> {
    ^bb0(%i: index, %k: index):
      %a = rt.at %x[%i, %k] : tensor<16x32xf32>
      rt.yield %a : f32
    } finish {
    ^bb0(%i: index, %sum: f32):
      rt.yield %sum : f32
    }
    ```
  }];
  let arguments = (ins RT_Combiner:$kind, DenseI64ArrayAttr:$sizes,
                       Variadic<Index>:$extents, Variadic<Index>:$open_sizes);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body, SizedRegion<1>:$finish);
  let assemblyFormat = [{
    $kind `(` $extents `)` `over` $sizes `(` $open_sizes `)` attr-dict
    `:` type($outputs) $body `finish` $finish
  }];
  let hasVerifier = 1;
}

def RT_ContractOp : RT_Op<"contract", [Pure]> {
  let summary = "a product summed over what the result lacks";
  let description = [{
    Calls `parc::contract`, which makes strided batched matrix products of it.
    `a_dims`, `b_dims` and `c_dims` name each operand's dimensions by letters,
    as in an einsum. Products of bf16 are added up in f32, and given in f32 where
    the result is; all others in their own type.

    Example:
    ```mlir
    %y = rt.contract "abd" %x, "cd" %w to "abc" :
        (tensor<4x16x32xf32>, tensor<8x32xf32>) -> tensor<4x16x8xf32>
    ```
    Constraints: a letter a dimension; each letter in two operands at least; a
    letter that the result lacks is in both factors.
  }];
  let arguments = (ins StrAttr:$a_dims, AnyRankedTensor:$a, StrAttr:$b_dims,
                       AnyRankedTensor:$b, StrAttr:$c_dims);
  let results = (outs AnyRankedTensor:$c);
  let assemblyFormat = [{
    $a_dims $a `,` $b_dims $b `to` $c_dims attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def RT_ScatterRowsOp : RT_Op<"scatter_rows", [Pure]> {
  let summary = "sums rows at the places that ids name";
  let description = [{
    Calls `parc::scatterAddRows`: row `ids[i] - first` of the result is the sum
    of `rows[i]`; ids that are not here are skipped. Leading dimensions of ids
    are joined. `extents`: the result's open sizes.

    Example:
    ```mlir
    %t = rt.scatter_rows %rows at %ids from %first(%n) :
        tensor<4x16x32xf32>, tensor<4x16xi64> -> tensor<?x32xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$rows, AnyRankedTensor:$ids, Index:$first,
                       Variadic<Index>:$extents);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $rows `at` $ids `from` $first `(` $extents `)` attr-dict
    `:` type($rows) `,` type($ids) `->` type($result)
  }];
}

def RT_CheckLoadOp : RT_Op<"check_load"> {
  let summary = "an expert that gets more than `limit` stops the step";
  let description = [{
    Calls `Context::checkLoad` with the layer at hand. `counts` holds one number
    an expert. It is looked at before the parameters change.

    Example: `rt.check_load %counts limit %slots : tensor<8xi64>`
  }];
  let arguments = (ins 1DTensorOf<[I64]>:$counts, Index:$limit);
  let assemblyFormat = "$counts `limit` $limit attr-dict `:` type($counts)";
}

//===----------------------------------------------------------------------===//
// Communication
//===----------------------------------------------------------------------===//

def RT_AllReduceOp : RT_Op<"all_reduce", [SameOperandsAndResultType]> {
  let summary = "calls Rank::all_reduce";
  let description = [{
    Example: `%y = rt.all_reduce sum %x in @tp why "..." : tensor<4xf32>`
  }];
  let arguments = (ins RT_Combiner:$kind, AnyRankedTensor:$input,
                       FlatSymbolRefAttr:$group, StrAttr:$why);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $input `in` $group `why` $why attr-dict `:` type($result)";
}

class RT_MoveOp<string mnemonic, dag extra> : RT_Op<mnemonic> {
  let arguments = !con(extra, (ins AnyRankedTensor:$input, I64Attr:$dim, I64Attr:$extent,
                       I64Attr:$grain, StrArrayAttr:$axes, StrArrayAttr:$outer,
                       FlatSymbolRefAttr:$group, StrAttr:$why,
                       Optional<Index>:$size));
  let results = (outs AnyRankedTensor:$result);
}

def RT_AllGatherOp : RT_MoveOp<"all_gather", (ins)> {
  let summary = "calls Rank::all_gather";
  let description = [{
    The parts over `axes` of dimension `dim` (of `extent`, in units of `grain`)
    are joined; `outer` axes still split it afterwards. `size` is the extent
    where that is no constant.
  }];
  let assemblyFormat = [{
    $input `dim` $dim `of` $extent (`as` $size^)? `grain` $grain `over` $axes `outer` $outer
    `in` $group `why` $why attr-dict `:` type($input) `->` type($result)
  }];
}

def RT_ReduceScatterOp : RT_MoveOp<"reduce_scatter", (ins RT_Combiner:$kind)> {
  let summary = "calls Rank::reduce_scatter";
  let description = [{
    The reverse of `rt.all_gather`, with a reduction.
  }];
  let assemblyFormat = [{
    $kind $input `dim` $dim `of` $extent (`as` $size^)? `grain` $grain `over` $axes `outer` $outer
    `in` $group `why` $why attr-dict `:` type($input) `->` type($result)
  }];
}

def RT_AllToAllOp : RT_Op<"all_to_all"> {
  let summary = "calls Rank::all_to_all";
  let description = [{
    The parts over `axes` of dimension `gather_dim` are joined, `split_dim` is
    split over them; `gather_outer` and `split_outer` split the dimensions
    before and afterwards. With `used`, only these rows are sent (see
    `parc.all_to_all`); the call waits for their numbers.
  }];
  let arguments = (ins AnyRankedTensor:$input, Variadic<AnyRankedTensor>:$used, I64Attr:$gather_dim, I64Attr:$gather_extent,
                       I64Attr:$gather_grain, StrArrayAttr:$gather_outer,
                       I64Attr:$split_dim, I64Attr:$split_extent,
                       I64Attr:$split_grain, StrArrayAttr:$split_outer,
                       StrArrayAttr:$axes,
                       FlatSymbolRefAttr:$group, StrAttr:$why);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input (`used` `(` $used^ `:` type($used) `)`)?
    `gather` $gather_dim `of` $gather_extent `grain` $gather_grain
    `outer` $gather_outer `split` $split_dim `of` $split_extent `by` $split_grain
    `below` $split_outer `over` $axes `in` $group
    `why` $why attr-dict `:` type($input) `->` type($result)
  }];
}

def RT_ShiftOp : RT_Op<"shift"> {
  let summary = "calls Context::shift";
  let description = [{
    The part of dimension `dim` goes to the next member of the group, that of
    the member before comes. `hops` shifts went before.
  }];
  let arguments = (ins AnyRankedTensor:$input, I64Attr:$dim, I64Attr:$extent,
                       I64Attr:$grain, I64Attr:$hops, StrArrayAttr:$axes,
                       FlatSymbolRefAttr:$group, StrAttr:$why);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `dim` $dim `of` $extent `grain` $grain `hops` $hops `over` $axes
    `in` $group `why` $why attr-dict `:` type($input) `->` type($result)
  }];
}

def RT_ReadOp : RT_Op<"read", [Pure,
    TypesMatchWith<"the result is an element", "tensor", "result",
                   "::llvm::cast<::mlir::ShapedType>($_self).getElementType()">]> {
  let summary = "the number in a tensor of rank 0, on the host";
  let description = [{
    Calls Context::read, which waits for the number. Sizes of kernels may
    depend on it.

    Example: `%n = rt.read %x : tensor<i64>`
  }];
  let arguments = (ins AnyRankedTensor:$tensor);
  let results = (outs AnySignlessIntegerOrIndex:$result);
  let assemblyFormat = "$tensor attr-dict `:` type($tensor)";
}

#endif // RT_OPS_TD
