//===- Comms.h - What the program sends -------------------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the compiled program sends: one row a collective or transfer, counted
/// from the ops of the staged phase, with bytes by the formulas of ring
/// algorithms.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_DRIVER_COMMS_H
#define PARC_DRIVER_COMMS_H

#include "parc/Driver/Layouts.h"

#include "llvm/Support/JSON.h"

namespace mlir::parc::driver {

/// One collective or transfer of one role's program.
struct CommRow {
  /// all_reduce, all_gather, reduce_scatter, all_to_all, shift, send, receive.
  std::string kind;
  std::vector<std::string> axes;
  /// Members of one group.
  int64_t members = 1;
  /// The dimension that is gathered, scattered or split.
  std::optional<int64_t> dim;
  /// forward, backward, update.
  std::string direction;
  std::string role;
  /// The role's stages: first and last.
  int64_t firstStage = 0, lastStage = 0;
  /// The stack that the op is in, empty outside; its layers on each stage.
  std::string stack;
  std::vector<int64_t> layers;
  /// Values that travel together, as one group.
  int64_t values = 1;
  /// The stream that it runs on.
  std::string stream;
  /// Runs in the last backward pass, and not in the update.
  bool inLastMicro = false;
  /// A layer's runs while the layer before computes.
  bool isAhead = false;
  /// Runs a micro-batch on the role's fullest stage; 0 in the update.
  int64_t perMicroBatch = 0;
  int64_t perStep = 0;
  /// Elements that take part: of the reduced, gathered or scattered whole, of
  /// the exchanged or transferred part. The largest part where parts differ.
  int64_t elements = 0;
  /// True where what is sent depends on data (rows of experts' queues):
  /// elements and bytes are those of balanced data.
  bool balanced = false;
  /// False where a size is not known at compile time.
  bool known = true;
  int64_t elementBytes = 4;
  std::string dtype;
  /// Of the `why` that the op carries: what asked for it, who placed the axes
  /// that move, the value's name and whole shape, its layouts before and after.
  std::string why;
  std::vector<std::string> because;
  std::string value, shape, from, to;
  /// What the op says that a rank sends once; else by the formulas below.
  std::optional<int64_t> bytesStated;
  /// What the op computes, by the model's names.
  std::string name;
  /// file:line:column.
  std::string location;

  double bytesPerCall() const {
    return static_cast<double>(elements) * static_cast<double>(elementBytes);
  }
  /// Bytes that a rank sends in one call: all-reduce 2(n-1)/n N, all-gather,
  /// reduce-scatter and all-to-all (n-1)/n N, send and shift N.
  double bytesSent() const;
  double bytesPerStep() const {
    return bytesSent() * static_cast<double>(perStep);
  }
};

/// True where `row` sends what the user calls `name`: the op's name in the
/// model (`layers.attn.o`), the end of it (`attn.o`), with a layer's number or
/// `*` in it, or the name of a parameter or of what is made for it.
bool isCalled(const CommRow &row, StringRef name);

/// All rows, the dearest a step first.
struct CommReport {
  std::vector<CommRow> rows;
  int64_t microBatches = 1;
};

/// Walks the roles of a staged module. `layouts` are those of the sharded
/// phase, `batch` the global batch.
CommReport collectComms(ModuleOp module, const LayoutReport &layouts,
                        int64_t batch, int64_t microBatches);

/// Bytes a step that the busiest stage's rank sends in the rows `which` picks.
double busiestBytes(const CommReport &report,
                    function_ref<bool(const CommRow &)> which);

/// One row a collective; only those of `stage` where given.
void printComms(const CommReport &report, std::optional<int64_t> stage,
                raw_ostream &os);

/// The summary of one stage, one line an axis:
/// `tp 18 all_reduce   36.0 KiB sent`.
struct CommSummary {
  std::string axes, counts;
  double bytes = 0;
};
std::vector<CommSummary> summarizeComms(const CommReport &report,
                                        int64_t stage);

llvm::json::Value rowToJSON(const CommRow &row);
llvm::json::Value commsToJSON(const CommReport &report,
                              std::optional<int64_t> stage);

} // namespace mlir::parc::driver

#endif // PARC_DRIVER_COMMS_H
