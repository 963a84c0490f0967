//===- ParcInterfaces.td - What an op tells the engine -----*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARC_INTERFACES_TD
#define PARC_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Parc_ShardableOpInterface : OpInterface<"ShardableOpInterface"> {
  let cppNamespace = "::mlir::parc";
  let description = [{
    The factors of an op, as in an einsum: each dimension of each operand and
    result belongs to factors. Splitting a factor splits every dimension that
    belongs to it; a result without the factor becomes partial. An op that
    has no rule here but a decomposition is decomposed before propagation.
  }];
  let methods = [
    InterfaceMethod<[{
        The factors, for the (global or local) types the op has now. Failure
        where this instance has no rule; the reason was emitted.
      }], "FailureOr<OpFactors>", "getFactors">,
    InterfaceMethod<[{
        Builds the op on local operands. `sizes` gives the local extent of
        every dimension of every result (as an attribute where it is static).
        The default clones the op and sets the result types.
      }], "Operation *", "buildLocal",
      (ins "OpBuilder &":$builder, "ValueRange":$operands, "TypeRange":$types,
           "ArrayRef<SmallVector<OpFoldResult>>":$sizes), [{}], [{
        return cloneWithTypes(builder, $_op.getOperation(), operands, types);
      }]>,
    InterfaceMethod<[{
        Tells the local op where factor `factor`'s local part starts in the
        global index space. Called on the op that `buildLocal` made, for each
        split factor whose `needsOffset` is set.
      }], "void", "setFactorOffset",
      (ins "OpBuilder &":$builder, "unsigned":$factor, "Value":$start), [{}], [{
        llvm_unreachable("a factor that needs no offset got one");
      }]>,
    InterfaceMethod<[{
        Tells the op that what it is given is folded along factor `factor`: index
        i stands for `foldedIndex(size, parts, i)` (see `nn.fold`). Called for
        factors that need an offset or are ordered. Failure where the op cannot
        take account of it; nothing is folded then.
      }], "LogicalResult", "setFactorFold",
      (ins "unsigned":$factor, "int64_t":$parts), [{}], [{
        return failure();
      }]>
  ];
}

def Parc_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::mlir::parc";
  let description = [{
    The gradient of an op (its vector-Jacobian product).
  }];
  let methods = [
    InterfaceMethod<[{
        Given the gradient of each result (null where nothing depends on it),
        builds the gradient of each operand that `wanted` has an element type
        for; null means zero. The type is that of the operand, or a wider one
        where the operand is a parameter, whose gradients are added up: a sum
        is to be given in it, unrounded. What is given in another type is
        converted by the caller.
      }], "LogicalResult", "buildGradient",
      (ins "OpBuilder &":$builder, "ValueRange":$resultGradients,
           "ArrayRef<Type>":$wanted, "SmallVectorImpl<Value> &":$operandGradients)>,
    InterfaceMethod<[{
        True where the elements of the results are those of the operands, put
        elsewhere or converted. The gradients of such an op have any one element
        type.
      }], "bool", "onlyMoves", (ins), [{}], [{ return false; }]>
  ];
}

def Parc_DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::mlir::parc";
  let description = [{
    The definition of an op in upstream ops. It is the oracle, the kernel and,
    for an op without factors, the way it is partitioned.
  }];
  let methods = [
    InterfaceMethod<"Builds the definition; returns one value a result.",
      "FailureOr<SmallVector<Value>>", "decompose", (ins "OpBuilder &":$builder)>
  ];
}

def Parc_RingOpInterface : OpInterface<"RingOpInterface"> {
  let cppNamespace = "::mlir::parc";
  let description = [{
    An op that needs a dimension of some operands whole, but has a second form
    in which that dimension is one factor, split over the axes of a ring: each
    rank keeps its own part and the parts of the others pass by
    (arXiv:2310.01889). The planner chooses the form; `parc-ring` writes the
    local op as the transfers and what is computed between them.
  }];
  let methods = [
    InterfaceMethod<[{
        Why this op has no such form; empty where it has.
      }], "std::string", "whyNoRing">,
    InterfaceMethod<[{
        Chooses the form, or the usual one for null. The factors change.
      }], "void", "setRingAxes", (ins "ArrayAttr":$axes)>,
    InterfaceMethod<[{
        The axes of the ring, null for the usual form.
      }], "ArrayAttr", "getRingAxes">,
    InterfaceMethod<[{
        Builds what the local op does on a ring of `members` ranks; returns one
        value a result. With `contract`, what it means instead: the whole is
        gathered, and the op is the usual one.
      }], "FailureOr<SmallVector<Value>>", "expandRing",
      (ins "OpBuilder &":$builder, "int64_t":$members, "bool":$contract)>,
    InterfaceMethod<[{
        How much is computed for the entry of the first result at place
        `position` of its sequence (dimension 1), positions running from 0.
      }], "int64_t", "getWorkAt", (ins "int64_t":$position)>
  ];
}

def Parc_BatchScopedOpInterface : OpInterface<"BatchScopedOpInterface"> {
  let cppNamespace = "::mlir::parc";
  let description = [{
    An op that is not linear across the batch: what it computes for a sequence
    depends on the others of its scope (capacity of experts, a loss that
    balances them). A scope is a number of consecutive sequences along dimension
    0 of the first operand. A micro-batch must hold whole scopes.
  }];
  let methods = [
    InterfaceMethod<"Sequences of a scope; 0 where it is the whole batch.",
      "int64_t", "getBatchScope">
  ];
}

def Parc_QueueOpInterface : OpInterface<"QueueOpInterface"> {
  let cppNamespace = "::mlir::parc";
  let description = [{
    An op whose first result, of two dimensions and rows, is used in part: of each
    part of dimension 1, as a layout cuts it, the first rows only, how many is
    known when the program runs. All others are zero. Collectives that move rows
    between the two dimensions exchange the numbers first, and then what is used.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the number of used rows of each index of dimension 0 and each of
        `parts` equal parts of dimension 1, a matrix of i64.
      }], "Operation *", "buildUsedRows",
      (ins "OpBuilder &":$builder, "int64_t":$parts)>,
    InterfaceMethod<"How many rows are used in all, in balance.",
      "int64_t", "getBalancedRows">
  ];
}

#endif // PARC_INTERFACES_TD
