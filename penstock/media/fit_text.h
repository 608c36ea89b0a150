// SPDX-License-Identifier: Apache-2.0
//
// The words for a Fit in manifests, flags and messages.
#pragma once

#include <string_view>

#include "penstock/media/geometry.h"

namespace penstock {

/// "stretch", "letterbox-center" or "letterbox-top-left".
constexpr std::string_view to_string(Fit fit) {
  switch (fit) {
    case Fit::kStretch:
      return "stretch";
    case Fit::kLetterboxCenter:
      return "letterbox-center";
    case Fit::kLetterboxTopLeft:
      return "letterbox-top-left";
  }
  return "";
}

}  // namespace penstock
