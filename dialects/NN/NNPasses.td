//===- NNPasses.td - Passes of the nn dialect --------------*- tablegen -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NN_PASSES_TD
#define NN_PASSES_TD

include "mlir/Pass/PassBase.td"

def AddOptimizer : Pass<"nn-add-optimizer", "ModuleOp"> {
  let summary = "fills empty update regions with AdamW";
  let description = [{
    The gradient norm over all parameters, clipping by it, and one `nn.adamw`
    a parameter. Gradients are sums over tokens: they are scaled once, by one
    over the number of valid tokens and the clipping factor. Parameters with
    layers are updated in a stack over these layers, so the region does not grow
    with them.

    The step's scalars become `lr`, `beta1`, `beta2`, `eps`, `weight_decay`,
    `clip` (0: none), `correction1` and `correction2` (`1 - beta^t`); its
    results `loss` (the mean over valid tokens) and `grad_norm`.
  }];
  let dependentDialects = ["arith::ArithDialect", "math::MathDialect",
                           "nn::NNDialect", "parc::ParcDialect"];
}

#endif // NN_PASSES_TD
