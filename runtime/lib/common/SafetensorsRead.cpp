//===- SafetensorsRead.cpp - Mapping and checking safetensors files -------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The bytes come from strangers: every length is checked before it is used,
/// every product for overflow.
///
//===----------------------------------------------------------------------===//

#include "parc/json.h"
#include "parc/safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace parc {

static constexpr uint64_t MaxHeader = 100ull << 20;

struct TypeName {
  FileType type;
  const char *name;
  size_t bytes;
};
static const TypeName typeNames[] = {
    {FileType::F64, "F64", 8}, {FileType::F32, "F32", 4},
    {FileType::F16, "F16", 2}, {FileType::BF16, "BF16", 2},
    {FileType::I64, "I64", 8}, {FileType::I32, "I32", 4},
    {FileType::U16, "U16", 2}, {FileType::U8, "U8", 1}};

const char *nameOf(FileType type) { return typeNames[int(type)].name; }
size_t sizeOf(FileType type) { return typeNames[int(type)].bytes; }

FileType fileTypeOf(DType type) {
  switch (type) {
  case DType::f64:
    return FileType::F64;
  case DType::f32:
    return FileType::F32;
  case DType::bf16:
    return FileType::BF16;
  case DType::i32:
    return FileType::I32;
  case DType::i64:
  case DType::zp:
    break;
  }
  return FileType::I64;
}

int64_t FileTensor::elements() const {
  return int64_t(bytes / sizeOf(type)); // the sizes' product, without overflow
}

static std::string shapeText(const Shape &shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d)
    text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

static Status bad(const std::string &text) {
  return Status(Code::BadFile, text);
}

static Status badTensor(const std::string &name, const std::string &text) {
  return bad("tensor " + json::quote(name) + ": " + text);
}

//===----------------------------------------------------------------------===//
// Header
//===----------------------------------------------------------------------===//

static Status readType(const json::Value &entry, FileTensor &t) {
  const json::Value *v = entry.get("dtype");
  if (!v || !v->isString())
    return badTensor(t.name, "expected a string \"dtype\", got none");
  for (const TypeName &known : typeNames)
    if (v->string == known.name) {
      t.type = known.type;
      return Status();
    }
  return badTensor(t.name, "expected a dtype among F64, F32, F16, BF16, I64, "
                           "I32, U16, U8, got " +
                               json::quote(v->string));
}

static Status readShape(const json::Value &entry, FileTensor &t) {
  const json::Value *v = entry.get("shape");
  if (!v || !v->isArray())
    return badTensor(t.name, "expected an array \"shape\", got none");
  for (const json::Value &d : v->array) {
    if (!d.isInteger() || d.integer < 0)
      return badTensor(t.name, "expected sizes that are integers of at least "
                               "0 in \"shape\"");
    t.shape.push_back(d.integer);
  }
  return Status();
}

static Status readOffsets(const json::Value &entry, const std::string &name,
                          uint64_t dataBytes, uint64_t &lo, uint64_t &hi) {
  const json::Value *v = entry.get("data_offsets");
  if (!v || !v->isArray() || v->array.size() != 2 || !v->array[0].isInteger() ||
      !v->array[1].isInteger())
    return badTensor(name, "expected two integers in \"data_offsets\"");
  int64_t a = v->array[0].integer, b = v->array[1].integer;
  if (a < 0 || b < a || uint64_t(b) > dataBytes)
    return badTensor(name, "expected data_offsets inside the " +
                               std::to_string(dataBytes) +
                               " bytes of data, got [" + std::to_string(a) +
                               ", " + std::to_string(b) + "]");
  lo = uint64_t(a);
  hi = uint64_t(b);
  return Status();
}

/// Bytes that shape and dtype demand; false when they overflow.
static bool demandedBytes(const FileTensor &t, uint64_t &bytes) {
  bytes = sizeOf(t.type);
  // A zero anywhere makes the tensor empty, whatever the others say.
  if (std::find(t.shape.begin(), t.shape.end(), 0) != t.shape.end()) {
    bytes = 0;
    return true;
  }
  for (int64_t d : t.shape)
    if (__builtin_mul_overflow(bytes, uint64_t(d), &bytes))
      return false;
  return bytes <= uint64_t(INT64_MAX);
}

static Status readTensor(const std::string &name, const json::Value &entry,
                         const uint8_t *data, uint64_t dataBytes,
                         FileTensor &t) {
  t.name = name;
  if (!entry.isObject())
    return badTensor(name, "expected an object");
  for (const auto &field : entry.object)
    if (field.first != "dtype" && field.first != "shape" &&
        field.first != "data_offsets")
      return badTensor(name, "expected dtype, shape and data_offsets, got " +
                                 json::quote(field.first));
  PARC_TRY(readType(entry, t));
  PARC_TRY(readShape(entry, t));
  uint64_t lo = 0, hi = 0, demanded = 0;
  PARC_TRY(readOffsets(entry, name, dataBytes, lo, hi));
  if (!demandedBytes(t, demanded))
    return badTensor(name, "shape " + shapeText(t.shape) + " overflows");
  if (demanded != hi - lo)
    return badTensor(name, "expected " + std::to_string(demanded) +
                               " bytes for " + shapeText(t.shape) + " " +
                               nameOf(t.type) + ", got " +
                               std::to_string(hi - lo));
  t.data = data + lo;
  t.bytes = size_t(hi - lo);
  return Status();
}

/// The tensors must tile the data: no overlap, no gap.
static Status checkTiling(const std::vector<FileTensor> &tensors,
                          const uint8_t *data, uint64_t dataBytes) {
  std::vector<const FileTensor *> order;
  for (const FileTensor &t : tensors)
    order.push_back(&t);
  std::sort(order.begin(), order.end(), [](auto *a, auto *b) {
    return a->data != b->data ? a->data < b->data : a->bytes < b->bytes;
  });
  uint64_t next = 0;
  for (const FileTensor *t : order) {
    uint64_t begin = uint64_t(t->data - data);
    if (begin < next)
      return badTensor(t->name, "overlaps another: expected data from byte " +
                                    std::to_string(next) + ", got " +
                                    std::to_string(begin));
    if (begin > next)
      return badTensor(t->name, "leaves a gap: expected data from byte " +
                                    std::to_string(next) + ", got " +
                                    std::to_string(begin));
    next = begin + t->bytes;
  }
  if (next != dataBytes)
    return bad("expected " + std::to_string(next) +
               " bytes of data after the header, got " +
               std::to_string(dataBytes));
  return Status();
}

Status SafetensorsFile::parse(size_t fileBytes) {
  const uint8_t *bytes = static_cast<const uint8_t *>(map_);
  if (fileBytes < 8)
    return bad("expected at least 8 bytes, got " + std::to_string(fileBytes));
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | bytes[i];
  if (length > MaxHeader)
    return bad("expected a header of at most " + std::to_string(MaxHeader) +
               " bytes, got " + std::to_string(length));
  if (length > fileBytes - 8)
    return bad("expected a header of at most " + std::to_string(fileBytes - 8) +
               " bytes, the rest of the file, got " + std::to_string(length));
  std::string_view text(reinterpret_cast<const char *>(bytes + 8), length);
  json::Value header;
  Status parsed = json::parse(text, header, 8);
  if (!parsed.ok())
    return bad("header: " + parsed.message());
  if (!header.isObject())
    return bad("header: expected an object");
  const uint8_t *data = bytes + 8 + length;
  uint64_t dataBytes = fileBytes - 8 - length;
  for (const auto &[name, entry] : header.object) {
    if (name == "__metadata__") {
      for (const auto &[key, value] : entry.object) {
        if (!value.isString())
          return bad("header: expected strings in __metadata__, got another "
                     "value for " +
                     json::quote(key));
        metadata_.emplace_back(key, value.string);
      }
      continue;
    }
    tensors_.emplace_back();
    PARC_TRY(readTensor(name, entry, data, dataBytes, tensors_.back()));
  }
  PARC_TRY(checkTiling(tensors_, data, dataBytes));
  std::sort(tensors_.begin(), tensors_.end(),
            [](auto &a, auto &b) { return a.name < b.name; });
  return Status();
}

SafetensorsFile::~SafetensorsFile() {
  if (map_)
    munmap(map_, mapBytes_);
}

Status SafetensorsFile::open(const std::string &path) {
  path_ = path;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return Status(Code::IoError, path + ": " + strerror(errno));
  struct stat info;
  bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular || info.st_size < 8) {
    close(fd);
    return bad(path + ": expected a file of at least 8 bytes" +
               (regular ? ", got " + std::to_string(info.st_size) : ""));
  }
  mapBytes_ = size_t(info.st_size);
  map_ = mmap(nullptr, mapBytes_, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (map_ == MAP_FAILED) {
    map_ = nullptr;
    return Status(Code::IoError, path + ": " + strerror(errno));
  }
  Status status = parse(mapBytes_);
  if (status.ok())
    return status;
  tensors_.clear();
  return Status(status.code(), path + ": " + status.message());
}

const FileTensor *SafetensorsFile::find(std::string_view name) const {
  auto it =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](auto &t, std::string_view n) { return t.name < n; });
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

//===----------------------------------------------------------------------===//
// Conversion
//===----------------------------------------------------------------------===//

static float halfToFloat(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 0x3ff;
  uint32_t bits;
  if (e == 31) {
    bits = sign | 0x7f800000 | (m << 13);
  } else if (e != 0) {
    bits = sign | ((e + 112) << 23) | (m << 13);
  } else {
    float f = float(m) * 0x1p-24f; // subnormal: exact
    return sign ? -f : f;
  }
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

template <class S> static S load(const uint8_t *p) {
  S s;
  memcpy(&s, p, sizeof s);
  return s;
}

template <class T>
static void convertRun(FileType type, const uint8_t *src, int64_t n, T *out) {
  auto each = [&](auto get, size_t width) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = T(get(src + i * width));
  };
  switch (type) {
  case FileType::F64:
    return each(load<double>, 8);
  case FileType::F32:
    return each(load<float>, 4);
  case FileType::F16:
    return each([](const uint8_t *p) { return halfToFloat(load<uint16_t>(p)); },
                2);
  case FileType::BF16:
    return each(
        [](const uint8_t *p) {
          BFloat16 b;
          b.bits = load<uint16_t>(p);
          return float(b);
        },
        2);
  case FileType::I64:
    return each(load<int64_t>, 8);
  case FileType::I32:
    return each(load<int32_t>, 4);
  case FileType::U16:
    return each([](const uint8_t *p) { return int32_t(load<uint16_t>(p)); }, 2);
  case FileType::U8:
    return each([](const uint8_t *p) { return int32_t(*p); }, 1);
  }
}

static void readRun(FileType from, const uint8_t *src, int64_t n, DType to,
                    void *out) {
  switch (to) {
  case DType::f32:
    return convertRun(from, src, n, static_cast<float *>(out));
  case DType::f64:
    return convertRun(from, src, n, static_cast<double *>(out));
  case DType::bf16: {
    BFloat16 *b = static_cast<BFloat16 *>(out);
    for (int64_t i = 0; i < n; ++i) {
      float f;
      convertRun(from, src + i * sizeOf(from), 1, &f);
      b[i] = BFloat16(f);
    }
    return;
  }
  case DType::i32:
    return convertRun(from, src, n, static_cast<int32_t *>(out));
  case DType::i64:
    return convertRun(from, src, n, static_cast<int64_t *>(out));
  case DType::zp: {
    Zp *z = static_cast<Zp *>(out);
    for (int64_t i = 0; i < n; ++i) {
      double d;
      convertRun(from, src + i * sizeOf(from), 1, &d);
      z[i] = Zp::fromDouble(d);
    }
    return;
  }
  }
}

static bool isInteger(FileType t) { return t >= FileType::I64; }

Status SafetensorsFile::read(const std::string &name, const Shape &full,
                             const Shape &lo, const Shape &size, DType type,
                             void *out) const {
  const FileTensor *t = find(name);
  if (!t)
    return bad(path_ + ": expected a tensor " + json::quote(name) +
               ", got none");
  if (t->shape != full)
    return bad(path_ + ": tensor " + json::quote(name) + ": expected shape " +
               shapeText(full) + ", got " + shapeText(t->shape));
  if ((type == DType::i32 || type == DType::i64) && !isInteger(t->type))
    return bad(path_ + ": tensor " + json::quote(name) +
               ": expected integers, got " + nameOf(t->type));
  bool inside = lo.size() == full.size() && size.size() == full.size();
  for (size_t d = 0; inside && d < full.size(); ++d)
    inside = lo[d] >= 0 && size[d] >= 0 && lo[d] <= full[d] - size[d];
  if (!inside)
    return Status(Code::InvalidArgument,
                  path_ + ": tensor " + json::quote(name) + ": box " +
                      shapeText(lo) + " + " + shapeText(size) +
                      " is not inside " + shapeText(full));
  int rank = int(full.size());
  int64_t run = rank ? size[rank - 1] : 1, runs = 1;
  for (int d = 0; d + 1 < rank; ++d)
    runs *= size[d];
  for (int64_t r = 0; run > 0 && r < runs; ++r) {
    int64_t rest = r, offset = 0, stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      int64_t i = 0;
      if (d != rank - 1) {
        i = rest % size[d];
        rest /= size[d];
      }
      offset += (lo[d] + i) * stride;
      stride *= full[d];
    }
    readRun(t->type, t->data + offset * int64_t(sizeOf(t->type)), run, type,
            static_cast<char *>(out) + r * run * int64_t(sizeOf(type)));
  }
  return Status();
}

Status SafetensorsFile::read(const std::string &name, const Shape &full,
                             DType type, void *out) const {
  return read(name, full, Shape(full.size(), 0), full, type, out);
}

} // namespace parc
