//===- Registry.cpp - The list of architectures ---------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The architectures that import knows. A new one is a file beside this and a
/// line here.
///
//===----------------------------------------------------------------------===//

#include "parc/Import/Architecture.h"

using namespace mlir;
using namespace mlir::parc;

ArrayRef<const Architecture *> mlir::parc::getArchitectures() {
  static const Architecture *const all[] = {
      &getDeepseekV3Architecture(), &getGpt2Architecture(),
      &getLlamaArchitecture(),      &getMistralArchitecture(),
      &getMixtralArchitecture(),    &getQwen2Architecture(),
      &getQwen3Architecture(),      &getQwen3MoeArchitecture()};
  return all;
}

const Architecture *mlir::parc::findArchitecture(StringRef modelType) {
  for (const Architecture *architecture : getArchitectures())
    if (architecture->modelType == modelType)
      return architecture;
  return nullptr;
}
