//===- RunSave.cpp - parc run --save --------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `parc run --save`: a safetensors file of the last step.
///
//===----------------------------------------------------------------------===//

#include "RunSteps.h"
#include "parc/safetensors.h"

using namespace mlir;
using namespace mlir::parc;
using namespace mlir::parc::driver;

namespace {

/// A box of a tensor of the file.
template <class T> struct Piece {
  std::string name;
  ::parc::Shape lo, size;
  std::vector<T> data;
};

/// Collects entries and boxes, then writes them.
template <class T> class ResultFile {
public:
  void add(const std::string &name, ArrayRef<int64_t> shape,
           const eval::Tensor<T> &value) {
    ::parc::Shape full(shape.begin(), shape.end());
    addBox(name, full, ::parc::Shape(full.size(), 0), full, elementsOf(value),
           1.0);
  }
  void addBox(const std::string &name, const ::parc::Shape &full,
              const ::parc::Shape &lo, const ::parc::Shape &size,
              ArrayRef<T> elements, double scale) {
    entries[name] = {name, fileType(), full};
    std::vector<T> data(elements);
    for (T &element : data)
      element = static_cast<T>(element * scale);
    pieces.push_back({name, lo, size, std::move(data)});
  }
  /// `name` gives the tensor that holds a row, or all.
  void addParameter(ParamOp param, function_ref<std::string(int64_t)> name,
                    const eval::Tensor<T> &value, double scale);
  ::parc::Status write(const std::string &path) const;

private:
  static ArrayRef<T> elementsOf(const eval::Tensor<T> &value) {
    return {value.floats(), static_cast<size_t>(value.size())};
  }
  static ::parc::FileType fileType() {
    return sizeof(T) == 8 ? ::parc::FileType::F64 : ::parc::FileType::F32;
  }

  std::map<std::string, ::parc::TensorEntry> entries;
  std::vector<Piece<T>> pieces;
};

} // namespace

/// A parameter that is a box of a checkpoint's tensor becomes that box; one
/// whose rows are tensors becomes those.
template <class T>
void ResultFile<T>::addParameter(ParamOp param,
                                 function_ref<std::string(int64_t)> name,
                                 const eval::Tensor<T> &value, double scale) {
  ArrayRef<int64_t> shape = param.getCheckpointShape();
  ArrayRef<int64_t> sizes = value.shape();
  ::parc::Shape full(shape), lo(shape.size(), 0),
      size(sizes.take_back(shape.size()));
  if (auto checkpoint = param.getCheckpoint();
      checkpoint && !checkpoint->getShape().empty())
    lo.assign(checkpoint->getOffsets().begin(), checkpoint->getOffsets().end());
  int64_t rows = param.getCheckpointRows();
  size_t count = static_cast<size_t>(value.size() / rows);
  for (int64_t row = 0; row < rows; ++row)
    addBox(name(row), full, lo, size,
           elementsOf(value).slice(static_cast<size_t>(row) * count, count),
           scale);
}

template <class T>
::parc::Status ResultFile<T>::write(const std::string &path) const {
  std::vector<::parc::TensorEntry> list;
  for (const auto &[name, entry] : entries)
    list.push_back(entry);
  ::parc::SafetensorsWriter writer(path, std::move(list));
  ::parc::Status status = writer.create();
  if (!status.ok())
    return status;
  for (const Piece<T> &piece : pieces)
    status.update(
        writer.writeBox(piece.name, piece.lo, piece.size, piece.data.data()));
  if (status.ok())
    status.update(writer.commit());
  if (!status.ok())
    writer.abandon();
  return status;
}

template <class T>
bool mlir::parc::driver::saveResult(Session &session, const Word &path,
                                    ModuleOp module, const InitialValues &names,
                                    const eval::RanksResult<T> &result,
                                    int64_t validLabels) {
  ResultFile<T> file;
  for (auto &[name, value] : result.results)
    file.add(name, {1}, value);
  for (auto &[name, value] : result.observed)
    file.add(name, value.shape(), value);
  // Gradients are accumulated as sums over tokens; what is saved is that of the
  // mean.
  double perToken = validLabels ? 1.0 / static_cast<double>(validLabels) : 1.0;
  for (ParamOp param : module.getOps<ParamOp>()) {
    auto layers = static_cast<int64_t>(param.getLayers().value_or(1));
    for (int64_t layer = 0; layer < layers; ++layer) {
      std::string symbol = param.getSymName().str();
      auto named = [&](const char *kind) {
        return [&, kind](int64_t row) {
          return kind + names.name(param, layer, row);
        };
      };
      if (auto *grad = result.params.find({symbol, layer, "grad"}))
        file.addParameter(param, named("grad."), *grad, perToken);
      StringRef held = param.hasMaster() ? kMasterSlot : kValueSlot;
      if (auto *value = result.params.find({symbol, layer, held.str()}))
        file.addParameter(param, named("param."), *value, 1.0);
    }
  }
  ::parc::Status status = file.write(path.text);
  if (status.ok())
    return true;
  session.reporter.error(path.place, status.message(), "save");
  return false;
}

template bool mlir::parc::driver::saveResult(Session &, const Word &, ModuleOp,
                                             const InitialValues &,
                                             const eval::RanksResult<float> &,
                                             int64_t);
template bool mlir::parc::driver::saveResult(Session &, const Word &, ModuleOp,
                                             const InitialValues &,
                                             const eval::RanksResult<double> &,
                                             int64_t);
