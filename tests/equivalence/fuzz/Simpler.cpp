//===- Simpler.cpp - A case made a little simpler -------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The steps of shrinking a failure. A step may give a case that is refused;
/// then it is no step.
///
//===----------------------------------------------------------------------===//

#include "Case.h"

using namespace mlir::parc::fuzz;

namespace {

/// Collects changed copies of a case.
class Steps {
public:
  explicit Steps(const Case &given) : given(given) {}

  /// A copy where `change` changes something that is not as simple as it can
  /// be.
  template <class Change> void add(bool possible, Change change) {
    if (!possible)
      return;
    Case copy = given;
    change(copy);
    list.push_back(copy);
  }
  /// Copies where a number is `least`, halved, or one less.
  void lower(int64_t Case::*number, int64_t least) {
    for (int64_t value : values(given.*number, least))
      add(true, [&](Case &copy) { copy.*number = value; });
  }
  void lower(int64_t Sizes::*number, int64_t least) {
    for (int64_t value : values(given.sizes.*number, least))
      add(true, [&](Case &copy) { copy.sizes.*number = value; });
  }

  std::vector<Case> list;

private:
  static std::vector<int64_t> values(int64_t value, int64_t least) {
    std::vector<int64_t> result;
    for (int64_t next : {least, value / 2, value - 1})
      if (next >= least && next < value &&
          (result.empty() || result.back() != next))
        result.push_back(next);
    return result;
  }

  const Case &given;
};

} // namespace

std::vector<Case> mlir::parc::fuzz::simpler(const Case &given) {
  Steps steps(given);
  steps.lower(&Case::pp, 1);
  steps.lower(&Case::dp, 1);
  steps.lower(&Case::cp, 1);
  steps.add(given.tp > 1 && given.sp, [](Case &copy) {
    copy.tp = 1;
    copy.sp = false;
  });
  steps.lower(&Case::tp, given.sp ? 2 : 1);
  steps.lower(&Case::ep, 1);
  steps.lower(&Case::zero, 0);
  steps.lower(&Case::microBatches, 1);
  steps.add(given.sp, [](Case &copy) { copy.sp = false; });
  steps.add(!given.ruleAxis.empty(), [](Case &copy) { copy.ruleAxis = ""; });
  steps.add(given.capacity, [](Case &copy) { copy.capacity = false; });
  steps.add(given.dropout, [](Case &copy) { copy.dropout = false; });
  steps.add(given.tied, [](Case &copy) { copy.tied = false; });
  steps.add(given.contextKind != "all-gather",
            [](Case &copy) { copy.contextKind = "all-gather"; });
  steps.add(given.schedule != "1f1b",
            [](Case &copy) { copy.schedule = "1f1b"; });
  steps.add(given.rankOrder != Case().rankOrder,
            [](Case &copy) { copy.rankOrder = Case().rankOrder; });
  steps.add(given.architecture != "llama", [](Case &copy) {
    copy.architecture = "llama";
    copy.ep = 1;
    copy.capacity = copy.dropout = false;
  });
  steps.lower(&Sizes::layers, 1);
  steps.lower(&Sizes::batch, 1);
  steps.lower(&Sizes::sequence, 1);
  steps.lower(&Sizes::experts, 2);
  steps.lower(&Sizes::perToken, 1);
  steps.add(given.sizes.keyHeads != given.sizes.heads,
            [](Case &copy) { copy.sizes.keyHeads = copy.sizes.heads; });
  steps.add(given.sizes.heads > 1, [](Case &copy) {
    copy.sizes.keyHeads = copy.sizes.heads -= 1;
    if (copy.architecture == "gpt2")
      copy.sizes.hidden = copy.sizes.heads * copy.sizes.headDim;
  });
  steps.lower(&Sizes::ffn, 1);
  steps.lower(&Sizes::vocabulary, 2);
  steps.lower(&Sizes::expertFfn, 1);
  steps.lower(&Sizes::dense, 0);
  steps.add(given.architecture != "gpt2" && given.sizes.hidden > 2,
            [](Case &copy) { copy.sizes.hidden = 2; });
  return std::move(steps.list);
}
