//===- Comms.cpp - What the program sends ---------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Counting collectives and transfers in the roles of a staged module.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Comms.h"
#include "Extents.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

double CommRow::bytesSent() const {
  auto n = static_cast<double>(members);
  if (kind == "receive" || members < 2)
    return 0;
  if (kind == "send" || kind == "shift")
    return bytesPerCall();
  if (bytesStated)
    return static_cast<double>(*bytesStated);
  return (kind == "all_reduce" ? 2 : 1) * (n - 1) / n * bytesPerCall();
}

/// `layers.3.attn.o` or `layers.*.attn.o` as `layers.attn.o`.
static std::string withoutLayer(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  llvm::erase_if(parts, [](StringRef part) {
    unsigned number;
    return part == "*" || part == "{}" || !part.getAsInteger(10, number);
  });
  return llvm::join(parts, ".");
}

bool mlir::parc::driver::isCalled(const CommRow &row, StringRef name) {
  std::string wanted = withoutLayer(name);
  auto fits = [&](StringRef mine) {
    return mine == wanted || (mine.ends_with(wanted) &&
                              mine.drop_back(wanted.size()).ends_with("."));
  };
  if (wanted.empty())
    return false;
  if (fits(row.name))
    return true;
  SmallVector<StringRef> values;
  StringRef(row.value).split(values, ", ");
  return llvm::any_of(values, [&](StringRef value) {
    return fits(value) || value.rsplit('.').first == wanted;
  });
}

double
mlir::parc::driver::busiestBytes(const CommReport &report,
                                 function_ref<bool(const CommRow &)> which) {
  std::map<int64_t, double> stages;
  for (const CommRow &row : report.rows)
    if (which(row))
      for (int64_t stage = row.firstStage; stage <= row.lastStage; ++stage)
        stages[stage] += row.bytesPerStep();
  double most = 0;
  for (auto [stage, bytes] : stages)
    most = std::max(most, bytes);
  return most;
}

namespace {

/// Walks one module.
class Collector {
public:
  Collector(ModuleOp module, const LayoutReport &layouts, int64_t batch,
            int64_t microBatches)
      : module(module), extents(module, layouts, batch, microBatches) {
    report.microBatches = microBatches;
    auto schedules = module.getOps<ScheduleOp>();
    if (!schedules.empty())
      schedule = *schedules.begin();
  }

  CommReport run();

private:
  void walkRole(RoleOp role);
  void walkRegion(Region &region, StringRef direction, const CommRow &base);
  void walkStart(StartOp start, const CommRow &base);
  void addGroup(StartOp start, const CommRow &base, int64_t layers);
  std::optional<CommRow> collective(Operation *op, CommRow row);
  void addTransfers(RoleOp role, Region &region, int64_t sends, bool forward,
                    const CommRow &base);
  void addTransfer(Value value, StringRef kind, int64_t stages, CommRow row);
  void finish(CommRow row);
  std::vector<int64_t> layersOn(StackOp stack, const CommRow &row) const;
  void setType(CommRow &row, Type type) const;
  void setWhy(CommRow &row, WhyAttr why) const;

  ModuleOp module;
  Extents extents;
  CommReport report;
  ScheduleOp schedule;
};

} // namespace

void Collector::setType(CommRow &row, Type type) const {
  auto tensor = cast<RankedTensorType>(type);
  llvm::raw_string_ostream(row.dtype) << tensor.getElementType();
  row.elementBytes =
      llvm::divideCeil(tensor.getElementType().getIntOrFloatBitWidth(), 8);
}

void Collector::setWhy(CommRow &row, WhyAttr why) const {
  row.why = printable(why.getText());
  row.value = printable(why.getValue());
  row.because.clear();
  for (StringAttr origin : why.getBecause())
    row.because.push_back(printable(origin.getValue()));
  row.bytesStated = why.getBytes();
  row.shape = row.from = row.to = "";
  if (RankedTensorType type = why.getType()) {
    llvm::raw_string_ostream os(row.shape);
    for (int64_t size : type.getShape())
      os << size << 'x';
    row.shape = StringRef(row.shape).rtrim('x').str();
    if (row.shape.empty())
      row.shape = "scalar";
  }
  if (why.getFrom()) {
    row.from = layoutText(why.getFrom(), extents.sizes());
    row.to = layoutText(why.getTo(), extents.sizes());
  }
}

/// The layers of `stack` that each of the row's stages runs.
std::vector<int64_t> Collector::layersOn(StackOp stack,
                                         const CommRow &row) const {
  auto begin = static_cast<int64_t>(stack.getBegin());
  auto end = static_cast<int64_t>(stack.getEnd());
  std::vector<int64_t> result;
  int64_t offset = 0;
  // `mutable` views: op accessors are not const.
  ScheduleOp table = schedule;
  if (table)
    for (auto [name, count] :
         llvm::zip(table.getLayers().getAsValueRange<FlatSymbolRefAttr>(),
                   table.getCounts())) {
      if (name == stack.getLayers())
        break;
      offset += count;
    }
  for (int64_t stage = row.firstStage; stage <= row.lastStage; ++stage) {
    int64_t first = begin, last = end;
    if (table && stage + 1 < static_cast<int64_t>(table.getBounds().size())) {
      first = std::max(begin, table.getBounds()[stage] - offset);
      last = std::min(end, table.getBounds()[stage + 1] - offset);
    }
    result.push_back(std::max<int64_t>(0, last - first));
  }
  return result;
}

void Collector::finish(CommRow row) {
  int64_t most = 1;
  if (!row.stack.empty())
    most = row.layers.empty()
               ? 0
               : *std::max_element(row.layers.begin(), row.layers.end());
  if (row.direction == "update") {
    row.perMicroBatch = 0;
    row.perStep = most;
  } else {
    row.perMicroBatch = most;
    row.perStep = most * report.microBatches;
  }
  if (row.perStep > 0)
    report.rows.push_back(std::move(row));
}

std::optional<CommRow> Collector::collective(Operation *op, CommRow row) {
  ArrayAttr axes = op->getAttrOfType<ArrayAttr>("axes");
  SmallVector<StringAttr> names(axes.getAsRange<StringAttr>());
  row.members *= extents.sizes().product(names);
  row.axes = readableAxes(names, extents.sizes());
  Value whole = op->getOperand(0);
  row.kind = op->getName().stripDialect().str();
  if (auto reduce = dyn_cast<AllReduceOp>(op)) {
    if (std::optional<ArrayRef<int64_t>> members = reduce.getStages()) {
      int64_t stageCount = extents.sizes().of(kStageAxis);
      row.members = row.members / std::max<int64_t>(1, stageCount) *
                    static_cast<int64_t>(members->size());
    }
  } else if (auto gather = dyn_cast<AllGatherOp>(op)) {
    row.dim = gather.getDim();
    whole = gather.getResult();
  } else if (auto scatter = dyn_cast<ReduceScatterOp>(op)) {
    row.dim = scatter.getDim();
  } else if (auto exchange = dyn_cast<AllToAllOp>(op)) {
    row.dim = exchange.getSplitDim();
  } else if (auto shift = dyn_cast<ShiftOp>(op)) {
    row.dim = shift.getDim();
  }
  if (row.members < 2)
    return std::nullopt;
  setType(row, whole.getType());
  std::optional<int64_t> elements = extents.elements(whole);
  row.known = elements.has_value();
  row.elements = elements.value_or(0);
  if (auto exchange = dyn_cast<AllToAllOp>(op);
      exchange && exchange.getRows()) {
    double share = static_cast<double>(*exchange.getRows()) /
                   static_cast<double>(exchange.getGatherExtent()) /
                   static_cast<double>(exchange.getSplitExtent());
    row.balanced = true;
    row.elements = std::llround(static_cast<double>(row.elements) * share);
  }
  if (auto why = op->getAttrOfType<WhyAttr>("why"))
    setWhy(row, why);
  else if (auto text = op->getAttrOfType<StringAttr>("why"))
    row.why = printable(text.getValue());
  row.name = locationName(op->getLoc());
  row.location = locationText(op->getLoc());
  return row;
}

/// The stack in a start that a collective of it is in; null for none.
static StackOp stackIn(StartOp start, Operation *op) {
  auto stack = op->getParentOfType<StackOp>();
  return stack && start->isProperAncestor(stack) ? stack : nullptr;
}

/// The collectives of a start are one row: they travel as one. Those in a stack
/// count once for each of `layers` layers.
void Collector::addGroup(StartOp start, const CommRow &base, int64_t layers) {
  std::optional<CommRow> group;
  WhyAttr reason;
  std::optional<int64_t> stated = 0;
  for (Operation *op : start.getCollectives()) {
    int64_t times = stackIn(start, op) ? layers : 1;
    std::optional<CommRow> row = collective(op, base);
    if (!row || times == 0)
      continue;
    row->elements *= times;
    row->values = times;
    if (stated && row->bytesStated)
      *stated += *row->bytesStated * times;
    else
      stated = std::nullopt;
    auto why = op->getAttrOfType<WhyAttr>("why");
    if (!group) {
      group = std::move(row);
      reason = why;
      continue;
    }
    group->elements += row->elements;
    group->known &= row->known;
    group->values += row->values;
    reason = reason.mergedWith(why);
  }
  if (!group)
    return;
  setWhy(*group, reason);
  group->bytesStated = stated;
  finish(std::move(*group));
}

/// A row for each run of stages that have as many layers in it.
void Collector::walkStart(StartOp start, const CommRow &given) {
  CommRow base = given;
  base.stream = start.getStream().str();
  base.isAhead = start.getAhead();
  StackOp inner;
  for (Operation *op : start.getCollectives())
    if (StackOp stack = stackIn(start, op))
      inner = stack;
  if (!inner)
    return addGroup(start, base, 1);
  std::vector<int64_t> layers = layersOn(inner, base);
  for (size_t first = 0, next; first < layers.size(); first = next) {
    next = first + 1;
    while (next < layers.size() && layers[next] == layers[first])
      ++next;
    CommRow run = base;
    run.firstStage = base.firstStage + static_cast<int64_t>(first);
    run.lastStage = base.firstStage + static_cast<int64_t>(next) - 1;
    addGroup(start, run, layers[first]);
  }
}

void Collector::walkRegion(Region &region, StringRef direction,
                           const CommRow &given) {
  CommRow base = given;
  base.direction = direction.str();
  for (Operation &op : region.front()) {
    if (auto stack = dyn_cast<StackOp>(op)) {
      CommRow inner = base;
      inner.stack = stack.getLayers().str();
      inner.layers = layersOn(stack, base);
      // A stack in a stack runs once a layer of the outer one.
      if (!base.stack.empty())
        for (auto [mine, outer] : llvm::zip(inner.layers, base.layers))
          mine *= outer;
      walkRegion(stack.getBody(), direction, inner);
    } else if (auto micro = dyn_cast<LastMicroOp>(op)) {
      CommRow inner = base;
      inner.inLastMicro = true;
      walkRegion(micro.getBody(), "update", inner);
    } else if (auto start = dyn_cast<StartOp>(op)) {
      walkStart(start, base);
    } else if (isCollective(&op)) {
      if (std::optional<CommRow> row = collective(&op, base))
        finish(std::move(*row));
    }
  }
}

void Collector::addTransfer(Value value, StringRef kind, int64_t count,
                            CommRow row) {
  if (count < 1 || !isa<RankedTensorType>(value.getType()))
    return;
  row.kind = kind.str();
  row.axes = {kStageAxis.str()};
  row.members = 2;
  row.stream = (kStageAxis + "_" + row.direction).str();
  setType(row, value.getType());
  std::optional<int64_t> elements = extents.elements(value);
  row.known = elements.has_value();
  row.elements = elements.value_or(0);
  row.name = locationName(value.getLoc());
  row.location = locationText(value.getLoc());
  row.why = row.direction == "forward" ? "the next stage reads it"
                                       : "the stage before made its value";
  finish(std::move(row));
}

void Collector::addTransfers(RoleOp role, Region &region, int64_t sends,
                             bool forward, const CommRow &base) {
  if (region.empty())
    return;
  CommRow row = base;
  row.direction = forward ? "forward" : "backward";
  Operation *yield = region.front().getTerminator();
  for (int64_t i = 0; i < sends && i < yield->getNumOperands(); ++i)
    addTransfer(yield->getOperand(i), "send", 1, row);
  int64_t neighbour = forward ? base.firstStage - 1 : base.lastStage + 1;
  // Within a role of several stages neighbours send what this role sends.
  for (RoleOp other : module.getOps<RoleOp>()) {
    if (!llvm::is_contained(other.getStages(), neighbour))
      continue;
    auto received = static_cast<int64_t>(forward ? other.getForwardSends()
                                                 : other.getBackwardSends());
    auto inputs = static_cast<int64_t>(role.getInputs().size());
    for (int64_t i = 0; i < received; ++i)
      if (inputs + i < region.front().getNumArguments())
        addTransfer(region.front().getArgument(inputs + i), "receive", 1, row);
  }
}

void Collector::walkRole(RoleOp role) {
  CommRow base;
  base.role = role.getSymName().str();
  base.firstStage = role.getStages().front();
  base.lastStage = role.getStages().back();
  walkRegion(role.getForward(), "forward", base);
  walkRegion(role.getBackward(), "backward", base);
  walkRegion(role.getUpdate(), "update", base);
  addTransfers(role, role.getForward(),
               static_cast<int64_t>(role.getForwardSends()), true, base);
  addTransfers(role, role.getBackward(),
               static_cast<int64_t>(role.getBackwardSends()), false, base);
}

CommReport Collector::run() {
  for (RoleOp role : module.getOps<RoleOp>())
    walkRole(role);
  llvm::stable_sort(report.rows, [](const CommRow &a, const CommRow &b) {
    return a.bytesPerStep() > b.bytesPerStep();
  });
  return std::move(report);
}

CommReport mlir::parc::driver::collectComms(ModuleOp module,
                                            const LayoutReport &layouts,
                                            int64_t batch,
                                            int64_t microBatches) {
  return Collector(module, layouts, batch, microBatches).run();
}
