// SPDX-License-Identifier: Apache-2.0
//
// Progress of a run: one line that redraws itself on a terminal, a plain line now and then
// elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "penstock/base/clock.h"

namespace penstock {

struct ProgressState {
  std::uint64_t frames = 0;
  double done = -1;  ///< 0..1; negative: unknown (a live source).
  Nanoseconds running{};
};

/// "[######----] 61 % 487 frames 73.2 frames/s 4 s left", at most `width` columns.
std::string progress_line(const ProgressState& state, int width);

class Progress {
 public:
  /// `write` gets the text as it is to appear; `terminal` says whether it can be redrawn.
  Progress(std::function<void(std::string_view)> write, bool terminal, int width = 79,
           Clock& clock = Clock::system());
  /// Shows `state` if it is time: every 200 ms on a terminal, else every 10 s.
  void update(const ProgressState& state);
  /// Clears the terminal's line, so that messages start at the margin.
  void clear();

 private:
  std::function<void(std::string_view)> write_;
  bool terminal_;
  int width_;
  Clock& clock_;
  TimePoint shown_;
  bool visible_ = false;
};

}  // namespace penstock
