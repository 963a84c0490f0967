//===- Layouts.h - Who holds what -------------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Layouts of parameters and the changes of layout, read from the sharded
/// phase, where types are global and carry their layout.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_LAYOUTS_H
#define PARC_DRIVER_LAYOUTS_H

#include "parc/Driver/Report.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <vector>

namespace mlir::parc::driver {

/// One dimension of a value on the mesh.
struct DimLayout {
  int64_t size = 1;
  std::vector<std::string> axes;
  int64_t grain = 1;
  /// Product of the axes' sizes.
  int64_t parts = 1;

  int64_t units() const { return size / grain; }
  int64_t smallest() const;
  int64_t largest() const;
  bool even() const { return smallest() == largest(); }
};

/// What a parameter's slot is kept in: its type, and the axes that cut what the
/// parameter's dimensions leave.
struct SlotLayout {
  /// `value`, `grad`, or `state` for all that only an update uses.
  std::string name;
  std::string dtype;
  std::vector<std::string> flat;
};

/// How a value lies on the mesh.
struct ValueLayout {
  /// A parameter's symbol, or what a value is called in the model.
  std::string name;
  /// Layers that have one; 0 for a parameter of the whole model.
  int64_t layers = 0;
  std::vector<DimLayout> dims;
  std::vector<std::string> partial;
  /// Axes that cut what the dimensions leave, and into how many parts.
  std::vector<std::string> flat;
  int64_t flatParts = 1;
  std::string dtype;
  int64_t elementBytes = 4;
  std::string location;
  /// Of a parameter.
  std::vector<SlotLayout> slots;

  /// `97x32`.
  std::string shapeText() const;
  /// `tp, -`; `partial tp` at the end.
  std::string axesText() const;
  /// `48..49x32`.
  std::string localText() const;
};

/// A change of layout.
struct ReshardLayout {
  ValueLayout from, to;
  std::string why;
};

struct LayoutReport {
  std::vector<ValueLayout> params;
  std::vector<ReshardLayout> reshards;

  const ValueLayout *find(StringRef param) const;
};

/// Reads a module of the sharded phase.
LayoutReport collectLayouts(ModuleOp module, int64_t microBatches);

/// One row a parameter, one a kind of slot, then one a change of layout.
void printLayouts(const LayoutReport &report, raw_ostream &os);
llvm::json::Value layoutsToJSON(const LayoutReport &report);

/// What is split unevenly over devices, in words: `vocabulary 97 on tp: 49+48`
/// by the parameter's name and dimension.
std::vector<std::string> unevenTexts(const LayoutReport &report);

/// Warns of split dimensions whose units (heads) do not divide: how much more
/// work the fullest rank has.
void warnUneven(const LayoutReport &report, Reporter &reporter);

/// Name and place of an op's location: `attn.o`, `model.mlir:61:11`.
std::string locationName(Location location);
std::string locationText(Location location);

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_LAYOUTS_H
