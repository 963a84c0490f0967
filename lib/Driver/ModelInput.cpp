//===- ModelInput.cpp - Reading MODEL -------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Opening, gating and parsing models, and what they say of themselves.
///
//===----------------------------------------------------------------------===//

#include "parc/Driver/ModelInput.h"
#include "Retype.h"
#include "parc/Driver/InputGate.h"
#include "parc/Driver/Output.h"
#include "parc/Import/Model.h"
#include "parc/InitAll.h"

#include "Parc/Parc.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

static constexpr size_t kMaxModelBytes = size_t(64) << 20;

std::string ModelInput::beside(StringRef name) const {
  if (folder.empty())
    return "";
  SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return llvm::sys::fs::exists(path) ? path.str().str() : std::string();
}

std::optional<std::string> mlir::parc::driver::readFile(StringRef path,
                                                        size_t limit,
                                                        const Place &place,
                                                        Reporter &reporter) {
  auto fail = [&](const Twine &message) {
    reporter.error(place, message, "file");
    return std::nullopt;
  };
  llvm::sys::fs::file_status status;
  if (std::error_code code = llvm::sys::fs::status(path, status))
    return fail("cannot read '" + printable(path) + "': " + code.message());
  if (llvm::sys::fs::is_directory(status))
    return fail("expected a file, got the folder '" + printable(path) + "'");
  bool tooLarge =
      llvm::sys::fs::is_regular_file(status) && status.getSize() > limit;
  if (tooLarge)
    return fail("expected at most " + Twine(limit >> 20) + " MiB in '" +
                printable(path) + "', got " + Twine(status.getSize() >> 20));
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fail("cannot read '" + printable(path) +
                "': " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

/// The model's file in a folder; empty where there is none.
static std::string modelInFolder(StringRef folder) {
  for (StringRef name : {"config.json", "model.mlir"}) {
    SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    if (llvm::sys::fs::exists(path))
      return path.str().str();
  }
  return "";
}

std::optional<ModelInput> mlir::parc::driver::openModel(const Word &word,
                                                        Reporter &reporter) {
  ModelInput input;
  input.typed = printable(word.text);
  if (word.text == "-") {
    auto buffer = llvm::MemoryBuffer::getSTDIN();
    if (!buffer) {
      reporter.error(word.place, "cannot read standard input", "file");
      return std::nullopt;
    }
    input.file = "<stdin>";
    input.text = (*buffer)->getBuffer().str();
  } else {
    std::string path = word.text;
    if (llvm::sys::fs::is_directory(path)) {
      path = modelInFolder(path);
      if (path.empty()) {
        reporter.error(
            word.place,
            "expected a config.json or a model.mlir in the folder '" +
                input.typed + "', found neither",
            "file");
        return std::nullopt;
      }
    } else if (!llvm::sys::fs::exists(path)) {
      reporter.error(word.place,
                     "no file or folder called '" + input.typed + "'", "file");
      return std::nullopt;
    }
    std::optional<std::string> text =
        readFile(path, kMaxModelBytes, word.place, reporter);
    if (!text)
      return std::nullopt;
    input.file = path;
    input.text = std::move(*text);
    StringRef parent = llvm::sys::path::parent_path(path);
    input.folder = parent.empty() ? "." : parent.str();
  }
  // No MLIR text begins with a brace, and every config does.
  input.kind = StringRef(input.text).ltrim().starts_with("{") &&
                       !StringRef(input.text).ltrim().starts_with("{-#")
                   ? ModelInput::Kind::Config
                   : ModelInput::Kind::IR;
  reporter.addSource(input.file, input.text);
  return input;
}

void mlir::parc::driver::setUpContext(MLIRContext &context) {
  DialectRegistry registry;
  registerAllDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

//===----------------------------------------------------------------------===//
// Parsing with names
//===----------------------------------------------------------------------===//

/// The name in `%name` or `%name:2`; empty for a number.
static StringRef valueName(llvm::SMRange range) {
  StringRef text(range.Start.getPointer(),
                 range.End.getPointer() - range.Start.getPointer());
  StringRef name = text.ltrim('%').split(':').first.split('#').first;
  if (name.empty() || llvm::isDigit(name[0]))
    return "";
  return name;
}

/// A value's name in the text is the best name that a message can use.
static void nameValues(const AsmParserState &state, MLIRContext *context) {
  auto named = [&](llvm::SMRange range, Location location) -> Location {
    StringRef name = valueName(range);
    if (name.empty())
      return location;
    return NameLoc::get(StringAttr::get(context, name), location);
  };
  for (const auto &definition : state.getOpDefs())
    if (!definition.resultGroups.empty())
      definition.op->setLoc(
          named(definition.resultGroups.front().definition.loc,
                definition.op->getLoc()));
  for (const auto &block : state.getBlockDefs())
    for (auto [index, argument] : llvm::enumerate(block.arguments))
      if (index < block.block->getNumArguments()) {
        BlockArgument value = block.block->getArgument(index);
        value.setLoc(named(argument.loc, value.getLoc()));
      }
}

OwningOpRef<ModuleOp> mlir::parc::driver::parseNamed(MLIRContext &context,
                                                     StringRef text,
                                                     StringRef file) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, file),
                             llvm::SMLoc());
  Block block;
  AsmParserState state;
  if (failed(
          parseAsmSourceFile(sources, &block, ParserConfig(&context), &state)))
    return nullptr;
  nameValues(state, &context);
  if (llvm::hasSingleElement(block))
    if (auto module = dyn_cast<ModuleOp>(block.front())) {
      module->remove();
      return module;
    }
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(FileLineColLoc::get(&context, file, 1, 1));
  module->getBody()->getOperations().splice(module->getBody()->end(),
                                            block.getOperations());
  if (failed(verify(*module)))
    return nullptr;
  return module;
}

//===----------------------------------------------------------------------===//
// What a model says
//===----------------------------------------------------------------------===//

SmallVector<std::pair<std::string, int64_t>>
mlir::parc::driver::stackLayers(ModuleOp module) {
  SmallVector<std::pair<std::string, int64_t>> result;
  module.walk([&](StackOp stack) {
    StringRef name = stack.getLayers();
    int64_t count = static_cast<int64_t>(stack.getEnd());
    for (auto &known : result)
      if (known.first == name) {
        known.second = std::max(known.second, count);
        return;
      }
    result.push_back({name.str(), count});
  });
  return result;
}

static std::optional<ElementKind> kindOf(Type type) {
  if (type.isF32())
    return ElementKind::F32;
  if (type.isF64())
    return ElementKind::F64;
  if (type.isBF16())
    return ElementKind::BF16;
  return std::nullopt;
}

/// The mesh that the module declares; false after an error.
static bool readMesh(ModuleOp module, ModelFacts &facts) {
  auto meshes = module.getOps<MeshOp>();
  if (meshes.empty())
    return true;
  MeshOp op = *meshes.begin();
  SmallVector<MeshAxis> axes;
  for (auto [name, size] :
       llvm::zip(op.getAxes().getAsValueRange<StringAttr>(), op.getSizes()))
    axes.push_back({name.str(), size});
  TextError error;
  facts.mesh = Mesh::get(axes, error);
  if (!facts.mesh) {
    InFlightDiagnostic diagnostic = op.emitError() << error.message;
    if (!error.help.empty())
      diagnostic.attachNote() << "help: " << error.help;
    return false;
  }
  if (std::optional<ArrayAttr> order = op.getOrder())
    llvm::raw_string_ostream(facts.order)
        << llvm::join(order->getAsValueRange<StringAttr>(), "-");
  return true;
}

/// Reads what the module says of itself; false after an error.
static bool readFacts(ModuleOp module, ModelFacts &facts) {
  auto steps = module.getOps<StepOp>();
  if (steps.empty()) {
    module.emitError("expected a 'parc.step', got none").attachNote()
        << "help: 'parc import' writes one; see the parc dialect's reference";
    return false;
  }
  StepOp step = *steps.begin();
  if (!llvm::hasSingleElement(steps)) {
    (*std::next(steps.begin()))->emitError("expected one 'parc.step', got two");
    return false;
  }
  if (step.getMicro().empty() ||
      step.getMicro().front().getNumArguments() == 0) {
    step.emitError("expected a step with inputs, got none");
    return false;
  }
  for (BlockArgument input : step.getMicro().front().getArguments()) {
    auto type = dyn_cast<RankedTensorType>(input.getType());
    if (type && type.hasStaticShape())
      continue;
    step.emitError("expected inputs of static shape, got ") << input.getType();
    return false;
  }
  auto first =
      cast<RankedTensorType>(step.getMicro().front().getArgument(0).getType());
  if (first.getRank() > 0)
    facts.batch = first.getDimSize(0);
  if (first.getRank() > 1)
    facts.sequence = first.getDimSize(1);
  for (auto &[name, count] : stackLayers(module))
    facts.layers += count;
  for (ParamOp param : module.getOps<ParamOp>())
    if (auto kind = kindOf(param.getTensorType().getElementType())) {
      facts.dtype = *kind;
      break;
    }
  return readMesh(module, facts);
}

std::optional<LoadedModel>
mlir::parc::driver::loadModel(MLIRContext &context, const ModelInput &input,
                              std::optional<ElementKind> dtype,
                              Reporter &reporter) {
  LoadedModel model;
  model.facts.file = input.file;
  if (input.kind == ModelInput::Kind::Config) {
    FailureOr<ModelConfig> config =
        readModelConfig(&context, input.text, input.file, dtype);
    if (failed(config))
      return std::nullopt;
    model.facts.maxSequence = config->maxPositions;
    model.facts.layers = config->layers;
    model.facts.dtype = config->element;
    model.facts.isConfig = true;
    model.facts.experts = config->experts.count;
    model.config = std::move(*config);
    return model;
  }
  if (std::optional<InputFault> found = checkMLIRText(input.text)) {
    reporter.error(reporter.placeIn(input.file, found->line, found->column),
                   found->message, "gate");
    if (!found->help.empty())
      reporter.help(found->help);
    return std::nullopt;
  }
  model.module = parseNamed(context, input.text, input.file);
  if (!model.module || !readFacts(*model.module, model.facts))
    return std::nullopt;
  model.irFile = input.file;
  model.irText = input.text;
  return model;
}

/// Prints the module as its text from now on and reads it back, so that
/// locations point into what is written to the output.
static bool adoptText(MLIRContext &context, LoadedModel &model, ModuleOp module,
                      Reporter &reporter) {
  model.irFile = "model.mlir";
  model.irText = kTextMarker.str() + " from " +
                 printable(llvm::sys::path::filename(model.facts.file)) + "\n";
  llvm::raw_string_ostream os(model.irText);
  printModel(module, os);
  reporter.addSource(model.irFile, model.irText);
  model.module = parseNamed(context, model.irText, model.irFile);
  return static_cast<bool>(model.module);
}

bool mlir::parc::driver::materialize(MLIRContext &context, LoadedModel &model,
                                     const Declaration &declaration,
                                     Reporter &reporter) {
  if (model.config) {
    RoutingOptions routing;
    routing.drops = declaration.moe.value == "capacity";
    routing.bufferFactor = declaration.bufferFactor.value;
    if (routing.drops)
      routing.capacityFactor = declaration.capacityFactor.value;
    routing.batchParts =
        declaration.size("dp") * declaration.microBatches.value;
    routing.sequenceParts = declaration.size("cp") *
                            (declaration.sp.value ? declaration.size("tp") : 1);
    if (declaration.expertScope.value == "global")
      routing.scope = 0;
    else if (declaration.expertScope.value == "micro-batch")
      routing.scope = declaration.batch.value / routing.batchParts;
    FailureOr<OwningOpRef<ModuleOp>> built = buildModel(
        &context, *model.config,
        {declaration.batch.value, declaration.sequence.value, routing});
    return succeeded(built) && adoptText(context, model, **built, reporter);
  }
  Retype change;
  change.batch = declaration.batch.value;
  change.sequence = declaration.sequence.value;
  change.dtype = declaration.dtype.value;
  const ModelFacts &facts = model.facts;
  if (facts.batch.value_or(change.batch) == change.batch &&
      facts.sequence.value_or(change.sequence) == change.sequence &&
      facts.dtype == change.dtype)
    return true;
  if (failed(retype(*model.module, facts, change)))
    return false;
  OwningOpRef<ModuleOp> changed = std::move(model.module);
  return adoptText(context, model, *changed, reporter);
}
