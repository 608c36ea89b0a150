// SPDX-License-Identifier: Apache-2.0
//
// StopSignals turns the first SIGINT, SIGTERM or SIGHUP into a readable descriptor, so that the
// run can close its outputs; the second ends the process at once. A SIGHUP that was ignored (nohup)
// stays ignored. One at a time in a process.
#pragma once

#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"

namespace penstock {

class StopSignals {
 public:
  static Result<StopSignals> install();
  StopSignals(StopSignals&&) = default;
  StopSignals& operator=(StopSignals&&) = delete;

  int fd() const { return fd_.get(); }
  /// The signal that came, 0 for none.
  static int received();

 private:
  explicit StopSignals(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace penstock
