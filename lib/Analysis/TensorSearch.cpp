//===- TensorSearch.cpp - Where to split a layer --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Weighs sets of classes by the work they divide and the bytes they move.
///
//===----------------------------------------------------------------------===//

#include "TensorSearch.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::parc;

namespace {

/// How much an op counts.
struct OpWeight {
  /// See runsOf.
  double runs = 1;
  /// Iteration space, where the op reads a parameter; else 0.
  double work = 0;
};

/// Weighs sets of classes.
class TensorSearch {
public:
  TensorSearch(ModuleOp module, Propagation &propagation, ClassGraph &graph,
               const Axes &split, const AxisSizes &axes)
      : propagation(propagation), graph(graph), split(split), axes(axes) {
    for (const ClassedOp &classed : graph.ops())
      weights.push_back(weigh(classed));
    // The dimensions of the step's inputs are data: other axes split those.
    for (StepOp step : module.getOps<StepOp>())
      for (Value input : step.getMicro().getArguments())
        for (int64_t dim = 0,
                     rank = cast<RankedTensorType>(input.getType()).getRank();
             dim < rank; ++dim)
          data.insert(graph.classOf(input, dim));
  }

  /// The classes to split, best first by (work left whole, bytes moved).
  std::vector<DimClass> best();

private:
  static OpWeight weigh(const ClassedOp &classed);
  /// Work that stays whole and bytes moved; nothing where the set is illegal.
  std::optional<std::pair<double, double>> cost(ArrayRef<DimClass> chosen);
  std::vector<DimClass> candidates();
  bool isFree(DimClass cls);

  Propagation &propagation;
  ClassGraph &graph;
  const Axes &split;
  const AxisSizes &axes;
  std::vector<OpWeight> weights;
  llvm::SmallDenseSet<DimClass> data;
};

} // namespace

double mlir::parc::runsOf(Operation *op) {
  double runs = 1;
  for (Operation *parent = op->getParentOp(); parent;
       parent = parent->getParentOp())
    if (auto stack = dyn_cast<StackOp>(parent))
      runs *= static_cast<double>(stack.getEnd() - stack.getBegin());
  return runs;
}

OpWeight TensorSearch::weigh(const ClassedOp &classed) {
  OpWeight weight;
  Operation *op = classed.op;
  weight.runs = runsOf(op);
  bool readsParameter = llvm::any_of(op->getOperands(), [](Value operand) {
    auto load = operand.getDefiningOp<LoadOp>();
    return load && load.getSlot() == "value";
  });
  // Updates read parameters too; only the model's own work counts.
  if (readsParameter && op->getParentOfType<StepOp>().getMicro().isAncestor(
                            op->getParentRegion())) {
    weight.work = weight.runs;
    for (const Factor &factor : classed.factors->factors)
      weight.work *= factor.size;
  }
  return weight;
}

std::optional<std::pair<double, double>>
TensorSearch::cost(ArrayRef<DimClass> chosen) {
  double whole = 0, bytes = 0;
  for (const auto &[classed, weight] : llvm::zip(graph.ops(), weights)) {
    SmallVector<unsigned> cut;
    for (auto [factor, cls] : llvm::enumerate(classed.classes))
      if (llvm::is_contained(chosen, cls))
        cut.push_back(factor);
    if (cut.size() > 1)
      return std::nullopt;
    if (cut.empty()) {
      whole += weight.work;
      continue;
    }
    for (auto [result, dims] :
         llvm::zip(classed.op->getResults(), classed.factors->results)) {
      bool kept = llvm::any_of(dims, [&](const DimFactors &dim) {
        return llvm::is_contained(dim, cut[0]);
      });
      if (auto type = dyn_cast<RankedTensorType>(result.getType());
          type && !kept)
        bytes += weight.runs * partBytes(type, nullptr, axes);
    }
  }
  return std::pair(whole, bytes);
}

/// True where no op needs the class whole and no axis is in its way.
bool TensorSearch::isFree(DimClass cls) {
  if (!graph.isSplittable(cls) || data.contains(cls))
    return false;
  for (auto [value, dim] : graph.members(cls)) {
    ArrayRef<DimPlace> row = propagation.row(propagation.rowOf(value));
    if (!row[dim].axes.empty())
      return false;
    for (const DimPlace &other : row)
      for (StringAttr axis : split)
        if (llvm::is_contained(other.axes, axis))
          return false;
  }
  return true;
}

/// Classes that a parameter's work depends on, and legal. One with too few
/// units stays, so that the user hears of it, but for tables that are only
/// looked up: these divide no work and may as well be whole.
std::vector<DimClass> TensorSearch::candidates() {
  std::map<DimClass, double> work;
  std::map<DimClass, bool> onlyLookedUp;
  for (const auto &[classed, weight] : llvm::zip(graph.ops(), weights))
    for (auto [index, cls] : llvm::enumerate(classed.classes))
      if (cls != kNoClass && weight.work > 0) {
        work[cls] += weight.work;
        bool &looked = onlyLookedUp.try_emplace(cls, true).first->second;
        looked &= classed.factors->factors[index].needsOffset;
      }
  std::vector<std::pair<double, DimClass>> sorted;
  for (auto [cls, amount] : work)
    if (isFree(cls) && (!onlyLookedUp[cls] || graph.hasUnits(cls, split)))
      sorted.push_back({-amount, cls});
  llvm::sort(sorted);
  std::vector<DimClass> result;
  for (auto [amount, cls] : sorted)
    result.push_back(cls);
  return result;
}

std::vector<DimClass> TensorSearch::best() {
  std::vector<DimClass> all = candidates();
  // A model has a handful of classes; beyond that, those with least work stay
  // whole, so that the search is bounded.
  constexpr size_t kMostClasses = 12;
  if (all.size() > kMostClasses)
    all.resize(kMostClasses);
  std::vector<DimClass> best;
  auto bestCost = cost(best);
  for (uint64_t set = 1; set < (uint64_t(1) << all.size()); ++set) {
    std::vector<DimClass> chosen;
    for (size_t i = 0; i < all.size(); ++i)
      if (set >> i & 1)
        chosen.push_back(all[i]);
    auto now = cost(chosen);
    if (now && *now < *bestCost) {
      bestCost = now;
      best = std::move(chosen);
    }
  }
  return best;
}

/// "tp splits dimension 0 of q, k, v and dimension 1 of o": where a class is in
/// the parameters, which have names.
static std::string classText(const ClassGraph &graph, DimClass cls,
                             StringRef axis) {
  constexpr size_t kMostNames = 4;
  std::map<unsigned, llvm::SmallSetVector<StringRef, 4>> names;
  for (auto [value, dim] : graph.members(cls))
    if (auto load = value.getDefiningOp<LoadOp>())
      names[dim].insert(load.getParam());
  std::string text;
  for (auto &[dim, params] : names) {
    ArrayRef<StringRef> list = params.getArrayRef();
    text += (text.empty() ? "dimension " : " and dimension ") +
            std::to_string(dim) + " of " +
            llvm::join(list.take_front(kMostNames), ", ");
    if (list.size() > kMostNames)
      text += " and " + std::to_string(list.size() - kMostNames) + " more";
  }
  return axis.str() + " splits " + (text.empty() ? "a dimension" : text);
}

void mlir::parc::placeTensor(ModuleOp module, Propagation &propagation,
                             ClassGraph &graph, const Axes &split,
                             const AxisSizes &axes) {
  for (DimClass cls :
       TensorSearch(module, propagation, graph, split, axes).best()) {
    propagation.setOrigin(classText(graph, cls, wholeAxis(split.front())));
    graph.place(cls, split);
  }
}

//===----------------------------------------------------------------------===//
// Sequences for heads
//===----------------------------------------------------------------------===//

/// True where no other factor has an axis of `own`.
static bool isFreeFor(ArrayRef<Axes> factorAxes, unsigned factor,
                      const Axes &own) {
  for (auto [other, taken] : llvm::enumerate(factorAxes))
    if (other != factor && llvm::any_of(own, [&](StringAttr axis) {
          return llvm::is_contained(taken, axis);
        }))
      return false;
  return true;
}

SmallVector<Axes> mlir::parc::factorAxesOf(const ClassedOp &classed,
                                           const Propagation &propagation,
                                           const AxisSizes &axes) {
  SmallVector<Axes> result(classed.factors->factors.size());
  auto visit = [&](Value value, const ValueFactors &dims) {
    if (dims.empty())
      return;
    ShardingAttr layout = propagation.layoutOf(value);
    for (auto [dim, split] : llvm::zip(dims, layout.getDims()))
      for (auto [factor, own] : llvm::zip(
               dim, distribute(dim, *classed.factors, split.getAxes(), axes)))
        if (classed.factors->factors[factor].splittable &&
            own.size() > result[factor].size() &&
            isFreeFor(result, factor, own))
          result[factor] = own;
  };
  for (auto [operand, dims] :
       llvm::zip(classed.op->getOperands(), classed.factors->operands))
    visit(operand, dims);
  for (auto [value, dims] :
       llvm::zip(classed.op->getResults(), classed.factors->results))
    visit(value, dims);
  return result;
}

namespace {
/// A dimension that could be split in place of the sequence.
struct Exchange {
  const DimFactors *dim = nullptr;
  /// How many parts it can have, and would have.
  int64_t units = 0, parts = 0;

  bool fits() const { return dim && units >= parts; }
};
} // namespace

/// The dimension that can be cut by all of `context`, by its nested factors:
/// the one whose front factor is the largest class of another kind. Where none
/// can, the one with the most units.
static Exchange findExchange(const ClassedOp &classed, ArrayRef<DimClass> data,
                             ArrayRef<Axes> factorAxes, const Axes &context,
                             const AxisSizes &axes) {
  Exchange best;
  auto visit = [&](const ValueFactors &dims) {
    for (const DimFactors &dim : dims) {
      if (dim.empty() || dim.cut == DimCut::Set ||
          !classed.factors->factors[dim.front()].splittable ||
          llvm::is_contained(data, classed.classes[dim.front()]))
        continue;
      int64_t units = 1, parts = axes.product(context);
      for (unsigned factor : dim) {
        if (!classed.factors->factors[factor].splittable)
          break;
        units *= classed.factors->factors[factor].size;
        parts *= axes.product(factorAxes[factor]);
        if (dim.cut != DimCut::Nested)
          break;
      }
      Exchange found{&dim, units, parts};
      if (std::pair(found.fits(), units) > std::pair(best.fits(), best.units))
        best = found;
    }
  };
  for (const ValueFactors &dims : classed.factors->operands)
    visit(dims);
  return best;
}

bool mlir::parc::needsWhole(const ClassedOp &classed,
                            ArrayRef<DimClass> sequences,
                            ArrayRef<DimClass> data) {
  // What reads numbers of things only, as a choice of experts, is small, and so
  // is what has no dimension but those of the inputs: it is gathered.
  if (llvm::none_of(classed.op->getOperandTypes(), [](Type type) {
        return isa<FloatType>(getElementTypeOrSelf(type));
      }))
    return false;
  bool hasOther = llvm::any_of(classed.classes, [&](DimClass cls) {
    return cls != kNoClass && !llvm::is_contained(data, cls);
  });
  return hasOther &&
         llvm::any_of(llvm::zip(classed.classes, classed.factors->factors),
                      [&](const auto &entry) {
                        const auto &[cls, factor] = entry;
                        return llvm::is_contained(sequences, cls) &&
                               !factor.splittable;
                      });
}

std::optional<SmallVector<Axes>> mlir::parc::headsForSequence(
    const ClassedOp &classed, const Propagation &propagation,
    ArrayRef<DimClass> sequences, ArrayRef<DimClass> data, const Axes &context,
    const AxisSizes &axes) {
  SmallVector<Axes> factorAxes = factorAxesOf(classed, propagation, axes);
  Exchange exchange = findExchange(classed, data, factorAxes, context, axes);
  if (!exchange.fits())
    return std::nullopt;
  const DimFactors *dim = exchange.dim;
  // The sequence is whole here.
  for (auto [split, cls] : llvm::zip(factorAxes, classed.classes))
    if (llvm::is_contained(sequences, cls))
      split.clear();
  Axes all;
  for (unsigned factor : *dim)
    all.append(factorAxes[factor]);
  all.append(context);
  for (auto [factor, own] :
       llvm::zip(*dim, distribute(*dim, *classed.factors, all, axes)))
    factorAxes[factor] = own;
  return factorAxes;
}

LogicalResult mlir::parc::exchangeHeadsOf(const ClassedOp &classed,
                                          Propagation &propagation,
                                          ArrayRef<DimClass> sequences,
                                          ArrayRef<DimClass> data,
                                          const Axes &context,
                                          const AxisSizes &axes) {
  if (!needsWhole(classed, sequences, data))
    return success();
  std::optional<SmallVector<Axes>> factorAxes =
      headsForSequence(classed, propagation, sequences, data, context, axes);
  if (!factorAxes) {
    Exchange most = findExchange(
        classed, data, factorAxesOf(classed, propagation, axes), context, axes);
    int64_t parts = axes.product(context);
    InFlightDiagnostic diag =
        emitError(classed.op->getLoc())
        << "'ulysses' exchanges the sequence for heads, expected at least "
        << std::max(most.parts, parts) << " for " << axesText(context, axes)
        << "=" << parts;
    if (most.parts > parts)
      diag << " and what splits them already";
    return diag << ", got " << most.units
                << "; use 'all-gather' or 'ring', or a smaller cp";
  }
  for (auto [factor, split] : llvm::enumerate(*factorAxes))
    if (!split.empty())
      propagation.pin(classed.op, factor, split);
  return success();
}
