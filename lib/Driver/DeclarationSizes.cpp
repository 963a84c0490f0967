//===- DeclarationSizes.cpp - Batch, ZeRO and stages ----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sizes of the batch, what ZeRO splits, stages and nodes: readings, defaults
/// and checks against the mesh.
///
//===----------------------------------------------------------------------===//

#include "Resolver.h"
#include "parc/Pipeline/Schedule.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

/// A node where no cluster is named.
static constexpr int64_t kNodeSize = 8;
/// Longer sequences are asked for, not assumed.
static constexpr int64_t kUsualSequence = 8192;

bool Resolver::readSizes() {
  int64_t pp = result.size("pp"), dp = result.size("dp");
  Origin fromModel = facts.batch ? Origin::Model : Origin::Default;
  if (!readCount("batch", result.batch, facts.batch.value_or(4 * pp * dp),
                 fromModel))
    return false;
  int64_t sequence = facts.maxSequence
                         ? std::min(facts.maxSequence, kUsualSequence)
                         : kUsualSequence;
  Origin origin = facts.sequence ? Origin::Model : Origin::Default;
  if (!readCount("seq", result.sequence, facts.sequence.value_or(sequence),
                 origin))
    return false;
  int64_t one = std::max<int64_t>(1, result.batch.value / dp);
  return readCount("micro-batches", result.microBatches, one, Origin::Default);
}

/// A group is whole along the faster of the two axes, or lies within it.
bool Resolver::checkZeroGroup() {
  if (result.zeroGroup.value == 1 && result.dataRanks() > 1) {
    fail(result.zeroGroup.place, "a ZeRO group of 1 rank splits nothing",
         "zero-group");
    reporter.help("--zero 0 says the same");
    return false;
  }
  int64_t ranks = result.dataRanks(), group = result.zeroGroup.value;
  int64_t cp = result.size("cp");
  if (ranks % group == 0 && (group % cp == 0 || cp % group == 0))
    return true;
  fail(result.zeroGroup.place,
       "expected a ZeRO group that divides dp x cp = " + Twine(ranks) +
           ", got " + Twine(group),
       "zero-group");
  for (int64_t fewer = group - 1; fewer > 0; --fewer)
    if (ranks % fewer == 0 && (fewer % cp == 0 || cp % fewer == 0)) {
      reporter.help("the next smaller one is " + Twine(fewer));
      break;
    }
  return false;
}

bool Resolver::readZero() {
  int64_t ranks = result.dataRanks();
  result.zero.value = ranks > 1 ? 1 : 0;
  if (const auto *given = find("zero")) {
    const RawValue &raw = given->first;
    int64_t stage = 0;
    if (StringRef(raw.text).getAsInteger(10, stage) || stage < 0 || stage > 3)
      return fail(raw.place,
                  "expected 'zero' from 0 to 3, got " + quoted(raw.text),
                  "zero");
    result.zero = {stage, given->second, raw.place};
    bool isOther =
        given->second == Origin::Plan && result.mesh.origin == Origin::Flag;
    if (ranks == 1 && isOther) {
      // The plan means another mesh.
      result.zero.value = 0;
    } else if (stage > 0 && ranks == 1) {
      fail(raw.place,
           "ZeRO " + Twine(stage) +
               " has nothing to split over: dp=1, cp=1 in the mesh " +
               result.mesh.value.str(),
           "zero");
      reporter.help("give the mesh a dp axis, or leave --zero out");
      return false;
    }
  }
  if (!readCount("zero-group", result.zeroGroup, ranks, Origin::Default))
    return false;
  if (find("zero-group") && result.zero.value == 0) {
    fail(result.zeroGroup.place, "a ZeRO group without ZeRO", "zero-group");
    reporter.help("--zero 1, 2 or 3 splits over groups");
    return false;
  }
  if (!checkZeroGroup())
    return false;
  int64_t m = result.microBatches.value;
  if (result.zero.value >= 2 && m > 1)
    reporter.warning(
        result.zero.place,
        "ZeRO " + Twine(result.zero.value) + " reduces gradients " + Twine(m) +
            " times a step, once a micro-batch" +
            (result.zero.value == 3 ? ", and gathers parameters twice in each"
                                    : ""),
        "zero-traffic");
  return true;
}

bool Resolver::checkStages() {
  int64_t pp = result.size("pp"), m = result.microBatches.value;
  if (pp > std::max<int64_t>(1, facts.layers)) {
    fail(result.mesh.place,
         "more stages than layers: pp=" + Twine(pp) + ", layers " +
             Twine(facts.layers),
         "stages");
    reporter.help("pp can be at most " +
                  Twine(std::max<int64_t>(1, facts.layers)));
    return false;
  }
  ScheduleProblem problem;
  problem.stages = pp;
  problem.microBatches = m;
  if (std::optional<std::string> wrong = problem.check())
    return fail(result.microBatches.place, *wrong, "schedule");
  if (std::optional<std::string> idle = idleWarning(pp, m)) {
    reporter.warning(result.microBatches.place,
                     "fewer micro-batches than stages: " + *idle, "idle");
    reporter.help("a larger --batch or more --micro-batches fill it");
  }
  return true;
}

bool Resolver::checkBatch() {
  int64_t dp = result.size("dp"), m = result.microBatches.value;
  int64_t batch = result.batch.value, parts = 0;
  bool overflow = llvm::MulOverflow(dp, m, parts);
  const Place &place = result.batch.place.valid() ? result.batch.place
                       : result.microBatches.place.valid()
                           ? result.microBatches.place
                           : result.mesh.place;
  if (overflow || batch < parts) {
    fail(place,
         "batch smaller than dp x micro-batches: " + Twine(batch) +
             " sequences for dp=" + Twine(dp) + " x " + Twine(m) +
             " micro-batches",
         "batch");
    if (!overflow)
      reporter.help("--batch " + Twine(parts) +
                    (batch >= dp ? ", or --micro-batches " + Twine(batch / dp)
                                 : Twine()));
    return false;
  }
  if (batch % parts != 0)
    reporter.warning(
        place,
        "batch " + Twine(batch) + " is no multiple of dp=" + Twine(dp) + " x " +
            Twine(m) + " micro-batches: " + Twine(batch / parts) + " or " +
            Twine(batch / parts + 1) + " sequences in each",
        "uneven-batch");
  return true;
}

void Resolver::warnNodes() {
  if (!forDevices)
    return;
  std::optional<size_t> tp = result.mesh.value.indexOf("tp");
  if (!tp || result.size("tp") < 2)
    return;
  int64_t reach = (result.size("tp") - 1) * result.grid().strides()[*tp] + 1;
  // A group inside an aligned block of a node's size stays in the node.
  if (reach <= kNodeSize && kNodeSize % reach == 0)
    return;
  if (reach <= kNodeSize && result.mesh.value.devices() <= kNodeSize)
    return;
  reporter.warning(result.mesh.place,
                   "tp=" + Twine(result.size("tp")) +
                       " reaches across nodes of " + Twine(kNodeSize) +
                       ": a group spans " + Twine(reach) + " ranks",
                   "tp-across-nodes");
}
