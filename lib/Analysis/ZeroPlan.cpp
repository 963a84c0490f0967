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

/// The elements of a rank's part of a parameter, before ZeRO splits it.
static int64_t localElements(ParamOp param, const AxisSizes &axes) {
  RankedTensorType type = param.getTensorType();
  double bytes = partBytes(type, param.getShardingAttr(), axes);
  unsigned size = std::max<unsigned>(1, type.getElementTypeBitWidth() / 8);
  return static_cast<int64_t>(bytes / size);
}

/// Says which parameters stay whole where ZeRO 3 would split values, because
/// some ranks would get no element.
static void warnWhole(ArrayRef<ParamOp> whole, ArrayRef<StringAttr> flat,
                      const AxisSizes &axes) {
  ParamOp first = whole.front();
  InFlightDiagnostic diag = emitWarning(first.getLoc());
  diag << "fewer elements than the " << axes.product(flat) << " ranks of";
  for (StringAttr axis : flat)
    diag << " " << axis.getValue() << "=" << axes.of(axis);
  diag << ", so ZeRO 3 leaves these parameters whole (not their gradients and "
          "optimizer state): ";
  llvm::interleaveComma(whole, diag, [&](ParamOp param) {
    diag << "'" << param.getSymName() << "' with "
         << localElements(param, axes);
  });
  diag << "; a smaller ZeRO group would split them";
}

void mlir::parc::planZero(ModuleOp module, const Propagation &propagation,
                          const AxisSizes &axes, const ZeroOptions &options) {
  if (options.stage < 1)
    return;
  Builder builder(module.getContext());
  SmallVector<ParamOp> whole;
  SmallVector<StringAttr, 2> wholeOn;
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
      if (localElements(param, axes) >= axes.product(flat)) {
        slots.push_back(builder.getNamedAttr(kValueSlot, split));
      } else {
        whole.push_back(param);
        if (axes.product(flat) > axes.product(wholeOn))
          wholeOn = flat;
      }
    }
    param.setSlotShardingsAttr(builder.getDictionaryAttr(slots));
  }
  if (!whole.empty())
    warnWhole(whole, wholeOn, axes);
}
