//===- PlanFile.h - Reading plan.toml ---------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// plan.toml: the declaration's keys, and rules that say how parameters lie on
/// the mesh.
///
///     schema = 1
///     mesh = "tp=2,pp=2,dp=2"
///     batch = 4
///     [rules]
///     up = [["tp"], []]
///     "model.layers.*.mlp.down_proj.weight" = [[], ["tp"]]
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_PLANFILE_H
#define PARC_DRIVER_PLANFILE_H

#include "parc/Driver/Report.h"

#include <optional>
#include <vector>

namespace mlir::parc::driver {

/// What kind of value a key takes.
enum class KeyType { Text, Integer, Real, Boolean };

/// A key of plan.toml, which is also a flag.
struct KeySpec {
  StringLiteral name;
  KeyType type;
};

/// Every key but `schema` and `rules`.
ArrayRef<KeySpec> planKeys();

/// A value as it was written, and where.
struct RawValue {
  std::string text;
  Place place;
};

/// A wish for the layout of the parameters that `pattern` names: a symbol, or a
/// glob on checkpoint names (`*` stands for the layer).
struct ShardingRule {
  std::string pattern;
  /// The axes of each dimension.
  std::vector<std::vector<std::string>> dims;
  Place place;
};

struct PlanFile {
  std::string path;
  std::map<std::string, RawValue> keys;
  std::vector<ShardingRule> rules;
};

/// Reads a plan. Errors: text that is no TOML, a missing or other schema, an
/// unknown key (with the nearest), a value of the wrong type.
std::optional<PlanFile> readPlan(StringRef path, StringRef text,
                                 Reporter &reporter);

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_PLANFILE_H
