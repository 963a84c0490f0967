//===- Annotate.cpp - Mesh and rules of a plan ----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Setting the mesh, matching rules to parameters.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Annotate.h"

#include "Parc/Parc.h"
#include "mlir/IR/Builders.h"
#include "parc/Analysis/RefineMesh.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

/// The axes along which `ranks` neighbours that share the data lie, those of cp
/// first, then of dp; they are split off where they are a part. The declaration
/// was checked: the ranks divide.
static SmallVector<std::string>
neighbours(ModuleOp module, const Declaration &declaration, int64_t ranks) {
  int64_t fromContext = std::min(ranks, declaration.size("cp"));
  int64_t fromData = ranks / fromContext;
  (void)splitAxis(module, "cp", fromContext);
  (void)splitAxis(module, "dp", fromData);
  SmallVector<std::string> axes = innerParts(module, "dp", fromData);
  axes.append(innerParts(module, "cp", fromContext));
  return axes;
}

void mlir::parc::driver::setMesh(ModuleOp module,
                                 const Declaration &declaration) {
  for (MeshOp op : llvm::make_early_inc_range(module.getOps<MeshOp>()))
    op.erase();
  auto builder = OpBuilder::atBlockBegin(module.getBody());
  const Mesh &mesh = declaration.mesh.value;
  SmallVector<StringRef> names, order;
  SmallVector<int64_t> sizes;
  for (const MeshAxis &axis : mesh.axes()) {
    names.push_back(axis.name);
    sizes.push_back(axis.size);
  }
  RankGrid grid = declaration.grid();
  for (size_t axis : grid.order())
    order.push_back(mesh.axes()[axis].name);
  MeshOp::create(builder, module.getLoc(), builder.getStrArrayAttr(names),
                 builder.getDenseI64ArrayAttr(sizes),
                 builder.getStrArrayAttr(order));
  if (declaration.zero.value == 0)
    return;
  (void)neighbours(module, declaration, declaration.zeroGroup.value);
}

std::vector<std::string>
mlir::parc::driver::zeroAxes(ModuleOp module, const Declaration &declaration) {
  int64_t group = declaration.zeroGroup.value;
  if (group == declaration.dataRanks())
    return {};
  SmallVector<std::string> axes = neighbours(module, declaration, group);
  return {axes.begin(), axes.end()};
}

StrategyOptions
mlir::parc::driver::planStrategy(ModuleOp module,
                                 const Declaration &declaration) {
  StrategyOptions options;
  options.sequenceParallel = declaration.sp.value;
  options.contextKind =
      llvm::StringSwitch<ContextKind>(declaration.contextKind.value)
          .Case("ring", ContextKind::Ring)
          .Case("ulysses", ContextKind::Ulysses)
          .Case("all-gather", ContextKind::AllGather)
          .Default(ContextKind::Auto);
  SmallVector<StringRef> cut = {"tp"};
  if (options.contextKind == ContextKind::Ulysses ||
      options.contextKind == ContextKind::Auto)
    cut.push_back("cp");
  (void)neighbours(module, declaration, declaration.ep.value);
  refineForNestedCuts(module, cut);
  // The names after all cuts.
  if (declaration.ep.value > 1)
    options.expertAxes = neighbours(module, declaration, declaration.ep.value);
  return options;
}

namespace {

/// Applies the rules of one plan.
class RuleApplier {
public:
  RuleApplier(ModuleOp module, const Declaration &declaration,
              Reporter &reporter)
      : module(module), declaration(declaration), reporter(reporter) {}

  LogicalResult run();

private:
  LogicalResult apply(const ShardingRule &rule);
  LogicalResult applyTo(ParamOp param, const ShardingRule &rule);
  LogicalResult checkAxes(const ShardingRule &rule);
  LogicalResult unknown(const ShardingRule &rule);
  LogicalResult fail(const ShardingRule &rule, const Twine &message) {
    reporter.error(rule.place, message, "rule");
    return failure();
  }

  ModuleOp module;
  const Declaration &declaration;
  Reporter &reporter;
  /// The rule that set each parameter's wish.
  std::map<std::string, const ShardingRule *> setBy;
};

} // namespace

static StringRef checkpointName(ParamOp param) {
  if (auto checkpoint = param.getCheckpoint())
    return checkpoint->getName();
  return "";
}

/// True where `pattern` names the parameter: its symbol, or a glob on its
/// checkpoint name, where the layer's number is `{}`.
static bool matches(StringRef pattern, ParamOp param) {
  if (pattern == param.getSymName())
    return true;
  auto glob = llvm::GlobPattern::create(pattern);
  if (!glob) {
    llvm::consumeError(glob.takeError());
    return false;
  }
  return glob->match(param.getSymName()) ||
         (!checkpointName(param).empty() && glob->match(checkpointName(param)));
}

LogicalResult RuleApplier::unknown(const ShardingRule &rule) {
  SmallVector<StringRef> names;
  for (ParamOp param : module.getOps<ParamOp>())
    names.push_back(param.getSymName());
  for (ParamOp param : module.getOps<ParamOp>())
    if (!checkpointName(param).empty())
      names.push_back(checkpointName(param));
  (void)fail(rule, "no parameter is called " + quoted(rule.pattern));
  StringRef near = nearestName(rule.pattern, names);
  if (!near.empty())
    reporter.help("did you mean '" + near + "'?");
  else
    reporter.help("'parc show layouts' lists the parameters");
  return failure();
}

LogicalResult RuleApplier::checkAxes(const ShardingRule &rule) {
  const Mesh &mesh = declaration.mesh.value;
  std::vector<std::string> seen;
  for (const auto &dim : rule.dims)
    for (const std::string &axis : dim) {
      if (llvm::is_contained(seen, axis))
        return fail(rule, "axis " + quoted(axis) + " is used twice");
      seen.push_back(axis);
      if (axis == kStageAxis) {
        (void)fail(rule, "axis 'pp' holds stages and splits no dimension");
        reporter.help("layers are cut over pp by themselves");
        return failure();
      }
      if (mesh.indexOf(axis))
        continue;
      (void)fail(rule, "unknown mesh axis " + quoted(axis));
      reporter.help("the mesh is " + mesh.str());
      return failure();
    }
  return success();
}

LogicalResult RuleApplier::applyTo(ParamOp param, const ShardingRule &rule) {
  MLIRContext *context = module.getContext();
  int64_t rank = param.getTensorType().getRank();
  if (static_cast<int64_t>(rule.dims.size()) != rank)
    return fail(rule, "expected " + Twine(rank) + " dimensions for '" +
                          param.getSymName() + "', got " +
                          Twine(rule.dims.size()));
  SmallVector<DimShardingAttr> dims;
  AxisSizes sizes(module, 1);
  for (const auto &axes : rule.dims) {
    SmallVector<StringAttr> names;
    for (const std::string &axis : axes)
      names.append(sizes.partsOf(axis, context));
    dims.push_back(DimShardingAttr::get(context, names, 1));
  }
  auto wish = ShardingAttr::get(context, dims, ReductionKind::Sum, {});
  std::optional<ShardingAttr> before = param.getSharding();
  if (before && *before != wish) {
    (void)fail(rule, "'" + param.getSymName() +
                         "' is already to be laid out otherwise");
    auto found = setBy.find(param.getSymName().str());
    if (found != setBy.end())
      reporter.note(found->second->place, "by this rule");
    else if (auto where = param.getLoc()->findInstanceOf<FileLineColLoc>())
      reporter.note(reporter.placeIn(where.getFilename(), where.getLine(),
                                     where.getColumn()),
                    "by the model");
    reporter.help("remove one of the two");
    return failure();
  }
  param.setShardingAttr(wish);
  std::string where = "the rule " + quoted(rule.pattern) + " at " +
                      printable(llvm::sys::path::filename(rule.place.file)) +
                      ":" + std::to_string(rule.place.line);
  param->setAttr(kRuleAttr, StringAttr::get(context, where));
  setBy[param.getSymName().str()] = &rule;
  return success();
}

LogicalResult RuleApplier::apply(const ShardingRule &rule) {
  if (failed(checkAxes(rule)))
    return failure();
  bool any = false;
  for (ParamOp param : module.getOps<ParamOp>()) {
    if (!matches(rule.pattern, param))
      continue;
    any = true;
    if (failed(applyTo(param, rule)))
      return failure();
  }
  return any ? success() : unknown(rule);
}

LogicalResult RuleApplier::run() {
  for (const ShardingRule &rule : declaration.rules)
    if (failed(apply(rule)))
      return failure();
  return success();
}

LogicalResult mlir::parc::driver::applyRules(ModuleOp module,
                                             const Declaration &declaration,
                                             Reporter &reporter) {
  return RuleApplier(module, declaration, reporter).run();
}
