// SPDX-License-Identifier: Apache-2.0
//
// Zones and lines as people write them on a command line:
//
//   door: 0.1,0.2 0.4,0.2 0.4,0.9 @ person; yard: 0.5,0.5 0.9,0.5 0.9,0.9
//
// A name, a colon, the corners (x,y in parts of the picture), and behind an @ the labels that
// count, by commas; without it all do. Semicolons between places. Space around any of them is left
// out.
#pragma once

#include <string_view>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/track/zones.h"

namespace penstock {

/// kInvalidArgument quotes the place or number that can't be read. Whether a polygon is one is
/// ZoneCounter's business. Empty text: none.
Result<std::vector<Zone>> parse_zones(std::string_view text);
/// The same with two corners a line, from and to.
Result<std::vector<CountingLine>> parse_lines(std::string_view text);

}  // namespace penstock
