//===- Propagation.h - Layouts from a few constraints --------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Spreads axes and grains from constraints to all values, through the factors
/// of ops and through the structure of stacks, steps and parameters. The
/// result is a side table; nothing is written to the IR.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_ANALYSIS_PROPAGATION_H
#define PARC_ANALYSIS_PROPAGATION_H

#include "parc/Analysis/Layouts.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::parc {

/// One dimension's place in the table.
struct DimPlace {
  SmallVector<StringAttr, 2> axes;
  int64_t grain = 1;
};

/// The wished layout of every value of a module's steps. Values that must lie
/// alike (what a stack carries; a parameter and its uses) share a row.
class Propagation {
public:
  Propagation(ModuleOp module, const AxisSizes &axes);

  /// Collects rows, factors and grains, and seeds the module's own
  /// constraints. Fails with an error where one cannot be met.
  LogicalResult initialize();

  /// True where a constraint of the module names `axis`.
  bool isConstrained(StringRef axis) const {
    return constrained.contains(axis);
  }

  /// Adds `axis` as the minor-most axis of a dimension of a row unless the axis
  /// is in the row already; returns whether it did.
  bool place(Value value, unsigned dim, StringAttr axis);

  /// Spreads axes to a fixed point: a split factor splits all its dimensions
  /// where that takes no axis twice. Only adds, so it is deterministic.
  void spread();

  /// Fails with an error where a dimension has fewer units than parts.
  LogicalResult check();

  /// The wished layout of a value (nothing partial).
  ShardingAttr layoutOf(Value value) const;
  ShardingAttr layoutOf(ParamOp param) const;

  /// The layout of a value with the table's grains and the given axes.
  ShardingAttr withGrains(Value value,
                          ArrayRef<SmallVector<StringAttr>> dims) const;

  /// Ops with factors, in program order.
  const llvm::MapVector<Operation *, OpFactors> &ops() const { return factors; }

  /// The row of a value: equal for values that share one.
  unsigned rowOf(Value value) const;
  unsigned numRows() const { return rows.size(); }
  ArrayRef<DimPlace> row(unsigned index) const { return rows[index]; }

private:
  struct Use {
    unsigned row;
    const ValueFactors *factors;
  };

  LogicalResult collect(Block &block);
  void tieStack(class StackOp stack);
  void tieStep(class StepOp step);
  LogicalResult seed();
  LogicalResult seedRow(Location loc, unsigned row, ShardingAttr sharding);
  LogicalResult checkRow(unsigned row, const Twine &name);
  unsigned add(Type type);
  unsigned rowFor(Value value);
  unsigned rowFor(FlatSymbolRefAttr param);
  void tie(Value a, Value b) { merge(rowFor(a), rowFor(b)); }
  void merge(unsigned a, unsigned b);
  unsigned find(unsigned row) const;
  SmallVector<Use> uses(Operation *op, const OpFactors &factors) const;
  bool spreadGrains(Operation *op, OpFactors &factors);
  bool spreadAxes(Operation *op, const OpFactors &factors);

  ModuleOp module;
  MLIRContext *context;
  const AxisSizes &axes;
  llvm::MapVector<Operation *, OpFactors> factors;
  std::vector<SmallVector<DimPlace>> rows;
  std::vector<RankedTensorType> types;
  std::vector<Location> locations;
  mutable std::vector<unsigned> parents;
  DenseMap<Value, unsigned> valueRows;
  llvm::StringMap<unsigned> paramRows;
  llvm::StringSet<> constrained;
};

/// The built-in strategy: batch dimensions of the step's inputs on `dp` and
/// `mb`; and on `tp` the classes of dimensions that split the most work of ops
/// that read a parameter, for the fewest bytes reduced. A class is all
/// dimensions that factors connect; it is legal if no op needs it whole and no
/// op would be split twice. For a transformer this is Megatron-LM's layout
/// (arXiv:1909.08053): heads, the feed-forward width, the vocabulary.
void applyStrategy(ModuleOp module, Propagation &propagation,
                   const AxisSizes &axes);

} // namespace mlir::parc

#endif // PARC_ANALYSIS_PROPAGATION_H
