// SPDX-License-Identifier: Apache-2.0
//
// Colours of what is drawn. They depend on the class's label or the track's number only, so that
// they are the same in every frame, run and program.
#pragma once

#include <cstdint>
#include <string_view>

#include "penstock/draw/draw_list.h"

namespace penstock {

/// Of the class with this label. Numbers of classes are the model's, and records have none.
DrawColor color_of_label(std::string_view label);
/// Neighbouring ids differ much.
DrawColor color_of_track(std::int64_t track_id);
/// Of a class of a class map.
DrawColor color_of_class(std::uint8_t class_id);

/// Black or white, whichever reads better on `ground`.
DrawColor ink_on(DrawColor ground);

}  // namespace penstock
