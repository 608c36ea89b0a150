// SPDX-License-Identifier: Apache-2.0
//
// Detections as GstAnalytics object relations, which stock elements (objectdetectionoverlay,
// ioutracker) and language bindings read (contract G01).
#pragma once

#include <gst/gst.h>

#include <span>

#include "penstock/base/error.h"
#include "penstock/records/records.h"

namespace penstock::gst {

/// Adds one object relation a detection, in order, to the buffer's relation meta (made if absent,
/// also for none: "analysed, nothing found"). Edges are rounded to whole pixels, so that touching
/// boxes stay touching; a box keeps at least one pixel. Metadata of `buffer` is writable.
Result<void> attach_relations(GstBuffer* buffer, std::span<const Detection> detections);

}  // namespace penstock::gst
