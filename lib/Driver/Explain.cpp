//===- Explain.cpp - parc explain -----------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `parc explain`: why something is sent and what sends less, from the one
/// attribute that collectives carry; and errors at length.
///
//===----------------------------------------------------------------------===//

#include "Explain.h"

#include "parc/Driver/ErrorTexts.h"
#include "parc/Pipeline/Text.h"

#include "Parc/Parc.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Words of `text` in lines of at most `width`, after `indent` spaces.
static void printWrapped(raw_ostream &os, StringRef text, unsigned indent,
                         size_t width) {
  size_t column = indent;
  for (StringRef word : llvm::split(text, ' ')) {
    if (column > indent && column + word.size() + 1 > width) {
      os << '\n';
      os.indent(indent);
      column = indent;
    } else if (column > indent) {
      os << ' ';
      ++column;
    }
    os << word;
    column += word.size();
  }
  os << '\n';
}

static void printExample(raw_ostream &os, StringRef word, StringRef text) {
  for (StringRef line : llvm::split(text, '\n')) {
    reportLine(os, word, line);
    word = "";
  }
}

static int explainError(Session &session, StringRef name) {
  const ErrorText *text = findErrorText(name);
  if (!text) {
    SmallVector<StringRef> names;
    for (const ErrorText &each : errorTexts())
      names.push_back(each.name);
    session.reporter.error(session.line.model.place,
                           "no message is called " + quoted(name) +
                               ", and a name in a model needs the model",
                           "name");
    StringRef near = nearestName(name, names);
    session.reporter.help(
        near.empty() ? "parc explain ERROR with the word in brackets after a "
                       "message, or parc explain MODEL NAME"
                     : "did you mean '" + near.str() + "'?");
    return kUsage;
  }
  if (session.json) {
    llvm::json::Object object{{"name", text->name},
                              {"rule", text->rule},
                              {"example", text->example},
                              {"fix", text->fix}};
    session.out << llvm::formatv("{0:2}\n",
                                 llvm::json::Value(std::move(object)));
    return kDone;
  }
  session.out << text->name << '\n';
  session.out << "rule      ";
  printWrapped(session.out, text->rule, 10, 96);
  printExample(session.out, "example", text->example);
  printExample(session.out, "fixed", text->fix);
  return kDone;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// All that `NAME` can be.
static std::vector<std::string> knownNames(const Compilation &compilation,
                                           const CommReport &comms) {
  llvm::SetVector<StringRef> names;
  for (const ValueLayout &param : compilation.layouts.params)
    names.insert(param.name);
  for (const CommRow &row : comms.rows) {
    if (!row.name.empty())
      names.insert(row.name);
    // Without the layers' name, as it is usually typed.
    StringRef inLayer = row.name;
    if (!row.stack.empty() && inLayer.consume_front(row.stack) &&
        inLayer.consume_front("."))
      names.insert(inLayer);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

static int unknownName(Session &session, const Compilation &compilation,
                       const CommReport &comms) {
  const Word &word = session.line.name;
  std::vector<std::string> names = knownNames(compilation, comms);
  SmallVector<StringRef> known(names.begin(), names.end());
  session.reporter.error(
      word.place,
      "nothing is sent and no parameter lies under the name " +
          quoted(word.text),
      "name");
  StringRef near = nearestName(word.text, known);
  session.reporter.help(near.empty() ? "'parc show comms' and 'parc show "
                                       "layouts' list the names"
                                     : "did you mean '" + near.str() + "'?");
  return kWrong;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static std::string oftenText(const CommRow &row) {
  if (row.direction == "update")
    return row.perStep == 1 ? "once a step"
                            : withCommas(row.perStep) + " a step";
  return withCommas(row.perMicroBatch) + " a micro-batch, " +
         withCommas(row.perStep) + " a step";
}

/// What a collective is, why, from what to what.
static std::string reasonText(const CommRow &row) {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string head = row.kind + " over " + llvm::join(row.axes, "+") + ", " +
                     row.direction + " of " +
                     (row.name.empty() ? row.value : row.name);
  if (!row.stack.empty())
    head += ", each of " + row.stack;
  head.resize(std::max<size_t>(head.size() + 2, 60), ' ');
  os << head << row.location << '\n';
  reportLine(os, "why", row.why);
  for (const std::string &origin : row.because)
    reportLine(os, "because", origin);
  if (!row.from.empty()) {
    std::string shape =
        row.shape.empty() ? "" : row.shape + " " + row.dtype + "  ";
    reportLine(os, "from", shape + row.from);
    reportLine(os, "to", shape + row.to);
  }
  return text;
}

/// What it costs, and who pays.
static std::pair<std::string, std::string> costText(const CommRow &row) {
  std::string stages = row.firstStage == row.lastStage
                           ? "stage " + std::to_string(row.firstStage)
                           : "stages " + std::to_string(row.firstStage) + "-" +
                                 std::to_string(row.lastStage);
  return {row.known ? bytesText(row.bytesSent()) + " sent; " + oftenText(row) +
                          " = " + bytesText(row.bytesPerStep())
                    : "known at run time; " + oftenText(row),
          std::to_string(row.members) + " ranks, " + stages};
}

/// Each reason once, with what it costs on the stages that have it.
static void printRows(raw_ostream &os, ArrayRef<const CommRow *> rows) {
  llvm::MapVector<std::string, SmallVector<const CommRow *>,
                  std::map<std::string, unsigned>>
      byReason;
  for (const CommRow *row : rows)
    byReason[reasonText(*row)].push_back(row);
  bool first = true;
  for (const auto &[reason, alike] : byReason) {
    os << (first ? "" : "\n") << reason;
    first = false;
    std::map<std::pair<std::string, std::string>, int> calls;
    for (const CommRow *row : alike)
      ++calls[costText(*row)];
    StringRef label = "cost";
    for (const CommRow *row : alike) {
      auto found = calls.find(costText(*row));
      if (found == calls.end())
        continue;
      const auto &[text, who] = found->first;
      reportLine(
          os, label,
          (found->second > 1 ? std::to_string(found->second) + " x " : "") +
              text,
          who);
      label = "";
      calls.erase(found);
    }
  }
}

static void printParam(raw_ostream &os, const ValueLayout &param) {
  reportLine(os, param.name,
             (param.layers ? std::to_string(param.layers) + " x " : "") +
                 param.shapeText() + " " + param.dtype + ", on " +
                 param.axesText() + ": a rank holds " + param.localText(),
             param.location);
}

namespace {
/// What the collectives of a name send, and what was tried.
struct Findings {
  double here = 0, all = 0;
  /// Those that send less for the name, least in all first.
  std::vector<ChangeResult> better;
  std::vector<std::string> tried, illegal;
};
} // namespace

static Findings tryChanges(Session &session, Compilation &compilation,
                           const CommReport &comms, StringRef name) {
  Findings findings;
  std::vector<std::string> axes;
  for (const CommRow &row : comms.rows)
    for (const std::string &axis : row.axes)
      if (isCalled(row, name) && !llvm::is_contained(axes, axis))
        axes.push_back(axis);
  findings.here = busiestBytes(
      comms, [&](const CommRow &row) { return isCalled(row, name); });
  findings.all = busiestBytes(comms, [](const CommRow &) { return true; });
  // What comes from a pipe can be read once.
  if (session.line.model.text == "-" || findings.here == 0)
    return findings;
  for (const Change &change : smallChanges(compilation.declaration, axes)) {
    std::optional<ChangeResult> result = tryChange(session.line, change, name);
    (result ? findings.tried : findings.illegal).push_back(change.text);
    if (result && result->here < findings.here)
      findings.better.push_back(std::move(*result));
  }
  llvm::stable_sort(findings.better,
                    [](const ChangeResult &a, const ChangeResult &b) {
                      return std::tie(a.all, a.here) < std::tie(b.all, b.here);
                    });
  return findings;
}

static void printFindings(raw_ostream &os, const Findings &findings) {
  constexpr size_t kMostChanges = 3;
  for (const ChangeResult &result :
       ArrayRef(findings.better).take_front(kMostChanges)) {
    std::string here = "nothing is sent here";
    if (result.here > 0)
      here = bytesText(findings.here) + " -> " + bytesText(result.here) +
             " a step";
    reportLine(os, "change", result.change.text + ": " + here,
               "all: " + bytesText(findings.all) + " -> " +
                   bytesText(result.all));
  }
  if (findings.better.empty() && !findings.tried.empty())
    reportLine(os, "change",
               "none of these sends less here: " +
                   llvm::join(findings.tried, "; "));
}

static int explainName(Session &session) {
  Compilation compilation;
  int code = prepare(session, compilation, /*forDevices=*/true);
  if (code == kDone)
    code = lower(session, compilation, Phase::Scheduled);
  if (code != kDone)
    return code;
  const Declaration &declaration = compilation.declaration;
  CommReport comms =
      collectComms(compilation.module(), compilation.layouts,
                   declaration.batch.value, declaration.microBatches.value);
  StringRef name = session.line.name.text;
  std::vector<const CommRow *> rows;
  for (const CommRow &row : comms.rows)
    if (isCalled(row, name))
      rows.push_back(&row);
  const ValueLayout *param = compilation.layouts.find(name);
  if (rows.empty() && !param)
    return unknownName(session, compilation, comms);
  Findings findings = tryChanges(session, compilation, comms, name);
  if (session.json) {
    llvm::json::Array collectives, changes;
    for (const CommRow *row : rows)
      collectives.push_back(rowToJSON(*row));
    for (const ChangeResult &result : findings.better)
      changes.push_back(llvm::json::Object{{"change", result.change.text},
                                           {"per_step", result.here},
                                           {"per_step_in_all", result.all}});
    llvm::json::Object object{{"name", name},
                              {"collectives", std::move(collectives)},
                              {"per_step", findings.here},
                              {"per_step_in_all", findings.all},
                              {"changes", std::move(changes)},
                              {"tried", llvm::json::Array(findings.tried)}};
    session.out << llvm::formatv("{0:2}\n",
                                 llvm::json::Value(std::move(object)));
    return kDone;
  }
  if (param)
    printParam(session.out, *param);
  if (rows.empty())
    reportLine(session.out, "comms", "nothing is sent for it");
  if (param && !rows.empty())
    session.out << '\n';
  printRows(session.out, rows);
  if (findings.here > 0)
    session.out << '\n';
  printFindings(session.out, findings);
  session.out << "\nnext: parc show comms "
              << printable(session.line.model.text) << "\n";
  return kDone;
}

int mlir::parc::driver::runExplain(Session &session) {
  if (session.line.name.text.empty())
    return explainError(session, session.line.model.text);
  return explainName(session);
}
