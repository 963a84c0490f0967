//===- DeclarationText.cpp - A declaration in words -----------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The keys of a declaration as a plan file, a table and JSON.
///
//===----------------------------------------------------------------------===//

#include "Resolver.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

std::string mlir::parc::driver::numberText(double value) {
  for (int digits = 1; digits < 17; ++digits) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, value);
    double back = 0;
    if (!StringRef(text).getAsDouble(back) && back == value)
      return text;
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", value);
  return text;
}

std::string mlir::parc::driver::originText(Origin origin, const Place &place) {
  switch (origin) {
  case Origin::Default:
    return "default";
  case Origin::Model:
    return "the model";
  case Origin::Plan:
    return printable(place.file) + ":" + std::to_string(place.line);
  case Origin::Flag:
    return place.file == "<command line>" ? "flag" : printable(place.file);
  }
  return "";
}

namespace {
/// A key as it is printed.
struct Row {
  StringRef key;
  std::string value;
  bool text;
  std::string origin;
};
} // namespace

template <class T>
static Row row(StringRef key, std::string value, bool text,
               const Setting<T> &setting) {
  return {key, std::move(value), text,
          originText(setting.origin, setting.place)};
}

static SmallVector<Row> rows(const Declaration &d) {
  SmallVector<Row> table = {
      row("mesh", d.mesh.value.str(), true, d.mesh),
      row("rank-order", d.rankOrder.value, true, d.rankOrder),
      row("schedule", d.schedule.value, true, d.schedule),
      row("batch", std::to_string(d.batch.value), false, d.batch),
      row("seq", std::to_string(d.sequence.value), false, d.sequence),
      row("micro-batches", std::to_string(d.microBatches.value), false,
          d.microBatches),
      row("zero", std::to_string(d.zero.value), false, d.zero),
      row("dtype", stringifyElementKind(d.dtype.value).str(), true, d.dtype)};
  table.push_back(row("sp", d.sp.value ? "true" : "false", false, d.sp));
  table.push_back(row("cp-kind", d.contextKind.value, true, d.contextKind));
  table.push_back(row("cp-split", d.contextSplit.value, true, d.contextSplit));
  table.push_back(row("ep", std::to_string(d.ep.value), false, d.ep));
  if (!d.moe.value.empty())
    table.push_back(row("moe", d.moe.value, true, d.moe));
  if (d.bufferFactor.value != 0.0)
    table.push_back(row("moe-buffer-factor", numberText(d.bufferFactor.value),
                        false, d.bufferFactor));
  if (d.capacityFactor.value != 0.0)
    table.push_back(row("capacity-factor", numberText(d.capacityFactor.value),
                        false, d.capacityFactor));
  if (!d.expertScope.value.empty() && d.expertScope.value != "sequence")
    table.push_back(row("moe-scope", d.expertScope.value, true, d.expertScope));
  if (d.zeroGroup.value != d.dataRanks())
    table.push_back(row("zero-group", std::to_string(d.zeroGroup.value), false,
                        d.zeroGroup));
  for (StringRef key :
       {"lr", "beta1", "beta2", "eps", "weight-decay", "clip"}) {
    const Setting<double> &setting = d.optimizer.at(key.str());
    table.push_back(row(key, numberText(setting.value), false, setting));
  }
  return table;
}

static std::string ruleText(const ShardingRule &rule) {
  std::string text = "[";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(rule.dims, os, [&](const auto &dim) {
    os << '[';
    llvm::interleaveComma(dim, os, [&](const std::string &axis) {
      os << '"' << printable(axis) << '"';
    });
    os << ']';
  });
  os << ']';
  return text;
}

/// A TOML basic string.
static std::string tomlString(StringRef text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string mlir::parc::driver::planText(const Declaration &declaration) {
  std::string text = "schema = 1\n";
  llvm::raw_string_ostream os(text);
  for (const Row &row : rows(declaration))
    os << row.key << " = " << (row.text ? tomlString(row.value) : row.value)
       << '\n';
  if (!declaration.rules.empty())
    os << "\n[rules]\n";
  for (const ShardingRule &rule : declaration.rules)
    os << tomlString(printable(rule.pattern)) << " = " << ruleText(rule)
       << '\n';
  return text;
}

void mlir::parc::driver::printDeclaration(const Declaration &declaration,
                                          raw_ostream &os) {
  for (const Row &row : rows(declaration))
    os << llvm::left_justify(row.key, 15) << ' '
       << llvm::left_justify(row.value, 30) << ' ' << row.origin << '\n';
  for (const ShardingRule &rule : declaration.rules)
    os << llvm::left_justify("rule", 15) << ' '
       << llvm::left_justify(printable(rule.pattern) + " = " + ruleText(rule),
                             30)
       << ' ' << originText(Origin::Plan, rule.place) << '\n';
}

llvm::json::Value
mlir::parc::driver::declarationToJSON(const Declaration &declaration) {
  llvm::json::Object object;
  for (const Row &row : rows(declaration)) {
    llvm::json::Value value = row.value;
    int64_t whole = 0;
    double real = 0;
    if (row.value == "true" || row.value == "false")
      value = row.value == "true";
    else if (!row.text && !StringRef(row.value).getAsInteger(10, whole))
      value = whole;
    else if (!row.text && !StringRef(row.value).getAsDouble(real))
      value = real;
    object[row.key] =
        llvm::json::Object{{"value", std::move(value)}, {"origin", row.origin}};
  }
  return object;
}
