// SPDX-License-Identifier: Apache-2.0
//
// An error that knows whether an output could not be created or not be written, which the command
// line tells apart (docs/run.md).
//
//   Result<void, OutputError> save(...) {
//     auto file = files.create(path);
//     if (!file) return std::unexpected(cannot_create(std::move(file).error()));
#pragma once

#include <utility>

#include "penstock/base/error.h"

namespace penstock {

class OutputError : public Error {
 public:
  enum class Step {
    kOther,   ///< It has nothing to do with an output.
    kCreate,  ///< The file or folder could not be made or put in its place.
    kWrite,   ///< It was there and did not take what was written.
  };

  /// Any other error, so that it can be passed on.
  OutputError(Error error) : Error(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  OutputError(Step step, Error error) : Error(std::move(error)), step_(step) {}

  Step step() const { return step_; }

 private:
  Step step_ = Step::kOther;
};

inline std::unexpected<OutputError> cannot_create(Error error) {
  return std::unexpected(OutputError(OutputError::Step::kCreate, std::move(error)));
}
inline std::unexpected<OutputError> cannot_write(Error error) {
  return std::unexpected(OutputError(OutputError::Step::kWrite, std::move(error)));
}

}  // namespace penstock
