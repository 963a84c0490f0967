//===- Stage.cpp - The file of one role
//-----------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Kernels, what is kept between passes, one function a stack's body, then
/// forward, backward and update.
///
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::cpp;

namespace {

class StagePrinter {
public:
  StagePrinter(const ProgramNames &names, rt::RoleOp role)
      : names(names), file{names, {}, {}, {}, {}, {}}, role(role) {}

  FailureOr<std::string> print(const CppOptions &options);

private:
  void bindInputs(BodyPrinter &body, Block &block);
  size_t bindReceived(BodyPrinter &body, Block &block, size_t count);
  LogicalResult printForward(std::string &text);
  LogicalResult printBackward(std::string &text);
  LogicalResult printUpdate(std::string &text);
  void nameSaved();
  std::string stagesText() const;
  FailureOr<std::string> buffers(Block &block, size_t count) const;
  std::string parameterLines() const;
  LogicalResult printClass(raw_ostream &os) const;

  const ProgramNames &names;
  StageFile file;
  mutable rt::RoleOp role;
  /// Names of what forward keeps for backward.
  SmallVector<std::string> saved;
  size_t receivesForward = 0, receivesBackward = 0;
};

} // namespace

/// What each value that forward keeps is called.
void StagePrinter::nameSaved() {
  Scope scope;
  auto yield = cast<rt::YieldOp>(role.getForward().front().getTerminator());
  Block &backward = role.getBackward().front();
  size_t first = backward.getNumArguments() -
                 (yield.getNumOperands() - role.getForwardSends());
  for (size_t index = role.getForwardSends(); index < yield.getNumOperands();
       ++index) {
    StringRef name = nameOf(
        backward.getArgument(first + index - role.getForwardSends()).getLoc());
    // A stack's result is called what its body calls it.
    Value value = yield.getOperand(index);
    auto result = dyn_cast<OpResult>(value);
    auto stack = value.getDefiningOp<rt::StackOp>();
    if (stack && isa<rt::LayersType>(value.getType()))
      name = nameOf(stack.getBody()
                        .front()
                        .getTerminator()
                        ->getOperand(result.getResultNumber())
                        .getLoc());
    saved.push_back(scope.take(name.empty() ? "value" : name));
  }
}

void StagePrinter::bindInputs(BodyPrinter &body, Block &block) {
  for (auto [index, name] :
       llvm::enumerate(role.getInputs().getAsRange<StringAttr>())) {
    BlockArgument argument = block.getArgument(index);
    if (argument.use_empty())
      continue;
    std::string made = body.declare(argument, name.getValue());
    body.stream() << "  const " << valueType(argument.getType()) << ' ' << made
                  << "(inputs[" << index << "]);\n";
  }
}

/// Names the arguments after the inputs; returns the first one after them.
size_t StagePrinter::bindReceived(BodyPrinter &body, Block &block,
                                  size_t count) {
  size_t first = role.getInputs().size();
  for (size_t index = 0; index < count; ++index) {
    BlockArgument argument = block.getArgument(first + index);
    std::string name = body.declare(argument, "");
    body.stream() << "  " << valueType(argument.getType()) << ' ' << name
                  << "(std::move(received[" << index << "]));\n";
    body.own(argument);
  }
  return first + count;
}

LogicalResult StagePrinter::printForward(std::string &text) {
  Block &block = role.getForward().front();
  BodyPrinter body(file, "");
  bindInputs(body, block);
  receivesForward = block.getNumArguments() - role.getInputs().size();
  bindReceived(body, block, receivesForward);
  if (failed(body.print(block)))
    return failure();
  auto yield = cast<rt::YieldOp>(block.getTerminator());
  raw_ostream &os = body.stream();
  os << '\n';
  for (auto [index, value] : llvm::enumerate(yield.getValues())) {
    std::string name = body.get(value);
    if (index < role.getForwardSends())
      os << "  sent.push_back(" << name << ");\n";
    else
      os << "  saved." << saved[index - role.getForwardSends()] << " = " << name
         << ";\n";
  }
  text = "\n// One micro-batch forward.\n"
         "void forward(Context &c, const Values &inputs, Values &received,\n"
         "             Values &sent, Saved &saved, const Constants &constants)"
         " {\n" +
         body.printed().str() + "}\n";
  return success();
}

LogicalResult StagePrinter::printBackward(std::string &text) {
  Block &block = role.getBackward().front();
  BodyPrinter body(file, "");
  bindInputs(body, block);
  receivesBackward =
      block.getNumArguments() - role.getInputs().size() - saved.size();
  size_t next = bindReceived(body, block, receivesBackward);
  for (auto [index, name] : llvm::enumerate(saved)) {
    BlockArgument argument = block.getArgument(next + index);
    std::string made = body.declare(argument, name);
    body.stream() << "  " << valueType(argument.getType()) << ' ' << made
                  << " = std::move(saved." << name << ");\n";
    body.own(argument);
  }
  if (failed(body.print(block)))
    return failure();
  auto yield = cast<rt::YieldOp>(block.getTerminator());
  raw_ostream &os = body.stream();
  size_t sends = role.getBackwardSends();
  os << "\n  sums.resize(" << yield.getNumOperands() - sends << ");\n";
  for (auto [index, value] : llvm::enumerate(yield.getValues())) {
    std::string name = body.get(value);
    if (index < sends)
      os << "  sent.push_back(" << name << ");\n";
    else
      os << "  addSum(c, sums[" << index - sends << "], " << name << ");\n";
  }
  text = "\n// One micro-batch backward.\n"
         "void backward(Context &c, const Values &inputs, Values &received,\n"
         "              Values &sent, Values &sums, Saved &saved,\n"
         "              const Constants &constants) {\n" +
         body.printed().str() + "}\n";
  return success();
}

LogicalResult StagePrinter::printUpdate(std::string &text) {
  Block &block = role.getUpdate().front();
  BodyPrinter body(file, "");
  size_t sums = block.getNumArguments() - role.getScalars().size();
  for (BlockArgument argument : block.getArguments()) {
    size_t index = argument.getArgNumber();
    bool isSum = index < sums;
    std::string name = "sum";
    if (!isSum)
      name = cast<StringAttr>(role.getScalars()[index - sums]).str();
    std::string made = body.declare(argument, name);
    body.stream() << "  const " << valueType(argument.getType()) << ' ' << made
                  << "(" << (isSum ? "sums[" : "scalars[")
                  << (isSum ? index : index - sums) << "]);\n";
  }
  if (failed(body.print(block)))
    return failure();
  body.stream() << '\n';
  for (Value value : cast<rt::YieldOp>(block.getTerminator()).getValues())
    body.stream() << "  results.push_back(" << body.get(value) << ");\n";
  text = "\n// Once a step: norm, clipping, optimizer.\n"
         "void update(Context &c, const Values &sums, const Values &scalars,\n"
         "            Values &results, const Constants &constants) {\n" +
         body.printed().str() + "}\n";
  return success();
}

/// "0", "1-14", "0, 3".
std::string StagePrinter::stagesText() const {
  ArrayRef<int64_t> stages = role.getStages();
  std::string text;
  for (size_t begin = 0; begin < stages.size();) {
    size_t end = begin + 1;
    while (end < stages.size() && stages[end] == stages[end - 1] + 1)
      ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(stages[begin]);
    if (end - begin > 1)
      text += "-" + std::to_string(stages[end - 1]);
    begin = end;
  }
  return text;
}

/// Makes the values that a pass receives.
FailureOr<std::string> StagePrinter::buffers(Block &block, size_t count) const {
  std::string text;
  size_t first = role.getInputs().size();
  for (BlockArgument argument : block.getArguments().slice(first, count)) {
    auto type = cast<RankedTensorType>(argument.getType());
    text += "    values.push_back(c.make<" + scalarType(type.getElementType()) +
            ">({";
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      std::string size = sizeText(names, argument, dim);
      if (size.empty())
        return rt::RoleOp(role).emitOpError()
               << "receives " << type << ", whose size no start can tell";
      text += (dim ? ", " : "") + size;
    }
    text += "}));\n";
  }
  return text;
}

/// The parameters that the role uses.
std::string StagePrinter::parameterLines() const {
  llvm::SetVector<StringRef> used;
  role.getOperation()->walk([&](Operation *op) {
    if (isa<rt::LoadOp, rt::StoreOp, rt::AccumulateOp>(op))
      used.insert(op->getAttrOfType<FlatSymbolRefAttr>("param").getValue());
  });
  std::string text;
  for (rt::ParamOp param : names.params)
    if (used.contains(param.getSymName()))
      text += (text.empty() ? "" : ",\n            ") +
              names.param(param.getSymName());
  return text;
}

LogicalResult StagePrinter::printClass(raw_ostream &os) const {
  std::string name = names.roleNames.at(role.getSymName().str());
  FailureOr<std::string> fromBefore =
      buffers(role.getForward().front(), receivesForward);
  FailureOr<std::string> fromAfter =
      buffers(role.getBackward().front(), receivesBackward);
  if (failed(fromBefore) || failed(fromAfter))
    return failure();
  os << "\nstruct Program final : Stage {\n"
        "  std::vector<Saved> saved;\n"
        "  Constants constants;\n\n"
        "  void prepare(Context &c, int64_t inFlight) override {\n"
        "    saved.resize(size_t(inFlight));\n"
        "    constants.prepare(c);\n"
        "  }\n"
        "  std::vector<int> parameters() const override {\n"
        "    return {"
     << parameterLines()
     << "};\n"
        "  }\n"
        "  void forward(Context &c, int64_t slot, const Values &inputs,\n"
        "               Values &received, Values &sent) override {\n"
     << "    " << name
     << "::forward(c, inputs, received, sent, saved[size_t(slot)], "
        "constants);\n"
        "  }\n"
        "  void backward(Context &c, int64_t slot, const Values &inputs,\n"
        "                Values &received, Values &sent,\n"
        "                Values &sums) override {\n"
     << "    " << name
     << "::backward(c, inputs, received, sent, sums,\n"
        "        saved[size_t(slot)], constants);\n"
        "  }\n"
        "  void update(Context &c, Values &sums, const Values &scalars,\n"
        "              Values &results) override {\n"
     << "    " << name
     << "::update(c, sums, scalars, results, constants);\n"
        "  }\n"
        "  Values receiveForward(Context &c) override {\n"
        "    Values values;\n"
     << *fromBefore
     << "    (void)c;\n    return values;\n  }\n"
        "  Values receiveBackward(Context &c) override {\n"
        "    Values values;\n"
     << *fromAfter << "    (void)c;\n    return values;\n  }\n};\n";
  return success();
}

/// The numbers of a constant tensor.
static std::string numbers(arith::ConstantOp op) {
  std::string text;
  for (Attribute value :
       cast<DenseElementsAttr>(op.getValue()).getValues<Attribute>())
    text += (text.empty() ? "" : ", ") + number(value);
  return text;
}

FailureOr<std::string> StagePrinter::print(const CppOptions &options) {
  nameSaved();
  std::string forward, backward, update;
  if (failed(printForward(forward)) || failed(printBackward(backward)) ||
      failed(printUpdate(update)))
    return failure();
  std::string name = names.roleNames.at(role.getSymName().str());
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "// Role " << name << ": stage " << stagesText() << " of "
     << names.schedule.getLoops().size() << ".\n// " << comment(options.model)
     << "\n// Made by parc " << comment(options.version)
     << ": change the plan and compile again.\n#include \"tables.h\"\n\n"
        "namespace model {\nnamespace "
     << name << " {\n\n// Kernels: what lies between the products.\n"
     << "namespace kernels {\n"
     << file.kernels.text() << "\n} // namespace kernels\n";
  os << "\n// Kept from forward for backward, a micro-batch.\nstruct Saved {\n";
  auto yield = cast<rt::YieldOp>(role.getForward().front().getTerminator());
  for (auto [index, field] : llvm::enumerate(saved)) {
    Type type = yield.getOperand(role.getForwardSends() + index).getType();
    Type shape = type;
    if (auto layers = dyn_cast<rt::LayersType>(type))
      shape = layers.getElement();
    os << "  " << valueType(type) << ' ' << field << "; // " << shapeText(shape)
       << (shape == type ? "" : ", a layer") << '\n';
  }
  os << "};\n\nstruct Constants {\n";
  for (auto &[field, constant] : file.constants)
    os << "  " << valueType(constant.getType()) << ' ' << field << ";\n";
  os << "\n  void prepare(Context &c) {\n";
  for (auto &[field, constant] : file.constants) {
    auto type = cast<RankedTensorType>(constant.getType());
    std::string element = scalarType(type.getElementType());
    os << "    {\n      static const " << element << " numbers[] = {"
       << numbers(constant) << "};\n      const int64_t sizes[] = {";
    for (auto [dim, size] : llvm::enumerate(type.getShape()))
      os << (dim ? ", " : "") << size;
    os << "};\n      " << field << " = Value<" << element << ">(c.fromHost("
       << dtype(type.getElementType()) << ", sizes, " << type.getRank()
       << ", numbers));\n    }\n";
  }
  os << "    (void)c;\n  }\n};\n"
     << file.bodies << forward << backward << update;
  if (failed(printClass(os)))
    return failure();
  os << "\n} // namespace " << name << "\n\nstd::unique_ptr<Stage> make_"
     << name << "() {\n  return std::make_unique<" << name
     << "::Program>();\n}\n\n} // namespace model\n";
  return text;
}

FailureOr<std::string> cpp::printStage(const ProgramNames &names,
                                       rt::RoleOp role,
                                       const CppOptions &options) {
  return StagePrinter(names, role).print(options);
}
