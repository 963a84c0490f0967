//===- KernelBuild.cpp - Compiles scalar bodies ---------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From arith and math ops to instructions. One table says which op becomes
/// which instruction; a function called by name comes from the domain.
///
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::parc::eval;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// Which instruction an op of one result becomes.
static std::optional<OpCode> simpleCode(StringRef name) {
  static const llvm::StringMap<OpCode> table = {
      {"arith.addf", OpCode::AddF},
      {"arith.subf", OpCode::SubF},
      {"arith.mulf", OpCode::MulF},
      {"arith.divf", OpCode::DivF},
      {"arith.maximumf", OpCode::MaxF},
      {"arith.minimumf", OpCode::MinF},
      {"arith.maxnumf", OpCode::MaxNumF},
      {"arith.minnumf", OpCode::MinNumF},
      {"arith.negf", OpCode::NegF},
      {"math.fma", OpCode::FmaF},
      {"math.fpowi", OpCode::PowIntF},
      {"arith.extf", OpCode::CopyF},
      {"arith.truncf", OpCode::CopyF},
      {"arith.cmpf", OpCode::CmpF},
      {"arith.addi", OpCode::AddI},
      {"arith.subi", OpCode::SubI},
      {"arith.muli", OpCode::MulI},
      {"arith.divsi", OpCode::DivS},
      {"arith.divui", OpCode::DivU},
      {"arith.remsi", OpCode::RemS},
      {"arith.remui", OpCode::RemU},
      {"arith.ceildivsi", OpCode::CeilDivS},
      {"arith.ceildivui", OpCode::CeilDivU},
      {"arith.floordivsi", OpCode::FloorDivS},
      {"arith.andi", OpCode::And},
      {"arith.ori", OpCode::Or},
      {"arith.xori", OpCode::Xor},
      {"arith.shli", OpCode::ShiftLeft},
      {"arith.shrsi", OpCode::ShiftRightS},
      {"arith.shrui", OpCode::ShiftRightU},
      {"arith.maxsi", OpCode::MaxS},
      {"arith.minsi", OpCode::MinS},
      {"arith.maxui", OpCode::MaxU},
      {"arith.minui", OpCode::MinU},
      {"math.absi", OpCode::AbsI},
      {"arith.cmpi", OpCode::CmpI},
      {"arith.extsi", OpCode::WrapI},
      {"arith.trunci", OpCode::WrapI},
      {"arith.index_cast", OpCode::WrapI},
      {"arith.extui", OpCode::ZeroExtend},
      {"arith.index_castui", OpCode::ZeroExtend},
      {"arith.sitofp", OpCode::SignedToFloat},
      {"arith.uitofp", OpCode::UnsignedToFloat},
      {"arith.fptosi", OpCode::FloatToSigned},
      {"arith.fptoui", OpCode::FloatToUnsigned},
  };
  auto found = table.find(name);
  return found == table.end() ? std::nullopt
                              : std::optional<OpCode>(found->second);
}

bool mlir::parc::eval::isElementwiseName(StringRef name) {
  return simpleCode(name) || name == "arith.select" ||
         name == "arith.mului_extended" || name == "arith.mulsi_extended" ||
         findUnaryFunction<double>(name) || findBinaryFunction<double>(name);
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

template <class T>
LogicalResult mlir::parc::eval::scalarConstant(Operation *op, Attribute attr,
                                               Tensor<T> &result) {
  if (auto number = dyn_cast<FloatAttr>(attr)) {
    APFloat value = number.getValue();
    bool lossy = false;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    result =
        Tensor<T>::scalar(DomainOf<T>::fromDouble(value.convertToDouble()));
    return success();
  }
  if (auto number = dyn_cast<IntegerAttr>(attr)) {
    if (number.getValue().getBitWidth() > 64)
      return op->emitOpError() << "expected an integer of at most 64 bits, got "
                               << number.getType();
    // i1 is kept as 0 and 1, all others by their sign.
    result = Tensor<T>::integer(number.getValue().getBitWidth() == 1
                                    ? int64_t(number.getValue().getZExtValue())
                                    : number.getValue().getSExtValue());
    return success();
  }
  return op->emitOpError() << "expected a constant integer or float, got "
                           << attr;
}

//===----------------------------------------------------------------------===//
// The compiler
//===----------------------------------------------------------------------===//

namespace {

template <class T> class BodyCompiler {
public:
  BodyCompiler(Operation *op, Program<T> &program)
      : root(op), program(program) {
    program.op = op;
  }

  LogicalResult addArgument(Value value, bool isOutput) {
    FailureOr<Register> reg = define(value, root);
    if (failed(reg))
      return failure();
    program.arguments.push_back({*reg, !value.use_empty()});
    if (isOutput)
      dependent.insert(value);
    return success();
  }

  /// The register of `value`, captured or made from a constant at first use.
  FailureOr<Register> use(Value value) {
    auto known = registers.find(value);
    if (known != registers.end())
      return known->second;
    FailureOr<Register> reg = define(value, root);
    if (failed(reg))
      return failure();
    if (auto constant = value.getDefiningOp<arith::ConstantOp>())
      return addConstant(constant, *reg);
    program.captures.push_back({value, *reg});
    return reg;
  }

  LogicalResult addOp(Operation &op);
  LogicalResult addResult(Value value) {
    FailureOr<Register> reg = use(value);
    if (failed(reg))
      return failure();
    program.results.push_back(*reg);
    return success();
  }
  /// Elementwise ops: operands are arguments, not scalars in scope.
  void bind(Value value, Register reg) { registers[value] = reg; }

  FailureOr<Register> define(Value value, Operation *op) {
    Type type = getElementTypeOrSelf(value.getType());
    bool isInt = type.isIntOrIndex();
    if (isa<VectorType>(value.getType()))
      return op->emitOpError() << "expected scalars, got " << value.getType();
    if (isInt && !type.isIndex() && type.getIntOrFloatBitWidth() > 64)
      return op->emitOpError()
             << "expected integers of at most 64 bits, got " << type;
    if (!isInt && !type.isF64() && !type.isF32() && !type.isBF16())
      return op->emitOpError() << "expected elements of type f64, f32, bf16, "
                                  "index or an integer, "
                                  "got "
                               << type << "; the evaluator has no other";
    unsigned &count = isInt ? program.numInts : program.numFloats;
    if (count == UINT16_MAX)
      return op->emitOpError() << "has a body of more than 65535 values";
    Register reg{isInt, uint16_t(count++)};
    registers[value] = reg;
    return reg;
  }

private:
  FailureOr<Register> addConstant(arith::ConstantOp constant, Register reg) {
    Tensor<T> value;
    if (failed(scalarConstant<T>(constant, constant.getValue(), value)))
      return failure();
    if (reg.isInt)
      program.intConstants.push_back({reg.index, value.asInt()});
    else
      program.floatConstants.push_back({reg.index, value.asFloat()});
    return reg;
  }
  LogicalResult addExtract(tensor::ExtractOp op);
  LogicalResult addExtendedMultiply(Operation &op);
  LogicalResult encode(Operation &op, Instruction<T> &instruction);

  /// Marks what depends on an output, and appends.
  void append(Operation &op, Instruction<T> instruction) {
    instruction.op = &op;
    for (Value operand : op.getOperands())
      if (dependent.contains(operand))
        instruction.dependent = true;
    if (instruction.dependent)
      for (Value result : op.getResults())
        dependent.insert(result);
    program.code.push_back(instruction);
  }

  Operation *root;
  Program<T> &program;
  llvm::DenseMap<Value, Register> registers;
  llvm::DenseSet<Value> dependent;
};

unsigned bitsOf(Type type) {
  type = getElementTypeOrSelf(type);
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

template <class T>
LogicalResult BodyCompiler<T>::addExtract(tensor::ExtractOp op) {
  FailureOr<Register> result = define(op.getResult(), op);
  if (failed(result))
    return failure();
  typename Program<T>::Extract extract;
  extract.tensor = op.getTensor();
  for (Value index : op.getIndices()) {
    FailureOr<Register> reg = use(index);
    if (failed(reg))
      return failure();
    extract.indices.push_back(reg->index);
  }
  Instruction<T> instruction;
  instruction.code = result->isInt ? OpCode::ExtractI : OpCode::ExtractF;
  instruction.dst = result->index;
  instruction.extract = uint16_t(program.extracts.size());
  program.extracts.push_back(std::move(extract));
  append(*op, instruction);
  return success();
}

/// Two results: the low and the high half of a product.
template <class T>
LogicalResult BodyCompiler<T>::addExtendedMultiply(Operation &op) {
  bool isSigned = op.getName().getStringRef() == "arith.mulsi_extended";
  FailureOr<Register> a = use(op.getOperand(0)), b = use(op.getOperand(1));
  FailureOr<Register> low = define(op.getResult(0), &op);
  FailureOr<Register> high = define(op.getResult(1), &op);
  if (failed(a) || failed(b) || failed(low) || failed(high))
    return failure();
  Instruction<T> instruction;
  instruction.width = uint8_t(bitsOf(op.getResult(0).getType()));
  instruction.a = a->index;
  instruction.b = b->index;
  instruction.dst = low->index;
  instruction.code = OpCode::MulI;
  append(op, instruction);
  instruction.dst = high->index;
  instruction.code = isSigned ? OpCode::MulHighS : OpCode::MulHighU;
  append(op, instruction);
  return success();
}

/// Chooses the code and what belongs to it, by the op's name.
template <class T>
LogicalResult BodyCompiler<T>::encode(Operation &op,
                                      Instruction<T> &instruction) {
  StringRef name = op.getName().getStringRef();
  instruction.key = functionKey(name);
  instruction.unary = findUnaryFunction<T>(name);
  instruction.binary = findBinaryFunction<T>(name);
  if (std::optional<OpCode> code = simpleCode(name))
    instruction.code = *code;
  else if (name == "arith.select")
    instruction.code =
        getElementTypeOrSelf(op.getResult(0).getType()).isIntOrIndex()
            ? OpCode::SelectI
            : OpCode::SelectF;
  else if (instruction.unary)
    instruction.code = OpCode::CallUnary;
  else if (instruction.binary)
    instruction.code = OpCode::CallBinary;
  else
    return op.emitError() << "'" << name
                          << "' is an op that the evaluator does not know; "
                             "decompose it to arith, math, linalg and tensor "
                             "first";
  if (DomainOf<T>::exact && (instruction.code == OpCode::FloatToSigned ||
                             instruction.code == OpCode::FloatToUnsigned))
    return op.emitOpError() << "has no meaning in the exact domain: a residue "
                               "is not an integer; run in f64";
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    instruction.predicate = uint8_t(compare.getPredicate());
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    instruction.predicate = uint8_t(compare.getPredicate());
  return success();
}

template <class T> LogicalResult BodyCompiler<T>::addOp(Operation &op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    FailureOr<Register> reg = define(constant.getResult(), &op);
    return success(succeeded(reg) && succeeded(addConstant(constant, *reg)));
  }
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    FailureOr<Register> reg = define(index.getResult(), &op);
    if (failed(reg))
      return failure();
    program.indices.push_back({unsigned(index.getDim()), reg->index});
    return success();
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return addExtract(extract);
  if (isa<arith::MulUIExtendedOp, arith::MulSIExtendedOp>(op))
    return addExtendedMultiply(op);

  Instruction<T> instruction;
  if (failed(encode(op, instruction)))
    return failure();
  uint16_t *sources[] = {&instruction.a, &instruction.b, &instruction.c};
  for (auto [operand, source] : llvm::zip(op.getOperands(), sources)) {
    FailureOr<Register> reg = use(operand);
    if (failed(reg))
      return failure();
    *source = reg->index;
  }
  FailureOr<Register> result = define(op.getResult(0), &op);
  if (failed(result))
    return failure();
  instruction.dst = result->index;
  Type type = getElementTypeOrSelf(op.getResult(0).getType());
  instruction.round = type.isBF16();
  Type source = getElementTypeOrSelf(op.getOperand(0).getType());
  if (source.isIntOrIndex())
    instruction.sourceWidth = uint8_t(bitsOf(source));
  instruction.width = instruction.code == OpCode::CmpI ? instruction.sourceWidth
                                                       : uint8_t(bitsOf(type));
  append(op, instruction);
  return success();
}

} // namespace

template <class T>
LogicalResult mlir::parc::eval::compileBody(Operation *op, Block &body,
                                            unsigned numInputs,
                                            Program<T> &program) {
  BodyCompiler<T> builder(op, program);
  for (BlockArgument argument : body.getArguments())
    if (failed(builder.addArgument(argument,
                                   argument.getArgNumber() >= numInputs)))
      return failure();
  for (Operation &inner : body.without_terminator())
    if (failed(builder.addOp(inner)))
      return failure();
  for (Value value : body.getTerminator()->getOperands())
    if (failed(builder.addResult(value)))
      return failure();
  // Independent instructions first: they run for many iterations at once even
  // where the outputs accumulate. Order within both groups stays.
  std::stable_partition(
      program.code.begin(), program.code.end(),
      [](const Instruction<T> &instruction) { return !instruction.dependent; });
  return success();
}

template <class T>
LogicalResult mlir::parc::eval::compileElementwise(Operation *op,
                                                   Program<T> &program) {
  BodyCompiler<T> builder(op, program);
  // An operand used twice is one value and thus one register; each of its
  // places is still an argument.
  llvm::DenseMap<Value, Register> seen;
  for (Value operand : op->getOperands()) {
    auto known = seen.find(operand);
    if (known != seen.end()) {
      program.arguments.push_back({known->second, false});
      continue;
    }
    FailureOr<Register> reg = builder.define(operand, op);
    if (failed(reg))
      return failure();
    seen[operand] = *reg;
    program.arguments.push_back({*reg, true});
  }
  if (failed(builder.addOp(*op)))
    return failure();
  for (Value result : op->getResults())
    if (failed(builder.addResult(result)))
      return failure();
  return success();
}

#define PARC_INSTANTIATE(T)                                                    \
  template LogicalResult mlir::parc::eval::compileBody(                        \
      Operation *, Block &, unsigned, Program<T> &);                           \
  template LogicalResult mlir::parc::eval::compileElementwise(Operation *,     \
                                                              Program<T> &);   \
  template LogicalResult mlir::parc::eval::scalarConstant(                     \
      Operation *, Attribute, Tensor<T> &);
PARC_EVAL_FOR_EACH_DOMAIN(PARC_INSTANTIATE)
#undef PARC_INSTANTIATE
