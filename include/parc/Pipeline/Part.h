//===- Part.h - The balanced split of units into parts ----------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one rule by which anything is split: part i of P over u units holds the
/// units floor(i*u/P) to floor((i+1)*u/P). A unit is one element or a grain (a
/// head, an expert). Sizes differ by at most one, and the bounds nest: part i
/// of a holds exactly the parts i*b to (i+1)*b of a*b. All functions are
/// constexpr and allocate nothing.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_PIPELINE_PART_H
#define PARC_PIPELINE_PART_H

#include <cstdint>
#include <numeric>

namespace mlir::parc {

/// First unit of part `index` of `parts` over `units` units; `index == parts`
/// gives `units`. Needs 0 <= index <= parts, 1 <= parts < 2^31, units >= 0.
/// Written with a quotient and a remainder so that no product can overflow.
constexpr int64_t partStart(int64_t units, int64_t parts, int64_t index) {
  return index * (units / parts) + index * (units % parts) / parts;
}

/// Number of units of part `index`.
constexpr int64_t partSize(int64_t units, int64_t parts, int64_t index) {
  return partStart(units, parts, index + 1) - partStart(units, parts, index);
}

/// Size of the smallest part; 0 means that some part is empty.
constexpr int64_t minPartSize(int64_t units, int64_t parts) {
  return units / parts;
}

/// Size of the largest part: what a buffer that fits any part must hold.
constexpr int64_t maxPartSize(int64_t units, int64_t parts) {
  return units / parts + (units % parts != 0);
}

/// True when every part has the same size.
constexpr bool isEvenSplit(int64_t units, int64_t parts) {
  return units % parts == 0;
}

/// The part that holds `unit`, with 0 <= unit < units < 2^31.
constexpr int64_t partOf(int64_t units, int64_t parts, int64_t unit) {
  return ((unit + 1) * parts - 1) / units;
}

/// A dimension of `extent` elements that may be cut only at multiples of
/// `grain`. `extent` must be a multiple of `grain`.
struct GrainedDim {
  int64_t extent = 1;
  int64_t grain = 1;

  constexpr bool isValid() const {
    return grain >= 1 && extent >= 0 && extent % grain == 0;
  }
  constexpr int64_t units() const { return extent / grain; }
  /// First element of part `index`.
  constexpr int64_t start(int64_t parts, int64_t index) const {
    return partStart(units(), parts, index) * grain;
  }
  /// Number of elements of part `index`.
  constexpr int64_t size(int64_t parts, int64_t index) const {
    return partSize(units(), parts, index) * grain;
  }
  constexpr bool isEven(int64_t parts) const {
    return isEvenSplit(units(), parts);
  }
};

/// What index `index` of a folded dimension stands for: part i of `parts` equal
/// parts holds a block from the front and one from the back, so that causal
/// attention costs every part the same. A bijection of 0 to extent - 1.
constexpr int64_t foldedIndex(int64_t extent, int64_t parts, int64_t index) {
  int64_t part = partOf(extent, parts, index);
  int64_t begin = partStart(extent, parts, part);
  int64_t end = partStart(extent, parts, part + 1);
  int64_t front = (begin + 1) / 2, frontSize = (end + 1) / 2 - front;
  int64_t place = index - begin;
  return place < frontSize ? front + place
                           : extent - end / 2 + (place - frontSize);
}

/// The grain of a factor that joins two dimensions: their least common
/// multiple, so that a legal cut of the factor is legal in both.
constexpr int64_t joinGrains(int64_t a, int64_t b) { return std::lcm(a, b); }

} // namespace mlir::parc

#endif // PARC_PIPELINE_PART_H
