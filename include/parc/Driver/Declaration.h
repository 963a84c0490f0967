//===- Declaration.h - What to compile --------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The declaration: mesh, batch, schedule and so on, each with the place that
/// it came from. A flag wins over the plan, the plan over the model, the model
/// over the default.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_DECLARATION_H
#define PARC_DRIVER_DECLARATION_H

#include "parc/Driver/CommandLine.h"
#include "parc/Driver/PlanFile.h"
#include "parc/Import/Config.h"
#include "parc/Pipeline/RankGrid.h"

#include "llvm/Support/JSON.h"

namespace mlir::parc::driver {

enum class Origin { Default, Model, Plan, Flag };

/// A resolved value and where it comes from.
template <class T> struct Setting {
  T value = T();
  Origin origin = Origin::Default;
  Place place;
};

/// What the model itself says.
struct ModelFacts {
  /// Name of the model's file, for messages.
  std::string file;
  std::optional<Mesh> mesh;
  /// Rank order of `mesh`; empty: row-major in its own order.
  std::string order;
  /// Of a model whose program has them already.
  std::optional<int64_t> batch, sequence;
  /// The longest sequence of a config; 0 where none is stated.
  int64_t maxSequence = 0;
  /// Repeated layers, all stacks together.
  int64_t layers = 0;
  /// Experts a layer; 0 for a dense model; nothing where it is not known yet.
  std::optional<int64_t> experts;
  ElementKind dtype = ElementKind::F32;
  /// A config: what import decides is open.
  bool isConfig = false;
};

/// Everything that decides what is compiled.
struct Declaration {
  Setting<Mesh> mesh;
  Setting<std::string> rankOrder, schedule;
  Setting<int64_t> batch, sequence, microBatches;
  /// ZeRO's stage, and how many neighbours among the data-parallel ranks
  /// (dp x cp) hold one copy of what it splits.
  Setting<int64_t> zero, zeroGroup;
  Setting<ElementKind> dtype;
  /// Sequence parallelism over tp.
  Setting<bool> sp;
  /// auto, ring, all-gather or ulysses.
  Setting<std::string> contextKind;
  /// balanced or contiguous.
  Setting<std::string> contextSplit;
  /// Ranks that share out the experts.
  Setting<int64_t> ep;
  /// How tokens get to experts; empty where the model has none.
  Setting<std::string> moe;
  /// Over the balanced load; 0: the importer's own choice.
  Setting<double> bufferFactor, capacityFactor;
  /// What capacity and the auxiliary loss look at together: sequence,
  /// micro-batch (of one replica) or global.
  Setting<std::string> expertScope;
  /// Of the optimizer: lr, beta1, beta2, eps, weight-decay, clip (0: off).
  std::map<std::string, Setting<double>> optimizer;
  std::vector<ShardingRule> rules;
  std::string planPath;

  RankGrid grid() const;
  int64_t size(StringRef axis) const { return mesh.value.size(axis); }
  /// Ranks that compute the same on different data.
  int64_t dataRanks() const { return size("dp") * size("cp"); }
};

/// The keys as given, not yet interpreted.
class DeclarationSource {
public:
  DeclarationSource(const CommandLine &line, std::optional<PlanFile> plan);

  /// A value that a data file brings, as strong as a flag.
  void setFromFile(StringRef key, int64_t value, const Place &place);

  /// The element type asked for; nothing where none is. Sets `failed` after an
  /// error.
  std::optional<ElementKind> dtype(Reporter &reporter, bool &failed) const;

  /// Interprets all keys. Errors and warnings go to `reporter`. `forDevices`:
  /// the ranks will be devices in nodes, not threads.
  std::optional<Declaration> resolve(const ModelFacts &facts, bool forDevices,
                                     Reporter &reporter) const;

private:
  friend class Resolver;
  std::map<std::string, std::pair<RawValue, Origin>> values;
  std::vector<ShardingRule> rules;
  std::string planPath;
};

/// The declaration as a plan that resolves to it again.
std::string planText(const Declaration &declaration);

/// One line a key, with where its value comes from (`parc show config`).
void printDeclaration(const Declaration &declaration, raw_ostream &os);

/// Each key with `value` and `origin`.
llvm::json::Value declarationToJSON(const Declaration &declaration);

/// "flag", "plan.toml:3", "the model", "default".
std::string originText(Origin origin, const Place &place);

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_DECLARATION_H
