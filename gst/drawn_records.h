// SPDX-License-Identifier: Apache-2.0
//
// What a buffer's metadata says that can be drawn, whoever wrote it.
#pragma once

#include <gst/gst.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "gst/penanalysis_meta.h"
#include "penstock/draw/overlay.h"
#include "penstock/records/records.h"

namespace penstock::gst {

struct DrawnRecords {
  std::vector<Detection> objects;
  std::vector<Classification> classes;  ///< Of the whole picture.
  std::optional<OverlayMasks> masks;
  std::vector<ZoneCount> zones;
  std::vector<LineCount> lines;
  std::size_t left_out = 0;  ///< Objects beyond those that could be drawn anyway.
};

/// Objects come from PenAnalysisMeta where the relation meta's records are those of its objects:
/// only there are masks, full precision and class numbers. Else they come from the relation meta,
/// with turned boxes and the keypoints of keypoints_mtd.h, scaled to a picture of this size. Track
/// ids are those of tracking records, which stand above the analysis's own, plus kTrackIdOffset.
/// Counts of zones and lines are in PenAnalysisMeta only.
DrawnRecords read_drawn(GstBuffer* buffer, int width, int height);

}  // namespace penstock::gst
