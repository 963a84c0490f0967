//===- Layouts.cpp - Sizes and costs of layouts ---------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Sizes and costs of layouts on a mesh.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/Layouts.h"
#include "parc/Analysis/ReshardPlanner.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::parc;

//===----------------------------------------------------------------------===//
// AxisSizes
//===----------------------------------------------------------------------===//

namespace mlir::parc {
struct ReshardMemory {
  using Key = std::pair<Type, std::pair<Attribute, Attribute>>;
  DenseMap<Key, double> bytes;
};
} // namespace mlir::parc

/// `dp.1` is a part of `dp`.
static bool isPartOfAxis(StringRef name, StringRef axis) {
  return name.consume_front(axis) && name.starts_with(".");
}

AxisSizes::AxisSizes(ModuleOp module, int64_t microBatches)
    : memory(std::make_shared<ReshardMemory>()) {
  for (MeshOp mesh : module.getOps<MeshOp>()) {
    for (auto [axis, size] :
         llvm::zip(mesh.getAxes().getAsRange<StringAttr>(), mesh.getSizes())) {
      sizes[axis.getValue()] = size;
      order.push_back(axis.getValue().str());
    }
    // An order begins with the axis that changes fastest with the rank; the
    // axes themselves end with it.
    SmallVector<Attribute> fastestFirst(
        llvm::reverse(mesh.getAxes().getValue()));
    if (mesh.getOrder())
      fastestFirst = llvm::to_vector(mesh.getOrder()->getValue());
    int64_t stride = 1;
    for (Attribute axis : fastestFirst) {
      StringRef name = cast<StringAttr>(axis).getValue();
      strides[name] = stride;
      stride *= of(name);
    }
  }
  sizes[kMicroBatchAxis] = microBatches;
  order.push_back(kMicroBatchAxis.str());
}

int64_t AxisSizes::of(StringRef axis) const {
  auto it = sizes.find(axis);
  if (it != sizes.end())
    return it->second;
  int64_t product = 1;
  for (const std::string &name : order)
    if (isPartOfAxis(name, axis))
      product *= sizes.lookup(name);
  return product;
}

int64_t AxisSizes::strideOf(StringRef axis) const {
  auto it = strides.find(axis);
  return it == strides.end() ? 1 : it->second;
}

int64_t AxisSizes::product(ArrayRef<StringAttr> axes) const {
  int64_t result = 1;
  for (StringAttr axis : axes)
    result *= of(axis);
  return result;
}

SmallVector<StringAttr, 2> AxisSizes::partsOf(StringRef axis,
                                              MLIRContext *context) const {
  std::vector<std::pair<unsigned, StringRef>> found;
  for (StringRef name : order) {
    StringRef rest = name;
    unsigned index = 0;
    if (!rest.consume_front(axis) || of(name) == 1)
      continue;
    if (rest.empty() ||
        (rest.consume_front(".") && !rest.getAsInteger(10, index)))
      found.push_back({index, name});
  }
  llvm::sort(found);
  SmallVector<StringAttr, 2> result;
  for (auto [index, name] : found)
    result.push_back(StringAttr::get(context, name));
  return result;
}

bool AxisSizes::has(StringRef axis) const { return sizes.contains(axis); }

//===----------------------------------------------------------------------===//
// Axes and layouts in words
//===----------------------------------------------------------------------===//

StringRef mlir::parc::wholeAxis(StringRef axis) {
  auto [whole, part] = axis.rsplit('.');
  unsigned index = 0;
  return part.getAsInteger(10, index) ? axis : whole;
}

/// Some parts of an axis, by the ranks that they join.
static std::string partsText(StringRef whole, ArrayRef<StringAttr> all,
                             ArrayRef<StringAttr> some,
                             const AxisSizes &sizes) {
  std::string text = whole.str();
  auto groups = [&](ArrayRef<StringAttr> minor) {
    return "groups of " + std::to_string(sizes.product(minor)) + ")";
  };
  if (some == all.take_back(some.size()))
    return text + " (" + groups(some);
  if (some == all.take_front(some.size()))
    return text + " (across " + groups(all.drop_front(some.size()));
  text += " (parts";
  for (StringAttr part : some)
    text += " " + part.getValue().rsplit('.').second.str();
  return text + ")";
}

std::vector<std::string> mlir::parc::readableAxes(ArrayRef<StringAttr> axes,
                                                  const AxisSizes &sizes) {
  std::vector<std::string> result;
  SmallVector<StringRef> seen;
  for (StringAttr axis : axes) {
    StringRef whole = wholeAxis(axis);
    if (llvm::is_contained(seen, whole))
      continue;
    seen.push_back(whole);
    SmallVector<StringAttr, 2> all = sizes.partsOf(whole, axis.getContext());
    SmallVector<StringAttr> some;
    for (StringAttr part : all)
      if (llvm::is_contained(axes, part))
        some.push_back(part);
    result.push_back(some.empty() || some.size() == all.size()
                         ? whole.str()
                         : partsText(whole, all, some, sizes));
  }
  return result;
}

std::string mlir::parc::axesText(ArrayRef<StringAttr> axes,
                                 const AxisSizes &sizes, StringRef separator) {
  return llvm::join(readableAxes(axes, sizes), separator);
}

std::string mlir::parc::layoutText(ShardingAttr sharding,
                                   const AxisSizes &sizes) {
  std::string text;
  auto used = [&](ArrayRef<StringAttr> axes) {
    return llvm::to_vector(llvm::make_filter_range(
        axes, [&](StringAttr axis) { return sizes.of(axis) > 1; }));
  };
  for (auto [index, dim] : llvm::enumerate(sharding.getDims()))
    if (SmallVector<StringAttr> axes = used(dim.getAxes()); !axes.empty())
      text += (text.empty() ? "dimension " : ", dimension ") +
              std::to_string(index) + " split over " + axesText(axes, sizes);
  if (SmallVector<StringAttr> axes = used(sharding.getFlat()); !axes.empty())
    text += (text.empty() ? "a list cut over " : ", a list cut over ") +
            axesText(axes, sizes);
  if (SmallVector<StringAttr> axes = used(sharding.getPartial()); !axes.empty())
    text += (text.empty() ? "a partial " : ", a partial ") +
            stringifyReductionKind(sharding.getKind()).str() + " over " +
            axesText(axes, sizes);
  return text.empty() ? "whole" : text;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

bool mlir::parc::isEven(int64_t size, DimShardingAttr dim,
                        const AxisSizes &axes) {
  return size % (axes.product(dim.getAxes()) * dim.getGrain()) == 0;
}

RankedTensorType mlir::parc::localType(RankedTensorType type,
                                       ShardingAttr sharding,
                                       const AxisSizes &axes) {
  SmallVector<int64_t> shape(type.getShape());
  if (sharding)
    for (auto [index, dim] : llvm::enumerate(sharding.getDims())) {
      if (dim.empty())
        continue;
      shape[index] = isEven(shape[index], dim, axes)
                         ? shape[index] / axes.product(dim.getAxes())
                         : ShapedType::kDynamic;
    }
  if (sharding && sharding.isFlat()) {
    int64_t elements = 1, parts = axes.product(sharding.getFlat());
    for (int64_t size : shape)
      elements = ShapedType::isDynamic(size) || ShapedType::isDynamic(elements)
                     ? ShapedType::kDynamic
                     : elements * size;
    bool even = !ShapedType::isDynamic(elements) && elements % parts == 0;
    shape.assign(1, even ? elements / parts : ShapedType::kDynamic);
  }
  return RankedTensorType::get(shape, type.getElementType());
}

int64_t mlir::parc::elementBytes(RankedTensorType type) {
  Type element = type.getElementType();
  return element.isIntOrFloat() ? (element.getIntOrFloatBitWidth() + 7) / 8 : 8;
}

int64_t mlir::parc::largestPart(RankedTensorType type, ShardingAttr sharding,
                                const AxisSizes &axes) {
  int64_t elements = 1;
  for (auto [index, size] : llvm::enumerate(type.getShape())) {
    int64_t extent = size;
    if (DimShardingAttr dim = sharding.getDims()[index]; !dim.empty()) {
      int64_t grain = dim.getGrain();
      extent =
          grain * llvm::divideCeil(size / grain, axes.product(dim.getAxes()));
    }
    elements *= extent;
  }
  return llvm::divideCeil(elements, axes.product(sharding.getFlat()));
}

double mlir::parc::partBytes(RankedTensorType type, ShardingAttr sharding,
                             const AxisSizes &axes) {
  auto bytes = static_cast<double>(elementBytes(type));
  for (auto [index, size] : llvm::enumerate(type.getShape())) {
    double parts =
        sharding ? axes.product(sharding.getDims()[index].getAxes()) : 1;
    bytes *= size / parts;
  }
  if (sharding)
    bytes /= axes.product(sharding.getFlat());
  return bytes;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// The dimension of `sharding` that `axis` splits, or -1; for a flat axis the
/// rank.
static int64_t splitDim(ShardingAttr sharding, StringAttr axis) {
  for (auto [index, dim] : llvm::enumerate(sharding.getDims()))
    if (llvm::is_contained(dim.getAxes(), axis))
      return index;
  if (llvm::is_contained(sharding.getFlat(), axis))
    return sharding.getDims().size();
  return -1;
}

/// As reshardBytes, axis by axis, where one side is flat.
static double flatReshardBytes(RankedTensorType type, ShardingAttr from,
                               ShardingAttr to, const AxisSizes &axes) {
  if (from == to)
    return 0;
  double total = 0, part = partBytes(type, from, axes);
  for (StringAttr axis : from.getPartial()) {
    double n = axes.of(axis), share = (n - 1) / n * part;
    if (llvm::is_contained(to.getPartial(), axis))
      continue;
    bool scatters = splitDim(to, axis) >= 0;
    total += scatters ? share : 2 * share;
    if (scatters)
      part /= n;
  }
  auto move = [&](StringAttr axis) {
    int64_t before = splitDim(from, axis), after = splitDim(to, axis);
    double n = axes.of(axis);
    if (before == after)
      return;
    // A gather makes the whole of the part n times larger.
    total += after < 0 ? (n - 1) * part : (n - 1) / n * part;
    if (after < 0)
      part *= n;
  };
  for (StringAttr axis : from.getFlat())
    move(axis);
  for (DimShardingAttr dim : from.getDims())
    for (StringAttr axis : dim.getAxes())
      move(axis);
  return total;
}

/// `sharding` with the grains of `other` where both split a dimension.
static ShardingAttr withGrainsOf(ShardingAttr sharding, ShardingAttr other) {
  SmallVector<DimShardingAttr> dims;
  for (auto [dim, like] : llvm::zip(sharding.getDims(), other.getDims()))
    dims.push_back(dim.empty() || like.empty()
                       ? dim
                       : DimShardingAttr::get(dim.getContext(), dim.getAxes(),
                                              like.getGrain()));
  return ShardingAttr::get(sharding.getContext(), dims, sharding.getKind(),
                           sharding.getPartial());
}

double mlir::parc::reshardBytes(RankedTensorType type, ShardingAttr from,
                                ShardingAttr to, const AxisSizes &axes) {
  if (from == to)
    return 0;
  if (from.isFlat() || to.isFlat())
    return flatReshardBytes(type, from, to, axes);
  ReshardMemory::Key key(
      RankedTensorType::get(type.getShape(), type.getElementType()),
      {from, to});
  auto [it, isNew] = axes.reshards().bytes.try_emplace(key, 0.0);
  if (isNew) {
    ReshardPlanner planner(axes);
    const ReshardPlan *plan = planner.plan(type, withGrainsOf(from, to), to);
    // What the search cannot number is as dear as sending the whole.
    it->second =
        plan ? plan->path.bytesSent : partBytes(type, ShardingAttr(), axes);
  }
  return it->second;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string mlir::parc::describe(Operation *op) {
  if (auto name = op->getLoc()->findInstanceOf<NameLoc>())
    return name.getName().str();
  if (auto load = dyn_cast<LoadOp>(op))
    return load.getSlot() == "value"
               ? load.getParam().str()
               : (load.getParam() + "." + load.getSlot()).str();
  for (Value operand : op->getOperands())
    if (auto load = operand.getDefiningOp<LoadOp>())
      return load.getParam().str();
  return op->getName().getStringRef().str();
}
