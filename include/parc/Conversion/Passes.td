//===- Passes.td - Conversions between dialects ------------*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARC_CONVERSION_PASSES_TD
#define PARC_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ParcToRT : Pass<"parc-to-rt", "ModuleOp"> {
  let summary = "turns a staged program into calls of the runtime";
  let description = [{
    Replaces the module's contents by the rt dialect. Every op is replaced by
    its definition in upstream ops; products become `rt.contract`, everything
    else `rt.map` and `rt.reduce` with scalar bodies. Then kernels are
    clustered: a map that one kernel alone reads, once an element, becomes part
    of that kernel, and a map over a reduction's result becomes its `finish`. A
    row's statistic is never computed again for each element. Tables of ranks,
    communicators, parameters and events are made last.

    Before:
    ```mlir
    %s = linalg.generic {... "parallel", "reduction"} ins(%x) outs(%zero) {...}
    ```
    After:
    ```mlir
    %s = rt.reduce sum() over [32]() : tensor<16xf32> {...} finish {...}
    ```
    Fails where an op has no counterpart in the runtime.
  }];
  let dependentDialects = ["arith::ArithDialect", "linalg::LinalgDialect",
      "math::MathDialect", "tensor::TensorDialect", "rt::RTDialect"];
}

def VerifyRT : Pass<"parc-verify-rt", "ModuleOp"> {
  let summary = "checks that a program is all runtime calls";
  let description = [{
    Closes the runtime phase: ops of the rt dialect, scalar arithmetic in
    kernels, index arithmetic, constants and views; symbols that exist; one
    mesh and one schedule; a role for each stage.
  }];
}

#endif // PARC_CONVERSION_PASSES_TD
