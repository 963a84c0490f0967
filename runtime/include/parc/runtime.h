//===- runtime.h - All of the runtime ---------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one header that generated programs include.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_RUNTIME_H
#define PARC_RUNTIME_H

#include "parc/comm.h"
#include "parc/contract.h"
#include "parc/dtype.h"
#include "parc/gemm.h"
#include "parc/kernels.h"
#include "parc/math.h"
#include "parc/part.h"
#include "parc/random.h"
#include "parc/rank.h"
#include "parc/safetensors.h"
#include "parc/staged.h"
#include "parc/status.h"
#include "parc/tensor.h"
#include "parc/tokens.h"
#include "parc/trainer.h"
#include "parc/value.h"
#include "parc/zp.h"

#endif // PARC_RUNTIME_H
