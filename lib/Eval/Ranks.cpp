//===- Ranks.cpp - Runs the program of all ranks --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Starts the ranks, gathers what they hold, and compares replicas.
///
//===----------------------------------------------------------------------===//

#include "RankSetup.h"

#include "parc/Eval/Compare.h"
#include "parc/Pipeline/Part.h"
#include "parc/part.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::eval;

//===----------------------------------------------------------------------===//
// Gathering
//===----------------------------------------------------------------------===//

namespace {

/// Puts the parts of one tensor together. Two ranks hold either the same box or
/// boxes that do not meet.
template <class T> class Assembly {
public:
  Assembly(std::string what, Shape shape)
      : what(std::move(what)), shape(std::move(shape)) {}

  void add(int64_t rank, const Tensor<T> &part, const Box &box) {
    if (ArrayRef<int64_t>(box.sizes) != part.shape() || !box.inside(shape)) {
      differences.push_back(what + ": rank " + std::to_string(rank) +
                            " holds shape " + shapeText(part.shape()) +
                            " instead of " + shapeText(box.sizes));
      return;
    }
    auto [first, isNew] =
        seen.try_emplace({box.offsets, box.sizes}, std::make_pair(rank, part));
    if (!isNew) {
      compare(rank, part, first->second.first, first->second.second);
      return;
    }
    if (!whole.valid())
      whole = Tensor<T>::zeros(shape, part.isInt());
    covered += part.size();
    insertBox(whole, part, box);
  }

  ArrayRef<int64_t> wholeShape() const { return shape; }

  /// The whole; reports what it lacks.
  Tensor<T> finish(std::vector<std::string> &report) {
    if (whole.valid() && covered != whole.size())
      differences.push_back(what + ": the ranks' parts hold " +
                            std::to_string(covered) + " of " +
                            std::to_string(whole.size()) + " elements");
    report.insert(report.end(), differences.begin(), differences.end());
    return whole;
  }

private:
  void compare(int64_t rank, const Tensor<T> &part, int64_t first,
               const Tensor<T> &expected) {
    if (std::optional<Shape> index = firstDifference(part, expected))
      differences.push_back(what + ": rank " + std::to_string(rank) +
                            " differs from rank " + std::to_string(first) +
                            ", first at index " + shapeText(*index));
  }

  std::string what;
  Shape shape;
  Tensor<T> whole;
  int64_t covered = 0;
  std::map<std::pair<Shape, Shape>, std::pair<int64_t, Tensor<T>>> seen;
  std::vector<std::string> differences;
};

template <class T> class Gatherer {
public:
  Gatherer(const RankSetup &setup, const ParamStore<T> &full,
           std::vector<RankOutcome<T>> &outcomes)
      : setup(setup), full(full), outcomes(outcomes) {
    for (size_t rank = 0; rank < outcomes.size(); ++rank)
      contexts.push_back(setup.context(int64_t(rank)));
  }

  RanksResult<T> run() {
    gatherParams();
    gatherObserved();
    gatherResults();
    for (RankOutcome<T> &outcome : outcomes)
      result.peakInFlight.push_back(outcome.peakInFlight);
    return std::move(result);
  }

private:
  void gatherParams() {
    std::map<ParamKey, Assembly<T>> assemblies;
    for (auto [rank, outcome] : llvm::enumerate(outcomes))
      for (auto &[key, part] : outcome.params.all()) {
        auto param = lookup(key.symbol);
        const Tensor<T> *value = full.find({key.symbol, key.layer, "value"});
        if (!param || !value)
          continue;
        // What a rank added up is no part of the whole where the sum over
        // ranks has a place of its own.
        ParamKey whole = key;
        if (param.getSlotSharding(kGradientSlot) !=
            param.getSlotSharding(kReducedSlot)) {
          if (key.slot == kGradientSlot)
            continue;
          if (key.slot == kReducedSlot)
            whole.slot = kGradientSlot.str();
        }
        auto [entry, isNew] = assemblies.try_emplace(
            whole, "parameter " + whole.text(), Shape(value->shape()));
        addPart(entry->second, int64_t(rank), param,
                param.getSlotSharding(key.slot), part);
      }
    for (auto &[key, assembly] : assemblies)
      result.params.set(key, assembly.finish(result.replicaDifferences));
  }

  /// Adds the boxes that a rank's part of a slot consists of.
  void addPart(Assembly<T> &assembly, int64_t rank, ParamOp param,
               ShardingAttr sharding, const Tensor<T> &part) {
    auto box = partBox(param, sharding, assembly.wholeShape(), contexts[rank]);
    if (failed(box))
      return;
    if (!sharding || !sharding.isFlat())
      return assembly.add(rank, part, *box);
    std::vector<int64_t> sizes(box->sizes.begin(), box->sizes.end());
    Part range = flatPart(sharding, elementCount(box->sizes), contexts[rank]);
    if (part.rank() != 1 || part.size() != range.size)
      return assembly.add(rank, part, *box);
    for (const ::parc::ListBox &piece :
         ::parc::listBoxes(sizes, range.start, range.size)) {
      Box inner{Shape(piece.lo.begin(), piece.lo.end()),
                Shape(piece.size.begin(), piece.size.end()),
                {}};
      int64_t count = elementCount(inner.sizes);
      for (size_t dim = 0; dim < inner.offsets.size(); ++dim)
        inner.offsets[dim] += box->offsets[dim];
      assembly.add(rank,
                   extractBox(part, Box{{piece.offset}, {count}, {}})
                       .reshaped(inner.sizes),
                   inner);
    }
  }

  ParamOp lookup(const std::string &symbol) {
    auto [entry, isNew] = params.try_emplace(symbol);
    if (isNew)
      entry->second = ModuleOp(setup.module).lookupSymbol<ParamOp>(symbol);
    return entry->second;
  }

  /// Observed parts say their position; how large the others' parts are is
  /// known from the others.
  void gatherObserved() {
    std::map<std::string, std::vector<std::pair<int64_t, ObservedPart<T> *>>>
        byName;
    for (auto [rank, outcome] : llvm::enumerate(outcomes))
      for (ObservedPart<T> &part : outcome.observed)
        byName[part.observation.name].push_back({int64_t(rank), &part});
    for (auto &[name, parts] : byName) {
      finishPartial(parts);
      result.observed[name] = assemble(name, parts);
    }
  }

  /// What tells an observed part from the addends of other sums: its place, the
  /// rank's coordinates on the axes that it is not partial over, and, unless
  /// micro-batches are added up too, its number among the rank's.
  std::string addendKey(const ObservedPart<T> &part, int64_t rank,
                        ShardingAttr sharding, int64_t number) {
    std::string key;
    for (const Position &position : part.positions)
      key += std::to_string(position.coordinate) + " ";
    bool addsTime = false;
    for (StringAttr axis : sharding.getPartial())
      addsTime |= axis.getValue() == kMicroBatchAxis;
    key += "| " + (addsTime ? "" : std::to_string(number)) + " |";
    for (const MeshAxis &axis : setup.grid->mesh().axes())
      if (!llvm::any_of(sharding.getPartial(), [&](StringAttr partial) {
            return partial.getValue() == axis.name;
          }))
        key += " " + std::to_string(contexts[rank].axis(axis.name).coordinate);
    return key;
  }

  /// Observing asks for no layout, so that a sum may be seen before it is
  /// reduced: it is added up here.
  void finishPartial(ArrayRef<std::pair<int64_t, ObservedPart<T> *>> parts) {
    std::map<std::string, std::vector<ObservedPart<T> *>> sums;
    std::map<int64_t, int64_t> numbers;
    for (auto &[rank, part] : parts) {
      auto sharding =
          part->observation.op->template getAttrOfType<ShardingAttr>(
              "sharding");
      if (sharding && sharding.isPartial() &&
          sharding.getKind() == ReductionKind::Sum)
        sums[addendKey(*part, rank, sharding, numbers[rank]++)].push_back(part);
    }
    for (auto &[key, addends] : sums) {
      Tensor<T> sum = addends.front()->observation.value;
      for (ObservedPart<T> *addend : ArrayRef(addends).drop_front())
        addInto(sum, addend->observation.value);
      for (ObservedPart<T> *addend : addends)
        addend->observation.value = sum;
    }
  }

  Tensor<T> assemble(const std::string &name,
                     ArrayRef<std::pair<int64_t, ObservedPart<T> *>> parts) {
    int64_t dims = parts.front().second->observation.value.rank();
    // By dimension: the sizes of the parts, by position.
    std::vector<std::map<int64_t, int64_t>> sizes(dims);
    for (auto &[rank, part] : parts) {
      if (part->observation.value.rank() != dims)
        continue;
      for (int64_t dim = 0; dim < dims; ++dim)
        sizes[dim][part->positions[dim].coordinate] =
            part->observation.value.shape()[dim];
    }
    Shape shape(dims, 0);
    for (int64_t dim = 0; dim < dims; ++dim)
      for (auto [position, size] : sizes[dim])
        shape[dim] += size;
    Assembly<T> assembly("observed '" + name + "'", shape);
    for (auto &[rank, part] : parts) {
      const Tensor<T> &value = part->observation.value;
      Box box{Shape(dims, 0), Shape(value.shape()), {}};
      for (int64_t dim = 0; value.rank() == dims && dim < dims; ++dim)
        for (auto [position, size] : sizes[dim])
          if (position < part->positions[dim].coordinate)
            box.offsets[dim] += size;
      assembly.add(rank, value, box);
    }
    Tensor<T> whole = assembly.finish(result.replicaDifferences);
    auto observe =
        dyn_cast_or_null<ObserveOp>(parts.front().second->observation.op);
    if (!observe || !observe.getFold())
      return whole;
    ArrayRef<int64_t> fold = *observe.getFold();
    return unfolded(whole, fold[0], fold[1]);
  }

  /// The value of a folded dimension in natural order.
  static Tensor<T> unfolded(const Tensor<T> &folded, int64_t dim,
                            int64_t parts) {
    Tensor<T> natural = Tensor<T>::zeros(folded.shape(), folded.isInt());
    Box from{Shape(folded.rank(), 0), Shape(folded.shape()), {}};
    from.sizes[dim] = 1;
    Box to = from;
    int64_t extent = folded.shape()[dim];
    for (int64_t index = 0; index < extent; ++index) {
      from.offsets[dim] = index;
      to.offsets[dim] = foldedIndex(extent, parts, index);
      insertBox(natural, extractBox(folded, from), to);
    }
    return natural;
  }

  void gatherResults() {
    for (auto &[name, value] : outcomes.front().results) {
      Assembly<T> assembly("result '" + name + "'", Shape(value.shape()));
      Box box{Shape(value.rank(), 0), Shape(value.shape()), {}};
      for (auto [rank, outcome] : llvm::enumerate(outcomes)) {
        auto found = outcome.results.find(name);
        if (found != outcome.results.end())
          assembly.add(int64_t(rank), found->second, box);
      }
      result.results[name] = assembly.finish(result.replicaDifferences);
    }
  }

  const RankSetup &setup;
  const ParamStore<T> &full;
  std::vector<RankOutcome<T>> &outcomes;
  std::vector<RankContext> contexts;
  std::map<std::string, ParamOp> params;
  RanksResult<T> result;
};

} // namespace

template <class T>
RanksResult<T>
mlir::parc::eval::gatherRanks(const RankSetup &setup, const ParamStore<T> &full,
                              std::vector<RankOutcome<T>> &outcomes) {
  return Gatherer<T>(setup, full, outcomes).run();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

template <class T>
FailureOr<RanksResult<T>>
mlir::parc::eval::runRanks(ModuleOp module, const ParamStore<T> &full,
                           const StepInputs<T> &inputs) {
  RankSetup setup;
  if (failed(readSetup(module, setup)))
    return failure();
  // Ranks look up attributes and emit errors at once: the context must lock.
  MLIRContext *context = module.getContext();
  bool wasLocking = context->isMultithreadingEnabled();
  context->enableMultithreading();
  ModulePlan<T> plan(module);
  Mailbox<T> mailbox;
  std::vector<RankOutcome<T>> outcomes(setup.grid->devices());
  ::parc::Status status =
      ::parc::World::run(int(outcomes.size()), [&](::parc::Endpoint &endpoint) {
        return runRank<T>(setup, plan, full, inputs, mailbox, endpoint,
                          outcomes[endpoint.rank()]);
      });
  if (!wasLocking)
    context->disableMultithreading();
  if (!status.ok()) {
    if (status.message().find(kReported) == std::string::npos)
      return module.emitError() << status.text();
    return failure();
  }
  return gatherRanks<T>(setup, full, outcomes);
}

#define PARC_INSTANTIATE(T)                                                    \
  template FailureOr<RanksResult<T>> mlir::parc::eval::runRanks(               \
      ModuleOp, const ParamStore<T> &, const StepInputs<T> &);                 \
  template RanksResult<T> mlir::parc::eval::gatherRanks(                       \
      const RankSetup &, const ParamStore<T> &,                                \
      std::vector<RankOutcome<T>> &);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
