//===- Device.h - What a backend does with memory ---------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The table of functions by which common code reaches a backend's memory and
/// matrix library.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_COMMON_DEVICE_H
#define PARC_LIB_COMMON_DEVICE_H

#include "parc/rank.h"

namespace parc {

/// One matrix product after validation: sizes, and element strides of each
/// operand's two inner dimensions; outer ones are the batch.
struct Product {
  AnyView c, a, b;
  bool accumulate;

  int64_t m() const { return c.dims[c.rank - 2]; }
  int64_t n() const { return c.dims[c.rank - 1]; }
  int64_t k() const { return a.dims[a.rank - 1]; }
};

/// How a matrix of a product lies in memory for a library call.
struct MatrixLayout {
  bool transposed; ///< Stored as its transpose, row-major.
  int64_t leading; ///< Elements from one stored row to the next.
  bool direct;     ///< False: must be packed first.
};

/// The layout of the two inner dimensions of \p v.
MatrixLayout matrixLayout(const AnyView &v);

struct DeviceOps {
  const Memory *memory;
  Status (*copy)(void *stream, const AnyView &dst, const AnyView &src);
  Status (*toHost)(void *stream, void *host, const void *device, size_t bytes);
  Status (*toDevice)(void *stream, void *device, const void *host,
                     size_t bytes);
  Status (*zero)(void *stream, void *device, size_t bytes);
  /// \p product has direct layouts; types are f32, f64 or, with cuda, bf16.
  Status (*gemm)(Rank &r, const Product &product);
  /// Whether gemm() takes this element type.
  bool (*hasGemm)(DType type);
};

const DeviceOps &hostDevice();
#ifdef PARC_CUDA
const DeviceOps &cudaDevice();
#endif
const DeviceOps &deviceOf(Backend backend);

} // namespace parc

#endif // PARC_LIB_COMMON_DEVICE_H
