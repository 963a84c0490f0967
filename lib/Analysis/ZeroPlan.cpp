//===- ZeroPlan.cpp - Where optimizer state lies --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The choice of axes and slots.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/ZeroPlan.h"

using namespace mlir;
using namespace mlir::parc;

SmallVector<StringAttr, 2> mlir::parc::dataAxes(ModuleOp module, ParamOp param,
                                                const Propagation &propagation,
                                                const AxisSizes &axes) {
  ShardingAttr own = propagation.layoutOf(param);
  SmallVector<StringAttr, 2> result;
  for (StringRef name : axes.names())
    if (name != kMicroBatchAxis && name != kStageAxis && axes.of(name) > 1 &&
        !own.splits(name) && propagation.isDataAxis(name))
      result.push_back(StringAttr::get(module.getContext(), name));
  return result;
}

/// The parameters that a step accumulates gradients for.
static SmallVector<ParamOp> trained(ModuleOp module) {
  llvm::StringSet<> names;
  module.walk(
      [&](AccumulateOp accumulate) { names.insert(accumulate.getParam()); });
  SmallVector<ParamOp> result;
  for (ParamOp param : module.getOps<ParamOp>())
    if (names.contains(param.getSymName()))
      result.push_back(param);
  return result;
}

/// Each rank gets an element of every value that is split.
static LogicalResult checkSplit(ParamOp param, ArrayRef<StringAttr> flat,
                                const AxisSizes &axes) {
  double bytes =
      partBytes(param.getTensorType(), param.getShardingAttr(), axes);
  auto elements = static_cast<int64_t>(
      bytes / std::max<unsigned>(
                  1, param.getTensorType().getElementTypeBitWidth() / 8));
  int64_t ranks = axes.product(flat);
  if (elements >= ranks)
    return success();
  InFlightDiagnostic diag = emitError(param.getLoc());
  diag << "cannot split parameter '" << param.getSymName() << "': expected at "
       << "least " << ranks << " elements for";
  for (StringAttr axis : flat)
    diag << " " << axis.getValue() << "=" << axes.of(axis);
  diag << ", got " << elements
       << "; ZeRO 2 splits gradients and optimizer state only, and a smaller "
          "ZeRO group splits values into fewer parts";
  return diag;
}

LogicalResult mlir::parc::planZero(ModuleOp module,
                                   const Propagation &propagation,
                                   const AxisSizes &axes,
                                   const ZeroOptions &options) {
  if (options.stage < 1)
    return success();
  Builder builder(module.getContext());
  for (ParamOp param : trained(module)) {
    SmallVector<StringAttr, 2> flat =
        dataAxes(module, param, propagation, axes);
    if (!options.only.empty())
      llvm::erase_if(flat, [&](StringAttr axis) {
        return !llvm::is_contained(options.only, axis.getValue());
      });
    if (flat.empty() || param.getTensorType().getRank() == 0)
      continue;
    ShardingAttr split = param.getShardingAttr().withFlat(flat);
    SmallVector<NamedAttribute> slots;
    slots.push_back(builder.getNamedAttr(kStateLayout, split));
    if (options.stage >= 2)
      slots.push_back(builder.getNamedAttr(kGradientSlot, split));
    if (options.stage >= 3) {
      if (failed(checkSplit(param, flat, axes)))
        return failure();
      slots.push_back(builder.getNamedAttr(kValueSlot, split));
    }
    param.setSlotShardingsAttr(builder.getDictionaryAttr(slots));
  }
  return success();
}
