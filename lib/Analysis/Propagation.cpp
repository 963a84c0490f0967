//===- Propagation.cpp - Layouts from a few constraints -------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Spreads axes and grains through factors to a fixed point.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/Propagation.h"
#include "llvm/ADT/StringSet.h"
#include <numeric>

using namespace mlir;
using namespace mlir::parc;

Propagation::Propagation(ModuleOp module, const AxisSizes &axes)
    : module(module), context(module.getContext()), axes(axes) {}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

static RankedTensorType tensorOf(Type type) {
  if (auto layers = dyn_cast<LayersType>(type))
    type = layers.getElement();
  return dyn_cast<RankedTensorType>(type);
}

unsigned Propagation::add(Type type) {
  RankedTensorType tensor = tensorOf(type);
  rows.emplace_back(tensor ? tensor.getRank() : 0);
  types.push_back(tensor);
  locations.push_back(module.getLoc());
  parents.push_back(rows.size() - 1);
  return rows.size() - 1;
}

unsigned Propagation::rowFor(Value value) {
  auto [it, inserted] = valueRows.try_emplace(value, 0);
  if (inserted) {
    unsigned row = add(value.getType());
    locations[row] = value.getLoc();
    valueRows[value] = row;
  }
  return find(valueRows[value]);
}

unsigned Propagation::rowFor(FlatSymbolRefAttr symbol) {
  auto [it, inserted] = paramRows.try_emplace(symbol.getValue(), 0);
  if (inserted) {
    auto param = module.lookupSymbol<ParamOp>(symbol);
    unsigned row = add(param.getTensorType());
    locations[row] = param.getLoc();
    it->second = row;
  }
  return find(it->second);
}

unsigned Propagation::find(unsigned row) const {
  while (parents[row] != row)
    row = parents[row] = parents[parents[row]];
  return row;
}

void Propagation::merge(unsigned a, unsigned b) {
  a = find(a), b = find(b);
  if (a != b)
    parents[std::max(a, b)] = std::min(a, b);
}

unsigned Propagation::rowOf(Value value) const {
  assert(valueRows.contains(value) && "a value made after propagation");
  return find(valueRows.lookup(value));
}

//===----------------------------------------------------------------------===//
// Collection
//===----------------------------------------------------------------------===//

void Propagation::tieStack(StackOp stack) {
  ValueRange yielded = stack.getYield().getValues();
  for (unsigned i = 0, e = stack.getCarry().size(); i < e; ++i) {
    tie(stack.getCarry()[i], stack.getCarryArguments()[i]);
    tie(stack.getCarryArguments()[i], yielded[i]);
  }
  for (auto [value, result] : llvm::zip(yielded, stack.getResults()))
    tie(value, result);
  for (auto [each, argument] :
       llvm::zip(stack.getEach(), stack.getEachArguments()))
    tie(each, argument);
}

void Propagation::tieStep(StepOp step) {
  for (Value argument : step.getMicro().getArguments())
    rowFor(argument);
  if (step.getUpdate().empty())
    return;
  for (Value argument : step.getUpdate().getArguments())
    rowFor(argument);
  for (auto [value, argument] :
       llvm::zip(step.getMicro().front().getTerminator()->getOperands(),
                 step.getUpdate().getArguments()))
    tie(value, argument);
}

LogicalResult Propagation::collect(Block &block) {
  for (Operation &op : block) {
    for (Value result : op.getResults())
      rowFor(result);
    if (auto load = dyn_cast<LoadOp>(op)) {
      merge(rowFor(load.getParamAttr()), rowFor(load.getResult()));
    } else if (auto store = dyn_cast<StoreOp>(op)) {
      merge(rowFor(store.getParamAttr()), rowFor(store.getInput()));
    } else if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
      merge(rowFor(accumulate.getParamAttr()), rowFor(accumulate.getInput()));
    } else if (auto constraint = dyn_cast<ConstraintOp>(op)) {
      tie(constraint.getInput(), constraint.getResult());
    } else if (auto stack = dyn_cast<StackOp>(op)) {
      for (Value argument : stack.getBlock()->getArguments())
        rowFor(argument);
      if (failed(collect(*stack.getBlock())))
        return failure();
      tieStack(stack);
    } else if (auto shardable = dyn_cast<ShardableOpInterface>(op)) {
      FailureOr<OpFactors> opFactors = shardable.getFactors();
      if (failed(opFactors))
        return emitError(op.getLoc())
               << "'" << op.getName()
               << "' does not tell what can be split in it";
      factors.insert({&op, std::move(*opFactors)});
    } else if (!op.hasTrait<OpTrait::IsTerminator>() && !isa<ObserveOp>(op) &&
               op.getNumResults() > 0 &&
               !op.hasTrait<OpTrait::ConstantLike>()) {
      if (llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>))
        return emitError(op.getLoc())
               << "'" << op.getName()
               << "' has no sharding rule; give the op ShardableOpInterface or "
                  "a decomposition";
    }
  }
  return success();
}

LogicalResult Propagation::initialize() {
  for (StepOp step : module.getOps<StepOp>()) {
    if (failed(collect(step.getMicro().front())))
      return failure();
    if (!step.getUpdate().empty() && failed(collect(step.getUpdate().front())))
      return failure();
    tieStep(step);
  }
  for (ParamOp param : module.getOps<ParamOp>())
    rowFor(FlatSymbolRefAttr::get(param.getSymNameAttr()));
  for (StepOp step : module.getOps<StepOp>())
    for (Value argument : step.getMicro().getArguments())
      inputs.insert(rowOf(argument));
  for (bool changed = true; changed;) {
    changed = false;
    for (auto &[op, opFactors] : factors)
      changed |= spreadGrains(op, opFactors);
  }
  return seed();
}

LogicalResult Propagation::refresh(Operation *op) {
  FailureOr<OpFactors> opFactors = cast<ShardableOpInterface>(op).getFactors();
  if (failed(opFactors))
    return failure();
  factors.find(op)->second = std::move(*opFactors);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto &[other, otherFactors] : factors)
      changed |= spreadGrains(other, otherFactors);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Seeds
//===----------------------------------------------------------------------===//

LogicalResult Propagation::seedRow(Location loc, unsigned row,
                                   ShardingAttr sharding, StringAttr seededBy) {
  for (auto [index, dim] : llvm::enumerate(sharding.getDims())) {
    DimPlace &place = rows[row][index];
    place.grain = std::lcm(place.grain, dim.getGrain());
    place.fineGrain = std::lcm(place.fineGrain, dim.getGrain());
    for (StringAttr axis : dim.getAxes()) {
      if (!axes.has(axis))
        return emitError(loc) << "unknown axis '" << axis.getValue()
                              << "' in a sharding; the mesh has no such axis";
      constrained.insert(axis.getValue());
      origins.try_emplace({row, axis}, seededBy);
      for (auto [other, otherPlace] : llvm::enumerate(rows[row]))
        if (other != index && llvm::is_contained(otherPlace.axes, axis))
          return emitError(loc)
                 << "conflicting shardings of one value: axis '"
                 << axis.getValue() << "' splits dimension "
                 << std::min<size_t>(index, other) << " and dimension "
                 << std::max<size_t>(index, other) << "; remove one";
    }
    if (place.axes.empty())
      place.axes.assign(dim.getAxes().begin(), dim.getAxes().end());
    else if (!dim.empty() && ArrayRef(place.axes) != dim.getAxes())
      return emitError(loc) << "conflicting shardings of one value: dimension "
                            << index << " is split in two ways; remove one";
  }
  return success();
}

/// "the model's constraint at model.mlir:12:3".
static StringAttr constraintText(Operation *op, const Twine &what) {
  std::string place;
  if (auto where = op->getLoc()->findInstanceOf<FileLineColLoc>())
    place = (" at " + where.getFilename().getValue() + ":" +
             Twine(where.getLine()) + ":" + Twine(where.getColumn()))
                .str();
  return StringAttr::get(op->getContext(), what + place);
}

LogicalResult Propagation::seed() {
  for (ParamOp param : module.getOps<ParamOp>())
    if (ShardingAttr sharding = param.getShardingAttr()) {
      auto rule = param->getAttrOfType<StringAttr>(kRuleAttr);
      if (!rule)
        rule = constraintText(param, "the model's sharding of '" +
                                         param.getSymName() + "'");
      if (failed(seedRow(param.getLoc(),
                         rowFor(FlatSymbolRefAttr::get(param.getSymNameAttr())),
                         sharding, rule)))
        return failure();
    }
  WalkResult result = module.walk([&](ConstraintOp op) {
    return WalkResult(seedRow(op.getLoc(), rowOf(op.getResult()),
                              op.getSharding(),
                              constraintText(op, "the model's constraint")));
  });
  return failure(result.wasInterrupted());
}

bool Propagation::inRow(unsigned row, StringAttr axis) const {
  return llvm::any_of(rows[row], [&](const DimPlace &place) {
    return llvm::is_contained(place.axes, axis);
  });
}

bool Propagation::place(Value value, unsigned dim, StringAttr axis) {
  unsigned row = rowOf(value);
  if (inRow(row, axis))
    return false;
  rows[row][dim].axes.push_back(axis);
  if (origin)
    origins[{row, axis}] = origin;
  return true;
}

StringAttr Propagation::originOf(Value value, StringAttr axis) const {
  auto found = valueRows.find(value);
  return found == valueRows.end() ? StringAttr()
                                  : origins.lookup({find(found->second), axis});
}

int64_t Propagation::unitsOf(unsigned row, unsigned dim) const {
  return types[row].getDimSize(dim) / rows[row][dim].fineGrain;
}

bool Propagation::hasUnits(Value value, unsigned dim,
                           ArrayRef<StringAttr> added) const {
  unsigned row = rowOf(value);
  return !types[row] ||
         axes.product(rows[row][dim].axes) * axes.product(added) <=
             unitsOf(row, dim);
}

void Propagation::placeFitting(Value value, unsigned dim,
                               ArrayRef<StringAttr> added) {
  unsigned row = rowOf(value);
  size_t count = added.size();
  if (!hasUnits(value, dim, added)) {
    int64_t units = unitsOf(row, dim),
            parts = axes.product(rows[row][dim].axes);
    for (count = added.size() - 1; count > 0; --count)
      if (units % (parts * axes.product(added.take_front(count))) == 0)
        break;
  }
  for (StringAttr axis : added.take_front(count))
    place(value, dim, axis);
}

bool Propagation::isDataAxis(StringRef axis) const {
  auto name = StringAttr::get(context, axis);
  return dataAxes.contains(axis) ||
         llvm::any_of(inputs, [&](unsigned row) { return inRow(row, name); });
}

bool Propagation::keeps(StringAttr axis) const {
  return kept.contains(axis.getValue()) ||
         llvm::none_of(inputs, [&](unsigned row) { return inRow(row, axis); });
}

//===----------------------------------------------------------------------===//
// Spreading
//===----------------------------------------------------------------------===//

SmallVector<Propagation::Use>
Propagation::uses(Operation *op, const OpFactors &opFactors) const {
  SmallVector<Use> result;
  for (auto [operand, dims] : llvm::zip(op->getOperands(), opFactors.operands))
    if (!dims.empty())
      result.push_back({rowOf(operand), &dims});
  for (auto [value, dims] : llvm::zip(op->getResults(), opFactors.results))
    if (!dims.empty())
      result.push_back({rowOf(value), &dims});
  return result;
}

/// The factor of a dimension that the finest cut cuts.
static size_t finest(const DimFactors &dim, const OpFactors &factors) {
  size_t at = 0;
  while (dim.cut == DimCut::Nested && at + 1 < dim.size() &&
         factors.factors[dim[at + 1]].splittable)
    ++at;
  return at;
}

static int64_t sizeBelow(const DimFactors &dim, const OpFactors &factors,
                         size_t at) {
  int64_t size = 1;
  for (unsigned factor : ArrayRef<unsigned>(dim).drop_front(at + 1))
    size *= factors.factors[factor].size;
  return size;
}

bool Propagation::spreadFineGrain(const DimFactors &dim, OpFactors &opFactors,
                                  DimPlace &place) {
  size_t at = finest(dim, opFactors);
  int64_t minor = sizeBelow(dim, opFactors, at);
  int64_t &own = opFactors.factors[dim[at]].fineGrain;
  int64_t joined = std::lcm(place.fineGrain, own * minor);
  bool changed = joined != place.fineGrain || joined / minor != own;
  place.fineGrain = joined;
  own = joined / minor;
  return changed;
}

bool Propagation::spreadGrains(Operation *op, OpFactors &opFactors) {
  bool changed = false;
  for (const Use &use : uses(op, opFactors))
    for (auto [index, dim] : llvm::enumerate(*use.factors)) {
      if (dim.empty() || dim.cut == DimCut::Set)
        continue;
      int64_t minor = sizeBelow(dim, opFactors, 0);
      Factor &major = opFactors.factors[dim.front()];
      int64_t &grain = rows[use.row][index].grain;
      // Both sides in elements of the dimension.
      int64_t joined = std::lcm(grain, major.grain * minor);
      changed |= joined != grain || joined / minor != major.grain;
      grain = joined;
      major.grain = joined / minor;
      changed |= spreadFineGrain(dim, opFactors, rows[use.row][index]);
    }
  return changed;
}

/// Lets the factor at `at` of a dimension have the axes `wish`, as far as the
/// row lacks them.
bool Propagation::extend(unsigned row, unsigned dim,
                         const DimFactors &dimFactors, size_t at,
                         const OpFactors &opFactors, const Axes &wish) {
  Axes &mine = rows[row][dim].axes;
  SmallVector<Axes> have = distribute(dimFactors, opFactors, mine, axes);
  if (inputs.contains(row) || !startsWith(wish, have[at]))
    return false;
  for (const Axes &later : ArrayRef(have).drop_front(at + 1))
    if (!later.empty())
      return false;
  Axes longer = mine;
  for (StringAttr axis : ArrayRef(wish).drop_front(have[at].size())) {
    if (inRow(row, axis))
      break;
    longer.push_back(axis);
  }
  if (longer.size() == mine.size() ||
      !startsWith(wish, distribute(dimFactors, opFactors, longer, axes)[at]))
    return false;
  mine = std::move(longer);
  return true;
}

/// Lets a set have the axes of its factors, as far as the row lacks them.
bool Propagation::extendSet(unsigned row, unsigned dim,
                            const DimFactors &dimFactors,
                            ArrayRef<Axes> wishes) {
  bool changed = false;
  for (unsigned factor : dimFactors)
    for (StringAttr axis : wishes[factor])
      if (!inRow(row, axis)) {
        rows[row][dim].axes.push_back(axis);
        changed = true;
      }
  return changed;
}

/// An axis that came to a row through an op has the origin that it has in the
/// op's other rows.
void Propagation::spreadOrigins(ArrayRef<Use> all) {
  for (const Use &use : all)
    for (const DimPlace &place : rows[use.row])
      for (StringAttr axis : place.axes) {
        StringAttr &mine = origins[{use.row, axis}];
        for (const Use &other : all)
          if (!mine)
            mine = origins.lookup({other.row, axis});
      }
}

bool Propagation::spreadAxes(Operation *op, const OpFactors &opFactors) {
  SmallVector<Use> all = uses(op, opFactors);
  SmallVector<Axes> wishes(opFactors.factors.size());
  auto forEachDim =
      [&](function_ref<void(unsigned, unsigned, const DimFactors &)> body) {
        for (const Use &use : all)
          for (auto [dim, dimFactors] : llvm::enumerate(*use.factors))
            if (!dimFactors.empty())
              body(use.row, dim, dimFactors);
      };
  forEachDim([&](unsigned row, unsigned dim, const DimFactors &dimFactors) {
    SmallVector<Axes> have =
        distribute(dimFactors, opFactors, rows[row][dim].axes, axes);
    for (auto [factor, own] : llvm::zip(dimFactors, have))
      if (opFactors.factors[factor].splittable &&
          own.size() > wishes[factor].size() && startsWith(own, wishes[factor]))
        wishes[factor] = own;
  });
  bool changed = false;
  forEachDim([&](unsigned row, unsigned dim, const DimFactors &dimFactors) {
    if (dimFactors.cut == DimCut::Set) {
      changed |= extendSet(row, dim, dimFactors, wishes);
      return;
    }
    for (auto [at, factor] : llvm::enumerate(dimFactors))
      if (!wishes[factor].empty())
        changed |= extend(row, dim, dimFactors, at, opFactors, wishes[factor]);
  });
  if (changed)
    spreadOrigins(all);
  return changed;
}

void Propagation::spread() {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto &[op, opFactors] : factors)
      changed |= spreadAxes(op, opFactors);
    for (auto it = factors.rbegin(); it != factors.rend(); ++it)
      changed |= spreadAxes(it->first, it->second);
  }
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// What messages call a row: a parameter, or a value by its location's name.
static std::string rowName(StringRef param, Location location) {
  if (!param.empty())
    return ("parameter '" + param + "'").str();
  auto name = location->findInstanceOf<NameLoc>();
  return name ? "'" + name.getName().str() + "'" : "a value";
}

LogicalResult Propagation::checkRow(unsigned row, StringRef param) {
  for (auto [dim, place] : llvm::enumerate(rows[row])) {
    int64_t parts = axes.product(place.axes);
    int64_t size = types[row].getDimSize(dim), units = unitsOf(row, dim);
    if (parts <= units)
      continue;
    InFlightDiagnostic diag = emitError(locations[row]);
    diag << "more parts than units: dimension " << dim << " of "
         << rowName(param, locations[row]) << ", of size " << size << ", has "
         << units << " units";
    if (place.fineGrain > 1)
      diag << " of " << place.fineGrain << " elements";
    diag << ", expected at least " << parts << " for";
    std::vector<std::string> named = readableAxes(place.axes, axes);
    for (const std::string &axis : named) {
      int64_t size = 1;
      for (StringAttr part : place.axes)
        if (wholeAxis(part) == StringRef(axis).split(' ').first)
          size *= axes.of(part);
      diag << " " << axis << "=" << size;
    }
    diag << "; make " << (named.size() > 1 ? "their product" : "the axis")
         << " at most " << units;
    return diag;
  }
  return success();
}

LogicalResult Propagation::check() {
  // Parameters first: their names say most.
  for (ParamOp param : module.getOps<ParamOp>())
    if (failed(checkRow(find(paramRows.lookup(param.getSymName())),
                        param.getSymName())))
      return failure();
  for (unsigned row = 0; row < rows.size(); ++row)
    if (find(row) == row && types[row] && failed(checkRow(row)))
      return failure();
  return success();
}

int64_t Propagation::grainOf(const DimPlace &place, ArrayRef<StringAttr> split,
                             int64_t size) const {
  if (split.empty())
    return 1;
  return axes.product(split) <= size / place.grain ? place.grain
                                                   : place.fineGrain;
}

ShardingAttr Propagation::withGrains(Value value, ArrayRef<Axes> dims) const {
  unsigned row = rowOf(value);
  SmallVector<DimShardingAttr> result;
  for (auto [index, split] : llvm::enumerate(dims))
    result.push_back(DimShardingAttr::get(
        context, split,
        grainOf(rows[row][index], split, types[row].getDimSize(index))));
  return ShardingAttr::get(context, result, ReductionKind::Sum,
                           ArrayRef<StringAttr>{});
}

ShardingAttr Propagation::toSharding(unsigned row) const {
  SmallVector<DimShardingAttr> dims;
  for (auto [index, place] : llvm::enumerate(rows[row]))
    dims.push_back(DimShardingAttr::get(
        context, place.axes,
        grainOf(place, place.axes, types[row].getDimSize(index))));
  return ShardingAttr::get(context, dims, ReductionKind::Sum,
                           ArrayRef<StringAttr>{});
}

ShardingAttr Propagation::layoutOf(Value value) const {
  return toSharding(rowOf(value));
}

ShardingAttr Propagation::layoutOf(ParamOp param) const {
  return toSharding(find(paramRows.lookup(param.getSymName())));
}
