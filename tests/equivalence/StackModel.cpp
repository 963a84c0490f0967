//===- StackModel.cpp - A small model of three layers ---------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The text of the model that is cut into stages.
///
//===----------------------------------------------------------------------===//

#include "Model.h"

std::string mlir::parc::equiv::stackModelText() {
  return R"mlir(
  parc.param @embed : tensor<11x7xf32>
  parc.param @norm : tensor<7xf32> layers 3
  parc.param @gate : tensor<10x7xf32> layers 3
  parc.param @up : tensor<10x7xf32> layers 3
  parc.param @up_bias : tensor<10xf32> layers 3
  parc.param @down : tensor<7x10xf32> layers 3
  parc.param @down_bias : tensor<7xf32> layers 3
  parc.param @last_norm : tensor<7xf32> {no_decay}
  parc.param @scale : tensor<7xf32>
  parc.step @train inputs ["tokens", "labels"] micro {
  ^bb0(%tokens: tensor<9x5xi64>, %labels: tensor<9x5xi64>):
    %seed = arith.constant dense<42> : tensor<i64>
    %table = parc.load @embed : tensor<11x7xf32>
    %x = nn.embedding %tokens, %table : tensor<9x5xi64>, tensor<11x7xf32> -> tensor<9x5x7xf32>
    %y = parc.stack @layers 0 to 3 carry(%x) : (tensor<9x5x7xf32>) -> (tensor<9x5x7xf32>) {
    ^bb0(%layer: index, %h: tensor<9x5x7xf32>):
      %scale = parc.load @scale : tensor<7xf32>
      %wn = parc.load @norm : tensor<7xf32>
      %wg = parc.load @gate : tensor<10x7xf32>
      %wu = parc.load @up : tensor<10x7xf32>
      %bu = parc.load @up_bias : tensor<10xf32>
      %wd = parc.load @down : tensor<7x10xf32>
      %bd = parc.load @down_bias : tensor<7xf32>
      %n0 = nn.rms_norm %h, %wn epsilon 1.0e-5 : tensor<9x5x7xf32>, tensor<7xf32>
      %n = nn.bias_add %n0, %scale : tensor<9x5x7xf32>, tensor<7xf32>
      %g0 = nn.linear %n, %wg : tensor<9x5x7xf32>, tensor<10x7xf32> -> tensor<9x5x10xf32>
      %g = nn.silu %g0 : tensor<9x5x10xf32>
      %u0 = nn.linear %n, %wu : tensor<9x5x7xf32>, tensor<10x7xf32> -> tensor<9x5x10xf32>
      %u = nn.bias_add %u0, %bu : tensor<9x5x10xf32>, tensor<10xf32>
      %m = arith.mulf %g, %u : tensor<9x5x10xf32>
      %d0 = nn.linear %m, %wd : tensor<9x5x10xf32>, tensor<7x10xf32> -> tensor<9x5x7xf32>
      %d1 = nn.bias_add %d0, %bd : tensor<9x5x7xf32>, tensor<7xf32>
      %d = nn.dropout %d1 seed %seed stream %layer rate 0.25 site 1 : tensor<9x5x7xf32>, tensor<i64>
      %r = arith.addf %h, %d : tensor<9x5x7xf32>
      parc.observe "residual", %r : tensor<9x5x7xf32>
      parc.yield %r : tensor<9x5x7xf32>
    }
    %wl = parc.load @last_norm : tensor<7xf32>
    %z = nn.rms_norm %y, %wl epsilon 1.0e-5 : tensor<9x5x7xf32>, tensor<7xf32>
    %logits = nn.linear %z, %table : tensor<9x5x7xf32>, tensor<11x7xf32> -> tensor<9x5x11xf32>
    parc.observe "logits", %logits : tensor<9x5x11xf32>
    %loss, %count, %lse = nn.softmax_cross_entropy %logits, %labels :
        tensor<9x5x11xf32>, tensor<9x5xi64> -> tensor<f32>, tensor<f32>, tensor<9x5xf32>
    parc.yield %loss, %count : tensor<f32>, tensor<f32>
  } update {}
)mlir";
}
