//===- PlanFile.cpp - Reading plan.toml -----------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// From TOML to keys with places.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/PlanFile.h"
#include "parc/Driver/InputGate.h"
#include "parc/Pipeline/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

// The compiler is built without exceptions; the header then reports failures
// as results.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

ArrayRef<KeySpec> mlir::parc::driver::planKeys() {
  static constexpr KeySpec keys[] = {
      {"mesh", KeyType::Text},
      {"batch", KeyType::Integer},
      {"seq", KeyType::Integer},
      {"micro-batches", KeyType::Integer},
      {"schedule", KeyType::Text},
      {"dtype", KeyType::Text},
      {"rank-order", KeyType::Text},
      {"lr", KeyType::Real},
      {"beta1", KeyType::Real},
      {"beta2", KeyType::Real},
      {"eps", KeyType::Real},
      {"weight-decay", KeyType::Real},
      {"clip", KeyType::Real},
      {"moe", KeyType::Text},
      {"moe-buffer-factor", KeyType::Real},
      {"capacity-factor", KeyType::Real},
      {"moe-scope", KeyType::Text},
      {"sp", KeyType::Boolean},
      {"cp-kind", KeyType::Text},
      {"cp-split", KeyType::Text},
      {"ep", KeyType::Integer},
      {"zero", KeyType::Integer},
      {"zero-group", KeyType::Integer},
  };
  return keys;
}

namespace {

/// Reads one plan.
class PlanReader {
public:
  PlanReader(StringRef path, Reporter &reporter) : reporter(reporter) {
    plan.path = path.str();
  }

  std::optional<PlanFile> run(StringRef text);

private:
  Place place(const toml::source_region &region) const {
    return reporter.placeIn(plan.path, region.begin.line, region.begin.column);
  }
  bool fail(const toml::source_region &region, const Twine &message,
            StringRef name = "plan") {
    reporter.error(place(region), message, name);
    return false;
  }
  bool wrongType(StringRef key, StringRef expected, const toml::node &got);
  bool readKey(const toml::key &key, const toml::node &value);
  bool readRules(const std::string &prefix, const toml::table &table);
  bool readRule(const std::string &pattern, const toml::node &value);
  bool checkSchema(const toml::table &table);

  Reporter &reporter;
  PlanFile plan;
};

StringRef typeName(const toml::node &node) {
  switch (node.type()) {
  case toml::node_type::table:
    return "a table";
  case toml::node_type::array:
    return "an array";
  case toml::node_type::string:
    return "a string";
  case toml::node_type::integer:
    return "an integer";
  case toml::node_type::floating_point:
    return "a float";
  case toml::node_type::boolean:
    return "a boolean";
  default:
    return "a date or time";
  }
}

} // namespace

bool PlanReader::wrongType(StringRef key, StringRef expected,
                           const toml::node &got) {
  return fail(got.source(), "expected " + expected + " for '" + printable(key) +
                                "', got " + typeName(got));
}

bool PlanReader::checkSchema(const toml::table &table) {
  const toml::node *schema = table.get("schema");
  if (!schema) {
    reporter.error(reporter.placeIn(plan.path, 1, 1),
                   "expected 'schema = 1', got no schema", "plan");
    reporter.help("begin the plan with 'schema = 1'");
    return false;
  }
  if (!schema->is_integer())
    return wrongType("schema", "an integer", *schema);
  int64_t version = schema->as_integer()->get();
  if (version != 1)
    return fail(schema->source(), "expected schema 1, got " + Twine(version));
  return true;
}

bool PlanReader::readKey(const toml::key &key, const toml::node &value) {
  StringRef name = std::string_view(key.str());
  const KeySpec *spec = llvm::find_if(
      planKeys(), [&](const KeySpec &known) { return known.name == name; });
  if (spec == planKeys().end()) {
    fail(key.source(), "unknown key " + quoted(name), "unknown-key");
    SmallVector<StringRef> names = {"schema", "rules"};
    for (const KeySpec &known : planKeys())
      names.push_back(known.name);
    StringRef near = nearestName(name, names);
    reporter.help(near.empty() ? "keys: " + llvm::join(names, ", ")
                               : "did you mean '" + near.str() + "'?");
    return false;
  }
  RawValue raw;
  raw.place = place(value.source());
  switch (spec->type) {
  case KeyType::Text: {
    if (!value.is_string())
      return wrongType(name, "a string", value);
    raw.text = value.as_string()->get();
    // Places are those of the characters between the quotes.
    raw.place = raw.place.at(1, std::max<size_t>(1, raw.text.size()));
    break;
  }
  case KeyType::Integer:
    if (!value.is_integer())
      return wrongType(name, "an integer", value);
    raw.text = std::to_string(value.as_integer()->get());
    break;
  case KeyType::Boolean:
    if (!value.is_boolean())
      return wrongType(name, "true or false", value);
    raw.text = value.as_boolean()->get() ? "true" : "false";
    break;
  case KeyType::Real: {
    if (!value.is_number())
      return wrongType(name, "a number", value);
    char buffer[32];
    snprintf(buffer, sizeof buffer, "%.17g", *value.value<double>());
    raw.text = buffer;
    break;
  }
  }
  plan.keys[name.str()] = std::move(raw);
  return true;
}

bool PlanReader::readRule(const std::string &pattern, const toml::node &value) {
  const toml::array *dims = value.as_array();
  if (!dims) {
    wrongType(pattern, "an array of the axes of each dimension", value);
    reporter.help("as in up = [[\"tp\"], []]");
    return false;
  }
  ShardingRule rule;
  rule.pattern = pattern;
  rule.place = place(value.source());
  for (const toml::node &dim : *dims) {
    const toml::array *axes = dim.as_array();
    if (!axes)
      return wrongType(pattern, "an array of axis names a dimension", dim);
    rule.dims.emplace_back();
    for (const toml::node &axis : *axes) {
      if (!axis.is_string())
        return wrongType(pattern, "an axis name", axis);
      rule.dims.back().push_back(axis.as_string()->get());
    }
  }
  plan.rules.push_back(std::move(rule));
  return true;
}

/// Dotted keys come as tables in tables; the gate bounds their depth.
bool PlanReader::readRules(const std::string &prefix,
                           const toml::table &table) {
  for (auto &&[key, value] : table) {
    std::string pattern = prefix + std::string(key.str());
    if (const toml::table *inner = value.as_table()) {
      if (!readRules(pattern + ".", *inner))
        return false;
    } else if (!readRule(pattern, value)) {
      return false;
    }
  }
  return true;
}

std::optional<PlanFile> PlanReader::run(StringRef text) {
  reporter.addSource(plan.path, text);
  if (std::optional<InputFault> found = checkTOMLText(text)) {
    reporter.error(reporter.placeIn(plan.path, found->line, found->column),
                   found->message, "plan");
    return std::nullopt;
  }
  toml::parse_result parsed =
      toml::parse(std::string_view(text.data(), text.size()));
  if (!parsed) {
    std::string message(parsed.error().description());
    // The library begins its messages with a capital.
    if (!message.empty())
      message[0] = llvm::toLower(message[0]);
    while (StringRef(message).ends_with("."))
      message.pop_back();
    fail(parsed.error().source(), message);
    return std::nullopt;
  }
  const toml::table &table = parsed.table();
  if (!checkSchema(table))
    return std::nullopt;
  for (auto &&[key, value] : table) {
    if (key.str() == "schema")
      continue;
    bool ok;
    if (key.str() != "rules")
      ok = readKey(key, value);
    else if (const toml::table *rules = value.as_table())
      ok = readRules("", *rules);
    else
      ok = wrongType("rules", "a table", value);
    if (!ok)
      return std::nullopt;
  }
  return std::move(plan);
}

std::optional<PlanFile> mlir::parc::driver::readPlan(StringRef path,
                                                     StringRef text,
                                                     Reporter &reporter) {
  return PlanReader(path, reporter).run(text);
}
