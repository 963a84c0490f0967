//===- RefineMesh.cpp - Axes split into sub-axes --------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Rewrites the mesh op.
///
//===----------------------------------------------------------------------===//

#include "parc/Analysis/RefineMesh.h"
#include <numeric>

using namespace mlir;
using namespace mlir::parc;

static MeshOp meshOf(ModuleOp module) {
  auto meshes = module.getOps<MeshOp>();
  return meshes.empty() ? MeshOp() : *meshes.begin();
}

/// The mesh's names for `axis`, major to minor, with their sizes.
static SmallVector<std::pair<StringAttr, int64_t>> partsOf(MeshOp mesh,
                                                           StringRef axis) {
  SmallVector<std::pair<StringAttr, int64_t>> parts;
  for (auto [name, size] :
       llvm::zip(mesh.getAxes().getAsRange<StringAttr>(), mesh.getSizes()))
    if (wholeAxis(name.getValue()) == axis)
      parts.push_back({name, size});
  return parts;
}

/// `names` with `old` replaced by `parts`, which follow each other in the order
/// given.
static ArrayAttr replaced(ArrayAttr names, ArrayRef<StringAttr> old,
                          ArrayRef<Attribute> parts) {
  SmallVector<Attribute> result;
  bool done = false;
  for (auto name : names.getAsRange<StringAttr>()) {
    if (!llvm::is_contained(old, name)) {
      result.push_back(name);
      continue;
    }
    if (!done)
      result.append(parts.begin(), parts.end());
    done = true;
  }
  return ArrayAttr::get(names.getContext(), result);
}

/// Gives `axis` parts of `sizes`, major to minor.
static void setParts(MeshOp mesh, StringRef axis, ArrayRef<int64_t> sizes) {
  Builder builder(mesh.getContext());
  auto before = partsOf(mesh, axis);
  SmallVector<StringAttr> old;
  for (auto &[name, size] : before)
    old.push_back(name);
  SmallVector<Attribute> parts;
  for (size_t index = 0; index < sizes.size(); ++index)
    parts.push_back(builder.getStringAttr(axis + "." + std::to_string(index)));
  SmallVector<int64_t> all;
  bool done = false;
  for (auto [name, size] :
       llvm::zip(mesh.getAxes().getAsRange<StringAttr>(), mesh.getSizes())) {
    if (!llvm::is_contained(old, name))
      all.push_back(size);
    else if (!std::exchange(done, true))
      all.append(sizes.begin(), sizes.end());
  }
  // The order lists the fastest first; without one the last is the fastest.
  SmallVector<Attribute> fastestFirst(llvm::reverse(parts));
  if (std::optional<ArrayAttr> order = mesh.getOrder())
    mesh.setOrderAttr(replaced(*order, old, fastestFirst));
  ArrayAttr axes = replaced(mesh.getAxes(), old, parts);
  mesh.setAxesAttr(axes);
  mesh.setSizes(all);
}

LogicalResult mlir::parc::splitAxis(ModuleOp module, StringRef axis,
                                    int64_t inner) {
  MeshOp mesh = meshOf(module);
  auto parts = mesh ? partsOf(mesh, axis)
                    : SmallVector<std::pair<StringAttr, int64_t>>();
  if (parts.empty())
    return success(inner == 1);
  SmallVector<int64_t> sizes;
  int64_t below = 1;
  bool found = inner == 1;
  for (auto &[name, size] : llvm::reverse(parts)) {
    if (!found && inner > below && inner < below * size) {
      if (inner % below != 0 || size % (inner / below) != 0)
        return failure();
      sizes.push_back(inner / below);
      sizes.push_back(size / (inner / below));
      found = true;
    } else {
      sizes.push_back(size);
      found |= inner == below * size;
    }
    below *= size;
  }
  if (!found)
    return failure();
  if (sizes.size() == parts.size())
    return success();
  std::reverse(sizes.begin(), sizes.end());
  setParts(mesh, axis, sizes);
  return success();
}

SmallVector<std::string> mlir::parc::innerParts(ModuleOp module, StringRef axis,
                                                int64_t inner) {
  SmallVector<std::string> names;
  int64_t below = 1;
  MeshOp mesh = meshOf(module);
  if (!mesh)
    return names;
  auto parts = partsOf(mesh, axis);
  for (auto &[name, size] : llvm::reverse(parts)) {
    if (below >= inner)
      break;
    names.push_back(name.getValue().str());
    below *= size;
  }
  std::reverse(names.begin(), names.end());
  return names;
}

/// The cut that `units` of the major factor ask of `axes`: where an axis has
/// more ranks than units are left, those that divide the units come first.
static void refineForUnits(ModuleOp module, ArrayRef<StringRef> axes,
                           int64_t units) {
  MeshOp mesh = meshOf(module);
  auto ranksOf = [&](StringRef axis) {
    int64_t ranks = 1;
    for (auto &[name, size] : partsOf(mesh, axis))
      ranks *= size;
    return ranks;
  };
  int64_t all = 1;
  for (StringRef axis : axes)
    all *= ranksOf(axis);
  if (all <= units)
    return;
  for (StringRef axis : axes) {
    int64_t ranks = ranksOf(axis), taken = std::gcd(units, ranks);
    if (taken == ranks) {
      units /= ranks;
      continue;
    }
    // A cut that does not fit to one made before is not needed by it either:
    // the factor then takes the parts that do divide it.
    if (taken > 1)
      (void)splitAxis(module, axis, ranks / taken);
    return;
  }
}

void mlir::parc::refineForNestedCuts(ModuleOp module,
                                     ArrayRef<StringRef> axes) {
  if (!meshOf(module))
    return;
  SmallVector<int64_t> sizes;
  module.walk([&](ShardableOpInterface op) {
    FailureOr<OpFactors> factors = op.getFactors();
    if (failed(factors))
      return;
    for (const ValueFactors &dims : factors->operands)
      for (const DimFactors &dim : dims)
        if (dim.cut == DimCut::Nested && dim.size() > 1 &&
            factors->factors[dim[0]].size > 1 &&
            factors->factors[dim[1]].size > 1 &&
            !llvm::is_contained(sizes, factors->factors[dim[0]].size))
          sizes.push_back(factors->factors[dim[0]].size);
  });
  for (int64_t size : sizes)
    refineForUnits(module, axes, size);
}
