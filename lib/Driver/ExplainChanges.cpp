//===- ExplainChanges.cpp - Changes that send less ------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Small changes of a declaration, and what they send. Every figure comes from
/// a compiled program, none from a formula.
///
//===----------------------------------------------------------------------===//

#include "Explain.h"

#include "Parc/Parc.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

/// `mesh` with one axis halved and another doubled, in the mesh's order.
static std::string exchanged(const Mesh &mesh, StringRef halved,
                             StringRef doubled) {
  std::string text;
  bool found = false;
  for (const MeshAxis &axis : mesh.axes()) {
    int64_t size = axis.size;
    if (axis.name == halved)
      size /= 2;
    if (axis.name == doubled) {
      size *= 2;
      found = true;
    }
    text += (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(size);
  }
  return found ? text : text + "," + doubled.str() + "=2";
}

std::vector<Change>
mlir::parc::driver::smallChanges(const Declaration &declaration,
                                 ArrayRef<std::string> axes) {
  std::vector<Change> changes;
  // The same work is compared: the batch stays.
  std::string batch = std::to_string(declaration.batch.value);
  auto add = [&](const Twine &text,
                 std::vector<std::pair<std::string, std::string>> flags) {
    flags.push_back({"batch", batch});
    changes.push_back({text.str(), std::move(flags)});
  };
  if (declaration.size("tp") > 1) {
    if (declaration.sp.value)
      add("without --sp", {{"sp", "false"}});
    else
      add("--sp", {{"sp", ""}});
  }
  for (StringRef halved : {"tp", "cp", "dp"})
    for (StringRef doubled : {"dp", "tp"}) {
      bool used = llvm::any_of(axes, [&](StringRef axis) {
        return axis.split(' ').first == halved;
      });
      if (halved == doubled || !used || declaration.size(halved) % 2 != 0)
        continue;
      std::string mesh = exchanged(declaration.mesh.value, halved, doubled);
      // As many sequences in a micro-batch as before.
      int64_t m = declaration.microBatches.value;
      if (doubled == "dp")
        m = std::max<int64_t>(1, m / 2);
      else if (halved == "dp")
        m *= 2;
      std::string count = std::to_string(m);
      add("--mesh " + mesh + " --micro-batches " + count,
          {{"mesh", mesh}, {"micro-batches", count}});
    }
  if (declaration.size("cp") > 1)
    for (StringRef kind : {"all-gather", "ring", "ulysses"})
      if (kind != declaration.contextKind.value)
        add("--cp-kind " + kind, {{"cp-kind", kind.str()}});
  if (declaration.size("dp") > 1 && CommandLine::hasFlag("zero"))
    for (StringRef level : {"0", "1", "2", "3"})
      add("--zero " + level, {{"zero", level.str()}});
  if (declaration.ep.value > 1)
    add("--ep 1", {{"ep", "1"}});
  if (int64_t m = declaration.microBatches.value; m > 1) {
    std::string fewer = std::to_string((m + 1) / 2);
    add("--micro-batches " + fewer, {{"micro-batches", fewer}});
  }
  return changes;
}

std::optional<ChangeResult>
mlir::parc::driver::tryChange(const CommandLine &line, const Change &change,
                              StringRef name) {
  CommandLine changed = line;
  for (auto &[flag, text] : change.flags)
    changed.set(flag, text);
  changed.unset("dump-phases");
  llvm::raw_null_ostream silence;
  Reporter reporter(silence, /*color=*/false);
  Session session(changed, reporter, silence, silence);
  Compilation compilation;
  if (prepare(session, compilation, /*forDevices=*/true) != kDone ||
      lower(session, compilation, Phase::Scheduled) != kDone)
    return std::nullopt;
  const Declaration &declaration = compilation.declaration;
  CommReport comms =
      collectComms(compilation.module(), compilation.layouts,
                   declaration.batch.value, declaration.microBatches.value);
  ChangeResult result;
  result.change = change;
  result.here = busiestBytes(
      comms, [&](const CommRow &row) { return isCalled(row, name); });
  result.all = busiestBytes(comms, [](const CommRow &) { return true; });
  return result;
}
