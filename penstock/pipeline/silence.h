// SPDX-License-Identifier: Apache-2.0
//
// Silence tells for how long a live source has said nothing, from looks at it: a source whose frame
// is still being taken does not speak because it is not listened to.
//
//   Silence silence;
//   every 200 ms: if (silence.look(clock.now(), frames, is_taking) >= limit) ...
#pragma once

#include <cstdint>
#include <optional>

#include "penstock/base/clock.h"

namespace penstock {

class Silence {
 public:
  /// `frames` have come so far, and `taking` one of them, or what lies between frames, is on its
  /// way in. How long neither was the case, as far as anybody looked: never longer than it was.
  Nanoseconds look(TimePoint now, std::uint64_t frames, bool taking) {
    if (!since_ || taking || frames != frames_) since_ = now;
    frames_ = frames;
    return now - *since_;
  }

 private:
  std::optional<TimePoint> since_;
  std::uint64_t frames_ = 0;
};

}  // namespace penstock
