//===- TablesHeader.cpp - src/tables.h
//------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Names of the tables' rows, and the tables as constants.
///
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::cpp;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

FailureOr<ProgramNames> ProgramNames::of(ModuleOp module) {
  ProgramNames names;
  names.module = module;
  for (auto op : module.getOps<rt::MeshOp>())
    names.mesh = op;
  for (auto op : module.getOps<rt::ScheduleOp>())
    names.schedule = op;
  if (!names.mesh || !names.schedule)
    return module.emitError()
           << "expected a mesh and a schedule; run parc-to-rt first";
  Scope params, groups, roles, axes, stacks, slots;
  for (auto op : module.getOps<rt::ParamOp>()) {
    names.params.push_back(op);
    names.paramNames[op.getSymName().str()] = params.take(op.getSymName());
  }
  for (auto op : module.getOps<rt::GroupOp>()) {
    names.groups.push_back(op);
    names.groupNames[op.getSymName().str()] = groups.take(op.getSymName());
  }
  for (auto op : module.getOps<rt::RoleOp>()) {
    names.roles.push_back(op);
    names.roleNames[op.getSymName().str()] = roles.take(op.getSymName());
  }
  for (auto axis : names.mesh.getAxes().getAsRange<StringAttr>())
    names.axisNames[axis.str()] = axes.take(axis.getValue());
  names.axisNames["mb"] = axes.take("mb");
  for (auto stack : names.schedule.getStacks().getAsRange<StringAttr>())
    names.stackNames[stack.str()] = stacks.take(stack.getValue());
  auto slot = [&](StringRef name) -> size_t {
    auto found = llvm::find(names.slots, name);
    if (found != names.slots.end())
      return found - names.slots.begin();
    names.slots.push_back(name.str());
    names.slotNames[name.str()] = slots.take(name);
    return names.slots.size() - 1;
  };
  slot("value");
  slot("grad");
  module.walk([&](Operation *op) {
    if (!isa<rt::LoadOp, rt::StoreOp, rt::AccumulateOp>(op))
      return;
    size_t number = slot(op->getAttrOfType<StringAttr>("slot").getValue());
    if (isa<rt::AccumulateOp>(op))
      names.sumSlots |= uint64_t(1) << number;
  });
  Scope streams;
  auto stream = [&](StringRef name) {
    auto [found, isNew] = names.streamNames.try_emplace(name.str());
    if (!isNew)
      return;
    names.streams.push_back(name.str());
    found->second = streams.take(name);
  };
  stream("compute");
  if (names.schedule.getLoops().size() > 1)
    for (StringRef direction : {"_forward", "_backward"})
      stream((names.mesh.getStage() + direction).str());
  module.walk([&](Operation *op) {
    if (isa<rt::StartOp, rt::WaitOp>(op))
      if (auto name = op->getAttrOfType<StringAttr>("stream"))
        stream(name);
  });
  if (names.slots.size() > 64)
    return module.emitError()
           << "expected at most 64 slots, got " << names.slots.size();
  return names;
}

std::string ProgramNames::param(StringRef symbol) const {
  return "P::" + paramNames.at(symbol.str());
}

std::string ProgramNames::slot(StringRef name) const {
  return "Slot::" + slotNames.at(name.str());
}

std::string ProgramNames::stream(StringRef name) const {
  return "Stream::" + streamNames.at(name.str());
}

std::string ProgramNames::axes(ArrayAttr list) const {
  SmallVector<std::string> known;
  for (auto axis : list.getAsRange<StringAttr>()) {
    auto found = axisNames.find(axis.str());
    if (found != axisNames.end())
      known.push_back("Axis::" + found->second);
  }
  if (known.empty())
    return "{}";
  return "{" + std::to_string(known.size()) + ", {" + llvm::join(known, ", ") +
         "}}";
}

int ProgramNames::stackOf(rt::ParamOp param) const {
  if (!param.getLayers())
    return -1;
  int result = 0;
  module->walk([&](rt::StackOp stack) {
    bool uses = stack
                    .walk([&](Operation *op) {
                      auto name = op->getAttrOfType<FlatSymbolRefAttr>("param");
                      return name && name.getAttr() == param.getSymNameAttr()
                                 ? WalkResult::interrupt()
                                 : WalkResult::advance();
                    })
                    .wasInterrupted();
    if (!uses)
      return WalkResult::advance();
    for (auto [index, name] :
         llvm::enumerate(schedule->getAttrOfType<ArrayAttr>("stacks")))
      if (name == stack.getLayersAttr())
        result = static_cast<int>(index);
    return WalkResult::interrupt();
  });
  return result;
}

bool ProgramNames::hasLayers(StringRef symbol) const {
  for (rt::ParamOp param : params)
    if (const_cast<rt::ParamOp &>(param).getSymName() == symbol)
      return const_cast<rt::ParamOp &>(param).getLayers().has_value();
  return false;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {

class TablePrinter {
public:
  TablePrinter(const ProgramNames &names, const CppOptions &options)
      : names(names), options(options), os(text) {}

  FailureOr<std::string> print();

private:
  void printEnum(StringRef name, ArrayRef<std::string> items);
  void printNames();
  std::string dims(ArrayRef<int64_t> shape, ArrayAttr axes,
                   ArrayRef<int64_t> grains) const;
  void printGroups();
  void printStreams();
  void printParams();
  std::string flatText(rt::ParamOp param) const;
  std::string slotTypes(rt::ParamOp param) const;
  bool isTrained(rt::ParamOp param) const;
  LogicalResult printInputs();
  void printSchedule();
  void printTables();
  void printStrings(StringRef name, ArrayAttr strings);

  const ProgramNames &names;
  const CppOptions &options;
  std::string text;
  llvm::raw_string_ostream os;
};

} // namespace

static std::string list(ArrayRef<int64_t> numbers) {
  std::string text = "{";
  for (auto [index, number] : llvm::enumerate(numbers))
    text += (index ? ", " : "") + std::to_string(number);
  return text + "}";
}

void TablePrinter::printEnum(StringRef name, ArrayRef<std::string> items) {
  os << "namespace " << name << " {\nenum : int {";
  for (auto [index, item] : llvm::enumerate(items))
    os << (index % 8 == 0 ? "\n  " : " ") << item << ',';
  if (items.empty())
    os << " none";
  os << "\n};\n}\n";
}

void TablePrinter::printNames() {
  os << "// Numbers of the tables' rows.\n";
  SmallVector<std::string> items;
  auto mesh = names.mesh;
  for (auto axis :
       mesh->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>())
    items.push_back(names.axisNames.at(axis.str()));
  items.push_back(names.axisNames.at("mb"));
  printEnum("Axis", items);
  items.clear();
  for (rt::ParamOp param : names.params)
    items.push_back(names.paramNames.at(param.getSymName().str()));
  printEnum("P", items);
  items.clear();
  for (const std::string &slot : names.slots)
    items.push_back(names.slotNames.at(slot));
  printEnum("Slot", items);
  items.clear();
  for (auto stack : names.schedule->getAttrOfType<ArrayAttr>("stacks")
                        .getAsRange<StringAttr>())
    items.push_back(names.stackNames.at(stack.str()));
  printEnum("Stack", items);
  items.clear();
  for (rt::GroupOp group : names.groups)
    items.push_back(names.groupNames.at(group.getSymName().str()));
  printEnum("Group", items);
  items.clear();
  for (const std::string &stream : names.streams)
    items.push_back(names.streamNames.at(stream));
  printEnum("Stream", items);
}

std::string TablePrinter::dims(ArrayRef<int64_t> shape, ArrayAttr axes,
                               ArrayRef<int64_t> grains) const {
  std::string text = "{";
  for (auto [dim, size] : llvm::enumerate(shape))
    text += std::string(dim ? ", " : "") + "{" + std::to_string(size) + ", " +
            std::to_string(grains[dim]) + ", " +
            names.axes(cast<ArrayAttr>(axes[dim])) + "}";
  return text + "}";
}

void TablePrinter::printGroups() {
  os << '\n';
  for (auto [index, group] : llvm::enumerate(names.groups))
    if (auto only = rt::GroupOp(group).getStages())
      os << "constexpr int64_t groupStages" << index << "[] = " << list(*only)
         << ";\n";
  os << "// Communicators, in the order of their creation: the ranks that "
        "differ on these\n// axes only.\nconstexpr GroupRow groups[] = {\n";
  for (auto [index, row] : llvm::enumerate(names.groups)) {
    rt::GroupOp group = row;
    auto only = group.getStages();
    os << "    {" << literal(group.getSymName()) << ", "
       << names.axes(group.getAxes()) << ", ";
    if (only)
      os << "groupStages" << index << ", " << only->size() << "},\n";
    else
      os << "nullptr, 0},\n";
  }
  if (names.groups.empty())
    os << "    {\"\", {}, nullptr, 0},\n";
  os << "};\n";
}

/// The slots of a parameter whose elements are cut, as bits, and the axes.
std::string TablePrinter::flatText(rt::ParamOp param) const {
  uint64_t slots = 0;
  ArrayAttr axes;
  if (std::optional<DictionaryAttr> flat = param.getFlat())
    for (auto [number, slot] : llvm::enumerate(names.slots)) {
      bool inModel = slot == "value" || slot == "grad";
      auto found = flat->getAs<ArrayAttr>(inModel ? StringRef(slot)
                                                  : StringRef("state"));
      if (!found)
        continue;
      slots |= uint64_t(1) << number;
      axes = found;
    }
  return std::to_string(slots) + ", " + (axes ? names.axes(axes) : "{}");
}

/// The element type of gradients, and of the optimizer's state.
std::string TablePrinter::slotTypes(rt::ParamOp param) const {
  Type own = getElementTypeOrSelf(param.getType());
  auto type = [&](StringRef slot) {
    TypeAttr wide;
    if (std::optional<DictionaryAttr> types = param.getSlotTypes())
      wide = types->getAs<TypeAttr>(slot);
    return dtype(wide ? wide.getValue() : own);
  };
  return type("grad") + ", " + type("state");
}

/// True where the step makes a gradient for the parameter.
bool TablePrinter::isTrained(rt::ParamOp param) const {
  return llvm::any_of(names.roles, [&](rt::RoleOp role) {
    return role
        .walk([&](rt::AccumulateOp accumulate) {
          return accumulate.getParam() == param.getSymName()
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  });
}

void TablePrinter::printParams() {
  os << "\n// Name in checkpoints; types of value, gradient and state; "
        "dimensions: size, grain, axes that "
        "part it; the\n// checkpoint's tensor and the box in it; layers; first "
        "value; first stage; slots\n// whose elements are cut further, and the "
        "axes that cut them; whether it has a gradient.\nconstexpr ParamRow "
        "params[] = {\n";
  for (rt::ParamOp param : names.params) {
    auto type = cast<RankedTensorType>(param.getType());
    bool normal = param.getStd().has_value();
    double value = normal ? param.getStdAttr().getValueAsDouble()
                   : param.getValueAttr()
                       ? param.getValueAttr().getValueAsDouble()
                       : 0.0;
    os << "    {" << literal(param.getCheckpoint()) << ", "
       << dtype(type.getElementType()) << ", " << slotTypes(param) << ", "
       << type.getRank() << ",\n     "
       << dims(type.getShape(), param.getAxes(), param.getGrains())
       << ",\n     " << list(param.getFull()) << ", "
       << list(param.getOffsets()) << ", "
       << static_cast<int64_t>(param.getLayers().value_or(0)) << ", "
       << names.stackOf(param) << ", "
       << static_cast<int64_t>(param.getLayerBase()) << ", "
       << static_cast<int64_t>(param.getLayerStride()) << ", "
       << (normal ? "Init::normal, " : "Init::constant, ")
       << number(FloatAttr::get(Float64Type::get(type.getContext()), value))
       << ", " << static_cast<int64_t>(param.getFirstStage()) << ",\n     "
       << flatText(param) << ", " << (isTrained(param) ? "true" : "false")
       << "},\n";
  }
  os << "};\n";
}

LogicalResult TablePrinter::printInputs() {
  rt::RoleOp role = names.roles.front();
  os << "\n// The step's inputs.\nconstexpr InputRow inputs[] = {\n";
  for (auto [index, name] :
       llvm::enumerate(role.getInputs().getAsRange<StringAttr>())) {
    StringRef known[] = {"tokens", "labels", "positions", "seed"};
    if (!llvm::is_contained(known, name.getValue()))
      return role.emitOpError() << "has input '" << name.getValue()
                                << "'; emitted programs know tokens, labels, "
                                   "positions and seed";
    auto type = cast<RankedTensorType>(
        role.getForward().front().getArgument(index).getType());
    SmallVector<int64_t> shape(type.getRank(), 1);
    if (name.getValue() != "seed") {
      if (type.getRank() != 2)
        return role.emitOpError() << "expected input '" << name.getValue()
                                  << "' of batch and sequence, got " << type;
      shape = {options.batch, options.seq};
    }
    if (!type.getElementType().isInteger(64) &&
        !type.getElementType().isInteger(32))
      return role.emitOpError() << "expected input '" << name.getValue()
                                << "' of i64 or i32, got " << type;
    os << "    {" << literal(name.getValue()) << ", "
       << dtype(type.getElementType()) << ", " << type.getRank() << ", "
       << dims(shape, cast<ArrayAttr>(role.getInputAxes()[index]),
               cast<DenseI64ArrayAttr>(role.getInputGrains()[index])
                   .asArrayRef())
       << "},\n";
  }
  os << "};\n";
  return success();
}

static StringRef eventName(int64_t kind) {
  static const StringRef known[] = {
      "forward",      "backward",        "sendForward", "receiveForward",
      "sendBackward", "receiveBackward", "group"};
  return known[kind];
}

/// True for an event of the backward direction.
static bool isBackward(int64_t kind) {
  return kind == 1 || kind == 4 || kind == 5;
}

/// The rows of a loop's events, micro-batches counted from `first`, that of
/// each direction's first event.
static std::string eventRows(ArrayRef<int64_t> numbers, int64_t (&first)[2]) {
  bool seen[2] = {false, false};
  std::string rows;
  for (size_t at = 1; at + 1 < numbers.size(); at += 2) {
    int64_t kind = numbers[at], number = numbers[at + 1];
    if (eventName(kind) != "group") {
      int direction = isBackward(kind);
      if (!seen[direction])
        first[direction] = number;
      seen[direction] = true;
      number -= first[direction];
    }
    rows += "    {EventKind::" + eventName(kind).str() + ", " +
            std::to_string(number) + "},\n";
  }
  return rows;
}

void TablePrinter::printSchedule() {
  std::string loops, stages;
  rt::ScheduleOp schedule = names.schedule;
  os << "\n// What stages do, micro-batches counted from a loop's first.\n"
        "constexpr EventRow events[] = {\n";
  // Loops that do the same share rows.
  std::map<std::string, int64_t> known;
  int64_t numEvents = 0, numLoops = 0;
  for (auto [stage, attribute] : llvm::enumerate(schedule.getLoops())) {
    int64_t firstLoop = numLoops;
    loops += "   ";
    for (Attribute loop : cast<ArrayAttr>(attribute)) {
      ArrayRef<int64_t> numbers = cast<DenseI64ArrayAttr>(loop).asArrayRef();
      int64_t first[2] = {0, 0};
      std::string rows = eventRows(numbers, first);
      auto count = static_cast<int64_t>(numbers.size() / 2);
      auto [found, isNew] = known.try_emplace(rows, numEvents);
      if (isNew) {
        os << rows;
        numEvents += count;
      }
      loops += " {" + std::to_string(numbers[0]) + ", " +
               std::to_string(found->second) + ", " + std::to_string(count) +
               ", " + std::to_string(first[0]) + ", " +
               std::to_string(first[1]) + "},";
      ++numLoops;
    }
    loops += "\n";
    int role = 0;
    for (auto [index, op] : llvm::enumerate(names.roles))
      if (llvm::is_contained(rt::RoleOp(op).getStages(),
                             static_cast<int64_t>(stage)))
        role = static_cast<int>(index);
    stages += (stage % 4 == 0 ? "\n    {" : " {") + std::to_string(role) +
              ", " + std::to_string(firstLoop) + ", " +
              std::to_string(numLoops - firstLoop) + ", " +
              std::to_string(schedule.getInFlight()[stage]) + "},";
  }
  os << "};\n\n// A line a stage: iterations, first event, events, first "
        "micro-batch forward\n// and backward.\nconstexpr LoopRow loops[] = "
        "{\n"
     << loops
     << "};\n\n// Role, first loop, loops, micro-batches in flight.\n"
        "constexpr StageRow stages[] = {"
     << stages
     << "\n};\n\n// Stage s runs the layers bounds[s] to bounds[s + "
        "1] of all stacks.\nconstexpr int64_t bounds[] = "
     << list(schedule.getBounds()) << ";\nconstexpr int64_t stackCounts[] = "
     << (schedule.getCounts().empty() ? "{0}" : list(schedule.getCounts()))
     << ";\n";
}

void TablePrinter::printStrings(StringRef name, ArrayAttr strings) {
  os << "constexpr const char *" << name << "[] = {";
  bool first = true;
  for (auto item : strings.getAsRange<StringAttr>()) {
    os << (first ? "" : ", ") << literal(item.getValue());
    first = false;
  }
  os << (first ? "\"\"" : "") << "};\n";
}

void TablePrinter::printStreams() {
  os << "// What runs beside the rest, made at the start.\n"
        "constexpr const char *streams[] = {";
  for (auto [index, name] : llvm::enumerate(names.streams))
    os << (index ? ", " : "") << literal(name);
  os << "};\n";
}

void TablePrinter::printTables() {
  rt::MeshOp mesh = names.mesh;
  rt::ScheduleOp schedule = names.schedule;
  rt::RoleOp role = names.roles.front();
  int stageAxis = -1, stageGroup = -1;
  for (auto [index, axis] :
       llvm::enumerate(mesh.getAxes().getAsRange<StringAttr>()))
    if (axis.getValue() == mesh.getStage())
      stageAxis = static_cast<int>(index);
  for (auto [index, group] : llvm::enumerate(names.groups)) {
    rt::GroupOp op = group;
    if (op.getAxes().size() == 1 && !op.getStages() &&
        cast<StringAttr>(op.getAxes()[0]).getValue() == mesh.getStage())
      stageGroup = static_cast<int>(index);
  }
  Type scalar = Float32Type::get(mesh.getContext());
  if (!role.getScalars().empty())
    scalar = getElementTypeOrSelf(
        role.getUpdate().front().getArguments().back().getType());
  auto transferStream = [&](const char *direction) -> std::string {
    std::string name = mesh.getStage().str() + direction;
    return names.streamNames.count(name) ? names.stream(name) : "0";
  };
  auto hyper = [&](const char *name) {
    auto found = options.hyper.find(name);
    double value = found == options.hyper.end() ? 0.0 : found->second;
    return number(FloatAttr::get(Float64Type::get(mesh.getContext()), value));
  };
  os << '\n';
  printStrings("scalars", role.getScalars());
  printStrings("results", role.getResults());
  os << "\ninline const Tables tables = {\n    axes, axisSizes, "
     << mesh.getAxes().size() << ", " << stageAxis << ",\n    groups, "
     << names.groups.size() << ", " << stageGroup << ",\n    streams, "
     << names.streams.size() << ", " << transferStream("_forward") << ", "
     << transferStream("_backward") << ",\n    params, " << names.params.size()
     << ", " << names.slots.size() << ", " << names.sumSlots
     << ", Slot::" << names.slotNames.at("grad") << ", "
     << (names.slotNames.count("reduced")
             ? "Slot::" + names.slotNames.at("reduced")
             : "-1")
     << ", "
     << (names.slotNames.count("master")
             ? "Slot::" + names.slotNames.at("master")
             : "-1")
     << ",\n    inputs, " << role.getInputs().size() << ",\n    scalars, "
     << role.getScalars().size() << ", " << dtype(scalar) << ",\n    results, "
     << role.getResults().size() << ",\n    stackCounts, "
     << schedule.getStacks().size() << ", bounds,\n    stages, "
     << schedule.getLoops().size() << ", loops, events,\n    "
     << schedule.getMicroBatches() << " /*micro-batches*/, " << options.batch
     << " /*batch*/, " << options.seq << " /*seq*/, " << options.vocab
     << " /*vocabulary*/,\n    {" << hyper("lr") << ", " << hyper("beta1")
     << ", " << hyper("beta2") << ", " << hyper("eps") << ", "
     << hyper("weight_decay") << ", " << hyper("clip") << "}};\n";
}

FailureOr<std::string> TablePrinter::print() {
  if (names.roles.empty() || names.params.empty())
    return names.mesh->emitError()
           << "expected a role and a parameter at least";
  os << "// Everything that depends on the sizes of mesh, model and batch.\n"
        "// Made by parc "
     << comment(options.version)
     << ".\n#pragma once\n\n#include <parc/runtime.h>\n\nnamespace model {\n"
        "using namespace parc;\n\n";
  printNames();
  rt::MeshOp mesh = names.mesh;
  os << "\n// The axis that varies slowest first.\n";
  printStrings("axes", mesh.getAxes());
  os << "constexpr int64_t axisSizes[] = " << list(mesh.getSizes()) << ";\n";
  printGroups();
  printStreams();
  printParams();
  if (failed(printInputs()))
    return failure();
  printSchedule();
  printTables();
  os << '\n';
  for (rt::RoleOp role : names.roles)
    os << "std::unique_ptr<Stage> make_"
       << names.roleNames.at(role.getSymName().str()) << "();\n";
  os << "constexpr MakeStage roles[] = {";
  for (auto [index, role] : llvm::enumerate(names.roles))
    os << (index ? ", " : "") << "make_"
       << names.roleNames.at(rt::RoleOp(role).getSymName().str());
  os << "};\n\n} // namespace model\n";
  return text;
}

FailureOr<std::string> cpp::printTables(const ProgramNames &names,
                                        const CppOptions &options) {
  return TablePrinter(names, options).print();
}
