//===- Tokens.cpp - Token files -------------------------------------------===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Maps a token file and cuts windows out of it.
///
//===----------------------------------------------------------------------===//

#include "parc/tokens.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace parc {

static constexpr char Magic[] = "PARCTOK1";
static constexpr size_t HeaderBytes = 24;

TokenFile::~TokenFile() {
  if (map_)
    munmap(const_cast<uint8_t *>(map_), mapBytes_);
}

Status TokenFile::open(const std::string &path) {
  path_ = path;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return Status(Code::IoError, path + ": " + strerror(errno));
  struct stat info;
  bool enough = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                size_t(info.st_size) >= HeaderBytes;
  void *map = MAP_FAILED;
  if (enough) {
    mapBytes_ = size_t(info.st_size);
    map = mmap(nullptr, mapBytes_, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  close(fd);
  if (!enough)
    return Status(Code::BadFile, path + ": expected a file of at least " +
                                     std::to_string(HeaderBytes) + " bytes");
  if (map == MAP_FAILED)
    return Status(Code::IoError, path + ": " + strerror(errno));
  map_ = static_cast<const uint8_t *>(map);
  if (memcmp(map_, Magic, 8) != 0)
    return Status(Code::BadFile,
                  path + ": expected a token file that begins with PARCTOK1");
  uint32_t width;
  uint64_t count;
  memcpy(&width, map_ + 8, 4);
  memcpy(&count, map_ + 16, 8);
  if (width != 2 && width != 4)
    return Status(Code::BadFile, path + ": expected 2 or 4 bytes an id, got " +
                                     std::to_string(width));
  uint64_t present = (mapBytes_ - HeaderBytes) / width;
  if (count != present || (mapBytes_ - HeaderBytes) % width)
    return Status(Code::BadFile,
                  path + ": expected " + std::to_string(count) + " ids of " +
                      std::to_string(width) + " bytes after the header, got " +
                      std::to_string(mapBytes_ - HeaderBytes) + " bytes");
  width_ = int(width);
  count_ = int64_t(count);
  return Status();
}

int64_t TokenFile::id(int64_t i) const {
  const uint8_t *p = map_ + HeaderBytes + i * width_;
  if (width_ == 2)
    return p[0] | p[1] << 8;
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}

void TokenFile::sequence(int64_t index, int64_t seq, int32_t *ids,
                         int32_t *labels) const {
  int64_t begin = index % windows(seq) * seq;
  for (int64_t i = 0; i < seq; ++i) {
    ids[i] = int32_t(id(begin + i));
    labels[i] = int32_t(id(begin + i + 1));
  }
}

Status TokenFile::check(int64_t seq, int64_t vocab) const {
  if (windows(seq) < 1)
    return Status(Code::BadFile,
                  path_ + ": expected at least " + std::to_string(seq + 1) +
                      " ids for one sequence, got " + std::to_string(count_));
  for (int64_t i = 0; i < count_; ++i)
    if (id(i) >= vocab)
      return Status(Code::BadFile,
                    path_ + ": expected ids below the " + "vocabulary of " +
                        std::to_string(vocab) + ", got " +
                        std::to_string(id(i)) + " at " + std::to_string(i));
  return Status();
}

Status writeTokens(const std::string &path, const std::vector<uint32_t> &ids,
                   int width) {
  std::string bytes(Magic, 8);
  auto put = [&](uint64_t v, int n) {
    for (int i = 0; i < n; ++i)
      bytes += char(v >> (8 * i));
  };
  put(uint64_t(width), 4);
  put(0, 4);
  put(ids.size(), 8);
  for (uint32_t id : ids)
    put(id, width);
  std::string temporary = path + ".partial";
  FILE *file = std::fopen(temporary.c_str(), "wb");
  if (!file)
    return Status(Code::IoError, path + ": " + strerror(errno));
  bool good = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  good &= std::fclose(file) == 0;
  good = good && std::rename(temporary.c_str(), path.c_str()) == 0;
  if (good)
    return Status();
  Status status(Code::IoError, path + ": " + strerror(errno));
  ::unlink(temporary.c_str());
  return status;
}

} // namespace parc
