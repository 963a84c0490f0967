//===- Passes.td - Passes of the engine --------------------*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARC_TRANSFORMS_PASSES_TD
#define PARC_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

defvar ModelDialects = ["arith::ArithDialect", "linalg::LinalgDialect",
    "math::MathDialect", "tensor::TensorDialect", "parc::ParcDialect"];

def Differentiate : Pass<"parc-differentiate", "ModuleOp"> {
  let summary = "adds the backward computation to each step";
  let description = [{
    Reverse-mode differentiation of the first value that a step's micro region
    yields, with respect to every parameter it loads. The gradient of each op
    is built by the op (`DifferentiableOpInterface`). The gradient of a load is
    a `parc.accumulate` into the parameter's slot `grad`. A stack gets a second
    stack in reverse; what its body needs of the forward body is saved a layer
    (`each`), but loads and constants, which are made again.

    Before:
    ```mlir
    %w = parc.load @w : tensor<8x8xf32>
    %y = nn.linear %x, %w : ...
    ```
    After, in the same region:
    ```mlir
    %dw = linalg.contract ... ins(%dy, %x)
    parc.accumulate @w, %dw slot "grad" : tensor<8x8xf32>
    ```
  }];
  let dependentDialects = ModelDialects;
}

def SlotTypes : Pass<"parc-slot-types", "ModuleOp"> {
  let summary = "keeps gradients and optimizer state of narrow parameters in f32";
  let description = [{
    Mixed precision (arXiv:1710.03740): a parameter narrower than f32 that does
    not say in which types its slots are kept gets gradients that are
    accumulated and reduced in f32, and optimizer state with a master copy of
    the value in f32. Runs before differentiation, which gives the gradients
    that type.

    Before: `parc.param @q : tensor<32x32xbf16> layers 3`

    After:
    ```mlir
    parc.param @q : tensor<32x32xbf16> layers 3 {slot_types = {grad = f32, state = f32}}
    ```
  }];
}

def AccumulateTypes : Pass<"parc-accumulate-types", "ModuleOp"> {
  let summary = "writes down what narrow sums are accumulated in";
  let description = [{
    An op that sums and gives its result in a type narrower than f32 adds up in
    f32 and rounds once. The pass says so on the op, for readers and for
    `parc-verify-sharded`, which refuses a narrow sum that does not. A sum that
    is given in f32 or wider is added up in that.

    Compute, accumulate and reduce type of a value are thus all in the text: the
    elements of its op's operands, this attribute or else its own elements, and
    its own elements where it is partial.

    Before: `%y = nn.linear %x, %w : tensor<4x32xbf16>, tensor<8x32xbf16> -> tensor<4x8xbf16>`

    After:
    ```mlir
    %y = nn.linear %x, %w {parc.accumulate = f32} :
        tensor<4x32xbf16>, tensor<8x32xbf16> -> tensor<4x8xbf16>
    ```
  }];
}

def DecomposeComposites : Pass<"parc-decompose-composites", "ModuleOp"> {
  let summary = "decomposes the ops that have no factors";
  let description = [{
    An op that cannot tell what may be split in it, but can be written in ops
    that can, is replaced by its decomposition before propagation. So the loss
    over a split vocabulary needs no rule of its own.
  }];
  let dependentDialects = ModelDialects;
}

def Decompose : Pass<"parc-decompose", "ModuleOp"> {
  let summary = "replaces every op by its definition in upstream ops";
  let description = [{
    Runs `DecomposableOpInterface` until no op has one. What the evaluator
    executes and what kernels are made of.
  }];
  let dependentDialects = ModelDialects;
}

def BalanceSequence : Pass<"parc-balance-sequence", "ModuleOp"> {
  let summary = "gives the parts of a split sequence equal work under a causal mask";
  let description = [{
    Where `cp` splits the sequence and an op takes it whole under a causal mask,
    the step's inputs are folded (`nn.fold`): each part holds a block from the
    front and one from the back. All that follows runs on the folded sequence;
    ops that go by the index are told, observed values remember it. Does nothing
    where an op depends on the order and cannot be told. Runs before propagation.

    After, on `cp=4`:
    ```mlir
    %t = nn.fold %tokens dim 1 parts 4 : tensor<4x16xi64>
    ```
  }];
}

def Shard : Pass<"parc-shard", "ModuleOp"> {
  let summary = "gives every value a layout and inserts reshards";
  let description = [{
    Propagates constraints through factors, lets the built-in strategy place
    what no constraint places, chooses a layout for every op, and writes layouts
    down as encodings. Where a value is needed in another layout than it is
    made in, a `parc.reshard` says so and why.

    Before:
    ```mlir
    %y = nn.linear %x, %w : tensor<4x32xf32>, tensor<8x32xf32> -> tensor<4x8xf32>
    ```
    After, on `tp=2` with the weight split along its second dimension:
    ```mlir
    %y = nn.linear %x, %w : tensor<4x32xf32, #parc.sharding<[{}, {"tp"} ]>>, ...
           -> tensor<4x8xf32, #parc.sharding<[{}, {} ], partial sum {"tp"}>>
    %z = parc.reshard %y why "..." : ...
    ```
  }];
  let options = [
    Option<"strategy", "strategy", "bool", "true",
           "place what no constraint places">,
    Option<"sequenceParallel", "sequence-parallel", "bool", "false",
           "split what layers carry along the sequence over tp">,
    Option<"contextKind", "context-kind", "::mlir::parc::ContextKind",
           "::mlir::parc::ContextKind::AllGather",
           "how attention meets the keys of a split sequence", [{::llvm::cl::values(
             clEnumValN(::mlir::parc::ContextKind::AllGather, "all-gather", "gather keys and values"),
             clEnumValN(::mlir::parc::ContextKind::Ulysses, "ulysses", "exchange the sequence for heads"),
             clEnumValN(::mlir::parc::ContextKind::Ring, "ring", "pass keys and values around"),
             clEnumValN(::mlir::parc::ContextKind::Auto, "auto", "what moves the fewest bytes"))}]>,
    ListOption<"expertAxes", "expert-axes", "std::string",
           "axes of the mesh that split the experts">,
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "micro-batches a step and replica">,
    Option<"zero", "zero", "int64_t", "0",
           "split optimizer state (1), gradients too (2), values too (3) over "
           "the axes that split the step's inputs">,
    ListOption<"zeroAxes", "zero-axes", "std::string",
               "split over these of them only">
  ];
  let dependentDialects = ModelDialects;
}

def VerifySharded : Pass<"parc-verify-sharded", "ModuleOp"> {
  let summary = "checks every op's layouts against its factors";
  let description = [{
    Closes the sharded phase: a factor is split alike in all operands and
    results, a result that lacks a split factor is partial over its axes, and a
    partial operand enters through a linear set. An error names the op and says
    that `parc-shard` or a pass after it broke the promise.
  }];
  let options = [
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "micro-batches a step and replica">
  ];
}

def Local : Pass<"parc-local", "ModuleOp"> {
  let summary = "rewrites each step into the program of one rank";
  let description = [{
    Global types with layouts become local types: static where the parts are
    equal, dynamic where they are not. A reshard becomes the shortest path of
    collectives and slices between its layouts, by bytes, links and latencies
    (`ReshardSearch.h`); ops that depend on global indices are told where their
    part starts. The coordinate stays a run-time value.

    Before, on `x=4,y=2`:
    ```mlir
    %b = parc.reshard %a why "..." :
        tensor<16x16x16xf32, #parc.sharding<[{"y"}, {}, {"x"} ]>>
        -> tensor<16x16x16xf32, #parc.sharding<[{}, {"x", "y"}, {} ]>>
    ```
    After:
    ```mlir
    %0 = parc.all_to_all %a gather 2 of 16 split 1 of 16 over ["x"] why "..." :
        tensor<8x16x4xf32> -> tensor<8x4x16xf32>
    %b = parc.all_to_all %0 gather 0 of 16 split 1 of 16 below ["x"] over ["y"] why "..." :
        tensor<8x4x16xf32> -> tensor<16x2x16xf32>
    ```
  }];
  let options = [
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "micro-batches a step and replica">
  ];
  let dependentDialects = ModelDialects;
}

def Ring : Pass<"parc-ring", "ModuleOp"> {
  let summary = "writes ops on rings as transfers and what is between them";
  let description = [{
    Expands the local ops that the planner put on a ring (`RingOpInterface`).
    With `contract`, each becomes what it means instead: operands are gathered,
    the op is the usual one. An exact run takes that, as the algebra of
    exponentials and maxima does not hold in its arithmetic.

    Before:
    ```mlir
    %o = nn.attention %q, %k, %v ... ring ["cp"] of [16, 1] : ...
    ```
    After: attention with the own keys, then, for each other rank,
    ```mlir
    %k1 = parc.shift %k dim 1 of 16 hops 0 over ["cp"] why "..." : ...
    ```
    and attention with those, added to what there is.
  }];
  let options = [
    Option<"contract", "contract", "bool", "false", "what it means, not how">,
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "micro-batches a step and replica">
  ];
  let dependentDialects = ModelDialects;
}

def VerifyLocal : Pass<"parc-verify-local", "ModuleOp"> {
  let summary = "checks that a step is the program of one rank";
  let description = [{
    Closes the local phase: no type has a layout and no reshard is left; a
    collective names axes of the mesh, none of them time (`mb`), each once; and
    parameters are used in their local types. An error says that `parc-local`
    or a pass after it broke the promise.
  }];
  let options = [
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "micro-batches a step and replica">
  ];
}

def VerifyStaged : Pass<"parc-verify-staged", "ModuleOp"> {
  let summary = "checks that the stages' programs fit together";
  let description = [{
    Closes the staged phase: every stage has one role, what a stage sends is
    what the next one receives, forward and backward; every stage updates the
    parameters whose gradients it accumulates; and the micro regions of all
    roles reduce over no stage.
  }];
}

def Overlap : Pass<"parc-overlap", "ModuleOp"> {
  let summary = "starts collectives early and waits for them late";
  let description = [{
    Each collective of a role becomes a `parc.start` on the stream of its axes
    and a `parc.wait`. Starts move up to where their operands are made, waits
    down to the first reader; starts keep their order, which is that of all
    ranks of the role.

    Sums of gradients over the axes that split the step's inputs leave the
    update: they start in the last backward pass, a layer's when its gradients
    are final, from slot to slot, and the update waits for their stream. What is
    left to add up of such sums over other axes is one group a step over all
    layers. What a backward pass accumulates after a scatter is accumulated by
    the stream; new values that an update gathers, the stream stores. Values that
    a layer gathers from its parameters alone are gathered a layer ahead. What a
    backward pass computes for a gradient alone moves down to a start that
    nothing else is beside.

    Before, in the layers of an update:
    ```mlir
    %g = parc.load @q slot "grad" : tensor<32x32xf32>
    %s = parc.all_reduce sum %g over ["dp"] why "..." : tensor<32x32xf32>
    ```
    After, in the layers of the backward region, and there `parc.wait stream "dp"`:
    ```mlir
    parc.last_micro {
      parc.start stream "dp" {
        %g = parc.load @q slot "grad" : tensor<32x32xf32>
        %s = parc.all_reduce sum %g over ["dp"] why "..." : tensor<32x32xf32>
        parc.store @q, %s slot "grad" : tensor<32x32xf32>
        parc.yield
      }
      parc.yield
    }
    ```
  }];
}

def VerifySchedule : Pass<"parc-verify-schedule", "ModuleOp"> {
  let summary = "checks the order of the step and that it cannot deadlock";
  let description = [{
    Closes the scheduled phase: builds the order that `parc.schedule` names for
    all stages, checks it against the rule, derives the grouped transfers, and
    has the separate checker prove progress under unbuffered sends. In roles: a
    pending value is waited for once on every path, no start is in another, and
    no slot is used while a stream stores to it.
  }];
}

def Stage : Pass<"parc-stage", "ModuleOp"> {
  let summary = "cuts each step into the programs of pipeline stages";
  let description = [{
    Cuts the layers of the model's stacks into contiguous balanced ranges, one
    a stage, and splits the step into one `parc.role` for each set of stages
    that run the same ops. A value used on another stage than it is made on is
    sent, or made again where it depends on inputs only. A value made by several
    stages in part (gradient norm, tied parameters' gradients, the loss) is
    reduced over them. Writes `parc.schedule`.
  }];
  let options = [
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "micro-batches a step and replica">,
    Option<"rule", "rule", "std::string", "\"1f1b\"", "gpipe or 1f1b">
  ];
  let dependentDialects = ModelDialects;
}

#endif // PARC_TRANSFORMS_PASSES_TD
