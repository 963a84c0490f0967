//===- Pool.cpp - Free lists by size --------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Blocks are rounded to 256 bytes and kept by size once freed.
///
//===----------------------------------------------------------------------===//

#include "parc/tensor.h"

#include <algorithm>
#include <cstdlib>

namespace parc {

const Memory &hostMemory() {
  static const Memory memory = {
      [](size_t bytes) { return std::aligned_alloc(64, bytes); },
      [](void *block) { std::free(block); }};
  return memory;
}

size_t Pool::rounded(size_t bytes) {
  return std::max<size_t>(256, (bytes + 255) / 256 * 256);
}

void *Pool::take(size_t bytes) {
  size_t size = rounded(bytes);
  std::vector<void *> &list = free[size];
  void *block = nullptr;
  if (!list.empty()) {
    block = list.back();
    list.pop_back();
  } else {
    block = memory->allocate(size);
    if (!block)
      return nullptr;
    reservedBytes += size;
    ++allocationCount;
  }
  usedBytes += size;
  peakBytes = std::max(peakBytes, usedBytes);
  return block;
}

void Pool::give(void *block, size_t bytes) {
  if (!block)
    return;
  size_t size = rounded(bytes);
  free[size].push_back(block);
  usedBytes -= size;
}

Pool::~Pool() {
  for (auto &[size, list] : free)
    for (void *block : list)
      memory->release(block);
}

} // namespace parc
