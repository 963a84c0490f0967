//===- ParcAttrs.td - Attributes and types of the parc dialect -*- tablegen -*-//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARC_ATTRS_TD
#define PARC_ATTRS_TD

include "ParcDialect.td"
include "ParcEnums.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"

class Parc_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Parc_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Parc_DimShardingAttr : Parc_Attr<"DimSharding", "dim"> {
  let summary = "the mesh axes that split one dimension";
  let description = [{
    Axes from major to minor, and the grain: how many elements stay together.
    Part `i` of `P` (`i` linearised major to minor) holds the units
    `floor(i*u/P)` to `floor((i+1)*u/P)`, a unit being `grain` elements.

    Example: `{"tp"}`, `{"dp", "mb"}`, `{"tp" : 128}` (heads of 128 elements).

    Constraints:
    - the grain is at least one;
    - an axis appears once.
  }];
  let parameters = (ins ArrayRefParameter<"StringAttr">:$axes,
                        DefaultValuedParameter<"int64_t", "1">:$grain);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool empty() const { return getAxes().empty(); }
  }];
}

def Parc_ShardingAttr : Parc_Attr<"Sharding", "sharding",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "how a tensor lies on the mesh";
  let description = [{
    For each dimension the axes that split it, and the axes over which the
    value is still to be reduced. What is not named is replicated. `flat` axes
    cut what the dimensions leave: the local part, of `n` elements in row-major
    order, lies in `P` equal pieces, piece `i` of elements `floor(i*n/P)` to
    `floor((i+1)*n/P)`. The local type is then of rank one. Only ops that treat
    all elements alike can work on it; so the state of an optimizer lies.

    Example:
    ```mlir
    #parc.sharding<[{"dp", "mb"}, {}, {"tp" : 128} ]>
    #parc.sharding<[{"dp"}, {} ], partial sum {"tp"}>
    #parc.sharding<[{"tp"}, {} ], flat {"dp"}>
    ```
    As the encoding of a tensor type it is a fact about the value; as an
    attribute of `parc.param` or `parc.constraint` it is a wish that
    propagation starts from.

    Constraints:
    - an axis appears once in the whole attribute;
    - as an encoding, there are as many dimensions as the tensor has.
  }];
  let parameters = (ins ArrayRefParameter<"DimShardingAttr">:$dims,
                        DefaultValuedParameter<"ReductionKind", "ReductionKind::Sum">:$kind,
                        OptionalArrayRefParameter<"StringAttr">:$partial,
                        OptionalArrayRefParameter<"StringAttr">:$flat);
  let builders = [AttrBuilder<(ins "ArrayRef<DimShardingAttr>":$dims,
      "ReductionKind":$kind, "ArrayRef<StringAttr>":$partial), [{
    return $_get($_ctxt, dims, kind, partial, ArrayRef<StringAttr>());
  }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// A sharding of `rank` dimensions that splits nothing.
    static ShardingAttr replicated(MLIRContext *context, int64_t rank);
    /// True where no dimension is split and nothing is partial.
    bool isReplicated() const;
    bool isPartial() const { return !getPartial().empty(); }
    /// The same dimensions with nothing partial.
    ShardingAttr withoutPartial() const;
    ShardingAttr withPartial(ReductionKind kind, ArrayRef<StringAttr> axes) const;
    bool isFlat() const { return !getFlat().empty(); }
    ShardingAttr withFlat(ArrayRef<StringAttr> axes) const;
    /// True where `axis` splits a dimension, or what the dimensions leave.
    bool splits(StringRef axis) const;
  }];
}

def Parc_WhyAttr : Parc_Attr<"Why", "why"> {
  let summary = "all that is known of why data moves";
  let description = [{
    What `parc explain`, `parc show comms`, comms.json and remarks read:
    - the text: what asked for it (the conflict of two layouts);
    - `of`: the value's name in the model, and its whole type;
    - `from`, `to`: how it lies before and after;
    - `sends`: bytes that a rank sends once, by the formulas of ring
      algorithms, the largest part where parts differ;
    - `because`: where the axes that move were placed, a constraint or a choice
      of the strategy each.
    Only the text must be there; on an op, `why "..."` is enough.

    Example:
    ```mlir
    #parc.why<"o leaves a partial sum over tp, which add reads whole" of "o"
      : tensor<4x32xf32> from <[{}, {} ], partial sum {"tp"}> to <[{}, {} ]>
      sends 512 because ["tp splits dimension 0 of q, k, v"]>
    ```
    Constraints: `from` and `to` go together.
  }];
  let parameters = (ins StringRefParameter<>:$text,
                        StringRefParameter<"the value's name", [{""}]>:$value,
                        OptionalParameter<"::mlir::RankedTensorType">:$type,
                        OptionalParameter<"::mlir::parc::ShardingAttr">:$from,
                        OptionalParameter<"::mlir::parc::ShardingAttr">:$to,
                        OptionalParameter<"std::optional<int64_t>">:$bytes,
                        OptionalArrayRefParameter<"StringAttr">:$because);
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$text), [{
    return $_get($_ctxt, text, "", ::mlir::RankedTensorType(), ShardingAttr(),
                 ShardingAttr(), std::nullopt,
                 ::llvm::ArrayRef<::mlir::StringAttr>());
  }]>];
  let assemblyFormat = [{
    `<` $text (`of` $value^)? (`:` $type^)? (`from` $from^ `to` $to)?
    (`sends` $bytes^)? (`because` ` ` `[` $because^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// True where only the text is known.
    bool isPlain() const;
    /// The same reason for one move of several.
    WhyAttr withMove(ShardingAttr from, ShardingAttr to,
                     std::optional<int64_t> bytes) const;
    /// The reason of a collective that does what this one's and `other`'s do:
    /// names and origins are joined, bytes added; layouts stay where equal. The
    /// text is this one's, once.
    WhyAttr mergedWith(WhyAttr other) const;
  }];
}

/// `why` of an op: read as its text, kept as the whole attribute.
def Parc_Why : Attr<CPred<"::llvm::isa<::mlir::parc::WhyAttr>($_self)">,
                    "why data moves"> {
  let storageType = "::mlir::parc::WhyAttr";
  let returnType = "::llvm::StringRef";
  let convertFromStorage = "$_self.getText()";
  let constBuilderCall = "::mlir::parc::WhyAttr::get($_builder.getContext(), $0)";
}

def Parc_CheckpointAttr : Parc_Attr<"Checkpoint", "checkpoint"> {
  let summary = "where a parameter's values lie in a checkpoint";
  let description = [{
    The tensor's name, with `{}` in place of the layer's number, and, where
    the parameter is a box of a larger tensor, that tensor's shape and the
    box's offsets. With `{i}` in the name, each row `i` of the parameter's
    dimension 0 is a tensor of its own.

    Example:
    ```mlir
    #parc.checkpoint<"h.{}.attn.c_attn.weight" shape [32, 96] offsets [0, 32]>
    #parc.checkpoint<"h.{}.experts.{i}.w1.weight">
    ```
  }];
  let parameters = (ins StringRefParameter<>:$name,
                        OptionalArrayRefParameter<"int64_t">:$shape,
                        OptionalArrayRefParameter<"int64_t">:$offsets);
  let assemblyFormat = [{
    `<` $name (`shape` `[` $shape^ `]` `offsets` `[` $offsets `]`)? `>`
  }];
}

def Parc_LayersType : TypeDef<Parc_Dialect, "Layers"> {
  let mnemonic = "layers";
  let summary = "one value a layer of a stack";
  let description = [{
    Per-layer results of a `parc.stack`, to be read by another stack over the
    same layers. The layers are not a dimension: nothing can split them but
    the stage cut.

    Example: `!parc.layers<tensor<4x16x32xf32>>`
  }];
  let parameters = (ins "Type":$element);
  let assemblyFormat = "`<` $element `>`";
}

def Parc_PendingType : TypeDef<Parc_Dialect, "Pending"> {
  let mnemonic = "pending";
  let summary = "a value that a collective under way will give";
  let description = [{
    What `parc.start` gives and `parc.wait` takes, once.

    Example: `!parc.pending<tensor<4x32xf32>>`
  }];
  let parameters = (ins "Type":$element);
  let assemblyFormat = "`<` $element `>`";
}

#endif // PARC_ATTRS_TD
