//===- RankRun.cpp - One rank's step --------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs the events of a rank's stage: passes and grouped transfers, then the
/// update.
///
//===----------------------------------------------------------------------===//

#include "RankSetup.h"

#include <deque>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::eval;

namespace {

template <class T> class RankRun {
public:
  RankRun(const RankSetup &setup, ModulePlan<T> &plan,
          const ParamStore<T> &full, const StepInputs<T> &inputs,
          Mailbox<T> &mailbox, ::parc::Endpoint &endpoint,
          RankOutcome<T> &outcome)
      : setup(setup), full(full), inputs(inputs), mailbox(mailbox),
        endpoint(endpoint), outcome(outcome),
        rank(setup.context(endpoint.rank())),
        stage(setup.stageOf(endpoint.rank())), role(setup.roles[stage]),
        interpreter(plan, outcome.params, rank) {}

  ::parc::Status run() {
    PARC_TRY(createCommunicators());
    PARC_TRY(reported(prepare()));
    for (const StageEvent &event : setup.events[stage]) {
      if (event.isCompute())
        PARC_TRY(reported(runPass(event.action)));
      else
        PARC_TRY(transfer(event.group));
    }
    return reported(runUpdate());
  }

private:
  using Values = typename Mailbox<T>::Values;

  /// A failure whose error was emitted already.
  static ::parc::Status reported(LogicalResult result) {
    return succeeded(result)
               ? ::parc::Status()
               : ::parc::Status(::parc::Code::InvalidArgument, kReported);
  }

  ::parc::Status createCommunicators() {
    for (const GroupPlan &group : setup.groups) {
      if (!llvm::is_contained(group.members, endpoint.rank()))
        continue;
      PARC_TRY(endpoint.createCommunicator(group.name, group.members,
                                           communicators[group.key]));
    }
    rank.findCommunicator = [this](ArrayAttr axes,
                                   std::optional<ArrayRef<int64_t>> stages) {
      return communicators.lookup(groupKey(axes, stages));
    };
    return {};
  }

  LogicalResult prepare() {
    for (auto &[param, layer] : usedParams(setup, endpoint.rank()))
      if (failed(cutParam(param, layer)))
        return failure();
    RoleOp op = role;
    clearAccumulated<T>(op, outcome.params);
    for (auto name : op.getInputs().template getAsRange<StringAttr>()) {
      auto input = findInput(op, inputs, name.getValue());
      if (failed(input))
        return failure();
      wholeInputs.push_back(*input);
    }
    inputShardings = op->template getAttrOfType<ArrayAttr>("input_shardings");
    if (inputShardings && inputShardings.size() != wholeInputs.size())
      return op.emitOpError()
             << "expected one input sharding an input, got "
             << inputShardings.size() << " for " << wholeInputs.size();
    return success();
  }

  /// This rank's part of every slot of a parameter.
  LogicalResult cutParam(ParamOp param, int64_t layer) {
    std::string symbol = param.getSymName().str();
    const Tensor<T> *value = full.find({symbol, layer, "value"});
    if (!value)
      return param.emitOpError() << "has no value for layer " << layer;
    for (auto it = full.all().lower_bound({symbol, layer, ""});
         it != full.all().end() && it->first.symbol == symbol &&
         it->first.layer == layer;
         ++it) {
      if (it->second.shape() != value->shape())
        return param.emitOpError()
               << "expected " << it->first.text() << " to have shape "
               << shapeText(value->shape()) << ", got "
               << shapeText(it->second.shape());
      ShardingAttr sharding = param.getSlotSharding(it->first.slot);
      auto box = partBox(param, sharding, value->shape(), rank);
      if (failed(box))
        return failure();
      Tensor<T> part = extractBox(it->second, *box);
      if (sharding && sharding.isFlat()) {
        Part range = flatPart(sharding, part.size(), rank);
        part = extractBox(part.reshaped({part.size()}),
                          Box{{range.start}, {range.size}, {}});
      }
      outcome.params.set(it->first, std::move(part));
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Passes
  //===--------------------------------------------------------------------===//

  LogicalResult cutInputs(Values &arguments) {
    for (auto [index, input] : llvm::enumerate(wholeInputs)) {
      ShardingAttr sharding;
      if (inputShardings)
        sharding = dyn_cast<ShardingAttr>(inputShardings[index]);
      auto box = partBox(role, sharding, input.shape(), rank);
      if (failed(box))
        return failure();
      arguments.push_back(sharding ? extractBox(input, *box) : input);
    }
    return success();
  }

  LogicalResult runPass(Action action) {
    int64_t microBatch = action.microBatch;
    rank.setAxis(
        kMicroBatchAxis,
        {microBatch, int64_t(ScheduleOp(setup.schedule).getMicroBatches())});
    Values arguments;
    if (failed(cutInputs(arguments)))
      return failure();
    bool forward = action.kind == ActionKind::Forward;
    if (failed(forward ? runForward(microBatch, arguments)
                       : runBackward(microBatch, arguments)))
      return failure();
    recordObserved();
    return success();
  }

  void recordObserved() {
    for (Observation<T> &seen : interpreter.takeObserved()) {
      auto sharding = seen.op->template getAttrOfType<ShardingAttr>("sharding");
      auto positions = positionsOf(sharding, seen.value.rank(), rank);
      outcome.observed.push_back({std::move(seen), std::move(positions)});
    }
  }

  /// The first `count` values of `from`, moved to their own list.
  static Values split(Values &from, size_t count) {
    Values first(std::make_move_iterator(from.begin()),
                 std::make_move_iterator(from.begin() + count));
    from.erase(from.begin(), from.begin() + count);
    return first;
  }

  static void append(Values &to, Values from) {
    to.append(std::make_move_iterator(from.begin()),
              std::make_move_iterator(from.end()));
  }

  LogicalResult runForward(int64_t microBatch, Values &arguments) {
    append(arguments,
           std::move(received[{TransferDirection::Forward, microBatch}]));
    auto results = interpreter.run(role.getForward().front(), arguments);
    if (failed(results))
      return failure();
    toSend[{TransferDirection::Forward, microBatch}] =
        split(*results, role.getForwardSends());
    saved[microBatch] = std::move(*results);
    outcome.peakInFlight =
        std::max(outcome.peakInFlight, int64_t(saved.size()));
    return success();
  }

  LogicalResult runBackward(int64_t microBatch, Values &arguments) {
    append(arguments,
           std::move(received[{TransferDirection::Backward, microBatch}]));
    append(arguments, std::move(saved[microBatch]));
    saved.erase(microBatch);
    auto all =
        static_cast<int64_t>(ScheduleOp(setup.schedule).getMicroBatches());
    interpreter.isLastMicro = ++backwardPasses == all;
    auto results = interpreter.run(role.getBackward().front(), arguments);
    if (failed(results))
      return failure();
    toSend[{TransferDirection::Backward, microBatch}] =
        split(*results, role.getBackwardSends());
    return addSums<T>(role, sums, *results);
  }

  LogicalResult runUpdate() {
    rank.setAxis(kMicroBatchAxis, {});
    Block &block = role.getUpdate().front();
    Values arguments(sums.begin(), sums.end());
    for (auto name : role.getScalars().template getAsRange<StringAttr>()) {
      if (arguments.size() >= block.getNumArguments())
        return role.emitOpError() << "expected " << sums.size() << " sums and "
                                  << role.getScalars().size()
                                  << " scalars as update arguments, got "
                                  << block.getNumArguments();
      auto scalar = findScalar(role, inputs, name.getValue(),
                               block.getArgument(arguments.size()).getType());
      if (failed(scalar))
        return failure();
      arguments.push_back(*scalar);
    }
    auto values = interpreter.run(block, arguments);
    if (failed(values))
      return failure();
    interpreter.commitStores();
    recordObserved();
    for (auto [name, value] : llvm::zip(
             role.getResults().template getAsRange<StringAttr>(), *values))
      outcome.results[name.str()] = value.tensor;
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Transfers
  //===--------------------------------------------------------------------===//

  /// One end of a transfer under way.
  struct Passage {
    TransferEnd end;
    int64_t number = 0;
    std::string label;
  };

  /// Buffers of our own: the sender may go on to write its values in place.
  static Values copied(const Values &values) {
    Values copies;
    for (const RuntimeValue<T> &value : values) {
      const Tensor<T> &tensor = value.tensor;
      copies.push_back(extractBox(
          tensor, Box{Shape(tensor.rank(), 0), Shape(tensor.shape()), {}}));
    }
    return copies;
  }

  ::parc::Status openPassage(const TransferEnd &end, Passage &passage) {
    passage.end = end;
    bool forward = end.direction == TransferDirection::Forward;
    passage.label =
        (forward ? "F mb " : "B mb ") + std::to_string(end.microBatch);
    if (!end.isSend)
      return {};
    auto sent = toSend.find({end.direction, end.microBatch});
    if (sent == toSend.end())
      return reported(role.emitOpError()
                      << "sends " << passage.label << " before it is computed");
    for (const RuntimeValue<T> &value : sent->second)
      if (!value.tensor.valid())
        return reported(role.emitOpError() << "sends a value of a stack's "
                                              "layers; only tensors are sent");
    passage.number = mailbox.post(copied(sent->second));
    toSend.erase(sent);
    return {};
  }

  ::parc::Status transfer(ArrayRef<TransferEnd> ends) {
    ::parc::Communicator *group = communicators.lookup(kStageAxis);
    if (!group)
      return reported(role.emitOpError() << "has no other stage to talk to");
    std::deque<Passage> passages;
    for (const TransferEnd &end : ends) {
      passages.emplace_back();
      PARC_TRY(openPassage(end, passages.back()));
    }
    PARC_TRY(endpoint.groupStart());
    for (Passage &passage : passages)
      PARC_TRY(passage.end.isSend
                   ? group->send(&passage.number, 1, ::parc::DType::i64,
                                 passage.end.peer, passage.label.c_str())
                   : group->recv(&passage.number, 1, ::parc::DType::i64,
                                 passage.end.peer, passage.label.c_str()));
    PARC_TRY(endpoint.groupEnd());
    for (Passage &passage : passages)
      if (!passage.end.isSend)
        received[{passage.end.direction, passage.end.microBatch}] =
            mailbox.collect(passage.number);
    return {};
  }

  using PassKey = std::pair<TransferDirection, int64_t>;

  const RankSetup &setup;
  const ParamStore<T> &full;
  const StepInputs<T> &inputs;
  Mailbox<T> &mailbox;
  ::parc::Endpoint &endpoint;
  RankOutcome<T> &outcome;
  RankContext rank;
  int64_t stage;
  RoleOp role;
  Interpreter<T> interpreter;
  llvm::StringMap<::parc::Communicator *> communicators;
  std::vector<Tensor<T>> wholeInputs;
  ArrayAttr inputShardings;
  std::map<PassKey, Values> received, toSend;
  std::map<int64_t, Values> saved;
  int64_t backwardPasses = 0;
  std::vector<Tensor<T>> sums;
};

} // namespace

template <class T>
::parc::Status
mlir::parc::eval::runRank(const RankSetup &setup, ModulePlan<T> &plan,
                          const ParamStore<T> &full,
                          const StepInputs<T> &inputs, Mailbox<T> &mailbox,
                          ::parc::Endpoint &endpoint, RankOutcome<T> &outcome) {
  return RankRun<T>(setup, plan, full, inputs, mailbox, endpoint, outcome)
      .run();
}

#define PARC_INSTANTIATE(T)                                                    \
  template ::parc::Status mlir::parc::eval::runRank(                           \
      const RankSetup &, ModulePlan<T> &, const ParamStore<T> &,               \
      const StepInputs<T> &, Mailbox<T> &, ::parc::Endpoint &,                 \
      RankOutcome<T> &);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
