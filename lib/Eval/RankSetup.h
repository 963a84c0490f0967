//===- RankSetup.h - What all ranks share -----------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A staged module read once: where ranks are, which role and which events each
/// stage has, and which communicators exist.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_EVAL_RANKSETUP_H
#define PARC_LIB_EVAL_RANKSETUP_H

#include "parc/Eval/Ranks.h"
#include "parc/Pipeline/RankGrid.h"
#include "parc/Pipeline/Transfers.h"

#include "Parc/Parc.h"

namespace mlir::parc::eval {

/// One communicator: the text that it is found by, and its members in order.
struct GroupPlan {
  std::string key;
  std::string name;
  std::vector<int> members;
};

/// The text by which the communicators of `axes` and `stages` are found.
std::string groupKey(ArrayAttr axes, std::optional<ArrayRef<int64_t>> stages);

/// A staged module.
struct RankSetup {
  ModuleOp module;
  std::optional<RankGrid> grid;
  ScheduleOp schedule;
  /// By stage.
  std::vector<RoleOp> roles;
  std::vector<std::vector<StageEvent>> events;
  /// All communicators, in the order in which every rank creates its own.
  std::vector<GroupPlan> groups;

  int64_t stages() const { return int64_t(roles.size()); }
  int64_t stageOf(int64_t rank) const;
  /// The coordinate of `rank`, and its layers, without communicators.
  RankContext context(int64_t rank) const;
};

/// Reads `module`; fails after a located error.
LogicalResult readSetup(ModuleOp module, RankSetup &setup);

/// The position of a rank along each dimension of a sharded tensor.
llvm::SmallVector<Position, 4> positionsOf(ShardingAttr sharding, int64_t rank,
                                           const RankContext &context);

/// The box of a tensor of `shape` that a rank holds; an error at `op` where the
/// sharding does not fit the shape. A null sharding splits nothing.
FailureOr<Box> partBox(Operation *op, ShardingAttr sharding,
                       ArrayRef<int64_t> shape, const RankContext &context);

/// Which row-major elements of its box a rank holds, of `elements`; all of them
/// where the sharding is not flat.
Part flatPart(ShardingAttr sharding, int64_t elements,
              const RankContext &context);

/// The parameters that a rank's role uses, by symbol and layer.
std::vector<std::pair<ParamOp, int64_t>> usedParams(const RankSetup &setup,
                                                    int64_t rank);

/// A value that a rank observed in one micro-batch, and where it belongs.
template <class T> struct ObservedPart {
  Observation<T> observation;
  llvm::SmallVector<Position, 4> positions;
};

/// What one rank leaves behind.
template <class T> struct RankOutcome {
  ParamStore<T> params;
  std::map<std::string, Tensor<T>> results;
  std::vector<ObservedPart<T>> observed;
  int64_t peakInFlight = 0;
};

/// Values on their way from one stage to another. What travels through the
/// runtime is a message's number: both ends know its size beforehand, whatever
/// the shapes, and the rendezvous is the one that a program on GPUs has.
template <class T> class Mailbox {
public:
  using Values = llvm::SmallVector<RuntimeValue<T>>;

  int64_t post(Values values) {
    std::lock_guard<std::mutex> guard(mutex);
    messages[++last] = std::move(values);
    return last;
  }
  Values collect(int64_t number) {
    std::lock_guard<std::mutex> guard(mutex);
    Values values = std::move(messages[number]);
    messages.erase(number);
    return values;
  }

private:
  std::mutex mutex;
  std::map<int64_t, Values> messages;
  int64_t last = 0;
};

/// Runs one rank on `endpoint`. A located error was emitted wherever a
/// failure's message is `reported`.
inline constexpr const char *kReported = "reported";
template <class T>
::parc::Status runRank(const RankSetup &setup, ModulePlan<T> &plan,
                       const ParamStore<T> &full, const StepInputs<T> &inputs,
                       Mailbox<T> &mailbox, ::parc::Endpoint &endpoint,
                       RankOutcome<T> &outcome);

/// Puts the ranks' parts together and compares replicas.
template <class T>
RanksResult<T> gatherRanks(const RankSetup &setup, const ParamStore<T> &full,
                           std::vector<RankOutcome<T>> &outcomes);

} // namespace mlir::parc::eval

#endif // PARC_LIB_EVAL_RANKSETUP_H
