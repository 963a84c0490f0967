//===- DeclarationExperts.cpp - Keys of experts ---------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Expert parallelism, queues and scopes: readings and checks.
///
//===----------------------------------------------------------------------===//

#include "Resolver.h"
#include "parc/Import/Model.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

bool Resolver::readExperts() {
  if (!readCount("ep", result.ep, 1, Origin::Default))
    return false;
  int64_t ep = result.ep.value;
  if (ep == 1)
    return true;
  const Place &place = result.ep.place;
  if (facts.experts && *facts.experts == 0) {
    fail(place,
         "expert parallelism on a dense model: ep=" + Twine(ep) +
             ", the model has no experts",
         "ep-on-dense");
    reporter.help("leave out ep");
    return false;
  }
  if (facts.experts && *facts.experts % ep != 0) {
    fail(place,
         "experts are not a multiple of ep: " + Twine(*facts.experts) +
             " experts, ep=" + Twine(ep),
         "ep-experts");
    reporter.help("ep must divide " + Twine(*facts.experts));
    return false;
  }
  // Experts take the ranks of cp first, then of dp.
  int64_t cp = result.size("cp"), dp = result.size("dp");
  bool fits = ep <= cp ? cp % ep == 0 : ep % cp == 0 && dp % (ep / cp) == 0;
  if (!fits) {
    fail(place,
         "ep=" + Twine(ep) +
             " does not divide the ranks that share a "
             "batch: cp=" +
             Twine(cp) + ", dp=" + Twine(dp),
         "ep-mesh");
    reporter.help("ep takes cp first, then dp: a divisor of cp, or cp times a "
                  "divisor of dp");
    return false;
  }
  if (result.size("tp") > 1 && !result.sp.value) {
    fail(place,
         "ep=" + Twine(ep) + " with tp=" + Twine(result.size("tp")) +
             " needs sp",
         "ep-without-sp");
    reporter.help("without sp every tp rank would send the same tokens; add "
                  "--sp");
    return false;
  }
  warnExpertCuts();
  return true;
}

/// ZeRO's groups cut dp and cp first. Experts lie on neighbours, and where
/// their ranks do not nest with a group, on the next larger part of the axis.
void Resolver::warnExpertCuts() {
  int64_t ep = result.ep.value, group = result.zeroGroup.value;
  int64_t cp = result.size("cp"), dp = result.size("dp");
  if (result.zero.value == 0 || group == cp * dp)
    return;
  auto ranksOf = [](int64_t wanted, int64_t cut, int64_t axis) {
    if (wanted % cut == 0 || cut % wanted == 0)
      return wanted;
    return wanted < cut ? cut : axis;
  };
  int64_t ranks =
      ranksOf(std::min(ep, cp), std::min(group, cp), cp) *
      ranksOf(ep / std::min(ep, cp), group / std::min(group, cp), dp);
  if (ranks == ep)
    return;
  int64_t experts = facts.experts.value_or(0);
  std::string share;
  if (experts % ranks != 0)
    share = llvm::formatv(", {0} or {1} of {2} on each", experts / ranks,
                          experts / ranks + 1, experts);
  reporter.warning(result.ep.place,
                   "ep=" + Twine(ep) + " and a ZeRO group of " + Twine(group) +
                       " cut dp x cp and do not nest: experts lie on " +
                       Twine(ranks) + " ranks" + share,
                   "ep-zero-group");
}

/// False where a key of experts has no meaning for this model. A program's own
/// plan repeats what it was imported with.
bool Resolver::checkExpertKeys() {
  for (StringRef key :
       {"moe", "moe-buffer-factor", "capacity-factor", "moe-scope"}) {
    const auto *given = find(key);
    bool repeats = !facts.isConfig && given && given->second == Origin::Plan;
    if (!given || facts.experts.value_or(0) > 0 || repeats)
      continue;
    fail(given->first.place,
         facts.isConfig ? "'" + key + "' without experts in the model"
                        : "'" + key + "' of a program, which has its queues",
         key);
    reporter.help(facts.isConfig ? "remove it"
                                 : "give it when the config is imported");
    return false;
  }
  return true;
}

bool Resolver::readMoe() {
  static constexpr StringLiteral kinds[] = {"dropless", "capacity"};
  if (!checkExpertKeys())
    return false;
  if (facts.experts.value_or(0) > 0)
    result.moe.value = kinds[0].str();
  if (const auto *given = find("moe"))
    result.moe = {given->first.text, given->second, given->first.place};
  if (result.moe.value.empty())
    return true;
  if (!llvm::is_contained(kinds, StringRef(result.moe.value))) {
    fail(result.moe.place, "unknown 'moe' " + quoted(result.moe.value), "moe");
    reporter.help("kinds: dropless, capacity");
    return false;
  }
  bool drops = result.moe.value == kinds[1];
  if (const auto *given = find("capacity-factor"); given && !drops) {
    fail(given->first.place, "'capacity-factor' where no token is dropped",
         "capacity-factor");
    reporter.help("add --moe capacity, or remove it");
    return false;
  }
  if (drops)
    result.capacityFactor.value = RoutingOptions().capacityFactor;
  // A queue below the balanced load would overflow in every step.
  return readFactor("moe-buffer-factor", 1.0, result.bufferFactor) &&
         readFactor("capacity-factor", 0.001, result.capacityFactor) &&
         readExpertScope();
}

bool Resolver::readExpertScope() {
  Setting<std::string> &scope = result.expertScope;
  if (!readChoice("moe-scope", {"sequence", "micro-batch", "global"}, scope))
    return false;
  int64_t batch = result.batch.value, m = result.microBatches.value;
  int64_t parts = result.size("dp") * m;
  if (scope.value == "global" && m > 1) {
    fail(scope.place,
         "a scope of the whole batch in " + Twine(m) +
             " micro-batches: none can wait for a later one",
         "moe-scope");
    reporter.help("--micro-batches 1, or --moe-scope micro-batch");
    return false;
  }
  if (scope.value == "micro-batch" && batch % parts != 0) {
    fail(scope.place,
         "micro-batches of different sizes are no scope: " + Twine(batch) +
             " sequences in " + Twine(parts) + " parts",
         "moe-scope");
    reporter.help("a --batch that is a multiple of " + Twine(parts));
    return false;
  }
  return true;
}
