//===- tensor.h - Views, pooled buffers -------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A View is a typed window on memory that it does not own: data, sizes and
/// strides in elements, small enough to be captured by value in a kernel. A
/// Pool keeps freed blocks by size, so that nothing is allocated after the
/// first step. A Tensor owns one block of a pool.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TENSOR_H
#define PARC_TENSOR_H

#include "parc/dtype.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

namespace parc {

constexpr int MaxRank = 8;

/// A non-owning window of up to eight dimensions. Strides count elements; they
/// may be zero (broadcast) in views that are only read.
template <class T> struct View {
  T *data = nullptr;
  int rank = 0;
  int64_t dims[MaxRank] = {};
  int64_t strides[MaxRank] = {};

  View() = default;

  /// Row-major view of \p n dimensions.
  View(T *data, const int64_t *sizes, int n) : data(data), rank(n) {
    int64_t stride = 1;
    for (int d = n - 1; d >= 0; --d) {
      dims[d] = sizes[d];
      strides[d] = stride;
      stride *= sizes[d];
    }
  }
  View(T *data, std::initializer_list<int64_t> sizes)
      : View(data, sizes.begin(), int(sizes.size())) {}
  View(T *data, const std::vector<int64_t> &sizes)
      : View(data, sizes.data(), int(sizes.size())) {}
  View(T *data, std::initializer_list<int64_t> sizes,
       std::initializer_list<int64_t> steps)
      : View(data, sizes) {
    int d = 0;
    for (int64_t s : steps)
      strides[d++] = s;
  }

  /// A view to write is also a view to read.
  template <class U = T, class = std::enable_if_t<std::is_same_v<U, T> &&
                                                  !std::is_const_v<T>>>
  operator View<const U>() const {
    View<const U> v;
    v.data = data;
    v.rank = rank;
    for (int d = 0; d < MaxRank; ++d) {
      v.dims[d] = dims[d];
      v.strides[d] = strides[d];
    }
    return v;
  }

  /// The element at an index; every dimension is given.
  template <class... I> PARC_HD PARC_INLINE T &operator()(I... i) const {
    return data[offset<0>(int64_t(i)...)];
  }
  PARC_HD PARC_INLINE T &operator()() const { return data[0]; }

  /// The same where the last dimension is known to be contiguous: this is what
  /// lets the host compiler vectorise without a run-time check.
  template <class... I> PARC_HD PARC_INLINE T &unit(I... i) const {
    return data[unitOffset<0>(int64_t(i)...)];
  }

  PARC_HD int64_t dim(int d) const { return dims[d]; }

  /// Number of elements.
  PARC_HD int64_t size() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d)
      n *= dims[d];
    return n;
  }

  /// Whether the elements lie row-major without gaps.
  bool contiguous() const {
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      if (dims[d] == 0)
        return true;
      if (dims[d] != 1 && strides[d] != stride)
        return false;
      stride *= dims[d];
    }
    return true;
  }

  /// Elements lo .. lo+n of dimension \p d.
  View slice(int d, int64_t lo, int64_t n) const {
    View v = *this;
    v.data += lo * strides[d];
    v.dims[d] = n;
    return v;
  }

  /// Fixes dimension \p d to one index and drops it.
  View select(int d, int64_t i) const {
    View v = slice(d, i, 1);
    for (int k = d; k + 1 < rank; ++k) {
      v.dims[k] = dims[k + 1];
      v.strides[k] = strides[k + 1];
    }
    --v.rank;
    v.dims[v.rank] = v.strides[v.rank] = 0;
    return v;
  }

  /// Dimension k of the result is dimension order[k] of this.
  View permute(std::initializer_list<int> order) const {
    View v = *this;
    int k = 0;
    for (int d : order) {
      v.dims[k] = dims[d];
      v.strides[k++] = strides[d];
    }
    return v;
  }

  /// The same elements under other sizes; only for contiguous views.
  View reshape(std::initializer_list<int64_t> sizes) const {
    return View(data, sizes);
  }

private:
  template <int D> PARC_HD PARC_INLINE int64_t offset(int64_t i) const {
    return i * strides[D];
  }
  template <int D, class... I>
  PARC_HD PARC_INLINE int64_t offset(int64_t i, I... rest) const {
    return i * strides[D] + offset<D + 1>(rest...);
  }
  template <int D> PARC_HD PARC_INLINE int64_t unitOffset(int64_t i) const {
    return i;
  }
  template <int D, class... I>
  PARC_HD PARC_INLINE int64_t unitOffset(int64_t i, I... rest) const {
    return i * strides[D] + unitOffset<D + 1>(rest...);
  }
};

/// A view argument that takes part in no deduction: `View<float>` converts.
template <class T> using In = typename std::common_type<View<const T>>::type;

/// Where a pool gets its blocks: host memory, or a device's.
struct Memory {
  void *(*allocate)(size_t bytes);
  void (*release)(void *block);
};

/// Host memory, aligned to 64 bytes.
const Memory &hostMemory();

/// Keeps freed blocks by size. Not thread safe: one pool a rank.
class Pool {
public:
  explicit Pool(const Memory &memory = hostMemory()) : memory(&memory) {}
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;
  ~Pool();

  /// A block of at least \p bytes; null only where memory is exhausted.
  void *take(size_t bytes);
  /// Returns a block that take() gave for the same \p bytes.
  void give(void *block, size_t bytes);

  /// Bytes ever obtained, bytes handed out now, the most handed out at once.
  size_t reserved() const { return reservedBytes; }
  size_t inUse() const { return usedBytes; }
  size_t peak() const { return peakBytes; }
  /// How often memory was really allocated; constant after the first step.
  size_t allocations() const { return allocationCount; }

private:
  static size_t rounded(size_t bytes);

  const Memory *memory;
  std::map<size_t, std::vector<void *>> free;
  size_t reservedBytes = 0, usedBytes = 0, peakBytes = 0, allocationCount = 0;
};

/// Owns one block of a pool, seen as a contiguous view. The pool must outlive
/// it. The elements are not initialised.
template <class T> class Tensor {
public:
  Tensor() = default;
  Tensor(Pool &pool, std::initializer_list<int64_t> sizes)
      : Tensor(pool, View<T>(nullptr, sizes)) {}
  Tensor(Pool &pool, const std::vector<int64_t> &sizes)
      : Tensor(pool, View<T>(nullptr, sizes)) {}
  Tensor(Tensor &&other) noexcept { swap(other); }
  Tensor &operator=(Tensor &&other) noexcept {
    Tensor(std::move(other)).swap(*this);
    return *this;
  }
  Tensor(const Tensor &) = delete;
  Tensor &operator=(const Tensor &) = delete;
  ~Tensor() {
    if (pool)
      pool->give(window.data, bytes());
  }

  const View<T> &view() const { return window; }
  operator View<T>() const { return window; }
  operator View<const T>() const { return window; }
  T *data() const { return window.data; }
  int64_t size() const { return window.size(); }
  size_t bytes() const { return size_t(window.size()) * sizeof(T); }

  void swap(Tensor &other) noexcept {
    std::swap(pool, other.pool);
    std::swap(window, other.window);
  }

private:
  Tensor(Pool &p, View<T> shape) : pool(&p), window(shape) {
    window.data = static_cast<T *>(p.take(bytes()));
  }

  Pool *pool = nullptr;
  View<T> window;
};

} // namespace parc

#endif // PARC_TENSOR_H
