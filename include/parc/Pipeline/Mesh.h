//===- Mesh.h - Named axes of devices ---------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A mesh: named axes with sizes whose product is the number of devices. The
/// written order of the axes never places ranks; RankGrid does that.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_PIPELINE_MESH_H
#define PARC_PIPELINE_MESH_H

#include "parc/Pipeline/Text.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace mlir::parc {

/// One axis of a mesh.
struct MeshAxis {
  std::string name;
  int64_t size = 1;

  friend bool operator==(const MeshAxis &a, const MeshAxis &b) {
    return a.name == b.name && a.size == b.size;
  }
};

/// Named axes with positive sizes. Every mesh that exists is within the caps,
/// so products of its sizes never overflow.
class Mesh {
public:
  static constexpr int64_t maxAxes = 16;
  static constexpr int64_t maxDevices = int64_t(1) << 20;

  /// One device, no axis.
  Mesh() = default;

  /// A mesh of the given axes. Errors: an empty or repeated name, a size below
  /// one, more than `maxAxes` axes, more than `maxDevices` devices. The error's
  /// offset is the index of the offending axis.
  static std::optional<Mesh> get(llvm::ArrayRef<MeshAxis> axes,
                                 TextError &error);

  /// Reads `tp=8,pp=16,dp=4` (names of `commandLineAxes`, any order, each at
  /// most once) or the short form `8x16x4`, whose sizes are tp, pp and dp.
  static std::optional<Mesh> parse(llvm::StringRef text, TextError &error);

  /// The axes that a command line may name: tp, cp, dp, pp.
  static llvm::ArrayRef<llvm::StringRef> commandLineAxes();

  llvm::ArrayRef<MeshAxis> axes() const { return meshAxes; }
  /// Index of the axis `name` in `axes()`.
  std::optional<size_t> indexOf(llvm::StringRef name) const;
  /// Size of the axis `name`; an axis that the mesh does not have has size 1.
  int64_t size(llvm::StringRef name) const;
  /// Product of all sizes.
  int64_t devices() const;
  /// `tp=8,pp=16,dp=4`; parses back to an equal mesh.
  std::string str() const;

  friend bool operator==(const Mesh &a, const Mesh &b) {
    return a.meshAxes == b.meshAxes;
  }

private:
  llvm::SmallVector<MeshAxis, 4> meshAxes;
};

} // namespace mlir::parc

#endif // PARC_PIPELINE_MESH_H
