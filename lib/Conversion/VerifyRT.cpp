//===- VerifyRT.cpp - Closes the runtime phase ----------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Checks that only what can be printed as C++ is left.
///
//===----------------------------------------------------------------------===//

#include "parc/Conversion/Passes.h"

namespace mlir::parc {
#define GEN_PASS_DEF_VERIFYRT
#include "parc/Conversion/Passes.h.inc"
} // namespace mlir::parc

using namespace mlir;

namespace {
struct VerifyRTPass : public parc::impl::VerifyRTBase<VerifyRTPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkTables(module)))
      return signalPassFailure();
    bool ok = true;
    module.walk([&](Operation *op) { ok &= succeeded(checkOp(module, op)); });
    if (!ok)
      signalPassFailure();
  }

  static LogicalResult checkTables(ModuleOp module);
  static LogicalResult checkOp(ModuleOp module, Operation *op);
};
} // namespace

LogicalResult VerifyRTPass::checkTables(ModuleOp module) {
  auto meshes = llvm::to_vector(module.getOps<rt::MeshOp>());
  auto schedules = llvm::to_vector(module.getOps<rt::ScheduleOp>());
  if (meshes.size() != 1 || schedules.size() != 1)
    return module.emitError()
           << "after parc-to-rt: expected one rt.mesh and one rt.schedule, got "
           << meshes.size() << " and " << schedules.size();
  SmallVector<int64_t> seen(schedules[0].getLoops().size(), 0);
  for (auto role : module.getOps<rt::RoleOp>())
    for (int64_t stage : role.getStages()) {
      if (stage < 0 || stage >= static_cast<int64_t>(seen.size()))
        return role.emitOpError()
               << "has stage " << stage << " of " << seen.size();
      ++seen[stage];
    }
  for (auto [stage, count] : llvm::enumerate(seen))
    if (count != 1)
      return module.emitError()
             << "expected one role for stage " << stage << ", got " << count;
  return success();
}

LogicalResult VerifyRTPass::checkOp(ModuleOp module, Operation *op) {
  for (StringRef name : {"param", "group"})
    if (auto symbol = op->getAttrOfType<FlatSymbolRefAttr>(name))
      if (!module.lookupSymbol(symbol.getAttr()))
        return op->emitOpError()
               << "names " << symbol << ", which is not there";
  if (isa<ModuleOp>(op) || isa<rt::RTDialect>(op->getDialect()))
    return success();
  bool scalar = isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
  bool onTensors =
      llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>);
  if (scalar && (!onTensors || isa<arith::ConstantOp>(op)))
    return success();
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp,
          tensor::DimOp>(op))
    return success();
  return op->emitOpError() << "is left after parc-to-rt";
}
