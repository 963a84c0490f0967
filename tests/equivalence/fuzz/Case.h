//===- Case.h - A random model on a random mesh ----------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the fuzzer runs: a small transformer, a mesh, flags, and at times a
/// rule of a plan. A case prints as a config.json and a command line.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TESTS_EQUIVALENCE_FUZZ_CASE_H
#define PARC_TESTS_EQUIVALENCE_FUZZ_CASE_H

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace mlir::parc::fuzz {

/// splitmix64: the same numbers on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  /// A number below `bound`.
  int64_t below(int64_t bound);
  /// A number from `low` to `high`.
  int64_t from(int64_t low, int64_t high) {
    return low + below(high - low + 1);
  }
  /// True in `share` of a hundred.
  bool chance(int64_t share) { return below(100) < share; }

private:
  uint64_t state;
};

/// Sizes of a model. Those that an architecture has no use for are ignored.
struct Sizes {
  int64_t layers = 1, heads = 1, keyHeads = 1, headDim = 2, hidden = 2, ffn = 2,
          vocabulary = 5, sequence = 1, batch = 1;
  int64_t experts = 2, perToken = 1, expertFfn = 2, dense = 0;
};

struct Case {
  uint64_t seed = 0;
  /// A `model_type` of config.json.
  std::string architecture = "llama";
  Sizes sizes;
  bool tied = false, dropout = false;

  int64_t tp = 1, cp = 1, dp = 1, pp = 1, ep = 1, microBatches = 1, zero = 0;
  bool sp = false, capacity = false;
  std::string contextKind = "all-gather", schedule = "1f1b",
              rankOrder = "tp-cp-dp-pp";
  /// A wish for the layout of the `ruleParameter`th parameter, counted modulo
  /// how many there are: its dimension `ruleDim` over `ruleAxis`. No axis, no
  /// rule.
  int64_t ruleParameter = 0, ruleDim = 0;
  std::string ruleAxis = {};

  bool hasExperts() const {
    return architecture == "mixtral" || architecture == "deepseek_v3";
  }
  int64_t ranks() const { return tp * cp * dp * pp; }
  /// True where something is split into parts that are not equal.
  bool isUneven() const;
  /// What the case combines, for the table of coverage.
  std::set<std::string> features() const;

  std::string config() const;
  /// What follows `parc run config.json`.
  std::vector<std::string> arguments() const;
  /// Text that does it again.
  std::string reproduction() const;
};

/// The case of `seed`.
Case randomCase(uint64_t seed);

/// Cases that are a little simpler, the simplest first.
std::vector<Case> simpler(const Case &given);

/// True where the program has the flag --zero.
bool hasZero();

} // namespace mlir::parc::fuzz

#endif // PARC_TESTS_EQUIVALENCE_FUZZ_CASE_H
