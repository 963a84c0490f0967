//===- Harness.cpp - A model in one piece and on many ranks ---------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The pipeline of the tests, and the comparison.
///
//===----------------------------------------------------------------------===//

#include "Harness.h"
#include "Model.h"
#include "NN/NNPasses.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "parc/Analysis/RefineMesh.h"
#include "parc/Eval/Compare.h"
#include "parc/InitAll.h"
#include "parc/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

Context::Context() {
  DialectRegistry registry;
  registerAllDialects(registry);
  mlir.appendDialectRegistry(registry);
  mlir.loadAllAvailableDialects();
}

Errors::Errors(MLIRContext &context)
    : handler(&context, [this](Diagnostic &diagnostic) {
        text += diagnostic.str() + "\n";
        return success();
      }) {}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

template <class T> static T randomElement(uint64_t bits, bool positive) {
  if constexpr (eval::DomainOf<T>::exact) {
    return Zp::fromResidue(bits);
  } else {
    double size = 0.25 + static_cast<double>(bits >> 11) * 0x1p-53;
    return static_cast<T>(positive || (bits & 1) ? size : -size);
  }
}

template <class T>
eval::ParamStore<T> mlir::parc::equiv::randomParams(ModuleOp module) {
  eval::ParamStore<T> params;
  for (ParamOp param : module.getOps<ParamOp>())
    for (int64_t layer = 0,
                 layers = static_cast<int64_t>(param.getLayers().value_or(1));
         layer < layers; ++layer)
      for (const char *slot : {"value", "m", "v"}) {
        ArrayRef<int64_t> shape = param.getTensorType().getShape();
        eval::ParamKey key = {param.getSymName().str(), layer, slot};
        uint64_t seed = eval::functionKey(key.text());
        std::vector<T> values;
        for (int64_t i = 0, n = eval::elementCount(shape); i < n; ++i)
          values.push_back(randomElement<T>(
              mix(seed + static_cast<uint64_t>(i)), slot == StringRef("v")));
        params.set(key, eval::Tensor<T>::ofFloats(shape, std::move(values)));
      }
  return params;
}

template <class T>
eval::StepInputs<T> mlir::parc::equiv::stepInputs(ModuleOp module,
                                                  int64_t vocabulary) {
  eval::StepInputs<T> inputs;
  StepOp step = *module.getOps<StepOp>().begin();
  for (auto [attr, argument] :
       llvm::zip(step.getInputs().getAsRange<StringAttr>(),
                 step.getMicro().getArguments())) {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(argument.getType()).getShape();
    std::vector<int64_t> values;
    for (int64_t i = 0, n = eval::elementCount(shape); i < n; ++i)
      values.push_back(
          inputValue(attr.getValue(), i, shape.back(), vocabulary));
    inputs.inputs[attr.str()] =
        eval::Tensor<T>::ofInts(shape, std::move(values));
  }
  inputs.scalars = {{"lr", 0.125},          {"beta1", 0.875},
                    {"beta2", 0.9375},      {"eps", 0x1p-20},
                    {"weight_decay", 0.25}, {"clip", 1.5},
                    {"correction1", 0.125}, {"correction2", 0.0625}};
  return inputs;
}

//===----------------------------------------------------------------------===//
// The unpartitioned module
//===----------------------------------------------------------------------===//

OwningOpRef<ModuleOp> mlir::parc::equiv::prepare(MLIRContext &context,
                                                 const std::string &text,
                                                 std::string &error) {
  Errors errors(context);
  auto module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (module)
    module = prepare(std::move(module));
  if (!module)
    error = errors.text + "in\n" + text;
  return module;
}

OwningOpRef<ModuleOp> mlir::parc::equiv::prepare(OwningOpRef<ModuleOp> module) {
  if (!module)
    return nullptr;
  PassManager manager(module->getContext());
  manager.addPass(createDifferentiate());
  manager.addPass(nn::createAddOptimizer());
  if (failed(manager.run(*module)))
    return nullptr;
  return module;
}

template <class T>
FailureOr<Whole<T>> mlir::parc::equiv::runWhole(ModuleOp module,
                                                int64_t vocabulary) {
  OwningOpRef<ModuleOp> clone(module.clone());
  PassManager manager(module.getContext());
  manager.addPass(createDecomposeComposites());
  manager.addPass(createDecompose());
  if (failed(manager.run(*clone)))
    return failure();
  Whole<T> whole;
  whole.before = randomParams<T>(module);
  whole.after = whole.before;
  whole.inputs = stepInputs<T>(module, vocabulary);
  eval::ModulePlan<T> plan(*clone);
  auto result = eval::runStep<T>(*clone->template getOps<StepOp>().begin(),
                                 plan, whole.after, whole.inputs);
  if (failed(result))
    return failure();
  whole.results = std::move(result->results);
  whole.sums = std::move(result->sums);
  whole.observed = std::move(result->observed);
  return whole;
}

//===----------------------------------------------------------------------===//
// The partitioned module
//===----------------------------------------------------------------------===//

SmallVector<Value> mlir::parc::equiv::valuesOf(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  values.append(op->result_begin(), op->result_end());
  return values;
}

std::vector<Operation *> mlir::parc::equiv::opsOf(ModuleOp module) {
  std::vector<Operation *> ops;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  return ops;
}

OwningOpRef<ModuleOp> mlir::parc::equiv::pinned(ModuleOp module,
                                                const Plan &plan,
                                                ArrayRef<Pin> pins) {
  OwningOpRef<ModuleOp> clone(module.clone());
  std::vector<Operation *> ops = opsOf(*clone);
  OpBuilder builder(module.getContext());
  for (const Pin &pin : pins) {
    Operation *op = ops[pin.op];
    unsigned operands = op->getNumOperands();
    bool isOperand = pin.value < operands;
    Value value = isOperand ? op->getOperand(pin.value)
                            : op->getResult(pin.value - operands);
    if (isOperand)
      builder.setInsertionPoint(op);
    else
      builder.setInsertionPointAfter(op);
    auto constraint =
        ConstraintOp::create(builder, op->getLoc(), value, pin.sharding);
    if (isOperand)
      op->setOperand(pin.value, constraint);
    else
      value.replaceAllUsesExcept(constraint, constraint);
  }
  SmallVector<StringRef> names;
  SmallVector<int64_t> sizes;
  for (const Axis &axis : plan.mesh) {
    names.push_back(axis.name);
    sizes.push_back(axis.size);
  }
  builder.setInsertionPointToStart(clone->getBody());
  MeshOp::create(builder, clone->getLoc(), builder.getStrArrayAttr(names),
                 builder.getDenseI64ArrayAttr(sizes), ArrayAttr());
  if (plan.strategy)
    refineForNestedCuts(*clone, plan.options.contextKind == ContextKind::Ulysses
                                    ? ArrayRef<StringRef>{"tp", "cp"}
                                    : ArrayRef<StringRef>{"tp"});
  return clone;
}

LogicalResult mlir::parc::equiv::shard(ModuleOp module, const Plan &plan) {
  PassManager manager(module.getContext());
  manager.addPass(createDecomposeComposites());
  ShardOptions sharding;
  sharding.strategy = plan.strategy;
  sharding.microBatches = plan.microBatches;
  sharding.zero = plan.zero;
  sharding.sequenceParallel = plan.options.sequenceParallel;
  sharding.contextKind = plan.options.contextKind;
  sharding.expertAxes = plan.options.expertAxes;
  manager.addPass(createShard(sharding));
  VerifyShardedOptions check;
  check.microBatches = plan.microBatches;
  manager.addPass(createVerifySharded(check));
  return manager.run(module);
}

LogicalResult mlir::parc::equiv::stage(ModuleOp module, const Plan &plan) {
  PassManager manager(module.getContext());
  LocalOptions local;
  local.microBatches = plan.microBatches;
  manager.addPass(createLocal(local));
  RingOptions ring;
  ring.contract = plan.contracts;
  manager.addPass(createRing(ring));
  StageOptions stage;
  stage.microBatches = plan.microBatches;
  stage.rule = plan.rule;
  manager.addPass(createStage(stage));
  return manager.run(module);
}

LogicalResult mlir::parc::equiv::decompose(ModuleOp module) {
  PassManager manager(module.getContext());
  manager.addPass(createOverlap());
  manager.addPass(createDecompose());
  return manager.run(module);
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

static void compareTensor(std::string &text, const std::string &name,
                          const eval::Tensor<Zp> *got,
                          const eval::Tensor<Zp> &expected) {
  if (!got) {
    text += name + " is missing; ";
    return;
  }
  if (auto index = eval::firstDifference(*got, expected))
    text += name + " differs first at " +
            (index->empty() ? "scalar" : eval::shapeText(*index)) + "; ";
}

std::string mlir::parc::equiv::compare(ModuleOp module,
                                       const Whole<Zp> &whole) {
  auto got = eval::runRanks<Zp>(module, whole.before, whole.inputs);
  if (failed(got))
    return "the ranks did not run";
  std::string text;
  for (const std::string &difference : got->replicaDifferences)
    text += difference + "; ";
  auto compareAll = [&](const auto &all, const auto &those) {
    for (const auto &[name, value] : those) {
      auto found = all.find(name);
      compareTensor(text, name, found == all.end() ? nullptr : &found->second,
                    value);
    }
  };
  compareAll(got->results, whole.results);
  compareAll(got->observed, whole.observed);
  for (const auto &[key, value] : whole.after.all())
    compareTensor(text, key.text(), got->params.find(key), value);
  return text;
}

#define PARC_INSTANTIATE(T)                                                    \
  template eval::ParamStore<T> mlir::parc::equiv::randomParams<T>(ModuleOp);   \
  template eval::StepInputs<T> mlir::parc::equiv::stepInputs<T>(ModuleOp,      \
                                                                int64_t);      \
  template FailureOr<Whole<T>> mlir::parc::equiv::runWhole<T>(ModuleOp,        \
                                                              int64_t);
PARC_INSTANTIATE(double)
PARC_INSTANTIATE(::parc::Zp)
#undef PARC_INSTANTIATE
