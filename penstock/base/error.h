// SPDX-License-Identifier: Apache-2.0
//
// Errors as values. Every fallible function of Penstock returns Result<T> (std::expected) and never
// throws across a room's border; third-party exceptions are caught where they come in.
//
//   Result<Manifest> load(const std::filesystem::path& path);
//   auto manifest = load(path);
//   if (!manifest) return std::unexpected(manifest.error().context("preparing model 'nanodet'"));
//
// A message says what failed, on what, why, and what the user can do.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"

namespace penstock {

/// The broad cause of a failure; decides exit codes and bus-error codes. An operation whose callers
/// must branch on finer causes returns its own small enum instead of Error.
enum class ErrorKind {
  kInvalidArgument,  ///< The caller's value is wrong (property, flag, size, shape).
  kNotFound,         ///< A file, model, symbol or name does not exist.
  kPermission,       ///< The operating system refused access.
  kCorrupt,          ///< Bytes that came from outside are malformed or fail their hash.
  kUnsupported,      ///< Well formed, but not something Penstock or this device handles.
  kExhausted,        ///< A stated limit (queue, budget, pool, disk) is reached.
  kCancelled,        ///< The work's generation was cancelled or its owner was stopped.
  kDeadline,         ///< The deadline passed first.
  kIo,               ///< Reading or writing failed.
  kDevice,           ///< A device, driver or inference engine call failed.
  kInternal,         ///< A broken invariant of Penstock itself.
};

/// Stable lower-case name of a kind, e.g. "not-found".
std::string_view to_string(ErrorKind kind);

class Error {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  ErrorKind kind() const { return kind_; }

  /// Adds what was being done, outermost last; returns *this for chaining.
  Error& context(std::string what) & {
    context_.push_back(std::move(what));
    return *this;
  }
  Error context(std::string what) && {
    context_.push_back(std::move(what));
    return std::move(*this);
  }
  Error context(std::string what) const& { return Error(*this).context(std::move(what)); }

  /// "outermost: ...: innermost message", for a user to read.
  std::string message() const;

 private:
  ErrorKind kind_;
  std::string message_;
  std::vector<std::string> context_;
};

template <typename T, typename E = Error>
using Result = std::expected<T, E>;

/// Shorthand: `return fail(ErrorKind::kNotFound, str_format("no model '{}'", name));`
inline std::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return std::unexpected(Error(kind, std::move(message)));
}

}  // namespace penstock

/// Returns the error of an expression of type Result<...> from the enclosing function.
#define PENSTOCK_TRY(expression)                                                              \
  do {                                                                                        \
    auto penstock_try_result = (expression);                                                  \
    if (!penstock_try_result) return std::unexpected(std::move(penstock_try_result).error()); \
  } while (false)
