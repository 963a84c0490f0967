//===- RunSteps.cpp - The steps of parc run -------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The steps, and the comparison.
///
//===----------------------------------------------------------------------===//

#include "RunSteps.h"
#include "parc/Eval/Compare.h"
#include "parc/random.h"

#include <chrono>
#include <cmath>
#include <limits>

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

template <class T>
LogicalResult StepRunner<T>::start(const InitialValues &values) {
  for (ParamOp param : programs.whole.getOps<ParamOp>()) {
    int64_t layers = static_cast<int64_t>(param.getLayers().value_or(1));
    ArrayRef<int64_t> shape = param.getTensorType().getShape();
    for (int64_t layer = 0; layer < layers; ++layer) {
      std::optional<std::vector<double>> read = values.read(param, layer);
      if (!read)
        return failure();
      std::vector<T> converted;
      converted.reserve(read->size());
      for (double value : *read)
        converted.push_back(eval::DomainOf<T>::fromDouble(value));
      std::string symbol = param.getSymName().str();
      if (param.hasMaster())
        whole.set({symbol, layer, kMasterSlot.str()},
                  eval::Tensor<T>::ofFloats(shape, converted));
      if (param.getTensorType().getElementType().isBF16())
        for (T &value : converted)
          value = eval::DomainOf<T>::roundToBF16(value);
      whole.set({symbol, layer, kValueSlot.str()},
                eval::Tensor<T>::ofFloats(shape, std::move(converted)));
      for (const char *slot : {"m", "v"})
        whole.set({symbol, layer, slot},
                  eval::Tensor<T>::zeros(shape, /*isInt=*/false));
    }
  }
  ranks.params = whole;
  plan = std::make_unique<eval::ModulePlan<T>>(programs.whole);
  return success();
}

template <class T>
eval::StepInputs<T> StepRunner<T>::inputs(int64_t step) const {
  eval::StepInputs<T> result;
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < tokens.batch * tokens.sequence; ++i)
    positions.push_back(i % tokens.sequence);
  SmallVector<int64_t> shape = {tokens.batch, tokens.sequence};
  result.inputs["tokens"] = eval::Tensor<T>::ofInts(shape, tokens.tokens);
  result.inputs["labels"] = eval::Tensor<T>::ofInts(shape, tokens.labels);
  result.inputs["positions"] = eval::Tensor<T>::ofInts(shape, positions);
  // Dropout's masks change with the step.
  auto seed = static_cast<int64_t>(::parc::random::chain(
      static_cast<uint64_t>(options.seed), static_cast<uint64_t>(step)));
  result.inputs["seed"] = eval::Tensor<T>::ofInts({1}, {seed});
  auto number = [&](const char *key) {
    return declaration.optimizer.at(key).value;
  };
  auto power = static_cast<double>(step);
  result.scalars = {{"lr", number("lr")},
                    {"beta1", number("beta1")},
                    {"beta2", number("beta2")},
                    {"eps", number("eps")},
                    {"weight_decay", number("weight-decay")},
                    {"clip", number("clip")},
                    {"correction1", 1 - std::pow(number("beta1"), power)},
                    {"correction2", 1 - std::pow(number("beta2"), power)}};
  return result;
}

template <class T> static double normOf(const eval::Tensor<T> &tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    double value = eval::DomainOf<T>::toDouble(tensor.floats()[i]);
    sum += value * value;
  }
  return std::sqrt(sum);
}

/// The share of the whole gradient below which a parameter's gradient is
/// rounding noise. Some vanish in theory (a bias that softmax cancels).
static double noiseShare(ElementKind kind) {
  switch (kind) {
  case ElementKind::F64:
    return 1e3 * std::numeric_limits<double>::epsilon();
  case ElementKind::F32:
    return 1e3 * std::numeric_limits<float>::epsilon();
  case ElementKind::BF16:
    break;
  }
  llvm_unreachable("in bf16 no parameter is compared by itself");
}

/// The relative difference of the elements whose gradient is not noise: Adam
/// divides a gradient by its own size, so the others have no digits to compare.
template <class T>
static double signalDifference(const eval::Tensor<T> &got,
                               const eval::Tensor<T> &expected,
                               const eval::Tensor<T> &gradient, double noise) {
  double difference = 0, size = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (std::abs(eval::DomainOf<T>::toDouble(gradient.floats()[i])) < noise)
      continue;
    double x = eval::DomainOf<T>::toDouble(got.floats()[i]);
    double y = eval::DomainOf<T>::toDouble(expected.floats()[i]);
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return std::sqrt(difference) / (size > 0 ? std::sqrt(size) : 1);
}

template <class T>
void StepRunner<T>::compareSlot(const eval::ParamKey &key,
                                const eval::Tensor<T> &value,
                                const WholeGradient &all) {
  const eval::Tensor<T> *got = ranks.params.find(key);
  const eval::Tensor<T> *grad = whole.find({key.symbol, key.layer, "grad"});
  bool comparable = got && got->shape() == value.shape();
  if (eval::DomainOf<T>::exact || !grad || !comparable)
    return largest.add(comparable ? eval::relativeDifference(*got, value)
                                  : INFINITY,
                       key.text());
  double share = noiseShare(arithmetic);
  if (key.slot != "grad")
    return largest.add(
        signalDifference(*got, value, *grad, share * all.typical()),
        key.text());
  // A gradient that is noise as a whole is held against all of them.
  double difference = eval::relativeDifference(*got, value);
  if (normOf(value) < share * all.norm())
    difference *= normOf(value) / all.norm();
  largest.add(difference, key.text());
}

template <class T>
WholeGradient StepRunner<T>::sumGradients(double &difference) const {
  WholeGradient all;
  double squares = 0;
  for (auto &[key, value] : whole.all()) {
    if (key.slot != kGradientSlot)
      continue;
    double norm = normOf(value);
    all.squares += norm * norm;
    all.elements += value.size();
    const eval::Tensor<T> *got = ranks.params.find(key);
    if (!got)
      continue;
    double off = eval::relativeDifference(*got, value);
    off *= norm > 0 ? norm : 1;
    squares += off * off;
  }
  difference = std::sqrt(squares);
  return all;
}

template <class T>
void StepRunner<T>::compare(const eval::StepResult<T> &expected) {
  for (auto &[name, value] : expected.results) {
    auto found = ranks.results.find(name);
    largest.add(found == ranks.results.end()
                    ? INFINITY
                    : eval::relativeDifference(found->second, value),
                name);
  }
  for (auto &[name, value] : expected.observed) {
    auto found = ranks.observed.find(name);
    largest.add(found == ranks.observed.end()
                    ? INFINITY
                    : eval::relativeDifference(found->second, value),
                name);
  }
  double difference = 0;
  WholeGradient all = sumGradients(difference);
  // With eight bits one token that takes another expert changes a parameter's
  // gradient as a whole, so that only all of them together say something. Each
  // by itself is compared in a run that rounds nothing.
  if (arithmetic == ElementKind::BF16)
    return largest.add(difference / all.norm(), "the gradient");
  // A parameter that nothing reads lives on no rank.
  llvm::StringSet<> used;
  programs.ranks.walk([&](LoadOp load) { used.insert(load.getParam()); });
  for (auto &[key, value] : whole.all())
    if (used.contains(key.symbol))
      compareSlot(key, value, all);
}

template <class T> FailureOr<StepNumbers> StepRunner<T>::run(int64_t step) {
  eval::StepInputs<T> given = inputs(step);
  // Each step is compared from one state. Adam divides a gradient by its own
  // size, so that rounding grows from step to step in any two programs.
  if (!eval::DomainOf<T>::exact)
    whole = ranks.params;
  auto begin = std::chrono::steady_clock::now();
  FailureOr<eval::RanksResult<T>> got =
      eval::runRanks<T>(programs.ranks, ranks.params, given);
  if (failed(got))
    return failure();
  std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - begin;
  ranks = std::move(*got);
  for (std::string &text : ranks.replicaDifferences)
    replicas.push_back(std::move(text));
  StepOp op = *programs.whole.getOps<StepOp>().begin();
  FailureOr<eval::StepResult<T>> expected =
      eval::runStep<T>(op, *plan, whole, given);
  if (failed(expected))
    return failure();
  compare(*expected);
  StepNumbers numbers;
  numbers.step = step;
  numbers.seconds = elapsed.count();
  auto scalar = [&](const char *name) {
    auto found = ranks.results.find(name);
    return found == ranks.results.end()
               ? NAN
               : eval::DomainOf<T>::toDouble(found->second.floats()[0]);
  };
  numbers.loss = scalar("loss");
  numbers.gradNorm = scalar("grad_norm");
  return numbers;
}

template class mlir::parc::driver::StepRunner<float>;
template class mlir::parc::driver::StepRunner<double>;
template class mlir::parc::driver::StepRunner<::parc::Zp>;
