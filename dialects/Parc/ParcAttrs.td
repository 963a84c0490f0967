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
    value is still to be reduced. What is not named is replicated.

    Example:
    ```mlir
    #parc.sharding<[{"dp", "mb"}, {}, {"tp" : 128} ]>
    #parc.sharding<[{"dp"}, {} ], partial sum {"tp"}>
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
                        OptionalArrayRefParameter<"StringAttr">:$partial);
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
    /// True where `axis` splits a dimension.
    bool splits(StringRef axis) const;
  }];
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

#endif // PARC_ATTRS_TD
