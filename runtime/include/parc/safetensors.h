//===- safetensors.h - Reading and writing safetensors files ----*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The safetensors format: eight bytes of header length, a JSON header, and
/// the data. The reader maps the file and refuses a header that does not
/// describe it exactly; the writer is deterministic, and a file appears whole
/// or not at all.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_SAFETENSORS_H
#define PARC_SAFETENSORS_H

#include "parc/dtype.h"
#include "parc/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parc {

/// Element types in a file.
enum class FileType : uint8_t { F64, F32, F16, BF16, I64, I32, U16, U8 };

const char *nameOf(FileType type);
size_t sizeOf(FileType type);
/// How a runtime type is stored; residues have no file type and give I64.
FileType fileTypeOf(DType type);

using Shape = std::vector<int64_t>;

/// One tensor of a mapped file.
struct FileTensor {
  std::string name;
  FileType type = FileType::F32;
  Shape shape;
  const uint8_t *data = nullptr; ///< In the mapping; not aligned.
  size_t bytes = 0;

  int64_t elements() const;
};

/// A mapped file. Views into it live as long as this object.
class SafetensorsFile {
public:
  SafetensorsFile() = default;
  SafetensorsFile(const SafetensorsFile &) = delete;
  SafetensorsFile &operator=(const SafetensorsFile &) = delete;
  ~SafetensorsFile();

  /// Maps \p path and checks its whole header. Messages begin with the path.
  Status open(const std::string &path);

  /// Sorted by name.
  const std::vector<FileTensor> &tensors() const { return tensors_; }
  /// The tensor of that name, or null.
  const FileTensor *find(std::string_view name) const;
  /// The string entries of __metadata__, in textual order.
  const std::vector<std::pair<std::string, std::string>> &metadata() const {
    return metadata_;
  }

  /// Reads the box [lo, lo + size) of a tensor of the given full shape,
  /// converted to \p type, row-major into \p out. Missing names and other
  /// shapes are errors. Integers convert to integers only.
  Status read(const std::string &name, const Shape &full, const Shape &lo,
              const Shape &size, DType type, void *out) const;
  /// The same for the whole tensor.
  Status read(const std::string &name, const Shape &full, DType type,
              void *out) const;

private:
  Status parse(size_t fileBytes);

  std::string path_;
  void *map_ = nullptr;
  size_t mapBytes_ = 0;
  std::vector<FileTensor> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

/// What a file will hold.
struct TensorEntry {
  std::string name;
  FileType type = FileType::F32;
  Shape shape;
};

/// Writes a file in pieces, from several threads or processes: all of them
/// give the same entries, one calls create(), then any may writeBox(), and
/// when all have done so one calls commit(). The bytes depend only on the
/// entries and the data.
class SafetensorsWriter {
public:
  SafetensorsWriter(std::string path, std::vector<TensorEntry> entries);

  /// Makes the temporary file with its header; data is zero.
  Status create();
  /// Writes the box [lo, lo + size) of a tensor from row-major \p data of the
  /// entry's type. Boxes of different callers must not overlap.
  Status writeBox(const std::string &name, const Shape &lo, const Shape &size,
                  const void *data);
  /// Renames the temporary file to its name.
  Status commit();
  /// Removes the temporary file.
  void abandon();

private:
  Status io(const std::string &what) const;

  std::string path_, temporary_, header_;
  std::vector<TensorEntry> entries_; ///< Sorted by name.
  std::vector<uint64_t> offsets_;    ///< Of the data, from the file's begin.
  uint64_t fileBytes_ = 0;
};

/// A whole tensor to write.
struct TensorData {
  TensorEntry entry;
  const void *data;
};

/// Writes all at once.
Status writeSafetensors(const std::string &path,
                        const std::vector<TensorData> &tensors);

} // namespace parc

#endif // PARC_SAFETENSORS_H
