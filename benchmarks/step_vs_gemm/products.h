//===- products.h - Records and replays matrix products ---------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Stands between an emitted program and parc::contract.
///
//===----------------------------------------------------------------------===//

#ifndef STEP_VS_GEMM_PRODUCTS_H
#define STEP_VS_GEMM_PRODUCTS_H

#include <parc/runtime.h>

/// Begins or ends recording of the products that the program asks for.
void recordProducts(bool on);
/// Products recorded, and their floating-point operations.
int recordedProducts();
double recordedFlops();
/// Does the recorded products again, on buffers of their own.
void replayProducts(parc::Rank &r);

#endif // STEP_VS_GEMM_PRODUCTS_H
