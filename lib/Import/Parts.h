//===- Parts.h - Fields of latent attention and experts ---------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads the fields of the parts that only some architectures have: latent
/// attention, experts, and which layers have those.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_IMPORT_PARTS_H
#define PARC_LIB_IMPORT_PARTS_H

#include "Fields.h"
#include "parc/Import/Config.h"

namespace mlir::parc {

/// All fields that the architecture's parts name are known, present or not.
void markPartsKnown(const Architecture &architecture, Fields &fields);

/// The sizes of latent attention: `latent`, `headDim`, `valueDim`.
void readLatent(Fields &fields, ModelConfig &config);

/// `experts`, checked.
void readExperts(Fields &fields, ModelConfig &config);

/// `runs`, from the number of layers and from which of them have experts.
void readRuns(Fields &fields, ModelConfig &config);

} // namespace mlir::parc

#endif // PARC_LIB_IMPORT_PARTS_H
