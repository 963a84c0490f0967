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

#include "parc/Analysis/FactorAxes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::parc {

/// One dimension's place in the table.
struct DimPlace {
  Axes axes;
  /// Elements that stay together; and where there are more parts than that
  /// makes units, in a nested cut.
  int64_t grain = 1, fineGrain = 1;
};

/// Axes that must split factors of an op, whatever its operands' layouts.
using FactorPins = SmallVector<std::pair<unsigned, Axes>, 1>;

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

  /// Adds axes likewise; where the dimension has too few units for all, those
  /// that divide its units (see DimCut::Nested).
  void placeFitting(Value value, unsigned dim, ArrayRef<StringAttr> added);

  /// True where the dimension has a unit for each part of its axes and `added`.
  bool hasUnits(Value value, unsigned dim, ArrayRef<StringAttr> added) const;

  /// Says that `op` runs with `factor` split over `split` and nothing else.
  void pin(Operation *op, unsigned factor, ArrayRef<StringAttr> split) {
    pins[op].push_back({factor, Axes(split)});
    pinOrigins[op] = origin;
  }
  /// Reads the factors of an op again, after it took another form.
  LogicalResult refresh(Operation *op);
  FactorPins pinsOf(Operation *op) const { return pins.lookup(op); }

  /// Says that `axis` splits data: every parameter that it does not split has a
  /// gradient in parts over it. Axes that split the step's inputs do so anyway.
  void addDataAxis(StringAttr axis) { dataAxes.insert(axis.getValue()); }
  bool isDataAxis(StringRef axis) const;

  /// Says that parameters split over `axis` are used where they lie, even where
  /// the axis also splits what they meet.
  void keep(StringAttr axis) { kept.insert(axis.getValue()); }
  /// True where parameters split over `axis` are used where they lie: the
  /// activations move. Not so for axes that split the step's inputs.
  bool keeps(StringAttr axis) const;

  /// Says who places axes from here on: a choice of the strategy, such as "dp
  /// splits the batch".
  void setOrigin(const Twine &text) { origin = StringAttr::get(context, text); }
  /// Who placed `axis` where the value's layout got it from; null where the
  /// axis is not in the value's row.
  StringAttr originOf(Value value, StringAttr axis) const;
  /// Who pinned the op; null for one that is not.
  StringAttr pinOriginOf(Operation *op) const { return pinOrigins.lookup(op); }

  /// Spreads axes to a fixed point: a split factor splits all its dimensions
  /// where that takes no axis twice. Only adds, so it is deterministic.
  void spread();

  /// Fails with an error where a dimension has fewer units than parts.
  LogicalResult check();

  /// The wished layout of a value (nothing partial).
  ShardingAttr layoutOf(Value value) const;
  ShardingAttr layoutOf(ParamOp param) const;

  /// The layout of a value with the table's grains and the given axes.
  ShardingAttr withGrains(Value value, ArrayRef<Axes> dims) const;

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
  int64_t grainOf(const DimPlace &place, ArrayRef<StringAttr> split,
                  int64_t size) const;
  int64_t unitsOf(unsigned row, unsigned dim) const;
  ShardingAttr toSharding(unsigned row) const;
  void tieStack(class StackOp stack);
  void tieStep(class StepOp step);
  LogicalResult seed();
  LogicalResult seedRow(Location loc, unsigned row, ShardingAttr sharding,
                        StringAttr seededBy);
  LogicalResult checkRow(unsigned row, StringRef param = "");
  unsigned add(Type type);
  unsigned rowFor(Value value);
  unsigned rowFor(FlatSymbolRefAttr param);
  void tie(Value a, Value b) { merge(rowFor(a), rowFor(b)); }
  void merge(unsigned a, unsigned b);
  unsigned find(unsigned row) const;
  SmallVector<Use> uses(Operation *op, const OpFactors &factors) const;
  bool spreadGrains(Operation *op, OpFactors &factors);
  bool spreadFineGrain(const DimFactors &dim, OpFactors &factors,
                       DimPlace &place);
  bool spreadAxes(Operation *op, const OpFactors &factors);
  bool extend(unsigned row, unsigned dim, const DimFactors &dimFactors,
              size_t at, const OpFactors &factors, const Axes &wish);
  bool extendSet(unsigned row, unsigned dim, const DimFactors &dimFactors,
                 ArrayRef<Axes> wishes);
  void spreadOrigins(ArrayRef<Use> all);
  bool inRow(unsigned row, StringAttr axis) const;

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
  /// Rows of the step's inputs: they are delivered in the layout that the
  /// planner gives them, and cutting them further is free.
  llvm::SmallSetVector<unsigned, 4> inputs;
  llvm::StringSet<> constrained, kept, dataAxes;
  DenseMap<Operation *, FactorPins> pins;
  /// Who placed an axis of a row; only looked up.
  DenseMap<std::pair<unsigned, StringAttr>, StringAttr> origins;
  DenseMap<Operation *, StringAttr> pinOrigins;
  StringAttr origin;
};

} // namespace mlir::parc

#endif // PARC_ANALYSIS_PROPAGATION_H
