//===- RankGrid.cpp - Places of ranks and their groups --------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Rank orders, coordinates and groups.
///
//===----------------------------------------------------------------------===//

#include "parc/Pipeline/RankGrid.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace mlir::parc {
namespace {

/// The names that an order may use: the mesh's, then the command line's.
SmallVector<StringRef> orderNames(const Mesh &mesh) {
  SmallVector<StringRef> names;
  for (const MeshAxis &axis : mesh.axes())
    names.push_back(axis.name);
  for (StringRef name : Mesh::commandLineAxes())
    if (!is_contained(names, name))
      names.push_back(name);
  return names;
}

/// Checks one name of an order, not seen before in it.
bool checkOrderName(StringRef name, ArrayRef<StringRef> known,
                    ArrayRef<StringRef> seen, TextError &error) {
  if (is_contained(seen, name)) {
    error.message =
        "axis " + quoted(name) + " is named twice in the rank order";
    error.help = "name each axis once, the fastest first";
    return false;
  }
  if (is_contained(known, name))
    return true;
  error.message = name.empty()
                      ? "expected an axis name in the rank order"
                      : "unknown axis " + quoted(name) + " in the rank order";
  StringRef near = nearestName(name, known);
  error.help = (near.empty() ? "" : "did you mean '" + near.str() + "'? ") +
               "known axes: " + join(known, ", ");
  return false;
}

/// Inner runs of a group: the fastest dimension when its members are adjacent.
bool hasRuns(const RankGroup &group) {
  return !group.dims.empty() && group.dims.front().stride == 1;
}

} // namespace

int64_t RankGroup::size() const {
  int64_t size = 1;
  for (Dim dim : dims)
    size *= dim.size;
  return size;
}

int64_t RankGroup::member(int64_t index) const {
  int64_t rank = first;
  for (Dim dim : dims) {
    rank += index % dim.size * dim.stride;
    index /= dim.size;
  }
  return rank;
}

SmallVector<int64_t> RankGroup::members() const {
  SmallVector<int64_t> ranks;
  for (int64_t i = 0, e = size(); i < e; ++i)
    ranks.push_back(member(i));
  return ranks;
}

std::string RankGroup::str() const {
  int64_t runLength = hasRuns(*this) ? dims.front().size : 1;
  int64_t runs = size() / runLength;
  auto run = [&](int64_t index) {
    int64_t begin = member(index * runLength);
    std::string text = std::to_string(begin);
    return runLength == 1 ? text
                          : text + "-" + std::to_string(begin + runLength - 1);
  };
  std::string text = run(0);
  bool elided = runs > 4;
  for (int64_t i = 1, e = elided ? 2 : runs; i < e; ++i)
    text += " " + run(i);
  return elided ? text + " ... " + run(runs - 1) : text;
}

RankGrid::RankGrid(const Mesh &mesh, ArrayRef<size_t> order)
    : gridMesh(mesh), fastestFirst(order), axisStrides(order.size(), 1) {
  int64_t stride = 1;
  for (size_t axis : order) {
    axisStrides[axis] = stride;
    stride *= mesh.axes()[axis].size;
  }
}

std::optional<RankGrid> RankGrid::get(const Mesh &mesh, StringRef order,
                                      TextError &error) {
  SmallVector<StringRef> known = orderNames(mesh);
  SmallVector<StringRef> names, seen;
  order.split(names, '-');
  SmallVector<size_t> indices;
  for (StringRef name : names) {
    error.offset = name.data() - order.data();
    error.length = name.size();
    if (!checkOrderName(name, known, seen, error))
      return std::nullopt;
    seen.push_back(name);
    if (std::optional<size_t> index = mesh.indexOf(name))
      indices.push_back(*index);
  }
  for (const MeshAxis &axis : mesh.axes()) {
    if (is_contained(seen, axis.name))
      continue;
    error.offset = order.size();
    error.length = 0;
    error.message = "rank order " + quoted(order) + " does not name axis '" +
                    axis.name + "'";
    error.help =
        "name each axis of the mesh " + mesh.str() + " once, the fastest first";
    return std::nullopt;
  }
  return RankGrid(mesh, indices);
}

RankGrid RankGrid::rowMajor(const Mesh &mesh) {
  SmallVector<size_t> order;
  for (size_t i = mesh.axes().size(); i > 0; --i)
    order.push_back(i - 1);
  return RankGrid(mesh, order);
}

std::string RankGrid::orderText() const {
  std::string text;
  for (size_t axis : fastestFirst)
    text += (text.empty() ? "" : "-") + gridMesh.axes()[axis].name;
  return text;
}

SmallVector<int64_t, 4> RankGrid::coordinate(int64_t rank) const {
  SmallVector<int64_t, 4> coordinate;
  for (auto [axis, stride] : zip_equal(gridMesh.axes(), axisStrides))
    coordinate.push_back(rank / stride % axis.size);
  return coordinate;
}

int64_t RankGrid::rank(ArrayRef<int64_t> coordinate) const {
  int64_t rank = 0;
  for (auto [index, stride] : zip_equal(coordinate, axisStrides))
    rank += index * stride;
  return rank;
}

RankGroup RankGrid::group(int64_t rank, ArrayRef<size_t> axes) const {
  RankGroup group;
  group.first = rank;
  for (size_t axis : fastestFirst) {
    int64_t size = gridMesh.axes()[axis].size, stride = axisStrides[axis];
    if (!is_contained(axes, axis) || size == 1)
      continue;
    group.first -= rank / stride % size * stride;
    if (!group.dims.empty() &&
        group.dims.back().size * group.dims.back().stride == stride)
      group.dims.back().size *= size;
    else
      group.dims.push_back({size, stride});
  }
  return group;
}

int64_t RankGrid::indexInGroup(int64_t rank, ArrayRef<size_t> axes) const {
  int64_t index = 0, weight = 1;
  for (RankGroup::Dim dim : group(rank, axes).dims) {
    index += rank / dim.stride % dim.size * weight;
    weight *= dim.size;
  }
  return index;
}

int64_t RankGrid::numGroups(ArrayRef<size_t> axes) const {
  return devices() / group(0, axes).size();
}

} // namespace mlir::parc
