//===- Body.cpp - Statements of a region
//----------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One call an op. A value is given back at its last use.
///
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "Scalar.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::cpp;

//===----------------------------------------------------------------------===//
// Names and types
//===----------------------------------------------------------------------===//

std::string cpp::valueType(Type type) {
  if (auto layers = dyn_cast<rt::LayersType>(type))
    return "Layers<" + scalarType(getElementTypeOrSelf(layers.getElement())) +
           ">";
  return "Value<" + scalarType(getElementTypeOrSelf(type)) + ">";
}

std::string BodyPrinter::type(Value value) const {
  return valueType(value.getType());
}

std::string BodyPrinter::declare(Value value, StringRef base) {
  StringRef name = nameOf(value.getLoc());
  std::string made =
      scope.take(base.empty() ? (name.empty() ? "x" : name) : base);
  names[value] = made;
  return made;
}

std::string BodyPrinter::get(Value value) const {
  auto found = names.find(value);
  if (found != names.end())
    return found->second;
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  if (constant && !isa<RankedTensorType>(value.getType()))
    return number(constant.getValue());
  return "";
}

std::string BodyPrinter::size(Value tensor, int64_t dim) const {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return std::to_string(type.getDimSize(dim));
  return get(tensor) + ".dim(" + std::to_string(dim) + ")";
}

SmallVector<std::string> BodyPrinter::sizes(Type type, ValueRange open) const {
  SmallVector<std::string> result;
  size_t next = 0;
  for (int64_t dim : cast<RankedTensorType>(type).getShape())
    result.push_back(ShapedType::isDynamic(dim) ? get(open[next++])
                                                : std::to_string(dim));
  return result;
}

std::string BodyPrinter::make(Value result, ArrayRef<std::string> sizes) const {
  std::string text =
      "c.make<" + scalarType(getElementTypeOrSelf(result.getType())) + ">({";
  for (auto [index, size] : llvm::enumerate(sizes))
    text += (index ? ", " : "") + size;
  return text + "})";
}

std::string BodyPrinter::slotArguments(StringRef param, StringRef slot) const {
  std::string at = file.names.hasLayers(param) && !layer.empty() ? layer : "0";
  return file.names.param(param) + ", " + at + ", " + file.names.slot(slot);
}

//===----------------------------------------------------------------------===//
// Lifetimes
//===----------------------------------------------------------------------===//

void BodyPrinter::findLastUses(Block &block) {
  SmallVector<Value> values(block.args_begin(), block.args_end());
  for (Operation &op : block)
    values.append(op.result_begin(), op.result_end());
  for (Value value : values) {
    if (!isa<RankedTensorType, rt::LayersType>(value.getType()))
      continue;
    Operation *last = value.getDefiningOp();
    for (Operation *user : value.getUsers()) {
      Operation *here = block.findAncestorOpInBlock(*user);
      // What a group reads lives until the group is waited for.
      if (auto start = dyn_cast_or_null<rt::StartOp>(here))
        if (rt::WaitOp wait = waitOf(start))
          here = wait;
      if (here && (!last || last->isBeforeInBlock(here)))
        last = here;
    }
    if (last)
      lastUses[last].push_back(value);
  }
}

void BodyPrinter::printReleases(Operation &op) {
  std::string values;
  auto found = lastUses.find(&op);
  if (found == lastUses.end())
    return;
  for (Value value : found->second) {
    if (!owned.contains(value))
      continue;
    if (isa<rt::LayersType>(value.getType()))
      os << indent << "release(" << get(value) << ");\n";
    else
      values += (values.empty() ? "" : ", ") + get(value);
  }
  if (!values.empty())
    os << indent << "release(" << values << ");\n";
}

rt::AccumulateOp BodyPrinter::onlyAccumulated(Value value) const {
  if (!value.hasOneUse())
    return nullptr;
  auto user = dyn_cast<rt::AccumulateOp>(*value.user_begin());
  return user && user->getBlock() == value.getParentBlock() ? user : nullptr;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void BodyPrinter::printComment(Operation &op) {
  StringRef name = nameOf(op.getLoc());
  std::string line = comment(name);
  std::string at = place(op.getLoc());
  if (!line.empty() && line + at != lastComment) {
    lastComment = line + at;
    os << '\n' << indent << "// " << line;
    if (op.getNumResults() == 1 &&
        isa<RankedTensorType>(op.getResultTypes()[0]))
      os << "  " << shapeText(op.getResult(0).getType());
    if (!at.empty())
      os << "  " << at;
    os << '\n';
  }
  if (auto why = op.getAttrOfType<StringAttr>("why"))
    os << indent << "// " << comment(why.getValue()) << '\n';
}

LogicalResult BodyPrinter::printKernel(Operation &op) {
  FailureOr<KernelCall> call = file.kernels.get(&op);
  if (failed(call))
    return failure();
  ValueRange open = isa<rt::MapOp>(op) ? cast<rt::MapOp>(op).getExtents()
                                       : cast<rt::ReduceOp>(op).getExtents();
  std::string arguments;
  for (Value result : op.getResults()) {
    SmallVector<std::string> dims = sizes(result.getType(), open);
    std::string name = declare(result, "");
    os << indent << type(result) << ' ' << name << " = " << make(result, dims)
       << ";\n";
    own(result);
    arguments += ", " + name;
  }
  for (Value tensor : call->tensors)
    arguments += ", " + get(tensor);
  for (Value scalar : call->scalars)
    arguments += ", " + get(scalar);
  if (auto reduce = dyn_cast<rt::ReduceOp>(op)) {
    size_t next = 0;
    bool product = call->sizes == KernelCall::Sizes::Product;
    for (auto [index, size] : llvm::enumerate(reduce.getSizes()))
      arguments +=
          (index && product ? " * " : ", ") +
          (ShapedType::isDynamic(size) ? get(reduce.getOpenSizes()[next++])
                                       : std::to_string(size));
  }
  os << indent << "kernels::" << call->function << "(c.r" << arguments
     << ");\n";
  return success();
}

LogicalResult BodyPrinter::printContract(rt::ContractOp op) {
  std::string operands = literal(op.getCDims()) + ", " + get(op.getA()) + ", " +
                         literal(op.getADims()) + ", " + get(op.getB()) + ", " +
                         literal(op.getBDims());
  if (rt::AccumulateOp sum = onlyAccumulated(op.getC())) {
    os << indent << "contract(c.r, c.slot("
       << slotArguments(sum.getParam(), sum.getSlot()) << "), " << operands
       << ", /*accumulate=*/true);\n";
    done.insert(sum);
    return success();
  }
  SmallVector<std::string> dims;
  auto type = cast<RankedTensorType>(op.getC().getType());
  for (auto [index, letter] : llvm::enumerate(op.getCDims())) {
    if (!type.isDynamicDim(index)) {
      dims.push_back(std::to_string(type.getDimSize(index)));
      continue;
    }
    size_t at = op.getADims().find(letter);
    dims.push_back(at != StringRef::npos
                       ? size(op.getA(), at)
                       : size(op.getB(), op.getBDims().find(letter)));
  }
  std::string made = make(op.getC(), dims);
  std::string name = declare(op.getC(), "");
  os << indent << this->type(op.getC()) << ' ' << name << " = " << made << ";\n"
     << indent << "contract(c.r, " << name << ", " << operands << ");\n";
  own(op.getC());
  return success();
}

LogicalResult BodyPrinter::printScatter(rt::ScatterRowsOp op) {
  auto rows = cast<RankedTensorType>(op.getRows().getType());
  std::string term = scalarType(rows.getElementType());
  std::string element = scalarType(op.getType().getElementType());
  std::string id = scalarType(
      cast<RankedTensorType>(op.getIds().getType()).getElementType());
  std::string count;
  for (int64_t dim = 0; dim + 1 < rows.getRank(); ++dim)
    count += (dim ? " * " : "") + size(op.getRows(), dim);
  std::string width = size(op.getRows(), rows.getRank() - 1);
  std::string table;
  if (rt::AccumulateOp sum = onlyAccumulated(op.getResult())) {
    table = "c.load<" + element + ">(" +
            slotArguments(sum.getParam(), sum.getSlot()) + ").view()";
    done.insert(sum);
  } else {
    std::string made =
        make(op.getResult(), sizes(op.getType(), op.getExtents()));
    table = declare(op.getResult(), "");
    os << indent << type(op.getResult()) << ' ' << table << " = " << made
       << ";\n"
       << indent << "c.r.fillZero(" << table << ".data(), " << table
       << ".bytes());\n";
    table += ".view()";
    own(op.getResult());
  }
  os << indent << "scatterAddRows<" << element << ", " << term << ", " << id
     << ">(c.r, " << table << ", " << get(op.getRows()) << ".reshape({" << count
     << ", " << width << "}).view(), " << get(op.getIds()) << ".reshape({"
     << count << "}).view(), " << get(op.getFirst()) << ");\n";
  return success();
}

static StringRef reduceOp(rt::Combiner kind) {
  return kind == rt::Combiner::Sum   ? "ReduceOp::sum"
         : kind == rt::Combiner::Max ? "ReduceOp::max"
                                     : "ReduceOp::min";
}

LogicalResult BodyPrinter::printCollective(Operation &op) {
  Value input = op.getOperand(0), result = op.getResult(0);
  auto group = op.getAttrOfType<FlatSymbolRefAttr>("group");
  std::string to = "Group::" + file.names.groupNames.at(group.getValue().str());
  std::string why = literal(op.getAttrOfType<StringAttr>("why").getValue());
  std::string from = get(input), slot = storedTo(op);
  std::string call;
  if (auto reduce = dyn_cast<rt::AllReduceOp>(op)) {
    // The last reader gives its buffer away.
    Operation *end = &op;
    if (auto start = dyn_cast<rt::StartOp>(op.getParentOp()))
      end = waitOf(start);
    bool last = end && owned.contains(input) && input.hasOneUse() &&
                llvm::is_contained(lastUses.lookup(end), input);
    if (!slot.empty()) {
      os << indent << "c.all_reduce_to(" << slot << ", " << from << ", " << to
         << ", " << reduceOp(reduce.getKind()) << ", " << why << ");\n";
      return success();
    }
    call = "c.all_reduce(" + (last ? "std::move(" + from + ")" : from) + ", " +
           to + ", " + reduceOp(reduce.getKind()).str() + ", " + why + ")";
  } else if (auto move = dyn_cast<rt::AllToAllOp>(op)) {
    auto bounds = [&](ArrayAttr outer, int64_t extent, int64_t grain) {
      return "c.bounds(" + file.names.axes(outer) + ", " +
             file.names.axes(move.getAxes()) + ", " + std::to_string(extent) +
             ", " + std::to_string(grain) + ")";
    };
    call = "c.all_to_all(" + from + ", " + to + ", " +
           std::to_string(move.getSplitDim()) + ", " +
           bounds(move.getSplitOuter(), move.getSplitExtent(),
                  move.getSplitGrain()) +
           ", " + std::to_string(move.getGatherDim()) + ", " +
           bounds(move.getGatherOuter(), move.getGatherExtent(),
                  move.getGatherGrain()) +
           ", " + why;
    for (Value rows : move.getUsed())
      call += ", " + get(rows);
    call += ")";
  } else if (auto shift = dyn_cast<rt::ShiftOp>(op)) {
    call = "c.shift(" + from + ", " + to + ", " +
           std::to_string(shift.getDim()) + ", " +
           std::to_string(shift.getHops()) + ", c.bounds({}, " +
           file.names.axes(shift.getAxes()) + ", " +
           std::to_string(shift.getExtent()) + ", " +
           std::to_string(shift.getGrain()) + "), " + why + ")";
  } else {
    auto integer = [&](StringRef name) {
      return std::to_string(op.getAttrOfType<IntegerAttr>(name).getInt());
    };
    std::string bounds =
        "c.bounds(" + file.names.axes(op.getAttrOfType<ArrayAttr>("outer")) +
        ", " + file.names.axes(op.getAttrOfType<ArrayAttr>("axes")) + ", " +
        (op.getNumOperands() > 1 ? get(op.getOperand(1)) : integer("extent")) +
        ", " + integer("grain") + ")";
    auto scatter = dyn_cast<rt::ReduceScatterOp>(op);
    if (!slot.empty()) {
      os << indent << "c.reduce_scatter_to(" << slot << ", " << from << ", "
         << to << ", " << integer("dim") << ", " << bounds << ", "
         << reduceOp(scatter.getKind()) << ", " << why << ");\n";
      return success();
    }
    call = std::string("c.") + (scatter ? "reduce_scatter(" : "all_gather(") +
           from + ", " + to + ", " + integer("dim") + ", " + bounds + ", " +
           (scatter ? reduceOp(scatter.getKind()).str() + ", " : "") + why +
           ")";
  }
  std::string name = declare(result, "");
  os << indent << type(result) << ' ' << name << "(" << call << ");\n";
  own(result);
  return success();
}

LogicalResult BodyPrinter::printView(Operation &op) {
  Value from = op.getOperand(0), result = op.getResult(0);
  SmallVector<std::string> dims;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    dims = sizes(result.getType(), expand.getOutputShape());
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    for (auto &group : collapse.getReassociationIndices()) {
      std::string product;
      for (int64_t dim : group)
        product += (product.empty() ? "" : " * ") + size(from, dim);
      dims.push_back(product);
    }
    auto type = cast<RankedTensorType>(result.getType());
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (!type.isDynamicDim(dim))
        dims[dim] = std::to_string(type.getDimSize(dim));
  } else {
    for (int64_t dim = 0;
         dim < cast<RankedTensorType>(result.getType()).getRank(); ++dim)
      dims.push_back(size(from, dim));
  }
  std::string name = declare(result, "");
  os << indent << type(result) << ' ' << name << " = " << get(from)
     << ".reshape({" << llvm::join(dims, ", ") << "});\n";
  own(result);
  return success();
}

LogicalResult BodyPrinter::printIndex(Operation &op) {
  Value result = op.getResult(0);
  std::string text;
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<int64_t> at = dim.getConstantIndex();
    if (!at)
      return op.emitError() << "expected a constant dimension";
    text = size(dim.getSource(), *at);
  } else if (auto read = dyn_cast<rt::ReadOp>(op)) {
    text = "c.read(" + get(read.getTensor()) + ")";
  } else if (isa<rt::PartStartOp, rt::PartSizeOp>(op)) {
    text = std::string("c.") +
           (isa<rt::PartStartOp>(op) ? "part_start(" : "part_size(") +
           file.names.axes(op.getAttrOfType<ArrayAttr>("axes")) + ", " +
           std::to_string(op.getAttrOfType<IntegerAttr>("extent").getInt()) +
           ", " +
           std::to_string(op.getAttrOfType<IntegerAttr>("grain").getInt()) +
           ")";
  } else {
    ScalarPrinter printer(os, indent, /*inLine=*/true);
    for (Value operand : op.getOperands())
      printer.name(operand, get(operand));
    if (failed(printer.print(&op)))
      return failure();
    text = printer.bare(result);
  }
  std::string name = scope.take("n");
  os << indent << "const " << scalarType(result.getType()) << ' ' << name
     << " = " << text << ";\n";
  names[result] = name;
  return success();
}

void BodyPrinter::printConstant(arith::ConstantOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type)
    return; // A literal where it is read.
  StringRef base = nameOf(op.getLoc());
  std::string name;
  for (auto &[known, constant] : file.constants)
    if (constant.getValue() == op.getValue())
      name = known;
  if (name.empty()) {
    name = file.constantScope.take(base.empty() ? "table" : base);
    file.constants.push_back({name, op});
  }
  names[op.getResult()] = "constants." + name;
}

LogicalResult BodyPrinter::printOp(Operation &op) {
  if (done.contains(&op))
    return success();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    printConstant(constant);
    return success();
  }
  if (auto load = dyn_cast<rt::LoadOp>(op)) {
    std::string base = load.getParam().str();
    if (load.getSlot() != "value")
      base += "." + load.getSlot().str();
    std::string name = declare(load.getResult(), base);
    os << indent << "const " << type(load.getResult()) << ' ' << name
       << " = c.load<" << scalarType(getElementTypeOrSelf(load.getType()))
       << ">(" << slotArguments(load.getParam(), load.getSlot()) << ");\n";
    return success();
  }
  if (isa<tensor::DimOp, rt::PartStartOp, rt::PartSizeOp, rt::ReadOp>(op) ||
      (isa<arith::ArithDialect>(op.getDialect()) &&
       !isa<RankedTensorType>(op.getResultTypes()[0])))
    return printIndex(op);
  if (auto stack = dyn_cast<rt::StackOp>(op))
    return printStack(stack);
  if (auto start = dyn_cast<rt::StartOp>(op))
    return printStart(start);
  if (auto wait = dyn_cast<rt::WaitOp>(op)) {
    printWait(wait);
    return success();
  }
  if (auto micro = dyn_cast<rt::LastMicroOp>(op))
    return printLastMicro(micro);
  printComment(op);
  if (isa<rt::MapOp, rt::ReduceOp>(op))
    return printKernel(op);
  if (auto contract = dyn_cast<rt::ContractOp>(op))
    return printContract(contract);
  if (auto scatter = dyn_cast<rt::ScatterRowsOp>(op))
    return printScatter(scatter);
  if (isCollective(&op))
    return printCollective(op);
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(op))
    return printView(op);
  if (auto store = dyn_cast<rt::StoreOp>(op);
      store && op.getParentOfType<rt::StartOp>()) {
    os << indent << "c.r.copy(c.slot("
       << slotArguments(store.getParam(), store.getSlot()) << "), "
       << get(store.getInput()) << ");\n";
    return success();
  }
  if (auto store = dyn_cast<rt::StoreOp>(op)) {
    os << indent << "c.keep("
       << slotArguments(store.getParam(), store.getSlot()) << ", "
       << get(store.getInput()) << ");\n";
    return success();
  }
  if (auto sum = dyn_cast<rt::AccumulateOp>(op)) {
    os << indent << "accumulate<"
       << scalarType(getElementTypeOrSelf(sum.getInput().getType())) << ">(c, "
       << slotArguments(sum.getParam(), sum.getSlot()) << ", "
       << get(sum.getInput()) << ");\n";
    return success();
  }
  if (auto check = dyn_cast<rt::CheckLoadOp>(op)) {
    auto stack = op.getParentOfType<rt::StackOp>();
    os << indent << "c.checkLoad("
       << (stack
               ? "Stack::" + file.names.stackNames.at(stack.getLayers().str()) +
                     ", " + layer
               : "-1, 0")
       << ", " << get(check.getCounts()) << ", " << get(check.getLimit())
       << ");\n";
    return success();
  }
  return op.emitOpError() << "has no C++";
}

LogicalResult BodyPrinter::print(Block &block) {
  findLastUses(block);
  for (Operation &op : block.without_terminator()) {
    if (failed(printOp(op)))
      return failure();
    printReleases(op);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

/// Values from outside that the body reads, in order of use.
static llvm::SetVector<Value> readFromOutside(rt::StackOp op) {
  llvm::SetVector<Value> values;
  op.getBody().walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      if (op.getBody().isAncestor(operand.getParentRegion()))
        continue;
      auto constant = operand.getDefiningOp<arith::ConstantOp>();
      if (!constant || isa<RankedTensorType>(operand.getType()))
        values.insert(operand);
    }
  });
  return values;
}

LogicalResult BodyPrinter::printStack(rt::StackOp op) {
  size_t carried = op.getCarry().size();
  auto reduced = static_cast<size_t>(op.getReductions());
  Block &block = op.getBody().front();
  auto yield = cast<rt::YieldOp>(block.getTerminator());
  llvm::SetVector<Value> outside = readFromOutside(op);

  // The function of one layer.
  std::string function = file.functions.take(op.getLayers().str() +
                                             (carried == 0      ? "_update"
                                              : op.getReverse() ? "_backward"
                                                                : "_forward"));
  SmallVector<rt::StartOp> started;
  for (auto start : block.getOps<rt::StartOp>())
    if (start.getAhead()) {
      if (failed(printAhead(start, function)))
        return failure();
      started.push_back(start);
    }
  BodyPrinter body(file, "layer");
  body.names[block.getArgument(0)] = "layer";
  std::string parameters = "Context &c, int64_t layer";
  if (!started.empty()) {
    body.nextLayer = body.scope.take("next.layer");
    parameters += ", int64_t " + body.nextLayer;
  }
  for (rt::StartOp start : started) {
    AheadNames &ahead = file.ahead.at(start);
    ahead.variable = body.scope.take("ahead");
    parameters += ", " + ahead.type + " &" + ahead.variable;
  }
  for (BlockArgument argument : block.getArguments().drop_front()) {
    bool isCarry = argument.getArgNumber() <= carried;
    parameters += (isCarry ? ", " : ", const ") + type(argument) + " &" +
                  body.declare(argument, "");
  }
  for (Value value : outside) {
    bool isTensor = isa<RankedTensorType>(value.getType());
    std::string base = get(value);
    if (StringRef(base).starts_with("constants."))
      base = base.substr(10);
    parameters += isTensor ? ", const " + type(value) + " &"
                           : ", " + scalarType(value.getType()) + " ";
    parameters += body.declare(value, base);
  }
  SmallVector<std::string> outputs;
  for (size_t index = carried; index < yield.getNumOperands(); ++index) {
    StringRef name = nameOf(yield.getOperand(index).getLoc());
    outputs.push_back(
        body.scope.take("out." + (name.empty() ? std::to_string(index - carried)
                                               : name.str())));
    parameters += ", " + type(yield.getOperand(index)) + " &" + outputs.back();
  }
  if (failed(body.print(block)))
    return failure();
  raw_ostream &out = body.stream();
  for (auto [index, name] : llvm::enumerate(outputs))
    out << "  " << name << " = " << body.get(yield.getOperand(carried + index))
        << ";\n";
  SmallVector<std::string> next;
  for (size_t index = 0; index < carried; ++index) {
    std::string value = body.get(yield.getOperand(index));
    if (carried > 1) {
      std::string copy = body.scope.take("next." + std::to_string(index));
      out << "  " << type(yield.getOperand(index)) << ' ' << copy << " = "
          << value << ";\n";
      value = copy;
    }
    next.push_back(value);
  }
  for (auto [index, value] : llvm::enumerate(next))
    out << "  " << body.get(block.getArgument(1 + index)) << " = " << value
        << ";\n";
  file.bodies += "\n// One layer of " + comment(op.getLayers()) + ".\n" +
                 "static void " + function + "(" + parameters + ") {\n" +
                 body.printed().str() + "}\n";

  // The loop that calls it.
  os << '\n'
     << indent << "// " << comment(op.getLayers())
     << (op.getReverse() ? ", last layer first\n" : "\n");
  std::string range = scope.take("range"), at = scope.take("index"),
              number = scope.take("layer.number");
  os << indent << "const LayerRange " << range
     << " = c.layers(Stack::" << file.names.stackNames.at(op.getLayers().str())
     << ", " << op.getBegin() << ", " << op.getEnd() << ");\n";
  std::string arguments;
  for (rt::StartOp start : started) {
    const AheadNames &ahead = file.ahead.at(start);
    std::string name = scope.take("ahead");
    arguments += ", " + name;
    os << indent << ahead.type << ' ' << name << ";\n"
       << indent << "if (" << range << ".count() > 0)\n"
       << indent << "  " << ahead.function << "(c, "
       << (op.getReverse() ? range + ".end - 1" : range + ".begin") << ", "
       << name;
    for (Value value : ahead.outside)
      os << ", " << get(value);
    os << ");\n";
  }
  for (size_t index = 0; index < carried; ++index) {
    Value result = op.getResult(index);
    std::string from = get(op.getCarry()[index]);
    std::string name = declare(result, "");
    os << indent << type(result) << ' ' << name << " = " << from << ";\n";
    own(result);
    arguments += ", " + name;
  }
  // One value may be carried twice.
  for (Value value : op.getCarry())
    if (owned.contains(value) &&
        llvm::is_contained(lastUses.lookup(op), value) &&
        !outside.contains(value)) {
      os << indent << "release(" << get(value) << ");\n";
      owned.erase(value);
    }
  for (Value value : op.getEach())
    arguments += ", " + get(value) + "[" + at + "]";
  for (Value value : outside)
    arguments += ", " + get(value);
  SmallVector<std::string> sums;
  for (size_t index = carried; index < op.getNumResults(); ++index) {
    Value result = op.getResult(index);
    std::string name = declare(result, "");
    own(result);
    os << indent << type(result) << ' ' << name;
    if (index < carried + reduced) {
      sums.push_back(name);
      os << ";\n";
      arguments += ", term_" + std::to_string(sums.size());
    } else {
      os << "(size_t(" << range << ".count()));\n";
      arguments += ", " + name + "[" + at + "]";
    }
  }
  os << indent << "for (int64_t i = 0; i < " << range << ".count(); ++i) {\n"
     << indent << "  const int64_t " << number << " = "
     << (op.getReverse() ? range + ".end - 1 - i" : range + ".begin + i")
     << ";\n";
  if (!op.getEach().empty() || op.getNumResults() > carried + reduced)
    os << indent << "  const size_t " << at << " = size_t(" << number << " - "
       << range << ".begin);\n";
  for (size_t index = 0; index < reduced; ++index)
    os << indent << "  " << type(op.getResult(carried + index)) << " term_"
       << index + 1 << ";\n";
  if (!started.empty())
    os << indent << "  const int64_t next = i + 1 < " << range << ".count() ? "
       << number << (op.getReverse() ? " - 1" : " + 1") << " : -1;\n";
  os << indent << "  " << function << "(c, " << number
     << (started.empty() ? "" : ", next") << arguments << ");\n";
  for (size_t index = 0; index < reduced; ++index)
    os << indent << "  addSum(c, " << sums[index] << ", term_" << index + 1
       << ");\n";
  llvm::SetVector<Value> each(op.getEach().begin(), op.getEach().end());
  for (Value value : each)
    if (owned.contains(value) && llvm::is_contained(lastUses.lookup(op), value))
      os << indent << "  release(" << get(value) << "[" << at << "]);\n";
  os << indent << "}\n";
  for (size_t index = 0; index < reduced; ++index) {
    auto shape =
        cast<RankedTensorType>(op.getResult(carried + index).getType());
    if (!shape.hasStaticShape())
      return op.emitOpError() << "sums layers into " << shape
                              << ", whose size no start can tell";
    os << indent << "if (!" << sums[index] << ".data()) { // no layers here\n"
       << indent << "  " << sums[index] << " = "
       << make(op.getResult(carried + index), sizes(shape, {})) << ";\n"
       << indent << "  c.r.fillZero(" << sums[index] << ".data(), "
       << sums[index] << ".bytes());\n"
       << indent << "}\n";
  }
  return success();
}
