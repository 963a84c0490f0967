//===- Model.cpp - Models of one op ---------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Writes the text of a model's step.
///
//===----------------------------------------------------------------------===//

#include "Model.h"
#include "Parc/Parc.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::equiv;

const Sizes &mlir::parc::equiv::evenSizes() {
  static const Sizes sizes = {
      {'B', 6},  {'S', 6},  {'T', 6}, {'K', 6}, {'N', 12}, {'V', 12},
      {'G', 6},  {'H', 12}, {'D', 4}, {'F', 2}, {'E', 2},  {'Z', 24},
      {'M', 36}, {'1', 1},  {'X', 6}, {'C', 2}, {'Q', 72}};
  return sizes;
}

const Sizes &mlir::parc::equiv::unevenSizes() {
  static const Sizes sizes = {
      {'B', 7},  {'S', 8},  {'T', 8}, {'K', 9}, {'N', 10}, {'V', 11},
      {'G', 7},  {'H', 14}, {'D', 4}, {'F', 2}, {'E', 3},  {'Z', 28},
      {'M', 72}, {'1', 1},  {'X', 6}, {'C', 2}, {'Q', 113}};
  return sizes;
}

namespace {

struct Declaration {
  std::string name, type;
  int64_t rank;
};

std::vector<Declaration> declarations(StringRef text, const Sizes &sizes,
                                      StringRef element) {
  std::vector<Declaration> list;
  SmallVector<StringRef> words;
  text.split(words, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    auto [name, letters] = word.split(':');
    std::string type = "tensor<";
    for (char letter : letters)
      type += std::to_string(sizes.at(letter)) + "x";
    list.push_back(
        {name.str(), type + element.str() + ">", int64_t(letters.size())});
  }
  return list;
}

/// `$name` becomes the type of `name`, longest names first.
std::string substitute(std::string text, std::vector<Declaration> types,
                       const Sizes &sizes) {
  llvm::sort(types, [](const Declaration &a, const Declaration &b) {
    return a.name.size() > b.name.size();
  });
  auto replaceAll = [&](const std::string &from, const std::string &to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
         at += to.size())
      text.replace(at, from.size(), to);
  };
  for (const Declaration &declaration : types)
    replaceAll("$" + declaration.name, declaration.type);
  for (auto [letter, size] : sizes)
    replaceAll(std::string("@") + letter + "@", std::to_string(size));
  return text;
}

} // namespace

/// Adds the lines that make one scalar of a result.
static std::string lossTerm(const Declaration &result, size_t index) {
  std::string n = std::to_string(index), type = result.type;
  std::string text = "    %r" + n + " = parc.load @weight" + n + " : " + type +
                     "\n    %p" + n + " = arith.mulf %" + result.name + ", %r" +
                     n + " : " + type + "\n";
  if (result.rank == 0)
    return text + "    %term" + n + " = arith.addf %p" + n +
           ", %zero : tensor<f32>\n";
  text += "    %term" + n + " = linalg.reduce { arith.addf } ins(%p" + n +
          " : " + type + ") outs(%zero : tensor<f32>) dimensions = [";
  for (int64_t dim = 0; dim < result.rank; ++dim)
    text += (dim ? ", " : "") + std::to_string(dim);
  return text + "]\n";
}

std::string mlir::parc::equiv::moduleText(const Model &model,
                                          const Sizes &sizes) {
  auto params = declarations(model.params, sizes, "f32");
  auto inputs = declarations(model.inputs, sizes, "i64");
  auto results = declarations(model.results, sizes, "f32");
  auto types = declarations(model.others, sizes, "f32");
  for (const auto *list : {&params, &inputs, &results})
    types.insert(types.end(), list->begin(), list->end());
  std::string text = "module {\n";
  for (const Declaration &param : params)
    text += "  parc.param @" + param.name + " : " + param.type + "\n";
  for (auto [index, result] : llvm::enumerate(results))
    text += "  parc.param @weight" + std::to_string(index) + " : " +
            result.type + "\n";
  text += "  parc.step @train inputs [";
  std::string arguments;
  for (auto [index, input] : llvm::enumerate(inputs)) {
    text += (index ? ", \"" : "\"") + input.name + "\"";
    arguments +=
        std::string(index ? ", %" : "%") + input.name + ": " + input.type;
  }
  text += "] micro {\n";
  if (!inputs.empty())
    text += "  ^bb0(" + arguments + "):\n";
  for (const Declaration &param : params)
    text += "    %" + param.name + " = parc.load @" + param.name + " : " +
            param.type + "\n";
  text += "    %zero = arith.constant dense<0.0> : tensor<f32>\n" + model.body +
          "\n";
  std::string sum = "%zero";
  for (auto [index, result] : llvm::enumerate(results)) {
    std::string n = std::to_string(index);
    text += lossTerm(result, index) + "    %sum" + n + " = arith.addf " + sum +
            ", %term" + n + " : tensor<f32>\n";
    sum = "%sum" + n;
  }
  text += "    %tokens = arith.constant dense<3.0> : tensor<f32>\n"
          "    parc.yield " +
          sum + ", %tokens : tensor<f32>, tensor<f32>\n  } update {}\n}\n";
  return substitute(text, types, sizes);
}

int64_t mlir::parc::equiv::inputValue(StringRef name, int64_t index,
                                      int64_t last, int64_t vocabulary) {
  if (name.starts_with("pos"))
    return index % last;
  if (name.starts_with("labels") && index % 3 == 1)
    return -100;
  int64_t id = (7 * index * index + 3 * index + 1) % vocabulary;
  return name == "divisor" ? id + 1 : id;
}

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

static bool parses(MLIRContext &context, const std::string &text) {
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  return bool(parseSourceString<ModuleOp>(text, &context));
}

/// The forms that operands and attributes may have; `OP` is the op's name. All
/// end in `%y : $y`.
static const char *const forms[] = {
    R"(%y = "OP"(%a) : ($a) -> $y)",
    R"(%y = "OP"(%a, %b) : ($a, $b) -> $y)",
    R"(%y = "OP"(%a, %b, %c) : ($a, $b, $c) -> $y)",
    R"(%y = "OP"(%i) : ($i) -> $y)",
    R"(%k = "OP"(%i, %divisor) : ($i, $divisor) -> $i
       %y = arith.sitofp %k : $i to $y)",
    R"(%p = math.absf %a : $a
       %k = "OP"(%p) : ($a) -> tensor<@B@x@K@xi64>
       %y = arith.sitofp %k : tensor<@B@x@K@xi64> to $y)",
    R"(%q = "OP"(%i, %divisor) {predicate = 2 : i64} : ($i, $divisor) -> tensor<@B@x@K@xi1>
       %y = arith.uitofp %q : tensor<@B@x@K@xi1> to $y)",
    R"(%q = "OP"(%a, %b) {predicate = 2 : i64} : ($a, $b) -> tensor<@B@x@K@xi1>
       %y = arith.select %q, %a, %b : tensor<@B@x@K@xi1>, $y)",
    R"(%q = arith.cmpf oge, %a, %c : $a
       %y = "OP"(%q, %a, %b) : (tensor<@B@x@K@xi1>, $a, $b) -> $y)",
    R"(%h = "OP"(%a) : ($a) -> tensor<@B@x@K@xbf16>
       %y = arith.extf %h : tensor<@B@x@K@xbf16> to $y)",
    R"(%h = arith.truncf %a : $a to tensor<@B@x@K@xbf16>
       %y = "OP"(%h) : (tensor<@B@x@K@xbf16>) -> $y)",
};

/// The declarations of `all` that `body` names: a parameter that nothing reads
/// is on no rank.
static std::string used(StringRef all, StringRef body) {
  std::string list;
  SmallVector<StringRef> words;
  all.split(words, ' ');
  for (StringRef word : words)
    if (body.contains(("%" + word.split(':').first).str()))
      list += word.str() + " ";
  return list;
}

std::vector<Model> mlir::parc::equiv::elementwiseModels(MLIRContext &context) {
  std::vector<Model> list;
  for (RegisteredOperationName op : context.getRegisteredOperations()) {
    StringRef dialect = op.getDialectNamespace();
    if ((dialect != "arith" && dialect != "math") ||
        !op.hasInterface<ShardableOpInterface>())
      continue;
    for (const char *form : forms) {
      std::string body = form;
      body.replace(body.find("OP"), 2, op.getStringRef().str());
      Model model = {op.getStringRef().str(),
                     used("a:BK b:BK c:BK", body),
                     used("i:BK divisor:BK", body),
                     "y:BK",
                     body,
                     "a:BK b:BK c:BK"};
      if (!parses(context, moduleText(model, evenSizes())))
        continue;
      std::replace(model.name.begin(), model.name.end(), '.', '_');
      list.push_back(model);
      break;
    }
  }
  return list;
}
