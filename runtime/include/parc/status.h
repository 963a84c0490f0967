//===- status.h - Must-use result of a runtime call -------------*- C++ -*-===//
//
// Part of parc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The result of a call that may fail: a code, a message that says what was
/// expected and what was found, and advice on how to fix it. The runtime uses
/// no exceptions, so that it links into programs built without them.
///
//===----------------------------------------------------------------------===//

#ifndef PARC_STATUS_H
#define PARC_STATUS_H

#include <string>
#include <utility>

namespace parc {

/// What went wrong. The codes are coarse: the message carries the detail.
enum class Code {
  Ok,
  InvalidArgument, ///< A call or a flag that has no meaning.
  Mismatch,        ///< Members of a communicator made different calls.
  Deadlock,        ///< Ranks wait for each other in a cycle.
  Timeout,         ///< No rank made progress for the watchdog's time.
  RankFailed,      ///< A rank that others wait for returned.
  Stopped,         ///< Another rank failed first; this one was released.
  BadFile,         ///< The bytes of a file are not what its format demands.
  IoError,         ///< The operating system refused.
  Unsupported,     ///< Legal, but not available on this backend.
  Overflow,        ///< A buffer bounded by the plan is too small for the data.
  DeviceError,     ///< CUDA, NCCL or cuBLASLt reported an error.
};

/// A must-use result. Default constructed it is success.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Code code, std::string message, std::string advice = {})
      : code_(code), message_(std::move(message)), advice_(std::move(advice)) {}

  static Status success() { return Status(); }

  bool ok() const { return code_ == Code::Ok; }
  Code code() const { return code_; }
  const std::string &message() const { return message_; }
  const std::string &advice() const { return advice_; }

  /// The message, and the advice on a line of its own where there is one.
  std::string text() const {
    if (ok())
      return "ok";
    return advice_.empty() ? message_ : message_ + "\nhelp: " + advice_;
  }

  /// Keeps the first failure of two.
  void update(Status other) {
    if (ok())
      *this = std::move(other);
  }

  /// For the rare place that cannot act on a failure; says so in the code.
  void ignore() const {}

private:
  Code code_ = Code::Ok;
  std::string message_;
  std::string advice_;
};

} // namespace parc

/// Returns from the enclosing function with the failure, if \p expr failed.
#define PARC_TRY(expr)                                                         \
  do {                                                                         \
    ::parc::Status parcStatus_ = (expr);                                       \
    if (!parcStatus_.ok())                                                     \
      return parcStatus_;                                                      \
  } while (false)

#endif // PARC_STATUS_H
