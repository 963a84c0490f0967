//===- CommsPrint.cpp - What the program sends, in print ------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The comms report as text and as JSON.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/Comms.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::parc::driver;

static bool isOn(const CommRow &row, std::optional<int64_t> stage) {
  return !stage || (row.firstStage <= *stage && *stage <= row.lastStage);
}

/// Calls a step on one stage of the row's.
static int64_t callsOn(const CommRow &row, int64_t stage) {
  if (row.stack.empty())
    return row.perStep;
  int64_t most = 0, here = 0;
  for (auto [index, layers] : llvm::enumerate(row.layers)) {
    most = std::max(most, layers);
    if (row.firstStage + static_cast<int64_t>(index) == stage)
      here = layers;
  }
  return most ? row.perStep / most * here : 0;
}

static std::string stagesText(const CommRow &row) {
  if (row.firstStage == row.lastStage)
    return "stage " + std::to_string(row.firstStage);
  return "stages " + std::to_string(row.firstStage) + "-" +
         std::to_string(row.lastStage);
}

void mlir::parc::driver::printComms(const CommReport &report,
                                    std::optional<int64_t> stage,
                                    raw_ostream &os) {
  auto columns = [&](StringRef kind, StringRef axes, StringRef direction,
                     StringRef calls, StringRef once, StringRef step,
                     StringRef where) {
    std::string line;
    llvm::raw_string_ostream(line)
        << llvm::left_justify(kind, 14) << ' ' << llvm::left_justify(axes, 6)
        << ' ' << llvm::left_justify(direction, 8) << ' '
        << llvm::right_justify(calls, 8) << ' ' << llvm::right_justify(once, 11)
        << ' ' << llvm::right_justify(step, 11) << "  " << where;
    os << StringRef(line).rtrim() << '\n';
  };
  columns("kind", "over", "pass", "a step", "sent once", "sent a step",
          "where");
  for (const CommRow &row : report.rows) {
    if (!isOn(row, stage))
      continue;
    std::string where = row.name.empty() ? row.location : row.name;
    if (row.values > 1)
      where += " and " + std::to_string(row.values - 1) + " more";
    if (!row.stack.empty())
      where += ", each of " + row.stack;
    if (row.inLastMicro)
      where += ", in the last micro-batch";
    if (row.isAhead)
      where += ", a layer ahead";
    columns(row.kind, llvm::join(row.axes, "+"), row.direction,
            withCommas(row.perStep),
            row.known ? bytesText(row.bytesSent()) : "unknown",
            row.known ? bytesText(row.bytesPerStep()) : "unknown",
            where + "; " + stagesText(row));
    size_t width = 96 - std::min<size_t>(row.location.size(), 60);
    os << "  " << shortened(row.why, width)
       << (row.location.empty() ? "" : "  ") << row.location << '\n';
    if (!row.from.empty())
      os << "  from " << row.from << " to " << row.to << '\n';
  }
  if (report.rows.empty())
    os << "nothing is sent\n";
}

std::vector<CommSummary>
mlir::parc::driver::summarizeComms(const CommReport &report, int64_t stage) {
  std::vector<CommSummary> result;
  std::vector<std::vector<std::pair<std::string, int64_t>>> counts;
  for (const CommRow &row : report.rows) {
    int64_t calls = isOn(row, stage) ? callsOn(row, stage) : 0;
    if (calls == 0)
      continue;
    std::string axes = llvm::join(row.axes, "+");
    auto found = llvm::find_if(
        result, [&](const CommSummary &s) { return s.axes == axes; });
    size_t index = found - result.begin();
    if (index == result.size()) {
      result.push_back({axes, "", 0});
      counts.emplace_back();
    }
    result[index].bytes += row.bytesSent() * static_cast<double>(calls);
    auto count = llvm::find_if(
        counts[index], [&](const auto &c) { return c.first == row.kind; });
    if (count == counts[index].end())
      counts[index].push_back({row.kind, calls});
    else
      count->second += calls;
  }
  for (auto [summary, kinds] : llvm::zip(result, counts)) {
    llvm::raw_string_ostream os(summary.counts);
    llvm::interleaveComma(kinds, os, [&](const auto &kind) {
      os << withCommas(kind.second) << ' ' << kind.first;
    });
  }
  llvm::stable_sort(result, [](const CommSummary &a, const CommSummary &b) {
    return a.bytes > b.bytes;
  });
  return result;
}

llvm::json::Value mlir::parc::driver::rowToJSON(const CommRow &row) {
  llvm::json::Object object{
      {"kind", row.kind},
      {"axis", llvm::join(row.axes, "+")},
      {"members", row.members},
      {"direction", row.direction},
      {"role", row.role},
      {"stages", llvm::json::Array{row.firstStage, row.lastStage}},
      {"count_per_micro_batch", row.perMicroBatch},
      {"count_per_step", row.perStep},
      {"dtype", row.dtype},
      {"values", row.values},
      {"stream", row.stream},
      {"in_last_micro_batch", row.inLastMicro},
      {"ahead", row.isAhead},
      {"why", row.why},
      {"because", llvm::json::Array(row.because)},
      {"value", row.value},
      {"shape", row.shape},
      {"from", row.from},
      {"to", row.to},
      {"name", row.name},
      {"location", row.location}};
  object["dim"] = row.dim ? llvm::json::Value(*row.dim) : nullptr;
  if (row.stack.empty()) {
    object["stack"] = nullptr;
    object["layers"] = nullptr;
  } else {
    object["stack"] = row.stack;
    object["layers"] = llvm::json::Array(row.layers);
  }
  if (!row.known) {
    object["elements"] = nullptr;
    return object;
  }
  object["elements"] = row.elements;
  if (row.balanced)
    object["balanced"] = true;
  object["bytes_per_call"] = row.elements * row.elementBytes;
  object["bytes_sent"] = row.bytesSent();
  object["per_micro_batch"] =
      row.bytesSent() * static_cast<double>(row.perMicroBatch);
  object["per_step"] = row.bytesPerStep();
  return object;
}

llvm::json::Value
mlir::parc::driver::commsToJSON(const CommReport &report,
                                std::optional<int64_t> stage) {
  llvm::json::Array rows;
  for (const CommRow &row : report.rows)
    if (isOn(row, stage))
      rows.push_back(rowToJSON(row));
  return llvm::json::Object{{"micro_batches", report.microBatches},
                            {"collectives", std::move(rows)}};
}
