//===- ReshardLayouts.cpp - All layouts of a tensor -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Meshes, layouts and paths of the reshard tests.
///
//===----------------------------------------------------------------------===//

#include "ReshardTesting.h"

using namespace mlir::parc;
using namespace mlir::parc::testing;

int64_t TestMesh::ranks() const {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

int64_t TestMesh::strideOf(size_t axis) const {
  int64_t stride = 1;
  for (size_t minor = axis + 1; minor < sizes.size(); ++minor)
    stride *= sizes[minor];
  return stride;
}

int64_t TestMesh::coordinate(int64_t rank, size_t axis) const {
  return rank / strideOf(axis) % sizes[axis];
}

std::string TestMesh::text() const {
  std::string result;
  for (int64_t size : sizes)
    result += (result.empty() ? "" : "x") + std::to_string(size);
  return result;
}

/// Places axis `axis` and those after it in every way.
static void place(size_t axis, size_t count, bool partial,
                  ReshardLayout &layout, std::vector<ReshardLayout> &all) {
  if (axis == count) {
    all.push_back(layout);
    return;
  }
  place(axis + 1, count, partial, layout, all);
  auto number = static_cast<uint8_t>(axis);
  if (partial) {
    layout.partial.push_back(number);
    place(axis + 1, count, partial, layout, all);
    layout.partial.pop_back();
  }
  for (ReshardAxes &dim : layout.dims)
    for (size_t at = 0; at <= dim.size(); ++at) {
      dim.insert(dim.begin() + at, number);
      place(axis + 1, count, partial, layout, all);
      dim.erase(dim.begin() + at);
    }
}

std::vector<ReshardLayout> mlir::parc::testing::allLayouts(const TestMesh &mesh,
                                                           size_t rank,
                                                           bool partial) {
  ReshardLayout layout;
  layout.dims.resize(rank);
  layout.grains.assign(rank, 1);
  std::vector<ReshardLayout> all;
  place(0, mesh.sizes.size(), partial, layout, all);
  return all;
}

ReshardProblem mlir::parc::testing::makeProblem(const TestMesh &mesh,
                                                const Sizes &shape,
                                                const ReshardLayout &from,
                                                const ReshardLayout &to) {
  ReshardProblem problem;
  problem.shape.assign(shape.begin(), shape.end());
  for (size_t axis = 0; axis < mesh.sizes.size(); ++axis)
    problem.axes.push_back(
        {mesh.sizes[axis],
         membersInNode(mesh.sizes[axis], mesh.strideOf(axis), mesh.nodeSize),
         false});
  problem.from = from;
  problem.to = to;
  return problem;
}

static std::string text(const ReshardAxes &axes) {
  std::string result = "{";
  for (uint8_t axis : axes)
    result += static_cast<char>('a' + axis);
  return result + "}";
}

std::string mlir::parc::testing::text(const ReshardLayout &layout) {
  std::string result = "[";
  for (const ReshardAxes &dim : layout.dims)
    result += ::text(dim);
  result += "]";
  if (!layout.partial.empty())
    result += " partial " + ::text(layout.partial);
  return result;
}

std::string mlir::parc::testing::text(const ReshardPath &path) {
  static const char *const names[] = {"all_reduce", "reduce_scatter",
                                      "all_gather", "all_to_all",
                                      "slice",      "own"};
  std::string result;
  for (const ReshardStep &step : path.steps) {
    result += (result.empty() ? "" : "; ") +
              std::string(names[static_cast<int>(step.move)]) + " " +
              ::text(step.axes);
    if (step.move == ReshardMove::AllReduce || step.move == ReshardMove::Own)
      continue;
    result += " dim " + std::to_string(step.dim);
    if (step.move == ReshardMove::AllToAll)
      result += " to " + std::to_string(step.toDim);
  }
  return result;
}
