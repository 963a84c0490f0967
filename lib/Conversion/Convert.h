//===- Convert.h - Parts of parc-to-rt --------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the files of parc-to-rt share: the tables, and the cloning walk that
/// turns one region after the other into runtime calls.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_LIB_CONVERSION_CONVERT_H
#define PARC_LIB_CONVERSION_CONVERT_H

#include "Parc/Parc.h"
#include "mlir/IR/IRMapping.h"
#include "parc/Conversion/Passes.h"

#include <map>

namespace mlir::parc {

/// Sizes of axes and the communicators used so far.
class ProgramTables {
public:
  ProgramTables(ModuleOp module, OpBuilder &builder)
      : module(module), builder(builder) {}

  /// Makes the mesh, parameter and schedule tables of `module`.
  LogicalResult build();
  /// Ranks that a collective over `axes` joins, of the stages only `stages`.
  int64_t members(ArrayAttr axes,
                  std::optional<ArrayRef<int64_t>> stages = std::nullopt) const;
  /// The symbol of that communicator.
  FlatSymbolRefAttr
  group(ArrayAttr axes, std::optional<ArrayRef<int64_t>> stages = std::nullopt);
  int64_t sizeOf(StringRef axis) const;

private:
  LogicalResult buildMesh();
  LogicalResult buildParams();
  LogicalResult buildSchedule();
  /// The first stage whose role names `symbol`.
  int64_t firstStage(StringRef symbol);

  ModuleOp module;
  OpBuilder &builder;
  std::map<std::string, int64_t> sizes;
  std::map<std::string, FlatSymbolRefAttr> groups;
  int64_t stages = 1, microBatches = 1;
};

/// Turns one region of a role into runtime calls.
class RegionConverter {
public:
  RegionConverter(ProgramTables &tables, OpBuilder builder)
      : tables(tables), builder(builder) {}

  /// Converts `from` to the end of `to`, which gets its arguments.
  LogicalResult convert(Block &from, Block &to);

private:
  //===--- RoleConverter.cpp: structure and communication -----------------===//
  LogicalResult convertOps(Block &from);
  LogicalResult convertOp(Operation &op);
  LogicalResult convertStack(StackOp op);
  LogicalResult convertStart(StartOp op);
  void convertWait(WaitOp op);
  LogicalResult convertLastMicro(LastMicroOp op);
  LogicalResult convertAllReduce(AllReduceOp op);
  LogicalResult convertMoves(Operation &op);
  LogicalResult convertOwn(OwnOp op);
  LogicalResult convertSlice(parc::SliceOp op);
  LogicalResult convertListSlice(parc::SliceOp op, Value input,
                                 RankedTensorType type);
  LogicalResult convertExtractSlice(tensor::ExtractSliceOp op);
  LogicalResult convertInsertSlice(tensor::InsertSliceOp op);
  /// The old program's size or offset as a value of the new one.
  Value indexOf(Location loc, OpFoldResult part);
  /// Starts of a part in the whole, less that of the part it is cut from.
  Value partStart(Location loc, ArrayAttr outer, ArrayAttr axes, int64_t extent,
                  int64_t grain);

  //===--- Kernels.cpp ----------------------------------------------------===//
  LogicalResult convertElementwise(Operation &op);
  LogicalResult convertLinalg(linalg::LinalgOp op);
  bool convertContraction(linalg::LinalgOp op);
  bool convertScatter(linalg::LinalgOp op);
  LogicalResult convertMap(linalg::LinalgOp op, ArrayRef<unsigned> results);
  LogicalResult convertReduction(linalg::LinalgOp op, unsigned result);
  Value widened(Value value, Type type);
  /// The value made for `value`; constants and fills become tensors.
  Value get(Value value);
  /// An element of `tensor`, a value of the old program.
  Value element(OpBuilder &b, Location loc, Value tensor, ValueRange indices);
  /// The element that `map` reads at the loops' `indices`.
  Value element(OpBuilder &b, Location loc, Value tensor, AffineMap map,
                ValueRange indices);
  /// A scalar of the old program, in a kernel's body.
  Value scalar(OpBuilder &b, IRMapping &local, Value value);
  /// Copies an op of a body; `loops` are the values of linalg.index.
  LogicalResult copyScalarOp(OpBuilder &b, IRMapping &local, Operation &op,
                             ValueRange loops);
  /// Sizes that the type of `value` leaves open.
  SmallVector<Value> openSizes(Value value);
  Value sizeOf(Location loc, Value value, int64_t dim);
  /// The constant that fills `tensor`, or null.
  TypedAttr fillOf(Value tensor);

  ProgramTables &tables;
  OpBuilder builder;
  IRMapping mapping;
};

/// Joins kernels in all blocks under `op`.
void clusterKernels(Operation *op);

} // namespace mlir::parc

#endif // PARC_LIB_CONVERSION_CONVERT_H
