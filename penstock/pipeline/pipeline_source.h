// SPDX-License-Identifier: Apache-2.0
//
// From a PipelineSource, which is text, to the Source that a session reads.
#pragma once

#include <filesystem>

#include "penstock/base/error.h"
#include "penstock/pipeline/pipeline_spec.h"
#include "penstock/pipeline/source.h"

namespace penstock {

/// As parse_source(): a file or device must be there. The source's text is shown_address().
Result<Source> open_source(const PipelineSource& source);

/// What open_source() would say now, without disturbing anybody: a FIFO, whose writer notices a
/// reader that goes away, is not opened.
Result<void> check_source(const PipelineSource& source);

/// Where a source's `number`-th video goes, from 1; empty for none. An MP4 holds one connection and
/// one size: "door.mp4", "door.2.mp4", ... Names have no dot, so no other source's file is hit.
std::filesystem::path video_path(const PipelineSpec& spec, const PipelineSource& source,
                                 int number);

}  // namespace penstock
