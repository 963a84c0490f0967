//===- Weights.cpp - The values of a model's parameters -------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Matches parameters with tensors of safetensors files, by name, shape and
/// type.
///
//===----------------------------------------------------------------------===//

#include "parc/Import/Weights.h"
#include "JsonSource.h"
#include "Nearest.h"
#include "parc/safetensors.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <set>

using namespace mlir;
using namespace mlir::parc;
using ::parc::FileTensor;
using ::parc::FileType;
using ::parc::SafetensorsFile;

static constexpr size_t kMaxIndexBytes = 64 << 20;
/// As many faults are listed; the others are counted.
static constexpr size_t kListed = 5;

std::optional<std::string> mlir::parc::findWeights(StringRef folder) {
  for (StringRef name : {"model.safetensors", "model.safetensors.index.json"}) {
    SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    if (llvm::sys::fs::exists(path))
      return path.str().str();
  }
  return std::nullopt;
}

Weights::Weights(MLIRContext *context, StringRef path)
    : context(context), path(path) {}
Weights::Weights(Weights &&) = default;
Weights &Weights::operator=(Weights &&) = default;
Weights::~Weights() = default;

/// The start of a file.
static Location startOf(MLIRContext *context, StringRef path) {
  return FileLineColLoc::get(context, path, 1, 1);
}

/// A message without the path in front, which the location says.
static StringRef dropPath(StringRef message, StringRef path) {
  if (message.consume_front(path))
    message.consume_front(": ");
  return message;
}

FailureOr<Weights> Weights::open(MLIRContext *context, StringRef path) {
  Weights weights(context, path);
  LogicalResult opened = path.ends_with(".json") ? weights.openShards(path)
                                                 : weights.openFile(path);
  if (failed(opened))
    return failure();
  return std::move(weights);
}

LogicalResult Weights::openFile(StringRef file) {
  auto mapped = std::make_unique<SafetensorsFile>();
  ::parc::Status status = mapped->open(file.str());
  if (!status.ok())
    return emitError(startOf(context, file))
           << dropPath(status.message(), file);
  files.push_back(std::move(mapped));
  return success();
}

/// The shards that an index names, sorted; each a plain file name.
static FailureOr<std::set<std::string>> readShards(const JsonSource &source) {
  const llvm::json::Object *map = source.root().getObject("weight_map");
  if (!map) {
    emitError(source.startLocation())
        << "expected an object 'weight_map', got "
        << (source.find("weight_map") ? "another value" : "none");
    return failure();
  }
  std::set<std::string> shards;
  for (const JsonKey &key : source.getKeys()) {
    StringRef name = key.path;
    if (!name.consume_front("weight_map."))
      continue;
    std::optional<StringRef> shard = map->getString(name);
    if (!shard || shard->empty() || *shard == ".." ||
        shard->find_first_of("/\\") != StringRef::npos) {
      emitError(source.valueLocation(key.path))
          << "expected the name of a file beside the index for tensor '" << name
          << "'";
      return failure();
    }
    shards.insert(shard->str());
  }
  return shards;
}

LogicalResult Weights::openShards(StringRef index) {
  auto buffer = llvm::MemoryBuffer::getFile(index);
  if (!buffer)
    return emitError(startOf(context, index))
           << "cannot read: " << buffer.getError().message();
  FailureOr<JsonSource> source =
      JsonSource::parse(context, (*buffer)->getBuffer(), index, kMaxIndexBytes);
  if (failed(source))
    return failure();
  FailureOr<std::set<std::string>> shards = readShards(*source);
  if (failed(shards))
    return failure();
  for (const std::string &shard : *shards) {
    SmallString<128> file(llvm::sys::path::parent_path(index));
    llvm::sys::path::append(file, shard);
    if (failed(openFile(file)))
      return failure();
  }
  std::vector<StringRef> names = getNames();
  auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    return emitError(startOf(context, index))
           << "tensor '" << *twice << "' is in two shards";
  return success();
}

const SafetensorsFile *Weights::findFile(StringRef name,
                                         const FileTensor **tensor) const {
  for (const auto &file : files) {
    const FileTensor *found = file->find(std::string_view(name));
    if (!found)
      continue;
    if (tensor)
      *tensor = found;
    return file.get();
  }
  return nullptr;
}

std::string Weights::findName(ParamOp param, int64_t layer, int64_t row) const {
  std::string name = param.getCheckpointName(layer, row);
  if (findFile(name))
    return name;
  StringRef shorter = StringRef(name).split('.').second;
  return !shorter.empty() && findFile(shorter) ? shorter.str() : "";
}

std::vector<StringRef> Weights::getNames() const {
  std::vector<StringRef> names;
  for (const auto &file : files)
    for (const FileTensor &tensor : file->tensors())
      names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  return names;
}

/// "32x96", or "a scalar".
static std::string showShape(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "a scalar";
  return llvm::join(
      llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }),
      "x");
}

static bool isFloat(FileType type) {
  return type == FileType::F64 || type == FileType::F32 ||
         type == FileType::F16 || type == FileType::BF16;
}

std::string Weights::explainFault(ParamOp param, int64_t layer, int64_t row,
                                  ArrayRef<StringRef> names) const {
  std::string found = findName(param, layer, row);
  std::string name =
      found.empty() ? param.getCheckpointName(layer, row) : found;
  std::string start = "tensor '" + name + "' (parameter '" +
                      param.getSymName().str() + "'): expected ";
  std::string shape = showShape(param.getCheckpointShape());
  if (found.empty()) {
    StringRef nearest = findNearest(name, names);
    std::string hint =
        nearest.empty() ? "" : ("; the nearest is '" + nearest + "'").str();
    return start + shape + ", got none" + hint;
  }
  const FileTensor *tensor = nullptr;
  findFile(found, &tensor);
  if (ArrayRef<int64_t>(tensor->shape) != param.getCheckpointShape())
    return start + shape + ", got " + showShape(tensor->shape);
  if (!isFloat(tensor->type))
    return start + "F64, F32, F16 or BF16, got " + ::parc::nameOf(tensor->type);
  return "";
}

/// Tensors that checkpoints hold beside parameters: tables that are computed
/// anew, masks, and the copy of a tied embedding.
static bool isBuffer(StringRef name) {
  return name.ends_with(".rotary_emb.inv_freq") ||
         name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name == "lm_head.weight";
}

void Weights::warnUnused(ArrayRef<StringRef> unused) const {
  if (unused.empty())
    return;
  InFlightDiagnostic warning = emitWarning(startOf(context, path))
                               << "no parameter uses ";
  llvm::interleave(
      unused.take_front(kListed),
      [&](StringRef name) { warning << "'" << name << "'"; },
      [&] { warning << ", "; });
  if (unused.size() > kListed)
    warning << " and " << unused.size() - kListed << " more";
}

LogicalResult Weights::check(ModuleOp module) const {
  std::vector<StringRef> names = getNames();
  llvm::StringSet<> used;
  SmallVector<std::tuple<ParamOp, int64_t, int64_t>> wanted;
  for (ParamOp param : module.getOps<ParamOp>()) {
    int64_t layers = static_cast<int64_t>(param.getLayers().value_or(1));
    for (int64_t layer = 0; layer < layers; ++layer)
      for (int64_t row = 0; row < param.getCheckpointRows(); ++row) {
        used.insert(findName(param, layer, row));
        wanted.push_back({param, layer, row});
      }
  }
  SmallVector<StringRef> unused;
  for (StringRef name : names)
    if (!used.contains(name))
      unused.push_back(name);

  SmallVector<std::string> faults;
  size_t count = 0;
  for (auto [param, layer, row] : wanted) {
    // The nearest name costs a walk over all names: only those shown need it.
    bool listed = count < kListed;
    std::string fault = explainFault(param, layer, row,
                                     listed ? ArrayRef<StringRef>(unused)
                                            : ArrayRef<StringRef>());
    if (fault.empty())
      continue;
    ++count;
    if (listed)
      faults.push_back(fault);
  }
  if (count) {
    InFlightDiagnostic error = emitError(startOf(context, path)) << faults[0];
    for (const std::string &fault : ArrayRef(faults).drop_front())
      error.attachNote(startOf(context, path)) << fault;
    if (count > kListed)
      error.attachNote(startOf(context, path))
          << "and " << count - kListed << " more like these";
    return error;
  }
  llvm::erase_if(unused, isBuffer);
  warnUnused(unused);
  return success();
}

LogicalResult Weights::read(ParamOp param, int64_t layer,
                            ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
                            ::parc::DType type, void *out) const {
  std::optional<CheckpointAttr> box = param.getCheckpoint();
  if (param.getCheckpointShape().size() == offsets.size()) {
    SmallVector<int64_t> lo(offsets);
    if (box && !box->getShape().empty())
      for (auto [offset, start] : llvm::zip_equal(lo, box->getOffsets()))
        offset += start;
    return readTensor(param, layer, 0, lo, sizes, type, out);
  }
  size_t bytes = ::parc::sizeOf(type);
  for (int64_t size : sizes.drop_front())
    bytes *= static_cast<size_t>(size);
  for (int64_t row = 0; row < sizes.front(); ++row)
    if (failed(readTensor(param, layer, offsets.front() + row,
                          offsets.drop_front(), sizes.drop_front(), type,
                          static_cast<char *>(out) +
                              static_cast<size_t>(row) * bytes)))
      return failure();
  return success();
}

LogicalResult Weights::readTensor(ParamOp param, int64_t layer, int64_t row,
                                  ArrayRef<int64_t> offsets,
                                  ArrayRef<int64_t> sizes, ::parc::DType type,
                                  void *out) const {
  std::string fault = explainFault(param, layer, row, {});
  if (!fault.empty())
    return emitError(startOf(context, path)) << fault;
  ::parc::Shape whole(param.getCheckpointShape()), lo(offsets), size(sizes);
  std::string name = findName(param, layer, row);
  ::parc::Status status =
      findFile(name)->read(name, whole, lo, size, type, out);
  if (!status.ok())
    return emitError(startOf(context, path))
           << dropPath(status.message(), path);
  return success();
}
