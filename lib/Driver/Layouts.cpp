//===- Layouts.cpp - Who holds what ---------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Collection and printing of layouts.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Layouts.h"
#include "parc/Analysis/Layouts.h"
#include "parc/Pipeline/Part.h"

#include "Parc/Parc.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"

#include <map>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

int64_t DimLayout::smallest() const {
  return minPartSize(units(), parts) * grain;
}
int64_t DimLayout::largest() const {
  return maxPartSize(units(), parts) * grain;
}

std::string ValueLayout::shapeText() const {
  if (dims.empty())
    return "scalar";
  std::string text;
  for (const DimLayout &dim : dims)
    text += (text.empty() ? "" : "x") + std::to_string(dim.size);
  return text;
}

std::string ValueLayout::axesText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(dims, os, [&](const DimLayout &dim) {
    os << (dim.axes.empty() ? std::string("-") : llvm::join(dim.axes, "+"));
  });
  if (!partial.empty())
    os << (dims.empty() ? "" : "; ") << "partial " << llvm::join(partial, "+");
  if (!flat.empty())
    os << "; flat " << llvm::join(flat, "+");
  return text.empty() ? "-" : text;
}

std::string ValueLayout::localText() const {
  if (dims.empty())
    return "scalar";
  std::string text;
  for (const DimLayout &dim : dims) {
    text += text.empty() ? "" : "x";
    if (!dim.even())
      text += std::to_string(dim.smallest()) + "..";
    text += std::to_string(dim.largest());
  }
  return text;
}

const ValueLayout *LayoutReport::find(StringRef param) const {
  for (const ValueLayout &layout : params)
    if (layout.name == param)
      return &layout;
  return nullptr;
}

std::string mlir::parc::driver::locationName(Location location) {
  std::string name;
  location->walk([&](Location part) {
    auto named = dyn_cast<NameLoc>(part);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
  return printable(name);
}

std::string mlir::parc::driver::locationText(Location location) {
  std::string text;
  location->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    text = printable(file.getFilename()) + ":" +
           std::to_string(file.getLine()) + ":" +
           std::to_string(file.getColumn());
    return WalkResult::interrupt();
  });
  return text;
}

static std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Axes of more than one rank.
static SmallVector<StringAttr> usedAxes(ArrayRef<StringAttr> list,
                                        const AxisSizes &axes) {
  SmallVector<StringAttr> used(list);
  llvm::erase_if(used, [&](StringAttr axis) { return axes.of(axis) < 2; });
  return used;
}

static ValueLayout layoutOf(RankedTensorType type, ShardingAttr sharding,
                            const AxisSizes &axes) {
  ValueLayout layout;
  layout.dtype = typeText(type.getElementType());
  layout.elementBytes = type.getElementType().isIntOrFloat()
                            ? llvm::divideCeil(type.getElementTypeBitWidth(), 8)
                            : 8;
  for (auto [index, size] : llvm::enumerate(type.getShape())) {
    DimLayout dim;
    dim.size = size;
    if (sharding) {
      DimShardingAttr split = sharding.getDims()[index];
      dim.grain = split.getGrain();
      dim.parts = axes.product(split.getAxes());
      dim.axes = readableAxes(usedAxes(split.getAxes(), axes), axes);
    }
    layout.dims.push_back(std::move(dim));
  }
  if (sharding)
    layout.partial = readableAxes(usedAxes(sharding.getPartial(), axes), axes);
  if (sharding) {
    layout.flat = readableAxes(usedAxes(sharding.getFlat(), axes), axes);
    layout.flatParts = axes.product(sharding.getFlat());
  }
  return layout;
}

LayoutReport mlir::parc::driver::collectLayouts(ModuleOp module,
                                                int64_t microBatches) {
  AxisSizes axes(module, microBatches);
  LayoutReport report;
  for (ParamOp param : module.getOps<ParamOp>()) {
    ValueLayout layout =
        layoutOf(param.getTensorType(), param.getShardingAttr(), axes);
    layout.name = param.getSymName().str();
    layout.layers = static_cast<int64_t>(param.getLayers().value_or(0));
    layout.location = locationText(param.getLoc());
    for (StringRef slot : {kValueSlot, kGradientSlot, kStateLayout}) {
      SlotLayout row{slot.str(), typeText(param.getSlotElementType(slot)), {}};
      if (ShardingAttr sharding = param.getSlotSharding(slot))
        row.flat = readableAxes(usedAxes(sharding.getFlat(), axes), axes);
      layout.slots.push_back(std::move(row));
    }
    report.params.push_back(std::move(layout));
  }
  module.walk([&](ReshardOp op) {
    ReshardLayout row;
    auto from = cast<RankedTensorType>(op.getInput().getType());
    auto to = cast<RankedTensorType>(op.getResult().getType());
    row.from = layoutOf(from, getSharding(from), axes);
    row.to = layoutOf(to, getSharding(to), axes);
    row.from.name = locationName(op.getLoc());
    // What an update reads has the name of its parameter.
    if (row.from.name.empty())
      row.from.name = op.getWhyAttr().getValue().str();
    row.to.name = row.from.name;
    row.from.location = row.to.location = locationText(op.getLoc());
    row.why = op.getWhy().str();
    if (row.from.axesText() != row.to.axesText())
      report.reshards.push_back(std::move(row));
  });
  return report;
}

/// Slots that are kept alike, with the names of their parameters.
static void
printSlots(ArrayRef<ValueLayout> params,
           function_ref<void(StringRef, StringRef, StringRef, StringRef)> row) {
  using Key = std::tuple<std::string, std::string, std::string>;
  llvm::MapVector<Key, std::vector<std::string>, std::map<Key, unsigned>>
      groups;
  for (const ValueLayout &param : params)
    for (const SlotLayout &slot : param.slots)
      groups[Key(slot.name, slot.dtype, llvm::join(slot.flat, "+"))].push_back(
          param.name);
  row("slot", "kept in", "pieces over", "parameters");
  for (StringRef name : {kValueSlot, kGradientSlot, kStateLayout})
    for (const auto &[key, names] : groups) {
      const auto &[slot, dtype, flat] = key;
      if (slot != name)
        continue;
      std::string which = names.size() == params.size() ? "all" : "";
      if (which.empty())
        which = llvm::join(ArrayRef(names).take_front(4), ", ");
      if (names.size() > 4 && names.size() < params.size())
        which += " and " + std::to_string(names.size() - 4) + " more";
      row(slot, dtype, flat.empty() ? "-" : flat, which);
    }
}

void mlir::parc::driver::printLayouts(const LayoutReport &report,
                                      raw_ostream &os) {
  auto columns = [&](StringRef a, StringRef b, StringRef c, StringRef d) {
    std::string line;
    llvm::raw_string_ostream(line)
        << llvm::left_justify(a, 22) << ' ' << llvm::left_justify(b, 22) << ' '
        << llvm::left_justify(c, 22) << ' ' << d;
    os << StringRef(line).rtrim() << '\n';
  };
  columns("parameter", "shape", "axes", "a rank holds");
  for (const ValueLayout &param : report.params)
    columns(param.name,
            (param.layers ? std::to_string(param.layers) + " x " : "") +
                param.shapeText() + " " + param.dtype,
            param.axesText(), param.localText());
  os << '\n';
  printSlots(report.params, columns);
  if (report.reshards.empty())
    return;
  os << '\n';
  columns("value", "shape", "from", "to");
  for (const ReshardLayout &row : report.reshards) {
    columns(row.from.name, row.from.shapeText() + " " + row.from.dtype,
            row.from.axesText(), row.to.axesText());
    os << "  " << shortened(printable(row.why), 70);
    if (!row.from.location.empty())
      os << "  " << row.from.location;
    os << '\n';
  }
}

static llvm::json::Value toJSON(const ValueLayout &layout) {
  llvm::json::Array dims;
  for (const DimLayout &dim : layout.dims)
    dims.push_back(llvm::json::Object{
        {"size", dim.size},
        {"axes", llvm::json::Array(dim.axes)},
        {"grain", dim.grain},
        {"local", llvm::json::Array{dim.smallest(), dim.largest()}}});
  llvm::json::Object object{{"name", layout.name},
                            {"dtype", layout.dtype},
                            {"dims", std::move(dims)},
                            {"partial", llvm::json::Array(layout.partial)},
                            {"flat", llvm::json::Array(layout.flat)},
                            {"location", layout.location}};
  if (layout.layers)
    object["layers"] = layout.layers;
  if (!layout.slots.empty()) {
    llvm::json::Object slots;
    for (const SlotLayout &slot : layout.slots)
      slots[slot.name] = llvm::json::Object{
          {"dtype", slot.dtype}, {"flat", llvm::json::Array(slot.flat)}};
    object["slots"] = std::move(slots);
  }
  return object;
}

llvm::json::Value
mlir::parc::driver::layoutsToJSON(const LayoutReport &report) {
  llvm::json::Array params, reshards;
  for (const ValueLayout &param : report.params)
    params.push_back(toJSON(param));
  for (const ReshardLayout &row : report.reshards)
    reshards.push_back(llvm::json::Object{{"from", toJSON(row.from)},
                                          {"to", toJSON(row.to)},
                                          {"why", printable(row.why)}});
  return llvm::json::Object{{"parameters", std::move(params)},
                            {"reshards", std::move(reshards)}};
}

/// 7 on 2 parts as "4+3", many parts as "4 x 3, 3 x 5".
static std::string partsText(const DimLayout &dim) {
  int64_t large = dim.units() % dim.parts;
  if (dim.parts <= 4) {
    std::string text;
    for (int64_t part = 0; part < dim.parts; ++part)
      text +=
          (text.empty() ? "" : "+") +
          std::to_string(partSize(dim.units(), dim.parts, part) * dim.grain);
    return text;
  }
  return std::to_string(large) + " of " + std::to_string(dim.largest()) + ", " +
         std::to_string(dim.parts - large) + " of " +
         std::to_string(dim.smallest());
}

std::vector<std::string>
mlir::parc::driver::unevenTexts(const LayoutReport &report) {
  std::vector<std::string> texts;
  llvm::StringSet<> seen;
  for (const ValueLayout &param : report.params)
    for (const DimLayout &dim : param.dims) {
      if (dim.even())
        continue;
      // Parameters that share a dimension are split alike; one is enough.
      std::string key = std::to_string(dim.size) + "/" +
                        std::to_string(dim.grain) + llvm::join(dim.axes, "+");
      if (seen.insert(key).second)
        texts.push_back(param.name + " " + std::to_string(dim.size) + " on " +
                        llvm::join(dim.axes, "+") + ": " + partsText(dim));
    }
  return texts;
}

void mlir::parc::driver::warnUneven(const LayoutReport &report,
                                    Reporter &reporter) {
  llvm::StringSet<> seen;
  for (const ValueLayout &param : report.params)
    for (const DimLayout &dim : param.dims) {
      if (dim.even() || dim.grain == 1)
        continue;
      std::string key = std::to_string(dim.units()) + llvm::join(dim.axes, "+");
      if (!seen.insert(key).second)
        continue;
      double more = 100.0 * (static_cast<double>(dim.largest() * dim.parts) /
                                 static_cast<double>(dim.size) -
                             1);
      std::string percent;
      llvm::raw_string_ostream(percent) << llvm::format("%.1f %%", more);
      reporter.warning(
          Place(),
          "uneven heads: '" + param.name + "' has " + Twine(dim.units()) +
              " units of " + Twine(dim.grain) + " on " +
              llvm::join(dim.axes, "+") + "=" + Twine(dim.parts) +
              "; the fullest rank has " + percent + " more work than the mean",
          "uneven");
    }
}
