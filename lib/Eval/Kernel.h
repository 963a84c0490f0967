//===- Kernel.h - Scalar bodies as register programs ------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The scalar body of a linalg op, or one elementwise op, compiled once to a
/// flat list of instructions over registers, and the loop nest that runs it.
/// A register holds a lane for each of up to kLanes iterations of the innermost
/// loop, so that an instruction's dispatch is paid once for all of them.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_EVAL_KERNEL_H
#define PARC_LIB_EVAL_KERNEL_H

#include "parc/Eval/Tensor.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::parc::eval {

inline constexpr int64_t kLanes = 128;

enum class OpCode : uint8_t {
  // Floats.
  AddF,
  SubF,
  MulF,
  DivF,
  MaxF,
  MinF,
  MaxNumF,
  MinNumF,
  NegF,
  FmaF,
  PowIntF,
  CallUnary,
  CallBinary,
  CopyF,
  SelectF,
  CmpF,
  ExtractF,
  // Integers, wrapped to `width` bits.
  AddI,
  SubI,
  MulI,
  MulHighS,
  MulHighU,
  DivS,
  DivU,
  RemS,
  RemU,
  CeilDivS,
  CeilDivU,
  FloorDivS,
  And,
  Or,
  Xor,
  ShiftLeft,
  ShiftRightS,
  ShiftRightU,
  MaxS,
  MinS,
  MaxU,
  MinU,
  AbsI,
  CopyI,
  WrapI,
  ZeroExtend,
  SelectI,
  CmpI,
  ExtractI,
  // Between the two.
  SignedToFloat,
  UnsignedToFloat,
  FloatToSigned,
  FloatToUnsigned,
};

/// One instruction. Float and integer registers are numbered apart; which file
/// an index means follows from the code.
template <class T> struct Instruction {
  OpCode code = OpCode::CopyF;
  /// Rounds the result to bf16.
  bool round = false;
  /// Depends on the value that an output has so far.
  bool dependent = false;
  /// A comparison's predicate, as in arith.
  uint8_t predicate = 0;
  /// Bits of a conversion's operand.
  uint8_t sourceWidth = 64;
  /// Bits of the integers worked on; 64 for index.
  uint8_t width = 64;
  uint16_t dst = 0, a = 0, b = 0, c = 0;
  /// The index into Program::extracts.
  uint16_t extract = 0;
  uint64_t key = 0;
  UnaryFn<T> unary = nullptr;
  BinaryFn<T> binary = nullptr;
  Operation *op = nullptr;
};

/// A register, in the file that `isInt` names.
struct Register {
  bool isInt = false;
  uint16_t index = 0;
};

/// A compiled body. Arguments are the loop nest's operands in order.
template <class T> struct Program {
  struct Argument {
    Register reg;
    bool used = false;
  };
  struct Capture {
    Value value;
    Register reg;
  };
  /// A tensor read at computed indices.
  struct Extract {
    Value tensor;
    llvm::SmallVector<uint16_t, 4> indices;
  };
  struct LoopIndex {
    unsigned dim;
    uint16_t reg;
  };

  unsigned numFloats = 0, numInts = 0;
  llvm::SmallVector<Argument, 4> arguments;
  llvm::SmallVector<Capture, 2> captures;
  llvm::SmallVector<Extract, 1> extracts;
  llvm::SmallVector<LoopIndex, 2> indices;
  llvm::SmallVector<std::pair<uint16_t, T>, 2> floatConstants;
  llvm::SmallVector<std::pair<uint16_t, int64_t>, 2> intConstants;
  std::vector<Instruction<T>> code;
  llvm::SmallVector<Register, 2> results;
  /// A sum over one-hot rows, `out + (a == b ? x : 0)` where one of a and b is
  /// the position in loop `dim` plus what does not depend on it: of that loop
  /// only one iteration matters. `compare` is the index of the comparison in
  /// `code`, which reads the arguments and the loops named here.
  struct OneHot {
    unsigned dim = 0;
    size_t compare = 0;
    llvm::SmallVector<unsigned, 4> arguments, loops;
    /// b is the side that counts with the loop.
    bool countsInB = false;
  };
  std::optional<OneHot> oneHot;
  /// The operation whose body this is; errors are located there.
  Operation *op = nullptr;
};

/// Compiles the body of a structured op whose first `numInputs` arguments are
/// inputs and the rest outputs. Emits a located error for an op or a type that
/// the evaluator does not know.
template <class T>
LogicalResult compileBody(Operation *op, Block &body, unsigned numInputs,
                          Program<T> &program);
/// Compiles one elementwise op: an argument an operand, a result a result.
template <class T>
LogicalResult compileElementwise(Operation *op, Program<T> &program);
/// True where compileElementwise knows ops of this name.
bool isElementwiseName(llvm::StringRef name);
/// The number or integer that a scalar attribute holds; emits an error at `op`
/// for any other kind.
template <class T>
LogicalResult scalarConstant(Operation *op, Attribute attr, Tensor<T> &result);

/// How an operand's elements lie under the loops.
template <class T> struct Access {
  bool isInt = false;
  const T *floats = nullptr;
  const int64_t *ints = nullptr;
  T *outFloats = nullptr;
  int64_t *outInts = nullptr;
  /// Elements from one iteration to the next, by loop, and at the origin.
  Shape strides;
  int64_t origin = 0;
  /// Set where an index is not linear in the loops: then map and shape decide.
  AffineMap map;
  Shape shape;
};

/// Everything that one run of a program needs. Inputs come first.
template <class T> struct KernelCall {
  llvm::SmallVector<Access<T>, 4> accesses;
  unsigned numInputs = 0;
  Shape extents;
  /// The values of Program::captures and ::extracts.
  llvm::SmallVector<Tensor<T>, 2> captures, extracts;
};

/// Runs `program` over all iterations. Emits a located error for an index
/// outside its tensor or a division of integers by zero.
template <class T>
LogicalResult runKernel(const Program<T> &program, KernelCall<T> &call);

/// The innermost loop to vectorise: the longest in which no two iterations
/// write the same element; none where there is no such loop. `except` is taken
/// only where there is no other.
template <class T>
std::optional<unsigned>
chooseInnermost(llvm::ArrayRef<Access<T>> outputs,
                llvm::ArrayRef<int64_t> extents,
                std::optional<unsigned> except = std::nullopt);

} // namespace mlir::parc::eval

#endif // PARC_LIB_EVAL_KERNEL_H
