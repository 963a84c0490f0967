//===- ParcToRT.cpp - From staged programs to runtime calls ---------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The pass: decomposition, clean-up, conversion, clustering.
///
//===----------------------------------------------------------------------===//

#include "Convert.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "parc/Transforms/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_PARCTORT
#include "parc/Conversion/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;
using namespace mlir::parc;

/// Axes and grains of a sharding, as arrays an input.
static std::pair<Attribute, Attribute>
splitOf(OpBuilder &builder, Attribute attribute, int64_t rank) {
  SmallVector<Attribute> axes(rank, builder.getArrayAttr({}));
  SmallVector<int64_t> grains(rank, 1);
  if (auto sharding = dyn_cast_or_null<ShardingAttr>(attribute))
    for (auto [index, dim] : llvm::enumerate(sharding.getDims())) {
      SmallVector<Attribute> names(dim.getAxes().begin(), dim.getAxes().end());
      axes[index] = builder.getArrayAttr(names);
      grains[index] = dim.getGrain();
    }
  return {builder.getArrayAttr(axes), builder.getDenseI64ArrayAttr(grains)};
}

static LogicalResult convertRole(ProgramTables &tables, OpBuilder &builder,
                                 parc::RoleOp role) {
  SmallVector<Attribute> axes, grains;
  auto shardings = role->getAttrOfType<ArrayAttr>("input_shardings");
  for (size_t index = 0; index < role.getInputs().size(); ++index) {
    auto type = dyn_cast<RankedTensorType>(
        role.getForward().getArgument(index).getType());
    if (!type || (shardings && shardings.size() <= index))
      return role.emitOpError()
             << "expected a tensor and a sharding for input " << index;
    auto [names, sizes] = splitOf(
        builder, shardings ? shardings[index] : nullptr, type.getRank());
    axes.push_back(names);
    grains.push_back(sizes);
  }
  auto made = rt::RoleOp::create(
      builder, role.getLoc(), role.getSymNameAttr(), role.getStagesAttr(),
      role.getInputsAttr(), builder.getArrayAttr(axes),
      builder.getArrayAttr(grains), role.getScalarsAttr(),
      role.getResultsAttr(), role.getForwardSendsAttr(),
      role.getBackwardSendsAttr());
  for (auto [from, to] : llvm::zip(role->getRegions(), made->getRegions())) {
    Block &block = to.emplaceBlock();
    RegionConverter converter(tables, OpBuilder::atBlockEnd(&block));
    if (failed(converter.convert(from.front(), block)))
      return failure();
  }
  return success();
}

namespace {
struct ParcToRTPass : public parc::impl::ParcToRTBase<ParcToRTPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    OpPassManager before(ModuleOp::getOperationName());
    before.addPass(createDecompose());
    before.addPass(createCSEPass());
    if (failed(runPipeline(before, module)))
      return signalPassFailure();
    SmallVector<Operation *> old;
    for (Operation &op : *module.getBody())
      old.push_back(&op);
    OpBuilder tablesBuilder = OpBuilder::atBlockEnd(module.getBody());
    ProgramTables tables(module, tablesBuilder);
    if (failed(tables.build()))
      return signalPassFailure();
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    for (auto role : llvm::to_vector(module.getOps<parc::RoleOp>()))
      if (failed(convertRole(tables, builder, role)))
        return signalPassFailure();
    for (Operation *op : llvm::reverse(old))
      op->erase();
    auto roles = module.getOps<rt::RoleOp>();
    if (!roles.empty())
      for (auto group : llvm::to_vector(module.getOps<rt::GroupOp>()))
        group->moveBefore(*roles.begin());
    clusterKernels(module);
    OpPassManager after(ModuleOp::getOperationName());
    after.addPass(createCSEPass());
    if (failed(runPipeline(after, module)))
      signalPassFailure();
  }
};
} // namespace
