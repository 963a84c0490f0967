//===- Tensor.h - Values of the evaluator -----------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Dense row-major tensors of numbers of a domain or of 64-bit integers, with
/// shared buffers that are copied on write. A scalar is a tensor of rank 0.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_EVAL_TENSOR_H
#define PARC_EVAL_TENSOR_H

#include "parc/Eval/Domain.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <string>
#include <vector>

namespace mlir::parc::eval {

using Shape = llvm::SmallVector<int64_t, 4>;

/// The product of all sizes; 1 for rank 0.
int64_t elementCount(llvm::ArrayRef<int64_t> shape);
/// Row-major strides in elements.
Shape rowMajorStrides(llvm::ArrayRef<int64_t> shape);
/// `4x?x32` style text, `?` for a negative size; `scalar` for rank 0.
std::string shapeText(llvm::ArrayRef<int64_t> shape);

/// A tensor whose elements are all T, or all int64_t (i1 as 0 and 1).
template <class T> class Tensor {
public:
  Tensor() = default;

  /// All zeros.
  static Tensor zeros(llvm::ArrayRef<int64_t> shape, bool isInt) {
    Tensor result;
    result.dims.assign(shape.begin(), shape.end());
    size_t count = size_t(elementCount(shape));
    if (isInt)
      result.intBuffer = std::make_shared<std::vector<int64_t>>(count);
    else
      result.floatBuffer = std::make_shared<std::vector<T>>(count);
    return result;
  }
  /// `values` must have the shape's number of elements.
  static Tensor ofFloats(llvm::ArrayRef<int64_t> shape, std::vector<T> values) {
    Tensor result;
    result.dims.assign(shape.begin(), shape.end());
    result.floatBuffer = std::make_shared<std::vector<T>>(std::move(values));
    return result;
  }
  static Tensor ofInts(llvm::ArrayRef<int64_t> shape,
                       std::vector<int64_t> values) {
    Tensor result;
    result.dims.assign(shape.begin(), shape.end());
    result.intBuffer =
        std::make_shared<std::vector<int64_t>>(std::move(values));
    return result;
  }
  static Tensor scalar(T value) { return ofFloats({}, {value}); }
  static Tensor integer(int64_t value) { return ofInts({}, {value}); }

  bool isInt() const { return intBuffer != nullptr; }
  /// False for a default-constructed tensor only.
  bool valid() const { return intBuffer || floatBuffer; }
  llvm::ArrayRef<int64_t> shape() const { return dims; }
  int64_t rank() const { return int64_t(dims.size()); }
  int64_t size() const { return elementCount(dims); }

  const T *floats() const { return floatBuffer->data(); }
  const int64_t *ints() const { return intBuffer->data(); }
  template <class E> const E *data() const {
    if constexpr (std::is_same_v<E, int64_t>)
      return ints();
    else
      return floats();
  }
  /// The elements for writing; copied first where shared.
  template <class E> E *mutableData() {
    if constexpr (std::is_same_v<E, int64_t>)
      return own(intBuffer)->data();
    else
      return own(floatBuffer)->data();
  }
  T *mutableFloats() { return mutableData<T>(); }
  int64_t *mutableInts() { return mutableData<int64_t>(); }

  /// The only element of a scalar.
  T asFloat() const { return floats()[0]; }
  int64_t asInt() const { return ints()[0]; }

  /// The same elements in another shape of the same size; shares the buffer.
  Tensor reshaped(llvm::ArrayRef<int64_t> shape) const {
    Tensor result = *this;
    result.dims.assign(shape.begin(), shape.end());
    return result;
  }

  /// Calls f with a value of the element type.
  template <class F> auto visit(F &&f) const {
    return isInt() ? f(int64_t()) : f(T());
  }

private:
  template <class E>
  static std::vector<E> *own(std::shared_ptr<std::vector<E>> &buffer) {
    if (buffer.use_count() > 1)
      buffer = std::make_shared<std::vector<E>>(*buffer);
    return buffer.get();
  }

  Shape dims;
  std::shared_ptr<std::vector<T>> floatBuffer;
  std::shared_ptr<std::vector<int64_t>> intBuffer;
};

/// A box of a tensor: where it starts and how far its elements lie apart, in
/// each dimension. Empty steps stand for 1.
struct Box {
  Shape offsets, sizes, steps;

  /// True where every element of the box lies in `shape`.
  bool inside(llvm::ArrayRef<int64_t> shape) const;
};

/// The elements of `box`, which lies inside `source`.
template <class T>
Tensor<T> extractBox(const Tensor<T> &source, const Box &box);
/// Overwrites `box` of `target` by the elements of `part`, in row-major order.
template <class T>
void insertBox(Tensor<T> &target, const Tensor<T> &part, const Box &box);

/// target += part, elementwise; both have one shape and kind.
template <class T> void addInto(Tensor<T> &target, const Tensor<T> &part);

/// The values of a `!parc.layers`: those of the layers `begin`, `begin`+1, ...
template <class T> struct LayerValues {
  int64_t begin = 0;
  std::vector<Tensor<T>> values;
};

/// What an SSA value holds: a tensor, or one tensor a layer.
template <class T> struct RuntimeValue {
  Tensor<T> tensor;
  std::shared_ptr<const LayerValues<T>> layers;

  RuntimeValue() = default;
  RuntimeValue(Tensor<T> tensor) : tensor(std::move(tensor)) {}
  RuntimeValue(std::shared_ptr<const LayerValues<T>> layers)
      : layers(std::move(layers)) {}
};

} // namespace mlir::parc::eval

#endif // PARC_EVAL_TENSOR_H
