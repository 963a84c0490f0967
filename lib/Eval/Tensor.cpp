//===- Tensor.cpp - Values of the evaluator -------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Shapes, boxes and sums of tensors.
///
//===----------------------------------------------------------------------===//

#include "parc/Eval/Tensor.h"

#include "llvm/ADT/Twine.h"

using namespace mlir::parc::eval;

int64_t mlir::parc::eval::elementCount(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Shape mlir::parc::eval::rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (int64_t dim = int64_t(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

std::string mlir::parc::eval::shapeText(llvm::ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") +
            (size < 0 ? std::string("?") : std::to_string(size));
  return text;
}

bool Box::inside(llvm::ArrayRef<int64_t> shape) const {
  if (offsets.size() != shape.size() || sizes.size() != shape.size())
    return false;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t step = steps.empty() ? 1 : steps[dim];
    if (offsets[dim] < 0 || sizes[dim] < 0 || step < 1)
      return false;
    if (sizes[dim] &&
        ((shape[dim] - 1 - offsets[dim]) / step < sizes[dim] - 1 ||
         offsets[dim] >= shape[dim]))
      return false;
    if (!sizes[dim] && offsets[dim] > shape[dim])
      return false;
  }
  return true;
}

/// Calls `row(offset in the tensor, position in the box, count, step)` for each
/// innermost row of the box.
template <class F>
static void forEachRow(llvm::ArrayRef<int64_t> shape, const Box &box, F &&row) {
  Shape strides = rowMajorStrides(shape);
  size_t rank = shape.size();
  if (rank == 0)
    return row(0, 0, 1, 1);
  if (elementCount(box.sizes) == 0)
    return;
  auto step = [&](size_t dim) {
    return box.steps.empty() ? 1 : box.steps[dim];
  };
  int64_t inner = box.sizes[rank - 1];
  Shape index(rank, 0);
  for (int64_t position = 0;; position += inner) {
    int64_t offset = 0;
    for (size_t dim = 0; dim < rank; ++dim)
      offset += (box.offsets[dim] + index[dim] * step(dim)) * strides[dim];
    row(offset, position, inner, step(rank - 1));
    int64_t dim = int64_t(rank) - 2;
    for (; dim >= 0 && ++index[dim] == box.sizes[dim]; --dim)
      index[dim] = 0;
    if (dim < 0)
      return;
  }
}

template <class T>
Tensor<T> mlir::parc::eval::extractBox(const Tensor<T> &source,
                                       const Box &box) {
  Tensor<T> result = Tensor<T>::zeros(box.sizes, source.isInt());
  source.visit([&](auto element) {
    using E = decltype(element);
    const E *from = source.template data<E>();
    E *to = result.template mutableData<E>();
    forEachRow(source.shape(), box,
               [&](int64_t offset, int64_t at, int64_t count, int64_t step) {
                 for (int64_t i = 0; i < count; ++i)
                   to[at + i] = from[offset + i * step];
               });
  });
  return result;
}

template <class T>
void mlir::parc::eval::insertBox(Tensor<T> &target, const Tensor<T> &part,
                                 const Box &box) {
  target.visit([&](auto element) {
    using E = decltype(element);
    const E *from = part.template data<E>();
    E *to = target.template mutableData<E>();
    forEachRow(target.shape(), box,
               [&](int64_t offset, int64_t at, int64_t count, int64_t step) {
                 for (int64_t i = 0; i < count; ++i)
                   to[offset + i * step] = from[at + i];
               });
  });
}

template <class T>
void mlir::parc::eval::addInto(Tensor<T> &target, const Tensor<T> &part) {
  target.visit([&](auto element) {
    using E = decltype(element);
    E *to = target.template mutableData<E>();
    const E *from = part.template data<E>();
    for (int64_t i = 0, n = target.size(); i < n; ++i)
      to[i] += from[i];
  });
}

#define PARC_INSTANTIATE(T)                                                    \
  template Tensor<T> mlir::parc::eval::extractBox(const Tensor<T> &,           \
                                                  const Box &);                \
  template void mlir::parc::eval::insertBox(Tensor<T> &, const Tensor<T> &,    \
                                            const Box &);                      \
  template void mlir::parc::eval::addInto(Tensor<T> &, const Tensor<T> &);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
