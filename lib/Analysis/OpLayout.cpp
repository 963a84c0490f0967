//===- OpLayout.cpp - The layout that an op runs in -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Choice of the axes of an op's factors.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/OpLayout.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::parc;

LogicalResult mlir::parc::newPartial(const OpFactors &factors,
                                     const ValueFactors &result,
                                     ArrayRef<Axes> factorAxes,
                                     ReductionKind &kind, Axes &partial) {
  kind = ReductionKind::Sum;
  for (auto [index, factor] : llvm::enumerate(factors.factors)) {
    bool kept = llvm::any_of(result, [&](const DimFactors &dim) {
      return llvm::is_contained(dim, index);
    });
    if (kept || factorAxes[index].empty())
      continue;
    if (!partial.empty() && kind != factor.reduction)
      return failure();
    kind = factor.reduction;
    partial.append(factorAxes[index]);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

namespace {

/// Chooses among the combinations of candidate axes of an op's factors.
class LayoutChoice {
public:
  LayoutChoice(Operation *op, const OpFactors &factors,
               ArrayRef<ShardingAttr> operands, ArrayRef<ShardingAttr> wishes,
               const LayoutBounds &bounds, ArrayRef<StringAttr> avoided,
               const AxisSizes &axes)
      : op(op), factors(factors), operands(operands), wishes(wishes),
        copies(bounds.copies), avoided(avoided), axes(axes),
        candidates(factors.factors.size()), fixed(factors.factors.size()),
        current(factors.factors.size()) {
    collect();
    fix(bounds);
  }

  SmallVector<Axes> best() {
    search(0, 1);
    return bestAxes;
  }

private:
  void collect();
  void fix(const LayoutBounds &bounds);
  void fixPlaces();
  void fixParameter(const ValueFactors &dims, ShardingAttr sharding,
                    const LayoutBounds &bounds);
  void forEachFactor(const ValueFactors &dims, ShardingAttr sharding,
                     function_ref<void(unsigned, const Axes &)> body);
  void addCandidates(const ValueFactors &dims, ShardingAttr sharding);
  void search(unsigned factor, int64_t parts);
  bool isFree(ArrayRef<StringAttr> candidate, unsigned factor) const;
  double bytes() const;
  ShardingAttr chosenFor(const ValueFactors &dims, ShardingAttr have) const;
  double operandBytes(unsigned index) const;
  double resultBytes(unsigned index) const;

  Operation *op;
  const OpFactors &factors;
  ArrayRef<ShardingAttr> operands, wishes;
  ArrayRef<SmallVector<ShardingAttr, 1>> copies;
  /// Axes that nothing is split over, as values stay partial over them.
  ArrayRef<StringAttr> avoided;
  const AxisSizes &axes;
  SmallVector<SmallVector<Axes>> candidates;
  SmallVector<bool> fixed;
  SmallVector<Axes> current, bestAxes;
  int64_t bestParts = 0;
  double bestBytes = 0;
};

} // namespace

/// Calls `body` with the factors that a layout splits and their axes.
void LayoutChoice::forEachFactor(
    const ValueFactors &dims, ShardingAttr sharding,
    function_ref<void(unsigned, const Axes &)> body) {
  if (!sharding)
    return;
  for (auto [dim, split] : llvm::zip(dims, sharding.getDims()))
    for (auto [factor, own] :
         llvm::zip(dim, distribute(dim, factors, split.getAxes(), axes)))
      if (!own.empty() && factors.factors[factor].splittable)
        body(factor, own);
}

static bool overlaps(ArrayRef<StringAttr> a, ArrayRef<StringAttr> b) {
  return llvm::any_of(
      a, [&](StringAttr axis) { return llvm::is_contained(b, axis); });
}

/// What a layout splits a factor over, or the major axes of it.
void LayoutChoice::addCandidates(const ValueFactors &dims,
                                 ShardingAttr sharding) {
  forEachFactor(dims, sharding, [&](unsigned factor, const Axes &own) {
    for (size_t count = own.size(); count > 0; --count) {
      Axes wanted(llvm::ArrayRef<StringAttr>(own).take_front(count));
      if (!overlaps(wanted, avoided) &&
          !llvm::is_contained(candidates[factor], wanted))
        candidates[factor].push_back(wanted);
    }
  });
}

void LayoutChoice::collect() {
  for (auto [dims, sharding] : llvm::zip(factors.operands, operands))
    addCandidates(dims, sharding);
  for (auto [dims, sharding] : llvm::zip(factors.results, wishes))
    addCandidates(dims, sharding);
  for (auto [dims, others] : llvm::zip(factors.operands, copies))
    for (ShardingAttr sharding : others)
      addCandidates(dims, sharding);
}

/// True for the value of a parameter, in whatever layout.
static bool isParameter(Value value) {
  while (auto reshard = value.getDefiningOp<ReshardOp>())
    value = reshard.getInput();
  auto load = value.getDefiningOp<LoadOp>();
  return load && load.getSlot() == "value";
}

/// True for what is added to a parameter's gradient.
static bool isParameterGradient(Value value) {
  return llvm::any_of(value.getUsers(), llvm::IsaPred<AccumulateOp>);
}

void LayoutChoice::fixParameter(const ValueFactors &dims, ShardingAttr sharding,
                                const LayoutBounds &bounds) {
  forEachFactor(dims, sharding, [&](unsigned factor, const Axes &own) {
    if (fixed[factor] || (bounds.keeps && !llvm::all_of(own, bounds.keeps)))
      return;
    // Two parameters that claim one axis: the first has it.
    for (auto [other, isFixed] : llvm::enumerate(fixed))
      for (StringAttr axis : own)
        if (isFixed && llvm::is_contained(candidates[other].front(), axis))
          return;
    fixed[factor] = true;
    candidates[factor].assign(1, own);
  });
}

static bool holdsIntegers(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<IntegerType>(type.getElementType());
}

static bool hasSet(const ValueFactors &dims) {
  return llvm::any_of(
      dims, [](const DimFactors &dim) { return dim.cut == DimCut::Set; });
}

static bool hasSet(ArrayRef<ValueFactors> values) {
  return llvm::any_of(values,
                      [](const ValueFactors &dims) { return hasSet(dims); });
}

/// A part of a set holds what the same part of its factors put there, which a
/// layout of the set does not tell. The last value of integers that an op on a
/// set has (its places, whoever gave them) does: the op runs split as that is,
/// in its own layout, so that it is read where it was written.
void LayoutChoice::fixPlaces() {
  if (!hasSet(factors.operands) && !hasSet(factors.results))
    return;
  const ValueFactors *dims = nullptr;
  ShardingAttr sharding;
  auto visit = [&](ValueRange values, ArrayRef<ValueFactors> valueDims,
                   ArrayRef<ShardingAttr> shardings) {
    for (auto [value, factorsOfDims, layout] :
         llvm::zip(values, valueDims, shardings))
      if (holdsIntegers(value) && layout && !hasSet(factorsOfDims)) {
        dims = &factorsOfDims;
        sharding = layout;
      }
  };
  visit(op->getOperands(), factors.operands, operands);
  visit(op->getResults(), factors.results, wishes);
  if (!dims)
    return;
  for (const DimFactors &dim : *dims)
    for (unsigned factor : dim) {
      fixed[factor] = true;
      candidates[factor].assign(1, Axes());
    }
  forEachFactor(*dims, sharding, [&](unsigned factor, const Axes &own) {
    candidates[factor].assign(1, own);
  });
}

void LayoutChoice::fix(const LayoutBounds &bounds) {
  if (!bounds.pins.empty()) {
    fixed.assign(fixed.size(), true);
    for (auto &list : candidates)
      list.assign(1, Axes());
    for (const auto &[factor, split] : bounds.pins)
      candidates[factor].front() = split;
    return;
  }
  fixPlaces();
  for (auto [operand, dims, sharding] :
       llvm::zip(op->getOperands(), factors.operands, operands))
    if (isParameter(operand))
      fixParameter(dims, sharding, bounds);
  for (auto [result, dims, sharding] :
       llvm::zip(op->getResults(), factors.results, wishes))
    if (isParameterGradient(result))
      fixParameter(dims, sharding, bounds);
}

/// No other factor has an axis of the candidate, nor will it.
bool LayoutChoice::isFree(ArrayRef<StringAttr> candidate,
                          unsigned factor) const {
  for (auto [other, split] : llvm::enumerate(current)) {
    const Axes *taken = other < factor ? &split
                        : fixed[other] && other != factor
                            ? &candidates[other].front()
                            : nullptr;
    if (taken && llvm::any_of(candidate, [&](StringAttr axis) {
          return llvm::is_contained(*taken, axis);
        }))
      return false;
  }
  return true;
}

/// The layout of a value under the current choice, with the grains of `have`.
ShardingAttr LayoutChoice::chosenFor(const ValueFactors &dims,
                                     ShardingAttr have) const {
  MLIRContext *context = op->getContext();
  SmallVector<DimShardingAttr> split;
  for (auto [dim, now] : llvm::zip(dimsOf(dims, current, have), have.getDims()))
    split.push_back(
        DimShardingAttr::get(context, dim, dim.empty() ? 1 : now.getGrain()));
  return ShardingAttr::get(context, split, ReductionKind::Sum,
                           ArrayRef<StringAttr>{});
}

/// The bytes moved for one operand under the current choice: from where it is,
/// or from the best of its copies.
double LayoutChoice::operandBytes(unsigned index) const {
  auto type = dyn_cast<RankedTensorType>(op->getOperand(index).getType());
  ShardingAttr have = operands[index];
  if (!type || !have || factors.operands[index].empty())
    return 0;
  ShardingAttr chosen = chosenFor(factors.operands[index], have);
  double fewest = reshardBytes(type, have.withoutPartial(), chosen, axes);
  if (index < copies.size())
    for (ShardingAttr copy : copies[index])
      fewest = std::min(fewest, reshardBytes(type, copy, chosen, axes));
  return fewest;
}

double LayoutChoice::resultBytes(unsigned index) const {
  auto type = dyn_cast<RankedTensorType>(op->getResult(index).getType());
  ShardingAttr have = wishes[index];
  if (!type || !have || factors.results[index].empty())
    return 0;
  ReductionKind kind;
  Axes partial;
  if (failed(
          newPartial(factors, factors.results[index], current, kind, partial)))
    return 0;
  return reshardBytes(
      type, chosenFor(factors.results[index], have).withPartial(kind, partial),
      have, axes);
}

double LayoutChoice::bytes() const {
  double total = 0;
  for (unsigned index = 0; index < factors.operands.size(); ++index)
    total += operandBytes(index);
  for (unsigned index = 0; index < factors.results.size(); ++index)
    total += resultBytes(index);
  return total;
}

void LayoutChoice::search(unsigned factor, int64_t parts) {
  if (factor == current.size()) {
    double cost = bytes();
    if (bestAxes.size() != current.size() || parts > bestParts ||
        (parts == bestParts && cost < bestBytes)) {
      bestAxes = current;
      bestParts = parts;
      bestBytes = cost;
    }
    return;
  }
  for (const Axes &candidate : candidates[factor]) {
    if (!isFree(candidate, factor))
      continue;
    current[factor] = candidate;
    search(factor + 1, parts * axes.product(candidate));
  }
  current[factor].clear();
  if (!fixed[factor])
    search(factor + 1, parts);
}

//===----------------------------------------------------------------------===//
// Partial operands
//===----------------------------------------------------------------------===//

/// Whether the operands of `set` may stay partial through the op: where several
/// become one, fewer bytes to reduce afterwards; where there is one operand,
/// not more.
static bool staysPartial(Operation *op, ArrayRef<unsigned> set,
                         ArrayRef<ShardingAttr> operands,
                         ArrayRef<Axes> factorAxes, const AxisSizes &axes,
                         Axes &partial) {
  double before = 0, after = 0;
  llvm::SmallPtrSet<void *, 4> counted;
  for (unsigned index : set) {
    ShardingAttr sharding = operands[index];
    if (!sharding)
      return false;
    if (sharding.isPartial()) {
      if (sharding.getKind() != ReductionKind::Sum)
        return false;
      for (StringAttr axis : sharding.getPartial())
        if (!llvm::is_contained(partial, axis))
          partial.push_back(axis);
      Value operand = op->getOperand(index);
      // Other readers would have to reduce it all the same.
      if (!llvm::all_of(operand.getUsers(),
                        [&](Operation *user) { return user == op; }))
        return false;
      if (counted.insert(operand.getAsOpaquePointer()).second)
        before += partBytes(cast<RankedTensorType>(operand.getType()), sharding,
                            axes);
    }
  }
  for (const Axes &split : factorAxes)
    for (StringAttr axis : split)
      if (llvm::is_contained(partial, axis))
        return false;
  for (Value result : op->getResults())
    after += partBytes(cast<RankedTensorType>(result.getType()), nullptr, axes);
  // Results are split as the op is; operands above are, too.
  int64_t parts = 1;
  for (const Axes &split : factorAxes)
    parts *= axes.product(split);
  after /= parts;
  auto dest = dyn_cast<DestinationStyleOpInterface>(op);
  unsigned tensors = llvm::count_if(op->getOpOperands(), [&](OpOperand &use) {
    return isa<RankedTensorType>(use.get().getType()) &&
           !(dest && dest.isDpsInit(&use));
  });
  return counted.size() > 1
             ? after < before
             : tensors == 1 && !partial.empty() && after <= before;
}

/// The axes over which several operands of a set are partial sums: the op may
/// add them as they are, and one reduction does for all.
static Axes sharedPartial(Operation *op, ArrayRef<unsigned> set,
                          ArrayRef<ShardingAttr> operands) {
  Axes shared;
  llvm::SmallSetVector<Value, 4> partial;
  for (unsigned index : set) {
    if (!operands[index] || !operands[index].isPartial() ||
        !partial.insert(op->getOperand(index)))
      continue;
    for (StringAttr axis : operands[index].getPartial())
      if (!llvm::is_contained(shared, axis))
        shared.push_back(axis);
  }
  return partial.size() > 1 ? shared : Axes();
}

OpLayout mlir::parc::chooseLayout(Operation *op, const OpFactors &factors,
                                  ArrayRef<ShardingAttr> operands,
                                  ArrayRef<ShardingAttr> wishes,
                                  const LayoutBounds &bounds,
                                  const AxisSizes &axes) {
  auto choose = [&](ArrayRef<StringAttr> avoided) {
    return LayoutChoice(op, factors, operands, wishes, bounds, avoided, axes)
        .best();
  };
  OpLayout layout;
  layout.factorAxes = choose({});
  for (const auto &set : factors.linear) {
    Axes shared = sharedPartial(op, set, operands), partial;
    SmallVector<Axes> factorAxes =
        shared.empty() ? layout.factorAxes : choose(shared);
    if (!staysPartial(op, set, operands, factorAxes, axes, partial))
      continue;
    layout.factorAxes = factorAxes;
    layout.carriedPartial = partial;
    layout.carriedOperands.assign(set.begin(), set.end());
    break;
  }
  // What is flat stays so where the op does not care.
  for (ShardingAttr operand : operands)
    if (factors.uniform && layout.flat.empty() && operand && operand.isFlat())
      layout.flat.assign(operand.getFlat().begin(), operand.getFlat().end());
  for (const Axes &split : layout.factorAxes)
    if (llvm::any_of(split, [&](StringAttr axis) {
          return llvm::is_contained(layout.flat, axis);
        }))
      layout.flat.clear();
  return layout;
}

ShardingAttr mlir::parc::withOpFlat(ShardingAttr sharding,
                                    ArrayRef<StringAttr> flat) {
  return sharding.getDims().empty() || flat.empty() ? sharding
                                                    : sharding.withFlat(flat);
}

bool mlir::parc::isZero(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(op))
    return isZero(fill.getInputs()[0]);
  Attribute constant;
  if (!op || !matchPattern(op, m_Constant(&constant)))
    return false;
  if (auto splat = dyn_cast<SplatElementsAttr>(constant))
    constant = splat.getSplatValue<Attribute>();
  if (auto number = dyn_cast<FloatAttr>(constant))
    return number.getValue().isZero();
  if (auto number = dyn_cast<IntegerAttr>(constant))
    return number.getValue().isZero();
  return false;
}

//===----------------------------------------------------------------------===//
// Check
//===----------------------------------------------------------------------===//

static std::string printed(ArrayRef<StringAttr> axes) {
  std::string text = "{";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(axes, os,
                        [&](StringAttr axis) { os << axis.getValue(); });
  return text + "}";
}

namespace {
/// Checks one op's types against its factors.
class DimsCheck {
public:
  DimsCheck(Operation *op, const OpFactors &factors, const AxisSizes &axes)
      : op(op), factors(factors), axes(axes), known(factors.factors.size()) {}

  /// Fails where a factor is not split alike in all its dimensions.
  LogicalResult run();
  SmallVector<Axes> factorAxes() const {
    SmallVector<Axes> result;
    for (const auto &entry : known)
      result.push_back(entry.value_or(Axes()));
    return result;
  }

private:
  using Check = LogicalResult (DimsCheck::*)(Type, const Twine &,
                                             const ValueFactors &);
  LogicalResult forEachValue(Check check);
  LogicalResult checkDims(Type type, const Twine &role,
                          const ValueFactors &dims);
  LogicalResult checkSets(Type type, const Twine &role,
                          const ValueFactors &dims);

  Operation *op;
  const OpFactors &factors;
  const AxisSizes &axes;
  SmallVector<std::optional<Axes>> known;
};
} // namespace

LogicalResult DimsCheck::checkDims(Type type, const Twine &role,
                                   const ValueFactors &dims) {
  ShardingAttr sharding = getSharding(type);
  if (!sharding)
    return success();
  for (auto [index, dim, split] : llvm::enumerate(dims, sharding.getDims())) {
    if (dim.cut == DimCut::Set)
      continue;
    Axes all(split.getAxes());
    if (!all.empty() &&
        (dim.empty() || !factors.factors[dim.front()].splittable))
      return emitError(op->getLoc())
             << "'" << op->getName() << "' needs dimension " << index
             << " of its " << role << " whole, got it split over "
             << printed(all);
    for (auto [factor, have] :
         llvm::zip(dim, distribute(dim, factors, all, axes))) {
      auto &own = known[factor];
      if (!factors.factors[factor].splittable)
        continue;
      if (own && *own != have)
        return emitError(op->getLoc())
               << "'" << op->getName() << "' expected dimension " << index
               << " of its " << role << " split over " << printed(*own)
               << ", got " << printed(have);
      own = have;
    }
  }
  return success();
}

LogicalResult DimsCheck::checkSets(Type type, const Twine &role,
                                   const ValueFactors &dims) {
  ShardingAttr sharding = getSharding(type);
  if (!sharding)
    return success();
  SmallVector<Axes> expected = dimsOf(dims, factorAxes(), sharding);
  for (auto [index, dim, split] : llvm::enumerate(dims, sharding.getDims()))
    if (dim.cut == DimCut::Set && split.getAxes() != ArrayRef(expected[index]))
      return emitError(op->getLoc())
             << "'" << op->getName() << "' expected dimension " << index
             << " of its " << role << " split over " << printed(expected[index])
             << ", got " << printed(split.getAxes());
  return success();
}

LogicalResult DimsCheck::forEachValue(Check check) {
  for (auto [index, dims] : llvm::enumerate(factors.operands))
    if (failed((this->*check)(op->getOperand(index).getType(),
                              "operand " + Twine(index), dims)))
      return failure();
  for (auto [index, dims] : llvm::enumerate(factors.results))
    if (failed((this->*check)(op->getResult(index).getType(),
                              "result " + Twine(index), dims)))
      return failure();
  return success();
}

LogicalResult DimsCheck::run() {
  if (failed(forEachValue(&DimsCheck::checkDims)))
    return failure();
  return forEachValue(&DimsCheck::checkSets);
}

/// A partial operand is a sum and enters through a linear set all of which is
/// partial over the same axes.
static LogicalResult
verifyPartialOperands(Operation *op, const OpFactors &factors, Axes &carried) {
  SmallVector<unsigned> partialOperands;
  for (auto [index, type] : llvm::enumerate(op->getOperandTypes())) {
    ShardingAttr sharding = getSharding(type);
    // What an op writes onto starts partial where its result is.
    auto dest = dyn_cast<DestinationStyleOpInterface>(op);
    if (!sharding || !sharding.isPartial() ||
        (dest && dest.isDpsInit(&op->getOpOperand(index))))
      continue;
    partialOperands.push_back(index);
    carried.assign(sharding.getPartial().begin(), sharding.getPartial().end());
  }
  if (partialOperands.empty())
    return success();
  for (const auto &set : factors.linear) {
    bool covers = llvm::all_of(partialOperands, [&](unsigned index) {
      return llvm::is_contained(set, index);
    });
    bool alike = llvm::all_of(set, [&](unsigned index) {
      auto dest = dyn_cast<DestinationStyleOpInterface>(op);
      if (dest && dest.isDpsInit(&op->getOpOperand(index)))
        return true;
      ShardingAttr sharding = getSharding(op->getOperand(index).getType());
      return sharding && sharding.getKind() == ReductionKind::Sum &&
             sharding.getPartial() == ArrayRef(carried);
    });
    if (covers && alike)
      return success();
  }
  return emitError(op->getLoc())
         << "'" << op->getName() << "' reads a sum unfinished over "
         << printed(carried) << " in operand " << partialOperands.front()
         << ", in which it is not linear";
}

/// Flat parts go through ops that treat all elements alike, and through all of
/// their tensors but scalars in the same way.
static LogicalResult verifyFlat(Operation *op, const OpFactors &factors,
                                Axes &flat) {
  SmallVector<Type> types(op->getOperandTypes());
  types.append(op->result_type_begin(), op->result_type_end());
  for (Type type : types)
    if (ShardingAttr sharding = getSharding(type);
        sharding && sharding.isFlat())
      flat.assign(sharding.getFlat().begin(), sharding.getFlat().end());
  if (flat.empty())
    return success();
  if (!factors.uniform)
    return emitError(op->getLoc())
           << "'" << op->getName()
           << "' does not treat all elements alike, but works on flat parts "
              "over "
           << printed(flat);
  for (Type type : types) {
    ShardingAttr sharding = getSharding(type);
    if (sharding && !sharding.getDims().empty() &&
        sharding.getFlat() != ArrayRef(flat))
      return emitError(op->getLoc())
             << "'" << op->getName() << "' expected flat parts over "
             << printed(flat) << ", got " << type;
  }
  return success();
}

static LogicalResult verifyResult(Operation *op, unsigned index,
                                  const OpFactors &factors,
                                  ArrayRef<Axes> factorAxes,
                                  ArrayRef<StringAttr> flat,
                                  ArrayRef<StringAttr> carried) {
  ShardingAttr sharding = getSharding(op->getResult(index).getType());
  // Zero is an addend of any sum, and what is not filled yet is nothing.
  if (!sharding || isZero(op->getResult(index)) || isa<tensor::EmptyOp>(op))
    return success();
  ReductionKind kind;
  Axes expected;
  if (failed(newPartial(factors, factors.results[index], factorAxes, kind,
                        expected)))
    return emitError(op->getLoc())
           << "'" << op->getName()
           << "' would be partial by two kinds of reduction";
  if (sharding.getDims().empty())
    expected.append(flat.begin(), flat.end());
  for (StringAttr axis : carried)
    if (!llvm::is_contained(expected, axis))
      expected.push_back(axis);
  Axes got(sharding.getPartial());
  llvm::sort(expected, [](StringAttr a, StringAttr b) {
    return a.getValue() < b.getValue();
  });
  llvm::sort(got, [](StringAttr a, StringAttr b) {
    return a.getValue() < b.getValue();
  });
  if (got != expected || (!got.empty() && sharding.getKind() != kind))
    return emitError(op->getLoc())
           << "'" << op->getName() << "' expected result " << index
           << " partial " << stringifyReductionKind(kind) << " over "
           << printed(expected) << ", got "
           << stringifyReductionKind(sharding.getKind()) << " over "
           << printed(got);
  return success();
}

LogicalResult mlir::parc::verifyOpLayout(Operation *op, const AxisSizes &axes) {
  auto shardable = dyn_cast<ShardableOpInterface>(op);
  if (!shardable)
    return success();
  FailureOr<OpFactors> factors = shardable.getFactors();
  if (failed(factors))
    return failure();
  DimsCheck check(op, *factors, axes);
  if (failed(check.run()))
    return failure();
  SmallVector<Axes> factorAxes = check.factorAxes();
  Axes carried, flat;
  if (failed(verifyPartialOperands(op, *factors, carried)) ||
      failed(verifyFlat(op, *factors, flat)))
    return failure();
  for (unsigned index = 0; index < op->getNumResults(); ++index)
    if (failed(verifyResult(op, index, *factors, factorAxes, flat, carried)))
      return failure();
  return success();
}
