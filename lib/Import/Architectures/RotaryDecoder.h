//===- RotaryDecoder.h - What rotary decoders share -------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The part of the description that decoders with rotary positions, RMS norms
/// and a gated multi-layer perceptron have in common: tensor names and
/// harmless fields.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_IMPORT_ARCHITECTURES_ROTARYDECODER_H
#define PARC_LIB_IMPORT_ARCHITECTURES_ROTARYDECODER_H

#include "parc/Import/Architecture.h"

namespace mlir::parc {

/// A description without `modelType` and `className`.
Architecture makeRotaryDecoder();

/// The usual names of a router, its bias, and of routed and shared experts.
void setExpertNames(CheckpointNames &names);

} // namespace mlir::parc

#endif // PARC_LIB_IMPORT_ARCHITECTURES_ROTARYDECODER_H
