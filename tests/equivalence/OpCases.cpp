//===- OpCases.cpp - Every way to pin the dimensions of an op -------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Enumerates targets and cases.
///
//===----------------------------------------------------------------------===//

#include "OpCases.h"
#include "parc/Analysis/Layouts.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

static SmallVector<Splittable> splitsOfFactors(Operation *op,
                                               const OpFactors &factors) {
  SmallVector<Splittable> splits;
  for (auto [index, factor] : llvm::enumerate(factors.factors)) {
    Splittable split = {static_cast<unsigned>(index), {}};
    auto visit = [&](unsigned value, const ValueFactors &dims) {
      for (auto [dim, dimFactors] : llvm::enumerate(dims))
        if (!dimFactors.empty() && dimFactors.front() == index)
          split.uses.push_back({value, static_cast<unsigned>(dim)});
    };
    for (auto [value, dims] : llvm::enumerate(factors.operands))
      visit(value, dims);
    for (auto [value, dims] : llvm::enumerate(factors.results))
      visit(op->getNumOperands() + value, dims);
    if (factor.splittable && factor.size > 1 && !split.uses.empty())
      splits.push_back(split);
  }
  return splits;
}

/// An op without factors is made of others: every dimension may be split.
static SmallVector<Splittable> splitsOfDims(Operation *op) {
  SmallVector<Splittable> splits;
  for (auto [value, operand] : llvm::enumerate(valuesOf(op)))
    if (auto type = dyn_cast<RankedTensorType>(operand.getType()))
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        splits.push_back(
            {static_cast<unsigned>(splits.size()),
             {{static_cast<unsigned>(value), static_cast<unsigned>(dim)}}});
  return splits;
}

/// What tells this kind of op from others: name, attributes but for maps'
/// sizes, ranks, and the ops of its body.
static std::string keyOf(Operation *op) {
  std::string key = op->getName().getStringRef().str();
  llvm::raw_string_ostream os(key);
  for (Value value : valuesOf(op))
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      os << " " << type.getRank();
  for (NamedAttribute attr : op->getAttrs())
    if (attr.getName() == "window" || attr.getName() == "scope" ||
        isa<UnitAttr, FloatAttr, ArrayAttr, DenseI64ArrayAttr>(attr.getValue()))
      os << " " << attr.getName().getValue() << "=" << attr.getValue();
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) { os << " " << inner->getName(); });
  return key;
}

std::vector<Target> mlir::parc::equiv::targetsOf(ModuleOp module) {
  std::vector<Target> targets;
  llvm::StringSet<> seen;
  for (auto [index, op] : llvm::enumerate(opsOf(module))) {
    // Bodies of structured ops belong to the op around them.
    if (!isa_and_present<StepOp, StackOp>(op->getParentOp()))
      continue;
    Target target = {static_cast<unsigned>(index),
                     op->getName().getStringRef().str(),
                     keyOf(op),
                     true,
                     {}};
    if (auto shardable = dyn_cast<ShardableOpInterface>(op)) {
      FailureOr<OpFactors> factors = shardable.getFactors();
      if (failed(factors))
        continue;
      target.splits = splitsOfFactors(op, *factors);
    } else if (isa<DecomposableOpInterface>(op)) {
      target.hasFactors = false;
      target.splits = splitsOfDims(op);
    }
    if (!target.splits.empty() && seen.insert(target.key).second)
      targets.push_back(std::move(target));
  }
  return targets;
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

namespace {

/// Writes the cases of one op.
class CaseWriter {
public:
  CaseWriter(Operation *op, const Target &target)
      : op(op), values(valuesOf(op)), target(target) {}

  std::vector<Case> write(bool pairs);

private:
  using Names = SmallVector<std::string>;
  void single(const Splittable &split);
  void nested(const Splittable &split);
  void pair(const Splittable &first, const Splittable &second);
  void contest(const Splittable &first, const Splittable &second);
  /// Adds the wish that the use is split over `axes`; false where the value is
  /// already pinned otherwise.
  bool pin(Case &to, const Splittable &split, Use use, const Names &axes);

  Operation *op;
  SmallVector<Value> values;
  const Target &target;
  std::vector<Case> cases;
};

} // namespace

bool CaseWriter::pin(Case &to, const Splittable &split, Use use,
                     const Names &axes) {
  MLIRContext *context = op->getContext();
  auto type = cast<RankedTensorType>(values[use.value].getType());
  SmallVector<StringAttr> names;
  for (const std::string &axis : axes)
    names.push_back(StringAttr::get(context, axis));
  auto *known = llvm::find_if(to.pins, [&](const Pin &pin) {
    return values[pin.value] == values[use.value];
  });
  ShardingAttr before = known == to.pins.end()
                            ? ShardingAttr::replicated(context, type.getRank())
                            : known->sharding;
  SmallVector<DimShardingAttr> dims(before.getDims());
  if (!dims[use.dim].empty())
    return false;
  for (DimShardingAttr dim : dims)
    for (StringAttr axis : dim.getAxes())
      if (llvm::is_contained(names, axis))
        return false;
  dims[use.dim] = DimShardingAttr::get(context, names, 1);
  auto sharding = ShardingAttr::get(context, dims, ReductionKind::Sum,
                                    ArrayRef<StringAttr>{});
  if (known == to.pins.end())
    to.pins.push_back({target.index, use.value, sharding});
  else
    known->sharding = sharding;
  to.split.push_back({split.factor, axes});
  return true;
}

void CaseWriter::single(const Splittable &split) {
  for (int64_t size : {2, 3})
    for (Use use : split.uses) {
      Case next;
      next.mesh = {{"a", size}};
      if (pin(next, split, use, {"a"}))
        cases.push_back(next);
    }
}

void CaseWriter::nested(const Splittable &split) {
  for (int64_t size : {2, 3})
    for (const Names &order : {Names{"a", "b"}, Names{"b", "a"}}) {
      Case next;
      next.mesh = {{"a", 2}, {"b", size}};
      if (pin(next, split, split.uses[cases.size() % split.uses.size()], order))
        cases.push_back(next);
    }
}

void CaseWriter::pair(const Splittable &first, const Splittable &second) {
  for (int64_t size : {2, 3}) {
    Case next;
    next.mesh = {{"a", 2}, {"b", size}};
    // Which use carries the wish varies from case to case.
    Use x = first.uses[cases.size() % first.uses.size()];
    Use y = second.uses[cases.size() / 2 % second.uses.size()];
    bool swap = (size == 3) != (cases.size() % 4 < 2);
    if (pin(next, first, x, {swap ? "b" : "a"}) &&
        pin(next, second, y, {swap ? "a" : "b"}))
      cases.push_back(next);
  }
}

/// One axis on two factors, each by another value. Of the ways to choose the
/// two values a few are taken, others in each pair.
void CaseWriter::contest(const Splittable &first, const Splittable &second) {
  SmallVector<Case> found;
  for (Use x : first.uses)
    for (Use y : second.uses) {
      Case next;
      next.mesh = {{"a", 2}};
      next.contested = true;
      if (values[x.value] != values[y.value] && pin(next, first, x, {"a"}) &&
          pin(next, second, y, {"a"}))
        found.push_back(next);
    }
  size_t taken = std::min<size_t>(found.size(), 4), begin = cases.size();
  for (size_t i = 0; i < taken; ++i)
    cases.push_back(found[(begin + i * found.size() / taken) % found.size()]);
}

std::vector<Case> CaseWriter::write(bool pairs) {
  for (auto [index, split] : llvm::enumerate(target.splits)) {
    single(split);
    nested(split);
    if (!pairs)
      continue;
    for (const Splittable &other :
         ArrayRef(target.splits).drop_front(index + 1)) {
      pair(split, other);
      contest(split, other);
    }
  }
  return std::move(cases);
}

std::vector<Case> mlir::parc::equiv::casesOf(Operation *op,
                                             const Target &target, bool pairs) {
  return CaseWriter(op, target).write(pairs);
}

std::string Case::text() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "mesh";
  for (const Axis &axis : mesh)
    os << " " << axis.name << "=" << axis.size;
  for (const Pin &pin : pins)
    os << ", value " << pin.value << " " << pin.sharding;
  return text;
}

bool mlir::parc::equiv::runsSplit(Operation *op, const Case &tested) {
  FailureOr<OpFactors> factors = cast<ShardableOpInterface>(op).getFactors();
  if (failed(factors))
    return false;
  SmallVector<SmallVector<std::string>> axes(factors->factors.size());
  auto visit = [&](Value value, const ValueFactors &dims) {
    ShardingAttr sharding = getSharding(value.getType());
    if (!sharding)
      return;
    for (auto [dim, split] : llvm::zip(dims, sharding.getDims())) {
      if (dim.empty() || split.empty())
        continue;
      axes[dim.front()].clear();
      for (StringAttr axis : split.getAxes())
        axes[dim.front()].push_back(axis.str());
    }
  };
  for (auto [value, dims] : llvm::zip(op->getOperands(), factors->operands))
    visit(value, dims);
  for (auto [value, dims] : llvm::zip(op->getResults(), factors->results))
    visit(value, dims);
  return llvm::all_of(tested.split, [&](const auto &split) {
    return axes[split.first] == split.second;
  });
}
