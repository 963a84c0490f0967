//===- value.h - Shared buffers of one rank ---------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a generated program computes with: a view and a share of the pool's
/// block under it. The block goes back to the pool with its last share, so a
/// value may be kept, sent and passed on at no cost. One rank, one thread.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_VALUE_H
#define PARC_VALUE_H

#include "parc/rank.h"

#include <deque>

namespace parc {

/// A block of a pool and how many values share it.
struct Block {
  Pool *pool = nullptr;
  void *data = nullptr;
  size_t bytes = 0;
  int shares = 0;
  std::vector<Block *> *idle = nullptr;
};

/// Makes values. Blocks' records are kept for the next value, so that nothing
/// is allocated once a step has run.
class Store {
public:
  explicit Store(Pool &pool) : pool_(pool) {}
  Store(const Store &) = delete;
  Store &operator=(const Store &) = delete;

  Block *take(size_t bytes) {
    if (idle_.empty()) {
      records_.emplace_back();
      idle_.push_back(&records_.back());
    }
    Block *block = idle_.back();
    idle_.pop_back();
    *block = {&pool_, pool_.take(bytes), bytes, 0, &idle_};
    return block;
  }

private:
  Pool &pool_;
  std::deque<Block> records_;
  std::vector<Block *> idle_;
};

/// A view and its share of a block; of a type known at run time only. Without
/// a block it is a view of memory that someone else owns.
class AnyValue {
public:
  AnyValue() = default;
  AnyValue(const AnyView &view, Block *block) : view_(view), block_(block) {
    if (block_)
      ++block_->shares;
  }
  AnyValue(const AnyValue &other) : AnyValue(other.view_, other.block_) {}
  AnyValue(AnyValue &&other) noexcept { swap(other); }
  AnyValue &operator=(AnyValue other) noexcept {
    swap(other);
    return *this;
  }
  ~AnyValue() { drop(); }

  /// Row-major and not initialised.
  static AnyValue make(Store &store, DType type, const int64_t *sizes,
                       int rank) {
    AnyView view;
    view.type = type;
    view.rank = rank;
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      view.dims[d] = sizes[d];
      view.strides[d] = stride;
      stride *= sizes[d];
    }
    Block *block = store.take(size_t(view.size()) * sizeOf(type));
    view.data = block->data;
    return AnyValue(view, block);
  }

  const AnyView &any() const { return view_; }
  operator const AnyView &() const { return view_; }
  int64_t dim(int d) const { return view_.dims[d]; }
  void *data() const { return view_.data; }
  size_t bytes() const { return size_t(view_.size()) * sizeOf(view_.type); }
  Block *block() const { return block_; }
  /// True where nobody else would see it change.
  bool alone() const { return block_ && block_->shares == 1; }

  /// Gives the share back.
  void release() { AnyValue().swap(*this); }
  void swap(AnyValue &other) noexcept {
    std::swap(view_, other.view_);
    std::swap(block_, other.block_);
  }

private:
  void drop() {
    if (!block_ || --block_->shares > 0)
      return;
    block_->pool->give(block_->data, block_->bytes);
    block_->idle->push_back(block_);
  }

  AnyView view_;
  Block *block_ = nullptr;
};

/// The same of a known type.
template <class T> class Value : public AnyValue {
public:
  Value() = default;
  /// Of the same element type.
  explicit Value(AnyValue value) : AnyValue(std::move(value)) {}
  /// A view of memory that outlives the value.
  Value(const View<T> &view) : AnyValue(AnyView(view), nullptr) {}

  View<T> view() const {
    View<T> v;
    v.data = static_cast<T *>(any().data);
    v.rank = any().rank;
    for (int d = 0; d < MaxRank; ++d) {
      v.dims[d] = any().dims[d];
      v.strides[d] = any().strides[d];
    }
    return v;
  }
  operator View<T>() const { return view(); }
  operator View<const T>() const { return view(); }

  /// The same elements, row-major, under other sizes.
  Value reshape(std::initializer_list<int64_t> sizes) const {
    return Value(AnyValue(AnyView(view().reshape(sizes)), block()));
  }
};

/// What a stack of layers keeps: one value a layer of this rank.
template <class T> using Layers = std::vector<Value<T>>;

/// Gives back what is not read again.
template <class... V> void release(V &...values) { (values.release(), ...); }

/// Gives back all layers; the list keeps its memory.
template <class T> void release(Layers<T> &layers) {
  for (Value<T> &value : layers)
    value.release();
}

} // namespace parc

#endif // PARC_VALUE_H
