//===- ContextChoice.cpp - How attention meets a split sequence ------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Bytes of each way, from the layouts that propagation found to those that the
/// op would run in.
///
//===----------------------------------------------------------------------===//

#include "ContextChoice.h"
#include "parc/Analysis/OpLayout.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::parc;

/// Why the op cannot be on a ring; empty where it can.
static std::string whyNoRing(const ClassedOp &classed,
                             ArrayRef<DimClass> sequences) {
  auto ring = dyn_cast<RingOpInterface>(classed.op);
  if (!ring)
    return ("'" + classed.op->getName().getStringRef() + "' has no such form")
        .str();
  llvm::SmallDenseSet<DimClass> met;
  for (DimClass cls : classed.classes)
    if (llvm::is_contained(sequences, cls))
      met.insert(cls);
  if (met.size() > 1)
    return "its queries and keys are of different sequences";
  return ring.whyNoRing();
}

LogicalResult mlir::parc::putOnRing(const ClassedOp &classed,
                                    Propagation &propagation,
                                    ArrayRef<DimClass> sequences,
                                    const Axes &context) {
  std::string reason = whyNoRing(classed, sequences);
  if (!reason.empty())
    return emitError(classed.op->getLoc())
           << "'ring' splits queries and keys alike, but here " << reason
           << "; use 'all-gather' or 'ulysses'";
  SmallVector<Attribute> names(context.begin(), context.end());
  cast<RingOpInterface>(classed.op)
      .setRingAxes(ArrayAttr::get(classed.op->getContext(), names));
  return propagation.refresh(classed.op);
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

namespace {
/// Weighs the ways of one module.
class ContextSearch {
public:
  explicit ContextSearch(const ContextProblem &problem) : problem(problem) {}

  ContextChoice best();

private:
  double bytes(const ClassedOp &classed, ArrayRef<Axes> factorAxes) const;
  double bytes(Value value, const ValueFactors &dims, const OpFactors &factors,
               ArrayRef<Axes> factorAxes, bool isResult) const;
  void add(const ClassedOp &classed);

  const ContextProblem &problem;
  double gathered = 0, exchanged = 0;
  /// Why a way is not open.
  std::string noRing, noExchange;
};
} // namespace

double ContextSearch::bytes(Value value, const ValueFactors &dims,
                            const OpFactors &factors, ArrayRef<Axes> factorAxes,
                            bool isResult) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  // Positions are delivered as they are needed.
  if (!type || dims.empty() || type.getElementType().isIntOrIndex())
    return 0;
  ShardingAttr have = problem.propagation.layoutOf(value);
  SmallVector<DimShardingAttr> split;
  for (auto [dim, now] :
       llvm::zip(dimsOf(dims, factorAxes, have), have.getDims()))
    split.push_back(DimShardingAttr::get(value.getContext(), dim,
                                         dim.empty() ? 1 : now.getGrain()));
  auto run = ShardingAttr::get(value.getContext(), split, ReductionKind::Sum,
                               ArrayRef<StringAttr>());
  if (!isResult)
    return reshardBytes(type, have, run, problem.axes);
  ReductionKind kind;
  Axes partial;
  if (failed(newPartial(factors, dims, factorAxes, kind, partial)))
    return 0;
  return reshardBytes(type, run.withPartial(kind, partial), have, problem.axes);
}

/// What is sent before and after the op for it to run so.
double ContextSearch::bytes(const ClassedOp &classed,
                            ArrayRef<Axes> factorAxes) const {
  double total = 0;
  for (auto [value, dims] :
       llvm::zip(classed.op->getOperands(), classed.factors->operands))
    total += bytes(value, dims, *classed.factors, factorAxes, false);
  for (auto [value, dims] :
       llvm::zip(classed.op->getResults(), classed.factors->results))
    total += bytes(value, dims, *classed.factors, factorAxes, true);
  return total * runsOf(classed.op);
}

void ContextSearch::add(const ClassedOp &classed) {
  if (noRing.empty())
    noRing = whyNoRing(classed, problem.sequences);
  SmallVector<Axes> factorAxes =
      factorAxesOf(classed, problem.propagation, problem.axes);
  for (auto [split, factor] : llvm::zip(factorAxes, classed.factors->factors))
    if (!factor.splittable)
      split.clear();
  gathered += bytes(classed, factorAxes);
  std::optional<SmallVector<Axes>> heads =
      headsForSequence(classed, problem.propagation, problem.sequences,
                       problem.data, problem.context, problem.axes);
  if (heads)
    exchanged += bytes(classed, *heads);
  else
    noExchange = "too few heads";
}

ContextChoice ContextSearch::best() {
  for (const ClassedOp &classed : problem.graph.ops())
    if (needsWhole(classed, problem.sequences, problem.data))
      add(classed);
  auto text = [](double bytes) {
    return llvm::formatv("{0:N} bytes", static_cast<int64_t>(bytes)).str();
  };
  bool rings = noRing.empty(), exchanges = noExchange.empty();
  ContextKind kind = rings ? ContextKind::Ring : ContextKind::AllGather;
  if (exchanges && exchanged < gathered)
    kind = ContextKind::Ulysses;
  std::string ring = "ring " + (rings ? text(gathered) : "not: " + noRing);
  std::string gather = "all-gather " + text(gathered);
  std::string exchange =
      "ulysses " + (exchanges ? text(exchanged) : "not: " + noExchange);
  std::string first = kind == ContextKind::Ring        ? ring
                      : kind == ContextKind::AllGather ? gather
                                                       : exchange;
  std::string rest;
  for (const std::string &other : {ring, gather, exchange})
    if (other != first)
      rest += (rest.empty() ? "" : "; ") + other;
  return {kind, first + " a rank and micro-batch (" + rest + ")"};
}

ContextChoice mlir::parc::chooseContext(const ContextProblem &problem) {
  return ContextSearch(problem).best();
}
