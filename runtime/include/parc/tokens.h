//===- tokens.h - Token files and the order of data -------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A token file is 24 bytes of header and the ids, all little-endian:
///
///   bytes 0-7    "PARCTOK1"
///   bytes 8-11   bytes of one id: 2 or 4 (uint32)
///   bytes 12-15  0
///   bytes 16-23  number of ids (uint64)
///   bytes 24-    the ids
///
/// Sequence g of length s is the window of s + 1 ids that begins at id
/// (g mod W) * s, where W = (count - 1) / s windows fit; its last id is the
/// label of the last position. Step t (from 0) with batch b reads the
/// sequences t*b to t*b + b - 1: the order depends on nothing of the mesh.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_TOKENS_H
#define PARC_TOKENS_H

#include "parc/status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace parc {

/// The label of a position that does not count.
constexpr int32_t IgnoredLabel = -100;

/// A mapped token file.
class TokenFile {
public:
  TokenFile() = default;
  TokenFile(const TokenFile &) = delete;
  TokenFile &operator=(const TokenFile &) = delete;
  ~TokenFile();

  Status open(const std::string &path);

  int64_t count() const { return count_; }
  int64_t id(int64_t i) const;
  /// Windows of \p seq positions with labels; 0 where the file is too short.
  int64_t windows(int64_t seq) const { return count_ ? (count_ - 1) / seq : 0; }

  /// Copies global sequence \p index: \p seq ids and the ids one further on.
  void sequence(int64_t index, int64_t seq, int32_t *ids,
                int32_t *labels) const;
  /// Checks that at least one window fits and that all ids are below \p vocab.
  Status check(int64_t seq, int64_t vocab) const;

private:
  std::string path_;
  const uint8_t *map_ = nullptr;
  size_t mapBytes_ = 0;
  int width_ = 0;
  int64_t count_ = 0;
};

/// Writes a token file of \p width bytes an id.
Status writeTokens(const std::string &path, const std::vector<uint32_t> &ids,
                   int width);

} // namespace parc

#endif // PARC_TOKENS_H
