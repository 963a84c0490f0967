//===- Program.h - What the files of a program share ------------------*- C++
//-*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Names of tables' rows, the ops behind them, and the printer of regions.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_TARGET_CPP_PROGRAM_H
#define PARC_LIB_TARGET_CPP_PROGRAM_H

#include "Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "parc/Target/Cpp.h"
#include "llvm/ADT/SetVector.h"

#include <map>

namespace mlir::parc::cpp {

/// The module, its tables, and what their rows are called.
struct ProgramNames {
  /// Fails where the module has no tables.
  static FailureOr<ProgramNames> of(ModuleOp module);

  ModuleOp module;
  /// The whole batch.
  int64_t batch = 1, seq = 1;
  mutable rt::MeshOp mesh;
  mutable rt::ScheduleOp schedule;
  SmallVector<rt::ParamOp> params;
  SmallVector<rt::GroupOp> groups;
  SmallVector<rt::RoleOp> roles;
  /// Identifiers by symbol.
  std::map<std::string, std::string> paramNames, groupNames, roleNames,
      axisNames, stackNames, streamNames;
  /// Streams in order, the compute stream first.
  SmallVector<std::string> streams;
  /// Slots in order, `value` first, and which are sums over a step.
  SmallVector<std::string> slots;
  std::map<std::string, std::string> slotNames;
  uint64_t sumSlots = 0;

  /// `P::q`, `Slot::grad`.
  std::string param(StringRef symbol) const;
  std::string slot(StringRef name) const;
  std::string stream(StringRef name) const;
  /// `{2, {Axis::dp, Axis::mb}}`; axes that the mesh lacks are left out.
  std::string axes(ArrayAttr names) const;
  /// The stack whose layers a parameter has, by number; -1 for none.
  int stackOf(rt::ParamOp param) const;
  bool hasLayers(StringRef symbol) const;
};

/// What a stack's starts that are ahead of their layer are called: the type
/// that holds what they give, and the function that begins them for a layer.
struct AheadNames {
  std::string type, function;
  /// In the layer's function: what was started for it.
  std::string variable;
  SmallVector<std::string> fields;
  /// Values from outside the stack that the function takes.
  SmallVector<Value> outside;
};

bool isCollective(Operation *op);
/// The wait for what a start gives; null where it gives nothing.
rt::WaitOp waitOf(rt::StartOp start);
/// The values from outside that a start's body reads.
llvm::SetVector<Value> readByStart(rt::StartOp op);

/// What printing one stage's file collects.
struct StageFile {
  const ProgramNames &names;
  KernelTable kernels;
  Scope functions;
  /// Functions of stacks' bodies, in the order of calls.
  std::string bodies;
  /// Constant tensors by name.
  SmallVector<std::pair<std::string, arith::ConstantOp>> constants;
  Scope constantScope;
  std::map<Operation *, AheadNames> ahead = {};
};

/// Prints the ops of one block as statements.
class BodyPrinter {
public:
  /// `layer` is the layer's expression, or empty outside stacks.
  BodyPrinter(StageFile &file, std::string layer)
      : file(file), layer(std::move(layer)), os(text) {}

  /// Declares a name for a value from elsewhere.
  std::string declare(Value value, StringRef base);
  void bind(Value value, std::string name) { names[value] = std::move(name); }
  /// Values of this function, which go at their last use.
  void own(Value value) { owned.insert(value); }
  std::string get(Value value) const;
  /// Prints all but the terminator.
  LogicalResult print(Block &block);
  raw_ostream &stream() { return os; }
  StringRef printed() const { return text; }

private:
  LogicalResult printOp(Operation &op);
  LogicalResult printKernel(Operation &op);
  LogicalResult printContract(rt::ContractOp op);
  LogicalResult printScatter(rt::ScatterRowsOp op);
  LogicalResult printStack(rt::StackOp op);
  LogicalResult printCollective(Operation &op);
  //===--- Streams.cpp ----------------------------------------------------===//
  LogicalResult printStart(rt::StartOp op);
  LogicalResult printStartBody(rt::StartOp op);
  LogicalResult printAhead(rt::StartOp op, StringRef stack);
  void printWait(rt::WaitOp op);
  LogicalResult printLastMicro(rt::LastMicroOp op);
  /// `c.slot(P::q, layer, Slot::grad)` where the collective `op`, of a start,
  /// gives what only that slot gets; else empty.
  std::string storedTo(Operation &op);
  LogicalResult printView(Operation &op);
  LogicalResult printIndex(Operation &op);
  void printConstant(arith::ConstantOp op);
  void printComment(Operation &op);
  void printReleases(Operation &op);
  void findLastUses(Block &block);
  /// `c.make<float>({4, n})`.
  std::string make(Value result, ArrayRef<std::string> sizes) const;
  SmallVector<std::string> sizes(Type type, ValueRange open) const;
  std::string size(Value tensor, int64_t dim) const;
  std::string slotArguments(StringRef param, StringRef slot) const;
  /// The accumulation that alone reads `value`, if any.
  rt::AccumulateOp onlyAccumulated(Value value) const;
  std::string type(Value value) const;

  StageFile &file;
  std::string layer;
  std::string text;
  llvm::raw_string_ostream os;
  std::string indent = "  ";
  Scope scope;
  llvm::DenseMap<Value, std::string> names;
  llvm::DenseSet<Value> owned;
  llvm::DenseMap<Operation *, SmallVector<Value>> lastUses;
  llvm::DenseSet<Operation *> done;
  std::string lastComment;
  /// The expression of the layer that follows, negative for none.
  std::string nextLayer;
  /// The ticket of each start.
  llvm::DenseMap<Operation *, std::string> tickets;
};

/// The size of a value's dimension as it can be told before the value is there:
/// a number, or a call of the context. Empty where it cannot.
std::string sizeText(const ProgramNames &names, Value value, int64_t dim);

/// `Value<float>` or `Layers<float>`.
std::string valueType(Type type);

/// The text of src/stage_ROLE.cpp.
FailureOr<std::string> printStage(const ProgramNames &names, rt::RoleOp role,
                                  const CppOptions &options);
/// The text of src/tables.h.
FailureOr<std::string> printTables(const ProgramNames &names,
                                   const CppOptions &options);

} // namespace mlir::parc::cpp

#endif // PARC_LIB_TARGET_CPP_PROGRAM_H
