//===- Step.cpp - Runs one optimizer step on one rank ---------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Micro-batches, sums and the update.
///
//===----------------------------------------------------------------------===//

#include "parc/Eval/Step.h"

#include "Parc/Parc.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::eval;

template <class T>
FailureOr<Tensor<T>> mlir::parc::eval::findInput(Operation *op,
                                                 const StepInputs<T> &inputs,
                                                 StringRef name) {
  auto found = inputs.inputs.find(name.str());
  if (found == inputs.inputs.end())
    return op->emitOpError() << "needs input '" << name << "', got none";
  const Tensor<T> &input = found->second;
  if (!input.valid() || !input.isInt() || input.rank() < 1)
    return op->emitOpError() << "expected input '" << name
                             << "' to hold integers, the batch first";
  return input;
}

template <class T>
FailureOr<Tensor<T>> mlir::parc::eval::findScalar(Operation *op,
                                                  const StepInputs<T> &inputs,
                                                  StringRef name, Type type) {
  auto found = inputs.scalars.find(name.str());
  if (found == inputs.scalars.end())
    return op->emitOpError() << "needs scalar '" << name << "', got none";
  if (getElementTypeOrSelf(type).isIntOrIndex())
    return Tensor<T>::integer(int64_t(found->second));
  return Tensor<T>::scalar(DomainOf<T>::fromDouble(found->second));
}

template <class T>
void mlir::parc::eval::clearAccumulated(Operation *op, ParamStore<T> &params) {
  llvm::StringSet<> slots;
  op->walk([&](AccumulateOp accumulate) {
    if (slots.insert(accumulate.getSlot()).second)
      params.clearSlot(accumulate.getSlot());
  });
}

template <class T>
LogicalResult mlir::parc::eval::addSums(Operation *op,
                                        std::vector<Tensor<T>> &sums,
                                        ArrayRef<RuntimeValue<T>> terms) {
  if (sums.empty()) {
    for (const RuntimeValue<T> &term : terms)
      sums.push_back(term.tensor);
    return success();
  }
  for (auto [index, sum, term] : llvm::enumerate(sums, terms)) {
    if (sum.shape() != term.tensor.shape())
      return op->emitOpError()
             << "expected sum " << index
             << " to have one shape in all micro-batches, got "
             << shapeText(sum.shape()) << " and "
             << shapeText(term.tensor.shape());
    addInto(sum, term.tensor);
  }
  return success();
}

/// The parts of one observed value, one a micro-batch, as one tensor.
template <class T>
static FailureOr<Tensor<T>> joinBatches(Operation *op, StringRef name,
                                        ArrayRef<Tensor<T>> parts) {
  if (parts.size() == 1 || parts.front().rank() == 0)
    return parts.back();
  Shape shape(parts.front().shape());
  shape[0] = 0;
  for (const Tensor<T> &part : parts) {
    if (part.shape().drop_front() != ArrayRef<int64_t>(shape).drop_front())
      return op->emitOpError()
             << "observes '" << name << "' with shapes that do not join: "
             << shapeText(parts.front().shape()) << " and "
             << shapeText(part.shape());
    shape[0] += part.shape()[0];
  }
  Tensor<T> joined = Tensor<T>::zeros(shape, parts.front().isInt());
  Box box{Shape(shape.size(), 0), {}, {}};
  for (const Tensor<T> &part : parts) {
    box.sizes = Shape(part.shape());
    insertBox(joined, part, box);
    box.offsets[0] += part.shape()[0];
  }
  return joined;
}

namespace {

template <class T> class StepRun {
public:
  StepRun(StepOp step, ModulePlan<T> &plan, ParamStore<T> &params,
          const StepInputs<T> &inputs, int64_t microBatches)
      : step(step), params(params), inputs(inputs), microBatches(microBatches),
        interpreter(plan, params, rank) {}

  FailureOr<StepResult<T>> run() {
    if (microBatches < 1)
      return step.emitOpError()
             << "expected at least 1 micro-batch, got " << microBatches;
    clearAccumulated(step, params);
    for (int64_t index = 0; index < microBatches; ++index)
      if (failed(runMicroBatch(index)))
        return failure();
    for (auto &[name, values] : parts) {
      auto joined = joinBatches<T>(step, name, values);
      if (failed(joined))
        return failure();
      result.observed[name] = *joined;
    }
    if (!step.getUpdate().empty() && failed(runUpdate()))
      return failure();
    interpreter.commitStores();
    return std::move(result);
  }

private:
  LogicalResult runMicroBatch(int64_t index) {
    Position position{index, microBatches};
    rank.setAxis(kMicroBatchAxis, position);
    llvm::SmallVector<RuntimeValue<T>> arguments;
    for (auto name : step.getInputs().template getAsRange<StringAttr>()) {
      auto input = findInput(step, inputs, name.getValue());
      if (failed(input))
        return failure();
      Box box{Shape(input->rank(), 0), Shape(input->shape()), {}};
      Part part = partOf(input->shape()[0], 1, position);
      box.offsets[0] = part.start;
      box.sizes[0] = part.size;
      arguments.push_back(microBatches == 1 ? *input : extractBox(*input, box));
    }
    auto sums = interpreter.run(step.getMicro().front(), arguments);
    if (failed(sums) || failed(addSums<T>(step, result.sums, *sums)))
      return failure();
    for (Observation<T> &seen : interpreter.takeObserved())
      parts[seen.name].push_back(std::move(seen.value));
    return success();
  }

  LogicalResult runUpdate() {
    Block &block = step.getUpdate().front();
    llvm::SmallVector<RuntimeValue<T>> arguments(result.sums.begin(),
                                                 result.sums.end());
    for (auto name : step.getScalars().template getAsRange<StringAttr>()) {
      auto scalar = findScalar(step, inputs, name.getValue(),
                               block.getArgument(arguments.size()).getType());
      if (failed(scalar))
        return failure();
      arguments.push_back(*scalar);
    }
    auto values = interpreter.run(block, arguments);
    if (failed(values))
      return failure();
    for (auto [name, value] : llvm::zip(
             step.getResults().template getAsRange<StringAttr>(), *values))
      result.results[name.str()] = value.tensor;
    for (Observation<T> &seen : interpreter.takeObserved())
      result.observed[seen.name] = std::move(seen.value);
    return success();
  }

  StepOp step;
  ParamStore<T> &params;
  const StepInputs<T> &inputs;
  int64_t microBatches;
  RankContext rank;
  Interpreter<T> interpreter;
  std::map<std::string, llvm::SmallVector<Tensor<T>>> parts;
  StepResult<T> result;
};

} // namespace

template <class T>
FailureOr<StepResult<T>>
mlir::parc::eval::runStep(StepOp step, ModulePlan<T> &plan,
                          ParamStore<T> &params, const StepInputs<T> &inputs,
                          int64_t microBatches) {
  return StepRun<T>(step, plan, params, inputs, microBatches).run();
}

#define PARC_INSTANTIATE(T)                                                    \
  template FailureOr<StepResult<T>> mlir::parc::eval::runStep(                 \
      StepOp, ModulePlan<T> &, ParamStore<T> &, const StepInputs<T> &,         \
      int64_t);                                                                \
  template FailureOr<Tensor<T>> mlir::parc::eval::findInput(                   \
      Operation *, const StepInputs<T> &, StringRef);                          \
  template FailureOr<Tensor<T>> mlir::parc::eval::findScalar(                  \
      Operation *, const StepInputs<T> &, StringRef, Type);                    \
  template void mlir::parc::eval::clearAccumulated(Operation *,                \
                                                   ParamStore<T> &);           \
  template LogicalResult mlir::parc::eval::addSums(                            \
      Operation *, std::vector<Tensor<T>> &, ArrayRef<RuntimeValue<T>>);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
