// SPDX-License-Identifier: Apache-2.0
//
// What objectdetectionoverlay is to draw for a label. It reads labels as Pango markup: `salt &
// pepper` is drawn as nothing there, and `<span>` as a style.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

/// Code points of a label that are drawn; a longer one ends in an ellipsis.
inline constexpr long kMaxDrawnLabel = 64;

/// `label` as markup that shows its text: escaped, control characters as spaces, what is not UTF-8
/// as U+FFFD, and cut to kMaxDrawnLabel.
std::string drawn_label(std::string_view label);

}  // namespace penstock
