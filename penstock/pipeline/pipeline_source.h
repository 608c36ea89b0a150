// SPDX-License-Identifier: Apache-2.0
//
// From a PipelineSource, which is text, to the Source that a session reads.
#pragma once

#include <filesystem>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/pipeline/pipeline_spec.h"
#include "penstock/pipeline/source.h"

namespace penstock {

/// As parse_source(): a file or device must be there. The source's text is shown_address().
Result<Source> open_source(const PipelineSource& source);

/// What open_source() would say now, without disturbing anybody: a FIFO, whose writer notices a
/// reader that goes away, is not opened.
Result<void> check_source(const PipelineSource& source);

/// The file that it reads, without looking at it; empty when it reads none.
std::filesystem::path file_of(const PipelineSource& source);

/// Where a source's `number`-th video goes, from 1; empty for none. An MP4 holds one connection and
/// one size: "door.mp4", "door.2.mp4", ...
std::filesystem::path video_path(const PipelineSpec& spec, const PipelineSource& source,
                                 int number);

struct NumberedVideo {
  std::filesystem::path path;
  int number = 0;
  std::vector<std::filesystem::path> taken;  ///< That were there already, a few of them.
};

/// The first of a source's videos from `number` on, which is 2 or more, whose name nobody has; an
/// empty file has it from now on, unless that can't be made, which is for who opens it to say. The
/// first video replaces what is there, as an output of any run; a later one has a name that nobody
/// has asked for, and replaces nothing. kExhausted when thousands in a row are taken.
Result<NumberedVideo> claim_video(const PipelineSpec& spec, const PipelineSource& source,
                                  int number);

}  // namespace penstock
