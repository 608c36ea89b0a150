// SPDX-License-Identifier: Apache-2.0
//
// The object records of a frame, whoever wrote them, as Detections.
#pragma once

#include <gst/analytics/analytics.h>

#include <optional>
#include <vector>

#include "penstock/records/records.h"

namespace penstock::gst {

/// In the order of the meta.
std::vector<GstAnalyticsODMtd> object_records(GstAnalyticsRelationMeta* meta);

/// Box, label and confidence. A record has no class number, so the label stands for the class.
Detection read_object(const GstAnalyticsODMtd& record);

/// The id of the track that the record is related to, nothing for none.
std::optional<guint64> read_track_id(const GstAnalyticsODMtd& record);

}  // namespace penstock::gst
