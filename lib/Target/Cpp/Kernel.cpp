//===- Kernel.cpp - Kernels as C++ functions
//------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Prints maps and reductions. Elements that all lie alike are walked as one
/// line; else there is a loop a dimension, the innermost contiguous.
///
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::cpp;

namespace {

/// Prints one kernel with parameters named by position.
class KernelPrinter {
public:
  explicit KernelPrinter(Operation *op) : op(op) {}

  /// The function's parameters and body, without its name.
  FailureOr<std::string> print();
  KernelCall call;

private:
  std::string parameter(Value tensor);
  std::string capture(Value scalar);
  bool isFlat() const;
  LogicalResult printBlock(ScalarPrinter &printer, Block &block);
  std::string readOf(ScalarPrinter &printer, rt::AtOp at);
  std::string indexList(ScalarPrinter &printer, OperandRange indices);
  LogicalResult printMap(raw_ostream &os);
  LogicalResult printReduce(raw_ostream &os, rt::ReduceOp reduce);
  void printStores(raw_ostream &os, ScalarPrinter &printer, Block &block,
                   const std::string &indices, StringRef indent);
  Block &body() { return op->getRegion(0).front(); }
  int64_t rank() const {
    return cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  }

  Operation *op;
  bool flat = false;
  llvm::MapVector<Value, std::string> tensors, scalars;
};

/// `i`, `j`, and so on.
std::string loopName(unsigned number) {
  return std::string(1, static_cast<char>('i' + number));
}

std::string loopParameters(unsigned count) {
  std::string text;
  for (unsigned number = 0; number < count; ++number)
    text += (number ? ", int64_t " : "int64_t ") + loopName(number);
  return text;
}

std::string loopList(unsigned count) {
  std::string text;
  for (unsigned number = 0; number < count; ++number)
    text += (number ? ", " : "") + loopName(number);
  return text;
}

std::string resultName(unsigned number, unsigned count) {
  return count == 1 ? "y" : "y" + std::to_string(number);
}

} // namespace

std::string KernelPrinter::parameter(Value tensor) {
  std::string &name = tensors[tensor];
  if (name.empty()) {
    size_t number = tensors.size() - 1;
    name = number < 8 ? std::string(1, static_cast<char>('a' + number))
                      : "a" + std::to_string(number);
  }
  return name;
}

std::string KernelPrinter::capture(Value scalar) {
  std::string &name = scalars[scalar];
  if (name.empty())
    name = "p" + std::to_string(scalars.size() - 1);
  return name;
}

/// True where every tensor is read at the loops' indices, in order, or is one
/// number: then sizes do not matter.
bool KernelPrinter::isFlat() const {
  for (Region &region : op->getRegions()) {
    Block &block = region.front();
    SmallVector<Value> loops;
    for (BlockArgument argument : block.getArguments())
      if (argument.getType().isIndex())
        loops.push_back(argument);
    for (Value loop : loops)
      for (Operation *user : loop.getUsers())
        if (!isa<rt::AtOp>(user))
          return false;
    for (auto at : block.getOps<rt::AtOp>())
      if (!at.getIndices().empty() && !llvm::equal(at.getIndices(), loops))
        return false;
  }
  return !isa<rt::ReduceOp>(op) || rank() == 0;
}

std::string KernelPrinter::indexList(ScalarPrinter &printer,
                                     OperandRange indices) {
  std::string text;
  for (Value index : indices) {
    if (!text.empty())
      text += ", ";
    text += printer.bare(index);
  }
  return text;
}

std::string KernelPrinter::readOf(ScalarPrinter &printer, rt::AtOp at) {
  std::string name = parameter(at.getTensor());
  if (at.getIndices().empty())
    return name + "()";
  if (flat)
    return name + ".data[i]";
  return name + ".unit(" + indexList(printer, at.getIndices()) + ")";
}

LogicalResult KernelPrinter::printBlock(ScalarPrinter &printer, Block &block) {
  for (Operation &inner : block.without_terminator()) {
    for (Value operand : inner.getOperands()) {
      if (printer.knows(operand) || isa<RankedTensorType>(operand.getType()))
        continue;
      // A number of the region around: it comes as a parameter.
      auto constant = operand.getDefiningOp<arith::ConstantOp>();
      printer.name(operand,
                   constant ? number(constant.getValue()) : capture(operand));
    }
    if (auto at = dyn_cast<rt::AtOp>(inner))
      printer.define(at.getResult(), readOf(printer, at));
    else if (failed(printer.print(&inner)))
      return failure();
  }
  for (Value operand : block.getTerminator()->getOperands())
    if (!printer.knows(operand)) {
      auto constant = operand.getDefiningOp<arith::ConstantOp>();
      printer.name(operand,
                   constant ? number(constant.getValue()) : capture(operand));
    }
  return success();
}

void KernelPrinter::printStores(raw_ostream &os, ScalarPrinter &printer,
                                Block &block, const std::string &indices,
                                StringRef indent) {
  unsigned count = op->getNumResults();
  for (auto [number, value] :
       llvm::enumerate(block.getTerminator()->getOperands())) {
    std::string name = resultName(number, count);
    std::string to = rank() == 0 ? name + "()"
                     : flat      ? name + ".data[i]"
                                 : name + ".unit(" + indices + ")";
    os << indent << to << " = " << printer.bare(value) << ";\n";
  }
}

LogicalResult KernelPrinter::printMap(raw_ostream &os) {
  unsigned loops = flat ? 1 : static_cast<unsigned>(rank());
  std::string first = resultName(0, op->getNumResults());
  os << "  map<" << loops << ">(r, {";
  if (flat)
    os << first << ".size()";
  else
    for (unsigned dim = 0; dim < loops; ++dim)
      os << (dim ? ", " : "") << first << ".dim(" << dim << ')';
  os << "}, PARC_FN(" << loopParameters(loops) << ") {\n";
  ScalarPrinter printer(os, "    ");
  for (auto [number, argument] : llvm::enumerate(body().getArguments()))
    printer.name(argument, loopName(number));
  if (failed(printBlock(printer, body())))
    return failure();
  printStores(os, printer, body(), loopList(loops), "    ");
  os << "  });\n";
  return success();
}

/// The neutral element of a combiner.
static std::string neutral(rt::Combiner kind, Type type) {
  bool isFloat = isa<FloatType>(type);
  std::string infinity = type.isF64() ? "HUGE_VAL" : "HUGE_VALF";
  switch (kind) {
  case rt::Combiner::Sum:
    return type.isF64() ? "0.0" : isFloat ? "0.0f" : scalarType(type) + "(0)";
  case rt::Combiner::Max:
    return isFloat ? "-" + infinity : scalarType(type) + "(INT64_MIN)";
  case rt::Combiner::Min:
    return isFloat ? infinity : scalarType(type) + "(INT64_MAX)";
  }
  return "";
}

/// True where the innermost index of the results runs through memory, rather
/// than that of the reduction.
static bool runsAlongResult(rt::ReduceOp reduce, int64_t rank) {
  if (rank == 0)
    return false;
  Block &block = reduce.getBody().front();
  int along = 0;
  for (auto at : block.getOps<rt::AtOp>())
    if (!at.getIndices().empty()) {
      Value last = at.getIndices().back();
      // A tensor of all dimensions counts more than a row of weights.
      int weight = static_cast<int>(at.getIndices().size());
      if (last == block.getArgument(rank - 1))
        along += weight;
      else if (last == block.getArguments().back())
        along -= weight;
    }
  return along > 0;
}

LogicalResult KernelPrinter::printReduce(raw_ostream &os, rt::ReduceOp reduce) {
  auto kept = static_cast<unsigned>(rank());
  auto summed = static_cast<unsigned>(reduce.getSizes().size());
  Block &block = body();
  Value term = block.getTerminator()->getOperand(0);
  Type type = term.getType();
  bool narrow = type.isBF16();
  std::string accumulator = narrow ? "float" : scalarType(type);
  std::string kind = reduce.getKind() == rt::Combiner::Sum   ? "Sum"
                     : reduce.getKind() == rt::Combiner::Max ? "Max"
                                                             : "Min";
  // Sizes come from the first tensor that is walked as a line.
  unsigned loops = flat ? 1 : summed;
  os << "  reduce<" << kept << ", " << loops
     << (runsAlongResult(reduce, rank()) ? ", Inner::parallel" : "")
     << ">(r, {";
  std::string first = resultName(0, op->getNumResults());
  for (unsigned dim = 0; dim < kept; ++dim)
    os << (dim ? ", " : "") << first << ".dim(" << dim << ')';
  os << "}, {";
  for (unsigned dim = 0; dim < loops; ++dim)
    os << (dim ? ", " : "") << (flat ? "n" : "n" + std::to_string(dim));
  os << "}, "
     << (narrow ? neutral(reduce.getKind(), Float32Type::get(op->getContext()))
                : neutral(reduce.getKind(), type))
     << ", " << kind << "(), PARC_FN(" << loopParameters(kept + loops)
     << ") {\n";
  ScalarPrinter printer(os, "    ");
  for (auto [number, argument] : llvm::enumerate(block.getArguments()))
    printer.name(argument, loopName(number));
  if (failed(printBlock(printer, block)))
    return failure();
  os << "    return "
     << (narrow ? "float(" + printer.bare(term) + ")" : printer.bare(term))
     << ";\n  }, PARC_FN(" << loopParameters(kept) << (kept ? ", " : "")
     << accumulator << " total) {\n";
  Block &finish = reduce.getFinish().front();
  ScalarPrinter last(os, "    ");
  for (auto [number, argument] : llvm::enumerate(finish.getArguments()))
    if (number < kept)
      last.name(argument, loopName(number));
    else
      last.name(argument, narrow ? "BFloat16(total)" : "total");
  if (failed(printBlock(last, finish)))
    return failure();
  printStores(os, last, finish, loopList(kept), "    ");
  os << "  });\n";
  call.sizes = flat ? KernelCall::Sizes::Product : KernelCall::Sizes::Each;
  return success();
}

FailureOr<std::string> KernelPrinter::print() {
  flat = isFlat();
  std::string text;
  llvm::raw_string_ostream os(text);
  auto reduce = dyn_cast<rt::ReduceOp>(op);
  if (failed(reduce ? printReduce(os, reduce) : printMap(os)))
    return failure();
  std::string head = "(Rank &r";
  for (auto [number, type] : llvm::enumerate(op->getResultTypes()))
    head += ", View<" + scalarType(getElementTypeOrSelf(type)) + "> " +
            resultName(number, op->getNumResults());
  for (auto &[tensor, name] : tensors) {
    head += ", In<" + scalarType(getElementTypeOrSelf(tensor.getType())) +
            "> " + name;
    call.tensors.push_back(tensor);
  }
  for (auto &[scalar, name] : scalars) {
    head += ", " + scalarType(scalar.getType()) + " " + name;
    call.scalars.push_back(scalar);
  }
  if (reduce) {
    unsigned sizes = reduce.getSizes().size();
    for (unsigned dim = 0; dim < (flat ? 1 : sizes); ++dim)
      head += ", int64_t " + (flat ? "n" : "n" + std::to_string(dim));
  }
  return head + ") {\n" + text + "}\n";
}

FailureOr<KernelCall> KernelTable::get(Operation *op) {
  KernelPrinter printer(op);
  FailureOr<std::string> text = printer.print();
  if (failed(text))
    return failure();
  KernelCall call = printer.call;
  std::string &function = known[*text];
  if (function.empty()) {
    StringRef name = nameOf(op->getLoc());
    function = scope.take((name.empty() ? StringRef("kernel") : name).str() +
                          (isa<rt::ReduceOp>(op) ? ".sum" : ""));
    printed += "\nstatic void " + function + *text;
  }
  call.function = function;
  return call;
}
