//===- Weights.h - The values of a model's parameters -----------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Finds the parameters of a module in safetensors files: one, or shards with
/// an index. Everything is checked before a value is read.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_IMPORT_WEIGHTS_H
#define PARC_IMPORT_WEIGHTS_H

#include "Parc/Parc.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parc {
class SafetensorsFile;
struct FileTensor;
enum class DType : uint8_t;
} // namespace parc

namespace mlir::parc {

/// `model.safetensors` or `model.safetensors.index.json` in a folder, the
/// first that exists; nothing where neither does.
std::optional<std::string> findWeights(StringRef folder);

/// Mapped checkpoint files. Movable; values read stay valid without it.
class Weights {
public:
  /// Opens a safetensors file, or the shards that an index (`*.json`) lists,
  /// which lie beside it. Emits an error, at the file, for what is not whole
  /// and well formed.
  static FailureOr<Weights> open(MLIRContext *context, StringRef path);
  Weights(Weights &&);
  Weights &operator=(Weights &&);
  ~Weights();

  /// Whether every parameter of `module`, every layer's, has its tensor, of
  /// its shape and of floats. Emits one error with the first faults, and one
  /// warning for tensors that no parameter asks for, buffers aside.
  LogicalResult check(ModuleOp module) const;

  /// Reads the box `[offsets, offsets + sizes)` of a parameter's layer (0 where
  /// it has no layers), converted to `type` (f32, f64, bf16), row-major, into
  /// `out`. Emits an error where the tensor is missing or of another shape.
  LogicalResult read(ParamOp param, int64_t layer, ArrayRef<int64_t> offsets,
                     ArrayRef<int64_t> sizes, ::parc::DType type,
                     void *out) const;

  /// The name of the tensor that holds a parameter's layer in these files, or
  /// row `row` of it where each row is a tensor. Some files leave out the first
  /// part of each name; empty where missing.
  std::string findName(ParamOp param, int64_t layer, int64_t row = 0) const;

private:
  Weights(MLIRContext *context, StringRef path);
  LogicalResult openShards(StringRef index);
  LogicalResult openFile(StringRef path);
  const ::parc::SafetensorsFile *
  findFile(StringRef name, const ::parc::FileTensor **tensor = nullptr) const;
  /// What is wrong with a parameter's layer, or a row of it; empty where
  /// nothing is.
  std::string explainFault(ParamOp param, int64_t layer, int64_t row,
                           ArrayRef<StringRef> names) const;
  /// Reads a box of one tensor.
  LogicalResult readTensor(ParamOp param, int64_t layer, int64_t row,
                           ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
                           ::parc::DType type, void *out) const;
  void warnUnused(ArrayRef<StringRef> unused) const;
  std::vector<StringRef> getNames() const;

  MLIRContext *context;
  std::string path;
  std::vector<std::unique_ptr<::parc::SafetensorsFile>> files;
};

} // namespace mlir::parc

#endif // PARC_IMPORT_WEIGHTS_H
