// SPDX-License-Identifier: Apache-2.0
//
// What a ZoneCounter says, as structures for messages and properties.
#pragma once

#include <gst/gst.h>

#include "gst/gst_ptr.h"
#include "penstock/track/zones.h"

namespace penstock::gst {

/// Track ids of records begin where their writer likes, at 0 too; a Detection's 0 is none.
inline constexpr std::int64_t kTrackIdOffset = 1;

/// "penzone" with event, place, track-id, label, running-time and, of who left, dwell.
GstPtr<GstStructure> event_structure(const ZoneEvent& event, GstClockTime running_time);

/// "penstock-zones" with lists of zones and lines.
GstPtr<GstStructure> stats_structure(const ZoneFrame& frame);

}  // namespace penstock::gst
