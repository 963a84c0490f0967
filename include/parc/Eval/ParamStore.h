//===- ParamStore.h - Parameters while a program runs -----------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The slots of all parameters (value, grad, m, v), by symbol and layer.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_EVAL_PARAMSTORE_H
#define PARC_EVAL_PARAMSTORE_H

#include "parc/Eval/Tensor.h"

#include <map>

namespace mlir::parc::eval {

/// One slot of one layer's parameter; a parameter without layers is layer 0.
struct ParamKey {
  std::string symbol;
  int64_t layer = 0;
  std::string slot = "value";

  friend bool operator<(const ParamKey &a, const ParamKey &b) {
    return std::tie(a.symbol, a.layer, a.slot) <
           std::tie(b.symbol, b.layer, b.slot);
  }
  friend bool operator==(const ParamKey &a, const ParamKey &b) {
    return a.symbol == b.symbol && a.layer == b.layer && a.slot == b.slot;
  }
  /// `@q[2].grad`.
  std::string text() const {
    return "@" + symbol + "[" + std::to_string(layer) + "]." + slot;
  }
};

/// Iteration is in the order of keys.
template <class T> class ParamStore {
public:
  using Map = std::map<ParamKey, Tensor<T>>;

  void set(const ParamKey &key, Tensor<T> value) {
    slots[key] = std::move(value);
  }
  /// Null where the slot is absent.
  Tensor<T> *find(const ParamKey &key) {
    auto found = slots.find(key);
    return found == slots.end() ? nullptr : &found->second;
  }
  const Tensor<T> *find(const ParamKey &key) const {
    return const_cast<ParamStore *>(this)->find(key);
  }
  /// Removes the slot of that name from every parameter.
  void clearSlot(llvm::StringRef slot) {
    for (auto it = slots.begin(); it != slots.end();)
      it = it->first.slot == slot ? slots.erase(it) : std::next(it);
  }
  const Map &all() const { return slots; }

private:
  Map slots;
};

} // namespace mlir::parc::eval

#endif // PARC_EVAL_PARAMSTORE_H
