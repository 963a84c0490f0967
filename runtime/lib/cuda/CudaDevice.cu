//===- CudaDevice.cu - Memory and matrix products on a GPU ----------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Strided copies by a kernel, and cuBLASLt.
///
//===----------------------------------------------------------------------===//

#include "../common/Device.h"
#include "CudaEndpoint.h"

namespace parc {
namespace {

using cuda::CudaEndpoint;
using cuda::cudaStatus;

cudaStream_t streamOf(void *stream) {
  return static_cast<cudaStream_t>(stream);
}

struct CopyShape {
  int rank;
  int64_t dims[MaxRank], to[MaxRank], from[MaxRank];
};

template <class W>
__global__ void copyKernel(W *dst, const W *src, CopyShape s, int64_t total) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < total;
       at += step) {
    int64_t rest = at, to = 0, from = 0;
    for (int d = s.rank - 1; d >= 0; --d) {
      int64_t i = rest % s.dims[d];
      rest /= s.dims[d];
      to += i * s.to[d];
      from += i * s.from[d];
    }
    dst[to] = src[from];
  }
}

template <class W>
Status launchCopy(void *stream, const AnyView &dst, const AnyView &src) {
  CopyShape s;
  s.rank = dst.rank;
  for (int d = 0; d < MaxRank; ++d) {
    s.dims[d] = dst.dims[d];
    s.to[d] = dst.strides[d];
    s.from[d] = src.strides[d];
  }
  int64_t total = dst.size();
  unsigned blocks = unsigned(std::min<int64_t>((total + 255) / 256, 1 << 20));
  copyKernel<<<blocks, 256, 0, streamOf(stream)>>>(
      static_cast<W *>(dst.data), static_cast<const W *>(src.data), s, total);
  return cudaStatus(cudaGetLastError(), "copy");
}

Status copyDevice(void *stream, const AnyView &dst, const AnyView &src) {
  size_t width = sizeOf(dst.type);
  if (dst.contiguous() && src.contiguous())
    return cudaStatus(
        cudaMemcpyAsync(dst.data, src.data, size_t(dst.size()) * width,
                        cudaMemcpyDeviceToDevice, streamOf(stream)),
        "copy");
  return width == 2   ? launchCopy<uint16_t>(stream, dst, src)
         : width == 4 ? launchCopy<uint32_t>(stream, dst, src)
                      : launchCopy<uint64_t>(stream, dst, src);
}

Status toHost(void *stream, void *host, const void *device, size_t bytes) {
  PARC_TRY(cudaStatus(cudaMemcpyAsync(host, device, bytes,
                                      cudaMemcpyDeviceToHost, streamOf(stream)),
                      "copy to the host"));
  return cudaStatus(cudaStreamSynchronize(streamOf(stream)),
                    "copy to the host");
}

Status toDevice(void *stream, void *device, const void *host, size_t bytes) {
  PARC_TRY(cudaStatus(cudaMemcpyAsync(device, host, bytes,
                                      cudaMemcpyHostToDevice, streamOf(stream)),
                      "copy to the device"));
  return cudaStatus(cudaStreamSynchronize(streamOf(stream)),
                    "copy to the device");
}

Status zeroDevice(void *stream, void *device, size_t bytes) {
  return cudaStatus(cudaMemsetAsync(device, 0, bytes, streamOf(stream)),
                    "zero");
}

//===----------------------------------------------------------------------===//
// cuBLASLt
//===----------------------------------------------------------------------===//

Status blasStatus(cublasStatus_t status, const char *what) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return Status();
  return Status(Code::DeviceError, std::string("gemm: ") + what + ": " +
                                       cublasLtGetStatusString(status));
}

cudaDataType dataType(DType t) {
  return t == DType::f32   ? CUDA_R_32F
         : t == DType::f64 ? CUDA_R_64F
                           : CUDA_R_16BF;
}

/// A column-major operand as the library sees it.
struct Operand {
  void *data;
  int64_t rows, cols, leading, batchStep;
  cublasOperation_t op;
};

/// Destroys the library's descriptors when a call ends.
struct Descriptors {
  cublasLtMatmulDesc_t matmul = nullptr;
  cublasLtMatrixLayout_t layout[3] = {};
  cublasLtMatmulPreference_t preference = nullptr;

  ~Descriptors() {
    if (preference)
      cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t l : layout)
      if (l)
        cublasLtMatrixLayoutDestroy(l);
    if (matmul)
      cublasLtMatmulDescDestroy(matmul);
  }
};

Status describe(Descriptors &d, int which, DType t, const Operand &o,
                int batch) {
  PARC_TRY(blasStatus(cublasLtMatrixLayoutCreate(&d.layout[which], dataType(t),
                                                 uint64_t(o.rows),
                                                 uint64_t(o.cols), o.leading),
                      "layout"));
  PARC_TRY(blasStatus(cublasLtMatrixLayoutSetAttribute(
                          d.layout[which], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                          &batch, sizeof batch),
                      "batch"));
  return blasStatus(cublasLtMatrixLayoutSetAttribute(
                        d.layout[which],
                        CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                        &o.batchStep, sizeof o.batchStep),
                    "batch step");
}

/// C = A * B, all column-major, A and B of type \p t, C of type \p result;
/// accumulation in f32, or f64 for f64.
Status multiply(CudaEndpoint &e, DType t, DType result, const Operand &a,
                const Operand &b, const Operand &c, int batch,
                bool accumulate) {
  bool wide = t == DType::f64;
  Descriptors d;
  PARC_TRY(blasStatus(
      cublasLtMatmulDescCreate(&d.matmul,
                               wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                               wide ? CUDA_R_64F : CUDA_R_32F),
      "descriptor"));
  PARC_TRY(
      blasStatus(cublasLtMatmulDescSetAttribute(
                     d.matmul, CUBLASLT_MATMUL_DESC_TRANSA, &a.op, sizeof a.op),
                 "transpose"));
  PARC_TRY(
      blasStatus(cublasLtMatmulDescSetAttribute(
                     d.matmul, CUBLASLT_MATMUL_DESC_TRANSB, &b.op, sizeof b.op),
                 "transpose"));
  PARC_TRY(describe(d, 0, t, a, batch));
  PARC_TRY(describe(d, 1, t, b, batch));
  PARC_TRY(describe(d, 2, result, c, batch));
  PARC_TRY(
      blasStatus(cublasLtMatmulPreferenceCreate(&d.preference), "preference"));
  size_t space = CudaEndpoint::WorkspaceBytes;
  PARC_TRY(
      blasStatus(cublasLtMatmulPreferenceSetAttribute(
                     d.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                     &space, sizeof space),
                 "workspace"));
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  PARC_TRY(blasStatus(
      cublasLtMatmulAlgoGetHeuristic(e.blas(), d.matmul, d.layout[0],
                                     d.layout[1], d.layout[2], d.layout[2],
                                     d.preference, 1, &found, &count),
      "no algorithm"));
  if (count == 0)
    return Status(Code::Unsupported, "gemm: no algorithm for these sizes");
  float one32 = 1, beta32 = accumulate ? 1 : 0;
  double one64 = 1, beta64 = accumulate ? 1 : 0;
  const void *alpha = wide ? static_cast<const void *>(&one64) : &one32;
  const void *beta = wide ? static_cast<const void *>(&beta64) : &beta32;
  return blasStatus(cublasLtMatmul(e.blas(), d.matmul, alpha, a.data,
                                   d.layout[0], b.data, d.layout[1], beta,
                                   c.data, d.layout[2], c.data, d.layout[2],
                                   &found.algo, e.workspace(), space,
                                   e.cudaStream()),
                    "product");
}

/// A row-major matrix is its transpose, column-major.
Operand operand(const AnyView &v, void *data, bool flip) {
  MatrixLayout l = matrixLayout(v);
  int64_t rows = v.dims[v.rank - 2], cols = v.dims[v.rank - 1];
  bool columnMajor = l.transposed;
  Operand o;
  o.data = data;
  o.rows = columnMajor ? rows : cols;
  o.cols = columnMajor ? cols : rows;
  o.leading = l.leading;
  o.batchStep = v.rank > 2 ? v.strides[v.rank - 3] : 0;
  o.op = columnMajor != flip ? CUBLAS_OP_N : CUBLAS_OP_T;
  return o;
}

Status zeroMatrices(Rank &r, const Product &p, char *c, int batch) {
  MatrixLayout l = matrixLayout(p.c);
  size_t width = sizeOf(p.c.type);
  int64_t rows = l.transposed ? p.n() : p.m();
  int64_t cols = l.transposed ? p.m() : p.n();
  int64_t step = p.c.rank > 2 ? p.c.strides[p.c.rank - 3] : 0;
  for (int i = 0; i < batch; ++i)
    PARC_TRY(cudaStatus(cudaMemset2DAsync(c + i * step * int64_t(width),
                                          size_t(l.leading) * width, 0,
                                          size_t(cols) * width, size_t(rows),
                                          streamOf(r.stream())),
                        "zero"));
  return Status();
}

/// The innermost batch dimension goes to the library, the others are a loop.
Status batches(Rank &r, const Product &p, int d, char *c, char *a, char *b) {
  auto width = int64_t(sizeOf(p.a.type)), wide = int64_t(sizeOf(p.c.type));
  if (d < p.c.rank - 3) {
    for (int64_t i = 0; i < p.c.dims[d]; ++i)
      PARC_TRY(batches(r, p, d + 1, c + i * p.c.strides[d] * wide,
                       a + i * p.a.strides[d] * width,
                       b + i * p.b.strides[d] * width));
    return Status();
  }
  int batch = p.c.rank > 2 ? int(p.c.dims[p.c.rank - 3]) : 1;
  if (p.k() == 0)
    return p.accumulate ? Status() : zeroMatrices(r, p, c, batch);
  auto &e = static_cast<CudaEndpoint &>(r.endpoint());
  Operand oc = operand(p.c, c, false);
  // Where C is row-major, its transpose is computed: C^T = B^T A^T.
  bool flip = !matrixLayout(p.c).transposed;
  Operand oa = operand(p.a, a, flip), ob = operand(p.b, b, flip);
  return multiply(e, p.a.type, p.c.type, flip ? ob : oa, flip ? oa : ob, oc,
                  batch, p.accumulate);
}

Status gemmDevice(Rank &r, const Product &p) {
  return batches(r, p, 0, static_cast<char *>(p.c.data),
                 static_cast<char *>(p.a.data), static_cast<char *>(p.b.data));
}

bool hasGemmDevice(DType t) {
  return t == DType::f32 || t == DType::f64 || t == DType::bf16;
}

void *allocateDevice(size_t bytes) {
  void *block = nullptr;
  return cudaMalloc(&block, bytes) == cudaSuccess ? block : nullptr;
}
void releaseDevice(void *block) { cudaFree(block); }

} // namespace

const DeviceOps &cudaDevice() {
  static const Memory memory = {allocateDevice, releaseDevice};
  static const DeviceOps ops = {&memory,    copyDevice, toHost,       toDevice,
                                zeroDevice, gemmDevice, hasGemmDevice};
  return ops;
}

} // namespace parc
