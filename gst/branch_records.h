// SPDX-License-Identifier: Apache-2.0
//
// GstAnalytics records of a branch's frame among those of the frame that goes on (contract G03).
#pragma once

#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <cstddef>
#include <span>

#include "penstock/base/error.h"
#include "penstock/records/records.h"

namespace penstock::gst {

struct BranchRecords {
  GstBuffer* frame = nullptr;          ///< Has the records.
  int width = 0, height = 0;           ///< Of it.
  std::span<const Detection> objects;  ///< For each object record, in order: in the other's pixels.
};

/// Adds all records of `branch` to `into`, whose metadata is writable and whose size is width x
/// height, behind those that are there, with new ids and the same relations between them, of every
/// kind. Object records tell of `objects`, rounded as attach_relations() does, keypoints are
/// scaled, segmentations by their own type; tensors, classes and tracks are the same. kExhausted:
/// that would be more than `most` records. kUnsupported: a record of an unknown type, whose bytes
/// may have ids or places in them. Then records may have been added.
Result<void> join_records(GstBuffer* into, int width, int height, const BranchRecords& branch,
                          std::size_t most);

}  // namespace penstock::gst
