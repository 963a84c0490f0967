//===- SafetensorsWrite.cpp - Writing safetensors files -------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The header is a function of the sorted entries, so every process knows
/// every offset and writes its own boxes.
///
//===----------------------------------------------------------------------===//

#include "parc/json.h"
#include "parc/safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace parc {

static std::string list(const Shape &shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d)
    text += (d ? "," : "") + std::to_string(shape[d]);
  return text + "]";
}

SafetensorsWriter::SafetensorsWriter(std::string path,
                                     std::vector<TensorEntry> entries)
    : path_(std::move(path)), temporary_(path_ + ".partial"),
      entries_(std::move(entries)) {
  std::sort(entries_.begin(), entries_.end(),
            [](auto &a, auto &b) { return a.name < b.name; });
  std::string json = "{";
  uint64_t at = 0;
  for (const TensorEntry &e : entries_) {
    uint64_t bytes = sizeOf(e.type);
    for (int64_t d : e.shape)
      bytes *= uint64_t(d);
    json += (json.size() > 1 ? "," : "") + json::quote(e.name) +
            ":{\"dtype\":\"" + nameOf(e.type) +
            "\",\"shape\":" + list(e.shape) + ",\"data_offsets\":[" +
            std::to_string(at) + "," + std::to_string(at + bytes) + "]}";
    offsets_.push_back(at);
    at += bytes;
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' '); // aligns the data
  for (int i = 0; i < 8; ++i)
    header_ += char(uint64_t(json.size()) >> (8 * i));
  header_ += json;
  for (uint64_t &offset : offsets_)
    offset += header_.size();
  fileBytes_ = header_.size() + at;
}

Status SafetensorsWriter::io(const std::string &what) const {
  return Status(Code::IoError, what + ": " + strerror(errno));
}

/// All of a range at an offset, whatever the system takes at a time.
static bool writeAll(int fd, const void *data, size_t bytes, uint64_t at) {
  const char *p = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t n = pwrite(fd, p, bytes, off_t(at));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    p += n;
    at += uint64_t(n);
    bytes -= size_t(n);
  }
  return true;
}

Status SafetensorsWriter::create() {
  for (size_t i = 1; i < entries_.size(); ++i)
    if (entries_[i - 1].name == entries_[i].name)
      return Status(Code::InvalidArgument, path_ + ": tensor " +
                                               json::quote(entries_[i].name) +
                                               " is written twice");
  int fd = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                  0644);
  if (fd < 0)
    return io(temporary_);
  bool done = writeAll(fd, header_.data(), header_.size(), 0) &&
              ftruncate(fd, off_t(fileBytes_)) == 0;
  Status status = done ? Status() : io(temporary_);
  if (close(fd) != 0)
    status.update(io(temporary_));
  if (!status.ok())
    abandon();
  return status;
}

Status SafetensorsWriter::writeBox(const std::string &name, const Shape &lo,
                                   const Shape &size, const void *data) {
  auto it = std::lower_bound(
      entries_.begin(), entries_.end(), name,
      [](auto &e, const std::string &n) { return e.name < n; });
  if (it == entries_.end() || it->name != name)
    return Status(Code::InvalidArgument, path_ + ": no tensor " +
                                             json::quote(name) +
                                             " was announced");
  const Shape &full = it->shape;
  int rank = int(full.size());
  bool inside = lo.size() == full.size() && size.size() == full.size();
  for (int d = 0; inside && d < rank; ++d)
    inside = lo[d] >= 0 && size[d] >= 0 && lo[d] <= full[d] - size[d];
  if (!inside)
    return Status(Code::InvalidArgument, path_ + ": tensor " +
                                             json::quote(name) + ": box " +
                                             list(lo) + " + " + list(size) +
                                             " is not inside " + list(full));
  int fd = ::open(temporary_.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return io(temporary_);
  // Trailing dimensions that are taken whole make longer runs.
  int64_t width = int64_t(sizeOf(it->type)), run = 1, runs = 1;
  int inner = rank;
  while (inner > 0 && (inner == rank || size[inner] == full[inner]))
    run *= size[--inner];
  for (int d = 0; d < inner; ++d)
    runs *= size[d];
  uint64_t base = offsets_[size_t(it - entries_.begin())];
  bool good = true;
  for (int64_t r = 0; good && run > 0 && r < runs; ++r) {
    int64_t rest = r, offset = 0, stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      int64_t i = 0;
      if (d < inner) {
        i = rest % size[d];
        rest /= size[d];
      }
      offset += (lo[d] + i) * stride;
      stride *= full[d];
    }
    good = writeAll(fd, static_cast<const char *>(data) + r * run * width,
                    size_t(run * width), base + uint64_t(offset * width));
  }
  Status status = good ? Status() : io(temporary_);
  if (close(fd) != 0)
    status.update(io(temporary_));
  return status;
}

Status SafetensorsWriter::commit() {
  if (std::rename(temporary_.c_str(), path_.c_str()) == 0)
    return Status();
  Status status = io(path_);
  abandon();
  return status;
}

void SafetensorsWriter::abandon() { ::unlink(temporary_.c_str()); }

Status writeSafetensors(const std::string &path,
                        const std::vector<TensorData> &tensors) {
  std::vector<TensorEntry> entries;
  for (const TensorData &t : tensors)
    entries.push_back(t.entry);
  SafetensorsWriter writer(path, std::move(entries));
  PARC_TRY(writer.create());
  for (const TensorData &t : tensors) {
    Status status = writer.writeBox(
        t.entry.name, Shape(t.entry.shape.size(), 0), t.entry.shape, t.data);
    if (!status.ok()) {
      writer.abandon();
      return status;
    }
  }
  return writer.commit();
}

} // namespace parc
