//===- Tables.cpp - Mesh, parameters and schedule -------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The tables of a program.
///
//===----------------------------------------------------------------------===//

#include "Convert.h"
#include "parc/Pipeline/EventTable.h"

using namespace mlir;
using namespace mlir::parc;

LogicalResult ProgramTables::build() {
  return success(succeeded(buildMesh()) && succeeded(buildSchedule()) &&
                 succeeded(buildParams()));
}

int64_t ProgramTables::sizeOf(StringRef axis) const {
  auto found = sizes.find(axis.str());
  return found == sizes.end() ? 1 : found->second;
}

LogicalResult ProgramTables::buildMesh() {
  auto meshes = module.getOps<parc::MeshOp>();
  if (meshes.empty())
    return module.emitError() << "expected a parc.mesh, got none";
  parc::MeshOp mesh = *meshes.begin();
  SmallVector<Attribute> axes(mesh.getAxes().begin(), mesh.getAxes().end());
  if (auto order = mesh.getOrder())
    axes.assign(llvm::reverse(order->getValue()).begin(),
                llvm::reverse(order->getValue()).end());
  SmallVector<int64_t> counts;
  for (Attribute axis : axes) {
    StringRef name = cast<StringAttr>(axis).getValue();
    counts.push_back(mesh.sizeOf(name));
    sizes[name.str()] = counts.back();
  }
  stages = sizeOf(kStageAxis);
  rt::MeshOp::create(builder, mesh.getLoc(), builder.getArrayAttr(axes),
                     builder.getDenseI64ArrayAttr(counts),
                     builder.getStringAttr(kStageAxis));
  return success();
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

int64_t ProgramTables::members(ArrayAttr axes,
                               std::optional<ArrayRef<int64_t>> only) const {
  int64_t count = 1;
  for (auto axis : axes.getAsRange<StringAttr>())
    count *= axis.getValue() == kStageAxis && only
                 ? static_cast<int64_t>(only->size())
                 : sizeOf(axis.getValue());
  return count;
}

FlatSymbolRefAttr ProgramTables::group(ArrayAttr axes,
                                       std::optional<ArrayRef<int64_t>> only) {
  std::string name;
  SmallVector<Attribute> used;
  for (auto axis : axes.getAsRange<StringAttr>()) {
    if (sizeOf(axis.getValue()) == 1)
      continue;
    name += (name.empty() ? "" : "_") + axis.str();
    used.push_back(axis);
  }
  if (only)
    for (int64_t stage : *only)
      name += "_" + std::to_string(stage);
  FlatSymbolRefAttr &symbol = groups[name];
  if (!symbol) {
    // Parameters and roles are symbols as well.
    while (module.lookupSymbol(name))
      name += "_";
    symbol = FlatSymbolRefAttr::get(builder.getContext(), name);
    rt::GroupOp::create(builder, module.getLoc(), name,
                        builder.getArrayAttr(used),
                        only ? builder.getDenseI64ArrayAttr(*only) : nullptr);
  }
  return symbol;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

int64_t ProgramTables::firstStage(StringRef symbol) {
  int64_t first = stages;
  for (auto role : module.getOps<parc::RoleOp>()) {
    bool used =
        role.walk([&](Operation *op) {
              if (!isa<parc::LoadOp, parc::StoreOp, parc::AccumulateOp>(op))
                return WalkResult::advance();
              auto name = op->getAttrOfType<FlatSymbolRefAttr>("param");
              return name.getValue() == symbol ? WalkResult::interrupt()
                                               : WalkResult::advance();
            })
            .wasInterrupted();
    if (used)
      for (int64_t stage : role.getStages())
        first = std::min(first, stage);
  }
  return first == stages ? 0 : first;
}

/// By slot, the axes that cut its elements; null where there are none.
static DictionaryAttr flatAxes(OpBuilder &builder, parc::ParamOp param) {
  SmallVector<NamedAttribute> slots;
  if (auto shardings = param.getSlotShardings())
    for (NamedAttribute slot : *shardings) {
      auto flat = cast<parc::ShardingAttr>(slot.getValue()).getFlat();
      if (!flat.empty())
        slots.push_back(builder.getNamedAttr(
            slot.getName(), builder.getArrayAttr(SmallVector<Attribute>(
                                flat.begin(), flat.end()))));
    }
  return slots.empty() ? DictionaryAttr() : builder.getDictionaryAttr(slots);
}

LogicalResult ProgramTables::buildParams() {
  for (auto param : module.getOps<parc::ParamOp>()) {
    RankedTensorType type = param.getTensorType();
    if (!type.hasStaticShape())
      return param.emitOpError() << "expected the whole shape, got " << type;
    SmallVector<Attribute> axes(type.getRank(), builder.getArrayAttr({}));
    SmallVector<int64_t> grains(type.getRank(), 1);
    if (auto sharding = param.getShardingAttr())
      for (auto [index, dim] : llvm::enumerate(sharding.getDims())) {
        SmallVector<Attribute> names(dim.getAxes().begin(),
                                     dim.getAxes().end());
        axes[index] = builder.getArrayAttr(names);
        grains[index] = dim.getGrain();
      }
    SmallVector<int64_t> full(type.getShape());
    SmallVector<int64_t> offsets(type.getRank(), 0);
    std::string name = param.getSymName().str();
    if (auto checkpoint = param.getCheckpointAttr()) {
      name = checkpoint.getName().str();
      if (!checkpoint.getShape().empty()) {
        full.assign(checkpoint.getShape().begin(), checkpoint.getShape().end());
        offsets.assign(checkpoint.getOffsets().begin(),
                       checkpoint.getOffsets().end());
      }
    } else if (param.getLayers()) {
      name += ".{}";
    }
    rt::ParamOp::create(
        builder, param.getLoc(), param.getSymNameAttr(),
        TypeAttr::get(
            RankedTensorType::get(type.getShape(), type.getElementType())),
        param.getLayersAttr(), builder.getStringAttr(name),
        builder.getArrayAttr(axes), builder.getDenseI64ArrayAttr(grains),
        builder.getDenseI64ArrayAttr(full),
        builder.getDenseI64ArrayAttr(offsets), param.getLayerBaseAttr(),
        param.getLayerStrideAttr(), param.getStdAttr(), param.getValueAttr(),
        builder.getI64IntegerAttr(firstStage(param.getSymName())),
        flatAxes(builder, param), param.getSlotTypesAttr());
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

static void appendEvent(SmallVectorImpl<int64_t> &numbers,
                        const StageEvent &event) {
  auto add = [&](rt::EventKind kind, int64_t number) {
    numbers.push_back(static_cast<int64_t>(kind));
    numbers.push_back(number);
  };
  if (event.isCompute())
    return add(event.action.kind == ActionKind::Forward
                   ? rt::EventKind::Forward
                   : rt::EventKind::Backward,
               event.action.microBatch);
  add(rt::EventKind::Group, static_cast<int64_t>(event.group.size()));
  for (const TransferEnd &end : event.group) {
    bool forward = end.direction == TransferDirection::Forward;
    add(end.isSend ? (forward ? rt::EventKind::SendForward
                              : rt::EventKind::SendBackward)
                   : (forward ? rt::EventKind::ReceiveForward
                              : rt::EventKind::ReceiveBackward),
        end.microBatch);
  }
}

LogicalResult ProgramTables::buildSchedule() {
  auto schedules = module.getOps<parc::ScheduleOp>();
  if (schedules.empty())
    return module.emitError() << "expected a parc.schedule, got none";
  parc::ScheduleOp op = *schedules.begin();
  const ScheduleRule *rule = findScheduleRule(op.getRule());
  if (!rule)
    return op.emitOpError() << "names no known rule: '" << op.getRule() << "'";
  ScheduleProblem problem;
  problem.stages = stages;
  problem.microBatches = static_cast<int64_t>(op.getMicroBatches());
  std::string error;
  std::optional<Schedule> schedule =
      mlir::parc::buildSchedule(problem, *rule, error);
  if (!schedule)
    return op.emitOpError() << error;
  std::optional<PipelineProgram> program = deriveTransfers(*schedule, error);
  if (!program)
    return op.emitOpError() << error;
  SmallVector<Attribute> loops, stacks;
  SmallVector<int64_t> inFlight;
  for (int64_t stage = 0; stage < stages; ++stage) {
    SmallVector<Attribute> rows;
    for (const EventLoop &loop : compressEvents(program->events[stage]).loops) {
      SmallVector<int64_t> numbers = {loop.repeat};
      for (const StageEvent &event : loop.body)
        appendEvent(numbers, event);
      rows.push_back(builder.getDenseI64ArrayAttr(numbers));
    }
    loops.push_back(builder.getArrayAttr(rows));
    inFlight.push_back(schedule->peakInFlight(stage));
  }
  for (auto name : op.getLayers().getAsRange<FlatSymbolRefAttr>())
    stacks.push_back(name.getAttr());
  rt::ScheduleOp::create(
      builder, op.getLoc(), op.getMicroBatchesAttr(),
      builder.getArrayAttr(stacks), op.getCountsAttr(), op.getBoundsAttr(),
      builder.getDenseI64ArrayAttr(inFlight), builder.getArrayAttr(loops));
  if (stages > 1)
    group(builder.getStrArrayAttr({kStageAxis}));
  return success();
}
