//===- GradientCheckTest.cpp - Gradients against differences --------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The gradient of every differentiable op, in double precision, against the
/// central difference of the loss along a direction in each parameter. What
/// comes out of an op is multiplied by random weights, so that this is
/// <dy, J v> against <J^T dy, v>.
///
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "Model.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "parc/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

namespace {

using Store = eval::ParamStore<double>;
using Tensor = eval::Tensor<double>;

/// Runs the step of one model from given parameters.
class Loss {
public:
  Loss(ModuleOp prepared, int64_t vocabulary) : module(prepared.clone()) {
    PassManager manager(prepared.getContext());
    manager.addPass(createDecomposeComposites());
    manager.addPass(createDecompose());
    EXPECT_TRUE(succeeded(manager.run(*module)));
    plan = std::make_unique<eval::ModulePlan<double>>(*module);
    inputs = stepInputs<double>(*module, vocabulary);
  }

  /// The loss summed over tokens; `params` gets the gradients. NaN where the
  /// model cannot be evaluated.
  double at(Store &params) {
    auto result = eval::runStep<double>(*module->getOps<StepOp>().begin(),
                                        *plan, params, inputs);
    return failed(result) ? NAN : result->sums.front().asFloat();
  }

private:
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<eval::ModulePlan<double>> plan;
  eval::StepInputs<double> inputs;
};

} // namespace

/// value + step * direction, in one parameter.
static Store moved(const Store &params, const eval::ParamKey &key,
                   const Tensor &direction, double step) {
  Store result = params;
  Tensor value = *params.find(key);
  double *data = value.mutableFloats();
  for (int64_t i = 0; i < value.size(); ++i)
    data[i] += step * direction.floats()[i];
  result.set(key, value);
  return result;
}

/// Values made positive, for functions that want it.
static Store positive(const Store &params) {
  Store result;
  for (const auto &[key, tensor] : params.all()) {
    Tensor value = tensor;
    double *data = value.mutableFloats();
    for (int64_t i = 0; i < value.size(); ++i)
      data[i] = std::abs(data[i]);
    result.set(key, value);
  }
  return result;
}

/// Checks every parameter's gradient; false where the model has no number.
static bool checkGradients(ModuleOp module, const std::string &name,
                           int64_t vocabulary) {
  Loss loss(module, vocabulary);
  Store start = randomParams<double>(module);
  Store base = start;
  if (std::isnan(loss.at(base))) {
    base = start = positive(start);
    if (std::isnan(loss.at(base)))
      return false;
  }
  for (const auto &[key, value] : start.all()) {
    if (key.slot != "value")
      continue;
    // The first moments are as random as any direction.
    const Tensor &direction = *start.find({key.symbol, key.layer, "m"});
    const Tensor *gradient = base.find({key.symbol, key.layer, "grad"});
    double along = 0, gradientNorm = 0, directionNorm = 0;
    for (int64_t i = 0; i < value.size(); ++i) {
      double g = gradient ? gradient->floats()[i] : 0;
      double v = direction.floats()[i];
      along += g * v;
      gradientNorm += g * g;
      directionNorm += v * v;
    }
    constexpr double step = 1e-5;
    Store ahead = moved(start, key, direction, step);
    Store behind = moved(start, key, direction, -step);
    double difference = (loss.at(ahead) - loss.at(behind)) / (2 * step);
    double scale = std::sqrt(gradientNorm * directionNorm);
    EXPECT_NEAR(along, difference, 1e-6 * std::max(scale, 1e-2))
        << name << ": gradient of @" << key.symbol;
    EXPECT_TRUE(std::isfinite(along)) << name << ": @" << key.symbol;
  }
  return true;
}

/// The ops of the text's step: those that are differentiated.
static void collect(MLIRContext &context, const std::string &text,
                    llvm::StringSet<> &seen) {
  auto module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  module->walk(
      [&](Operation *op) { seen.insert(op->getName().getStringRef()); });
}

TEST(GradientCheck, EveryDifferentiableOp) {
  Context context;
  llvm::StringSet<> seen;
  unsigned checked = 0;
  std::vector<Model> all = models();
  for (Model &model : elementwiseModels(context.mlir))
    all.push_back(std::move(model));
  for (const Model &model : all)
    for (const Sizes *sizes : {&evenSizes(), &unevenSizes()}) {
      Errors errors(context.mlir);
      std::string error, text = moduleText(model, *sizes);
      auto module = prepare(context.mlir, text, error);
      if (!module) {
        // The one reason not to have a gradient is to have no rule.
        EXPECT_NE(error.find("has no gradient rule"), std::string::npos)
            << error;
        continue;
      }
      if (!checkGradients(*module, model.name, sizes->at('V'))) {
        // What the evaluator does not run is no op of a model.
        if (errors.text.find("does not know") == std::string::npos)
          ADD_FAILURE() << model.name << " gives no number: " << errors.text;
        continue;
      }
      collect(context.mlir, text, seen);
      ++checked;
    }
  llvm::outs() << checked
               << " models have the gradient that differences give\n";
  for (RegisteredOperationName op : context.mlir.getRegisteredOperations()) {
    StringRef dialect = op.getDialectNamespace();
    if (!op.hasInterface<DifferentiableOpInterface>() || dialect == "linalg" ||
        dialect == "parc")
      continue;
    EXPECT_TRUE(seen.contains(op.getStringRef()))
        << "no model checks the gradient of " << op.getStringRef().str();
  }
}

TEST(GradientCheck, Stack) {
  Context context;
  std::string error;
  auto module = prepare(context.mlir, stackModelText(), error);
  ASSERT_TRUE(module) << error;
  EXPECT_TRUE(checkGradients(*module, "stack", 11));
}
