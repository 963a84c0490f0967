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

/// `dp.1` is a part of `dp`.
static bool isPartOfAxis(StringRef name, StringRef axis) {
  return name.consume_front(axis) && name.starts_with(".");
}

void mlir::parc::splitAxis(MeshOp mesh, StringRef axis, int64_t inner) {
  int64_t size = mesh.sizeOf(axis);
  if (!mesh.hasAxis(axis) || inner == 1 || inner == size)
    return;
  assert(size % inner == 0 && "parts of an axis are equal");
  std::string major = (axis + ".0").str(), minor = (axis + ".1").str();
  SmallVector<StringRef> names, order;
  SmallVector<int64_t> sizes;
  for (auto [name, count] :
       llvm::zip(mesh.getAxes().getAsRange<StringAttr>(), mesh.getSizes())) {
    if (name.getValue() != axis) {
      names.push_back(name.getValue());
      sizes.push_back(count);
      continue;
    }
    names.append({major, minor});
    sizes.append({size / inner, inner});
  }
  Builder builder(mesh.getContext());
  if (mesh.getOrder()) {
    for (auto name : mesh.getOrder()->getAsRange<StringAttr>()) {
      if (name == axis)
        order.append({minor, major});
      else
        order.push_back(name.getValue());
    }
    mesh.setOrderAttr(builder.getStrArrayAttr(order));
  }
  mesh.setAxesAttr(builder.getStrArrayAttr(names));
  mesh.setSizes(sizes);
}

SmallVector<StringRef, 2> mlir::parc::partsOfAxis(MeshOp mesh, StringRef axis) {
  SmallVector<StringRef, 2> parts;
  for (auto name : mesh.getAxes().getAsRange<StringAttr>())
    if (name == axis || isPartOfAxis(name.getValue(), axis))
      parts.push_back(name.getValue());
  return parts;
}

AxisSizes::AxisSizes(ModuleOp module, int64_t microBatches) {
  for (MeshOp mesh : module.getOps<MeshOp>())
    for (auto [axis, size] :
         llvm::zip(mesh.getAxes().getAsRange<StringAttr>(), mesh.getSizes())) {
      sizes[axis.getValue()] = size;
      order.push_back(axis.getValue().str());
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

int64_t AxisSizes::product(ArrayRef<StringAttr> axes) const {
  int64_t result = 1;
  for (StringAttr axis : axes)
    result *= of(axis);
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

static double elementBytes(RankedTensorType type) {
  Type element = type.getElementType();
  return element.isIntOrFloat() ? (element.getIntOrFloatBitWidth() + 7) / 8 : 8;
}

double mlir::parc::partBytes(RankedTensorType type, ShardingAttr sharding,
                             const AxisSizes &axes) {
  double bytes = elementBytes(type);
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
