//===- Strategy.cpp - The built-in strategy -------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Places data and tensor parallelism from the model's own structure: which
/// dimensions factors connect, what work a split divides, what it moves.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/Propagation.h"
#include <map>

using namespace mlir;
using namespace mlir::parc;

namespace {

/// A class of dimensions that factors connect, by its smallest node.
using Class = unsigned;

/// What the search needs of one op.
struct OpSummary {
  /// For each factor: its class.
  SmallVector<Class> classes;
  /// How often the op runs, by the layers of the stack it is in.
  double runs = 1;
  /// Iteration space, where the op reads a parameter; else 0.
  double work = 0;
  const OpFactors *factors = nullptr;
  Operation *op = nullptr;
};

/// Connects dimensions into classes and weighs sets of them.
class ClassSearch {
public:
  ClassSearch(ModuleOp module, Propagation &propagation, const AxisSizes &axes,
              StringAttr axis)
      : propagation(propagation), axes(axes), axis(axis) {
    number();
    connect();
    summarise();
    excludeInputs(module);
  }

  /// The classes to split, best first by (work left whole, bytes moved).
  std::vector<Class> best();
  void place(ArrayRef<Class> chosen);

private:
  void number();
  void connect();
  void summarise();
  void excludeInputs(ModuleOp module);
  unsigned node(Value value, unsigned dim) const {
    return firstNode[propagation.rowOf(value)] + dim;
  }
  unsigned find(unsigned n) {
    while (parents[n] != n)
      n = parents[n] = parents[parents[n]];
    return n;
  }
  /// Calls `body` with each (value, dimension, factor) of an op.
  void forEachDim(Operation *op, const OpFactors &factors,
                  function_ref<void(Value, unsigned, unsigned)> body);
  /// Work that stays whole and bytes moved; nothing where the set is illegal.
  std::optional<std::pair<double, double>> weigh(ArrayRef<Class> chosen);
  bool hasUnits(Class cls);
  std::vector<Class> candidates();

  Propagation &propagation;
  const AxisSizes &axes;
  StringAttr axis;
  std::vector<unsigned> firstNode;
  std::vector<unsigned> parents;
  std::vector<OpSummary> summaries;
  std::map<Class, std::vector<std::pair<Value, unsigned>>> members;
  std::map<Class, bool> legal;
};

} // namespace

void ClassSearch::number() {
  unsigned next = 0;
  for (unsigned row = 0; row < propagation.numRows(); ++row) {
    firstNode.push_back(next);
    next += propagation.row(row).size();
  }
  parents.resize(next);
  for (unsigned n = 0; n < next; ++n)
    parents[n] = n;
}

void ClassSearch::forEachDim(
    Operation *op, const OpFactors &factors,
    function_ref<void(Value, unsigned, unsigned)> body) {
  for (auto [operand, dims] : llvm::zip(op->getOperands(), factors.operands))
    for (auto [dim, dimFactors] : llvm::enumerate(dims))
      if (!dimFactors.empty())
        body(operand, dim, dimFactors.front());
  for (auto [result, dims] : llvm::zip(op->getResults(), factors.results))
    for (auto [dim, dimFactors] : llvm::enumerate(dims))
      if (!dimFactors.empty())
        body(result, dim, dimFactors.front());
}

void ClassSearch::connect() {
  for (const auto &[op, factors] : propagation.ops()) {
    SmallVector<int64_t> first(factors.factors.size(), -1);
    forEachDim(op, factors, [&](Value value, unsigned dim, unsigned factor) {
      unsigned n = node(value, dim);
      if (first[factor] < 0) {
        first[factor] = n;
        return;
      }
      unsigned a = find(first[factor]), b = find(n);
      parents[std::max(a, b)] = std::min(a, b);
    });
  }
}

void ClassSearch::summarise() {
  for (const auto &[op, factors] : propagation.ops()) {
    OpSummary summary;
    summary.op = op;
    summary.factors = &factors;
    summary.classes.assign(factors.factors.size(), ~0u);
    for (Operation *parent = op->getParentOp(); parent;
         parent = parent->getParentOp())
      if (auto stack = dyn_cast<StackOp>(parent))
        summary.runs *= static_cast<double>(stack.getEnd() - stack.getBegin());
    forEachDim(op, factors, [&](Value value, unsigned dim, unsigned factor) {
      Class cls = find(node(value, dim));
      summary.classes[factor] = cls;
      auto &values = members[cls];
      if (values.empty() || values.back() != std::pair(value, dim))
        values.push_back({value, dim});
      bool &isLegal = legal.try_emplace(cls, true).first->second;
      isLegal &= factors.factors[factor].splittable;
    });
    bool readsParameter = llvm::any_of(op->getOperands(), [](Value operand) {
      auto load = operand.getDefiningOp<LoadOp>();
      return load && load.getSlot() == "value";
    });
    // Updates read parameters too; only the model's own work counts.
    if (readsParameter && op->getParentOfType<StepOp>().getMicro().isAncestor(
                              op->getParentRegion())) {
      summary.work = summary.runs;
      for (const Factor &factor : factors.factors)
        summary.work *= factor.size;
    }
    summaries.push_back(std::move(summary));
  }
}

/// The dimensions of the step's inputs are data: other axes split those.
void ClassSearch::excludeInputs(ModuleOp module) {
  for (StepOp step : module.getOps<StepOp>())
    for (BlockArgument input : step.getMicro().getArguments())
      for (int64_t dim = 0;
           dim < cast<RankedTensorType>(input.getType()).getRank(); ++dim)
        legal[find(node(input, dim))] = false;
}

std::optional<std::pair<double, double>>
ClassSearch::weigh(ArrayRef<Class> chosen) {
  double whole = 0, bytes = 0;
  for (const OpSummary &summary : summaries) {
    SmallVector<unsigned> split;
    for (auto [factor, cls] : llvm::enumerate(summary.classes))
      if (llvm::is_contained(chosen, cls))
        split.push_back(factor);
    if (split.size() > 1)
      return std::nullopt;
    if (split.empty()) {
      whole += summary.work;
      continue;
    }
    for (auto [result, dims] :
         llvm::zip(summary.op->getResults(), summary.factors->results)) {
      bool kept = llvm::any_of(dims, [&](const DimFactors &dim) {
        return llvm::is_contained(dim, split[0]);
      });
      if (auto type = dyn_cast<RankedTensorType>(result.getType());
          type && !kept)
        bytes += summary.runs * partBytes(type, nullptr, axes);
    }
  }
  return std::pair(whole, bytes);
}

/// True where each rank of the axis would get a part of the class.
bool ClassSearch::hasUnits(Class cls) {
  for (auto [value, dim] : members[cls]) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    const DimPlace &place = propagation.row(propagation.rowOf(value))[dim];
    if (type && type.getDimSize(dim) / place.grain < axes.of(axis))
      return false;
  }
  return true;
}

/// Classes that a parameter's work depends on, and legal. One with too few
/// units stays, so that the user hears of it, but for tables that are only
/// looked up: these divide no work and may as well be whole.
std::vector<Class> ClassSearch::candidates() {
  std::map<Class, double> work;
  std::map<Class, bool> onlyLookedUp;
  for (const OpSummary &summary : summaries)
    for (auto [index, cls] : llvm::enumerate(summary.classes))
      if (cls != ~0u && summary.work > 0) {
        work[cls] += summary.work;
        bool &looked = onlyLookedUp.try_emplace(cls, true).first->second;
        looked &= summary.factors->factors[index].needsOffset;
      }
  std::vector<std::pair<double, Class>> sorted;
  for (auto [cls, amount] : work) {
    bool free = legal[cls] && (!onlyLookedUp[cls] || hasUnits(cls));
    for (auto [value, dim] : members[cls]) {
      const DimPlace &place = propagation.row(propagation.rowOf(value))[dim];
      free &= place.axes.empty();
      for (const DimPlace &other : propagation.row(propagation.rowOf(value)))
        free &= !llvm::is_contained(other.axes, axis);
    }
    if (free)
      sorted.push_back({-amount, cls});
  }
  llvm::sort(sorted);
  std::vector<Class> result;
  for (auto [amount, cls] : sorted)
    result.push_back(cls);
  return result;
}

std::vector<Class> ClassSearch::best() {
  std::vector<Class> all = candidates();
  // A model has a handful of classes; beyond that, those with least work stay
  // whole, so that the search is bounded.
  constexpr size_t kMostClasses = 12;
  if (all.size() > kMostClasses)
    all.resize(kMostClasses);
  std::vector<Class> best;
  auto bestCost = weigh(best);
  for (uint64_t set = 1; set < (uint64_t(1) << all.size()); ++set) {
    std::vector<Class> chosen;
    for (size_t i = 0; i < all.size(); ++i)
      if (set >> i & 1)
        chosen.push_back(all[i]);
    auto cost = weigh(chosen);
    if (cost && *cost < *bestCost) {
      bestCost = cost;
      best = std::move(chosen);
    }
  }
  return best;
}

void ClassSearch::place(ArrayRef<Class> chosen) {
  for (Class cls : chosen)
    for (auto [value, dim] : members[cls])
      propagation.place(value, dim, axis);
}

/// The batch is split over replicas, and over micro-batches within them.
static void placeBatch(StepOp step, Propagation &propagation,
                       const AxisSizes &axes) {
  Block &micro = step.getMicro().front();
  if (micro.getNumArguments() == 0)
    return;
  int64_t batch =
      cast<RankedTensorType>(micro.getArgument(0).getType()).getDimSize(0);
  SmallVector<StringRef> names;
  for (MeshOp mesh : step->getParentOfType<ModuleOp>().getOps<MeshOp>())
    names.append(partsOfAxis(mesh, "dp"));
  names.push_back(kMicroBatchAxis);
  for (StringRef name : names) {
    if (axes.of(name) == 1 || propagation.isConstrained(name))
      continue;
    auto axis = StringAttr::get(step.getContext(), name);
    for (Value input : micro.getArguments())
      if (cast<RankedTensorType>(input.getType()).getDimSize(0) == batch)
        propagation.place(input, 0, axis);
  }
}

void mlir::parc::applyStrategy(ModuleOp module, Propagation &propagation,
                               const AxisSizes &axes) {
  for (StepOp step : module.getOps<StepOp>())
    placeBatch(step, propagation, axes);
  propagation.spread();
  StringRef tensor = "tp";
  if (axes.of(tensor) == 1 || propagation.isConstrained(tensor))
    return;
  ClassSearch search(module, propagation, axes,
                     StringAttr::get(module.getContext(), tensor));
  search.place(search.best());
  propagation.spread();
}
