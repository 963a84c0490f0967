//===- ParcStreamOps.td - Communication that is under way --*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARC_STREAM_OPS_TD
#define PARC_STREAM_OPS_TD

include "ParcModelOps.td"

def Parc_StartOp : Parc_Op<"start", [SingleBlock]> {
  let summary = "begins collectives on a stream, as one group";
  let description = [{
    The collectives of the body are one group (ncclGroupStart to ncclGroupEnd)
    on `stream`; none of them needs another's result. Work on the stream runs in
    the order of its starts, after what the program said before, and beside what
    it says next, until a `parc.wait`. One host thread a rank issues starts in
    the order of the program, so all ranks of a role start in one order; roles
    share communicators over stages only, whose starts keep the order of the
    step that the roles were cut from.

    Beside collectives the body holds what they read (loads, views, sizes) and
    what becomes of their results: they are yielded, one `!parc.pending` each, or
    go to slots by `parc.store` and `parc.accumulate`, which take effect when the
    group is done. A stack in the body joins the collectives of all layers.

    With `ahead`, in a stack: before the first layer the first layer's group is
    started; in layer l, here, that of the next one. What is yielded is layer
    l's. The body reads nothing of the layer but its parameters.

    Example:
    ```mlir
    %p = parc.start stream "tp" : !parc.pending<tensor<4x32xf32>> {
      %r = parc.all_reduce sum %x over ["tp"] why "..." : tensor<4x32xf32>
      parc.yield %r : tensor<4x32xf32>
    }
    ...
    %y = parc.wait %p : !parc.pending<tensor<4x32xf32>> -> tensor<4x32xf32>
    ```
    Made by `parc-overlap`; evaluated by `parc run`, lowered by `parc-to-rt`,
    checked by `parc-verify-schedule`.

    Constraints: the body yields one tensor a result, and has no start, wait or
    `parc.last_micro` in it.
  }];
  let arguments = (ins StrAttr:$stream, UnitAttr:$ahead);
  let results = (outs Variadic<Parc_PendingType>:$pending);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `stream` $stream (`ahead` $ahead^)? attr-dict-with-keyword (`:` type($pending)^)? $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    Block *getBlock() { return &getBody().front(); }
    /// The collectives of the body, those in a stack included.
    ::llvm::SmallVector<Operation *> getCollectives();
  }];
}

def Parc_WaitOp : Parc_Op<"wait"> {
  let summary = "until what was started is done";
  let description = [{
    Of pending values: the values. Of a stream: all that was started on it,
    so that the slots it stores to can be read.

    Example:
    ```mlir
    %y = parc.wait %p : !parc.pending<tensor<4x32xf32>> -> tensor<4x32xf32>
    parc.wait stream "dp"
    ```
    Made by `parc-overlap`, before the first reader.

    Constraints: pending values or a stream; the pending values are all those
    of one `parc.start`, and have the types of the results.
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$stream,
                       Variadic<Parc_PendingType>:$pending);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    (`stream` $stream^) : ($pending `:` type($pending) `->` type($outputs))? attr-dict
  }];
  let hasVerifier = 1;
}

def Parc_LastMicroOp : Parc_Op<"last_micro", [SingleBlock]> {
  let summary = "in the step's last backward pass only";
  let description = [{
    Runs its body in the last backward pass that this rank runs in a step: the
    gradients that were accumulated before it are final.

    Example:
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
    Made by `parc-overlap`, which takes reductions of gradients out of the
    update; the update waits for the stream before it reads them.

    Constraints: in the backward region of a role; the body holds starts only.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

#endif // PARC_STREAM_OPS_TD
