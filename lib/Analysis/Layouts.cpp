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
  return it == sizes.end() ? 1 : it->second;
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
  return RankedTensorType::get(shape, type.getElementType());
}

int64_t mlir::parc::elementBytes(RankedTensorType type) {
  Type element = type.getElementType();
  return element.isIntOrFloat() ? (element.getIntOrFloatBitWidth() + 7) / 8 : 8;
}

double mlir::parc::partBytes(RankedTensorType type, ShardingAttr sharding,
                             const AxisSizes &axes) {
  auto bytes = static_cast<double>(elementBytes(type));
  for (auto [index, size] : llvm::enumerate(type.getShape())) {
    double parts =
        sharding ? axes.product(sharding.getDims()[index].getAxes()) : 1;
    bytes *= size / parts;
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// The dimension of `sharding` that `axis` splits, or -1.
static int64_t splitDim(ShardingAttr sharding, StringAttr axis) {
  for (auto [index, dim] : llvm::enumerate(sharding.getDims()))
    if (llvm::is_contained(dim.getAxes(), axis))
      return index;
  return -1;
}

double mlir::parc::reshardBytes(RankedTensorType type, ShardingAttr from,
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
  for (DimShardingAttr dim : from.getDims())
    for (StringAttr axis : dim.getAxes()) {
      int64_t before = splitDim(from, axis), after = splitDim(to, axis);
      double n = axes.of(axis);
      if (before == after)
        continue;
      // A gather makes the whole of the part n times larger.
      total += after < 0 ? (n - 1) * part : (n - 1) / n * part;
      if (after < 0)
        part *= n;
    }
  return total;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string mlir::parc::describe(Operation *op) {
  if (auto name = op->getLoc()->findInstanceOf<NameLoc>())
    return name.getName().str();
  for (Value operand : op->getOperands())
    if (auto load = operand.getDefiningOp<LoadOp>())
      return load.getParam().str();
  return op->getName().getStringRef().str();
}
