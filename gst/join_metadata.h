// SPDX-License-Identifier: Apache-2.0
//
// The metadata of a frame's branches on the buffer that goes on (contract G03).
#pragma once

#include <gst/gst.h>

#include <cstddef>
#include <span>
#include <string>

#include "penstock/base/error.h"

namespace penstock::gst {

/// A buffer and the size of its frame, which is that of its pad's caps.
struct SizedFrame {
  std::string pad;
  GstBuffer* buffer = nullptr;
  int width = 0, height = 0;
};

/// Whether there is something to join: else the buffer may go on as it is.
bool has_findings(GstBuffer* frame);

/// Adds what the branches' buffers say to `into`, whose metadata is writable, in its pixels:
/// - GstAnalytics records, as join_records(), at most `most_records` in all;
/// - PenAnalysisMeta, if one of all has it: objects in the order of the records, in full precision
///   where a branch's is about the very objects of the records (are_records_of()), else as the
///   records have them; device attachments shared, with their way to the frame rescaled; what an
///   earlier one has said already in Analysis::branches. It is predicted only if all are.
/// Errors name pad, field and both values: kUnsupported for another source, generation or PTS, and
/// those of join_records() and join_custom(). Then `into` may have some of it.
Result<void> join_metadata(const SizedFrame& into, std::span<const SizedFrame> branches,
                           std::size_t most_records);

}  // namespace penstock::gst
