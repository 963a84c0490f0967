//===- RankSetup.cpp - What all ranks share -------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Reads a staged module.
///
//===----------------------------------------------------------------------===//

#include "RankSetup.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::eval;

//===----------------------------------------------------------------------===//
// Mesh and roles
//===----------------------------------------------------------------------===//

static LogicalResult readMesh(RankSetup &setup) {
  auto meshes = setup.module.getOps<MeshOp>();
  if (meshes.empty())
    return setup.module.emitError() << "expected a parc.mesh, got none";
  MeshOp op = *meshes.begin();
  llvm::SmallVector<MeshAxis> axes;
  for (auto [name, size] :
       llvm::zip(op.getAxes().getAsRange<StringAttr>(), op.getSizes()))
    axes.push_back({name.str(), size});
  TextError error;
  std::optional<Mesh> mesh = Mesh::get(axes, error);
  if (!mesh)
    return op.emitOpError() << error.message;
  if (!op.getOrder()) {
    setup.grid = RankGrid::rowMajor(*mesh);
    return success();
  }
  std::string order =
      llvm::join(llvm::map_range(op.getOrder()->getAsRange<StringAttr>(),
                                 [](StringAttr axis) { return axis.str(); }),
                 "-");
  setup.grid = RankGrid::get(*mesh, order, error);
  return setup.grid ? success() : op.emitOpError() << error.message;
}

static LogicalResult readRoles(RankSetup &setup) {
  int64_t stages = setup.grid->mesh().size(kStageAxis);
  setup.roles.resize(stages);
  for (auto role : setup.module.getOps<RoleOp>())
    for (int64_t stage : role.getStages()) {
      if (stage < 0 || stage >= stages)
        return role.emitOpError() << "has stage " << stage << " of a mesh with "
                                  << stages << " stages";
      if (setup.roles[stage])
        return role.emitOpError()
               << "has stage " << stage << ", which another role has too";
      setup.roles[stage] = role;
    }
  for (auto [stage, role] : llvm::enumerate(setup.roles))
    if (!role)
      return setup.module.emitError()
             << "expected a parc.role for stage " << stage << ", got none";
  return success();
}

static LogicalResult readSchedule(RankSetup &setup) {
  auto schedules = setup.module.getOps<ScheduleOp>();
  if (schedules.empty())
    return setup.module.emitError() << "expected a parc.schedule, got none";
  ScheduleOp op = setup.schedule = *schedules.begin();
  if (int64_t(op.getBounds().size()) != setup.stages() + 1)
    return op.emitOpError()
           << "expected the bounds of " << setup.stages()
           << " stages, got those of " << op.getBounds().size() - 1;
  const ScheduleRule *rule = findScheduleRule(op.getRule());
  if (!rule)
    return op.emitOpError() << "names no known rule: '" << op.getRule() << "'";
  ScheduleProblem problem;
  problem.stages = setup.stages();
  problem.microBatches = int64_t(op.getMicroBatches());
  std::string error;
  std::optional<Schedule> schedule = buildSchedule(problem, *rule, error);
  if (!schedule)
    return op.emitOpError() << error;
  std::optional<PipelineProgram> program = deriveTransfers(*schedule, error);
  if (!program)
    return op.emitOpError() << error;
  setup.events = std::move(program->events);
  return success();
}

int64_t RankSetup::stageOf(int64_t rank) const {
  std::optional<size_t> axis = grid->mesh().indexOf(kStageAxis);
  return axis ? grid->coordinate(rank)[*axis] : 0;
}

RankContext RankSetup::context(int64_t rank) const {
  RankContext context;
  context.number = rank;
  for (auto [axis, coordinate] :
       llvm::zip(grid->mesh().axes(), grid->coordinate(rank)))
    context.setAxis(axis.name, {coordinate, axis.size});
  ScheduleOp op = schedule;
  int64_t stage = stageOf(rank), first = 0;
  for (auto [layers, count] : llvm::zip(
           op.getLayers().getAsRange<FlatSymbolRefAttr>(), op.getCounts())) {
    context.setLayers(layers.getValue(), op.getBounds()[stage] - first,
                      op.getBounds()[stage + 1] - first);
    first += count;
  }
  return context;
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

std::string
mlir::parc::eval::groupKey(ArrayAttr axes,
                           std::optional<ArrayRef<int64_t>> stages) {
  std::string key;
  for (auto axis : axes.getAsRange<StringAttr>())
    key += (key.empty() ? "" : ",") + axis.str();
  if (stages)
    for (int64_t stage : *stages)
      key += "@" + std::to_string(stage);
  return key;
}

namespace {

/// Plans the communicators of one set of axes.
class GroupPlanner {
public:
  explicit GroupPlanner(RankSetup &setup) : setup(setup) {}

  LogicalResult add(Operation *op, ArrayAttr axes,
                    std::optional<ArrayRef<int64_t>> stages) {
    std::string key = groupKey(axes, stages);
    if (!keys.insert(key).second)
      return success();
    const Mesh &mesh = setup.grid->mesh();
    llvm::SmallVector<size_t> dims;
    for (auto name : axes.getAsRange<StringAttr>()) {
      std::optional<size_t> dim = mesh.indexOf(name.getValue());
      if (!dim)
        continue;
      if (llvm::is_contained(dims, *dim))
        return op->emitOpError() << "names axis " << name << " twice";
      dims.push_back(*dim);
    }
    for (int64_t rank = 0; rank < setup.grid->devices(); ++rank)
      addGroup(key, rank, dims, stages);
    return success();
  }

private:
  /// Adds the group of `rank` where that rank is its first coordinate.
  void addGroup(const std::string &key, int64_t rank, ArrayRef<size_t> dims,
                std::optional<ArrayRef<int64_t>> stages) {
    llvm::SmallVector<int64_t, 4> at = setup.grid->coordinate(rank);
    if (llvm::any_of(dims, [&](size_t dim) { return at[dim] != 0; }))
      return;
    ArrayRef<MeshAxis> axes = setup.grid->mesh().axes();
    int64_t count = 1;
    for (size_t dim : dims)
      count *= axes[dim].size;
    GroupPlan group{key, key + "#" + std::to_string(rank), {}};
    for (int64_t index = 0; index < count; ++index) {
      int64_t rest = index;
      for (size_t dim : llvm::reverse(dims)) {
        at[dim] = rest % axes[dim].size;
        rest /= axes[dim].size;
      }
      int64_t member = setup.grid->rank(at);
      if (!stages || llvm::is_contained(*stages, setup.stageOf(member)))
        group.members.push_back(int(member));
    }
    if (group.members.size() > 1)
      setup.groups.push_back(std::move(group));
  }

  RankSetup &setup;
  std::set<std::string> keys;
};

} // namespace

static LogicalResult planGroups(RankSetup &setup) {
  GroupPlanner planner(setup);
  Builder builder(setup.module.getContext());
  if (setup.stages() > 1 &&
      failed(planner.add(setup.schedule, builder.getStrArrayAttr({kStageAxis}),
                         std::nullopt)))
    return failure();
  for (auto role : setup.module.getOps<RoleOp>()) {
    WalkResult walk = role.walk([&](Operation *op) -> WalkResult {
      if (auto reduce = dyn_cast<AllReduceOp>(op))
        return planner.add(op, reduce.getAxes(), reduce.getStages());
      if (isa<AllGatherOp, ReduceScatterOp, AllToAllOp, ShiftOp>(op))
        return planner.add(op, op->getAttrOfType<ArrayAttr>("axes"),
                           std::nullopt);
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
  }
  return success();
}

LogicalResult mlir::parc::eval::readSetup(ModuleOp module, RankSetup &setup) {
  setup.module = module;
  return success(succeeded(readMesh(setup)) && succeeded(readRoles(setup)) &&
                 succeeded(readSchedule(setup)) &&
                 succeeded(planGroups(setup)));
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

llvm::SmallVector<Position, 4>
mlir::parc::eval::positionsOf(ShardingAttr sharding, int64_t rank,
                              const RankContext &context) {
  llvm::SmallVector<Position, 4> positions(rank);
  if (!sharding)
    return positions;
  for (auto [position, dim] : llvm::zip(positions, sharding.getDims()))
    for (StringAttr axis : dim.getAxes()) {
      Position next = context.axis(axis.getValue());
      position.coordinate = position.coordinate * next.size + next.coordinate;
      position.size *= next.size;
    }
  return positions;
}

FailureOr<Box> mlir::parc::eval::partBox(Operation *op, ShardingAttr sharding,
                                         ArrayRef<int64_t> shape,
                                         const RankContext &context) {
  Box box{Shape(shape.size(), 0), Shape(shape), {}};
  if (!sharding)
    return box;
  if (sharding.getDims().size() != shape.size())
    return op->emitOpError()
           << "has a sharding of " << sharding.getDims().size()
           << " dimensions for a tensor of shape " << shapeText(shape);
  auto positions = positionsOf(sharding, int64_t(shape.size()), context);
  for (auto [index, dim] : llvm::enumerate(sharding.getDims())) {
    if (dim.getGrain() < 1 || shape[index] % dim.getGrain())
      return op->emitOpError()
             << "expected size " << shape[index] << " of dimension " << index
             << " to be a multiple of its grain " << dim.getGrain();
    Part part = partOf(shape[index], dim.getGrain(), positions[index]);
    box.offsets[index] = part.start;
    box.sizes[index] = part.size;
  }
  return box;
}

Part mlir::parc::eval::flatPart(ShardingAttr sharding, int64_t elements,
                                const RankContext &context) {
  if (!sharding || !sharding.isFlat())
    return {0, elements};
  Position position;
  for (StringAttr axis : sharding.getFlat()) {
    Position next = context.axis(axis.getValue());
    position.coordinate = position.coordinate * next.size + next.coordinate;
    position.size *= next.size;
  }
  return partOf(elements, 1, position);
}

std::vector<std::pair<ParamOp, int64_t>>
mlir::parc::eval::usedParams(const RankSetup &setup, int64_t rank) {
  RankContext context = setup.context(rank);
  RoleOp role = setup.roles[setup.stageOf(rank)];
  ModuleOp module = setup.module;
  std::set<std::pair<std::string, int64_t>> used;
  role.walk([&](Operation *op) {
    if (!isa<LoadOp, StoreOp, AccumulateOp>(op))
      return;
    std::string symbol =
        op->getAttrOfType<FlatSymbolRefAttr>("param").getValue().str();
    auto param = module.lookupSymbol<ParamOp>(symbol);
    auto stack = op->getParentOfType<StackOp>();
    std::pair<int64_t, int64_t> range = {0, 1};
    if (param && param.getLayers() && stack)
      range = context.ownLayers(stack.getLayers(), int64_t(stack.getBegin()),
                                int64_t(stack.getEnd()));
    for (int64_t layer = range.first; layer < range.second; ++layer)
      used.insert({symbol, layer});
  });
  std::vector<std::pair<ParamOp, int64_t>> result;
  for (auto &[symbol, layer] : used)
    if (auto param = module.lookupSymbol<ParamOp>(symbol))
      result.push_back({param, layer});
  return result;
}
