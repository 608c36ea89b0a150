// SPDX-License-Identifier: Apache-2.0
//
// What peninfer takes at its sink pad: a device's video, or containers of it (contract V01).
//
//   multistream/x-analytics-batch(meta:GstAnalyticsBatchMeta), streams=<(caps of a stream), ...>
#pragma once

#include <variant>
#include <vector>

#include "gst/batch_container.h"
#include "gst/video_caps.h"

namespace penstock::gst {

struct ContainerFormat {
  std::vector<VideoFormat> streams;  ///< In the order of the container's streams.
};
using InputFormat = std::variant<VideoFormat, ContainerFormat>;

bool is_container(const GstCaps* caps);

/// kUnsupported names the stream, if it is of a container, and its first offending field.
Result<InputFormat> accept_input(const GstCaps* caps, DeviceId device);

/// What a caps query is answered with: the device's video, alone or in containers.
CapsPtr input_caps(DeviceKind kind);

/// Of a container the longest of its streams' that is known: of the others some are left out.
GstClockTime frame_duration(const InputFormat& format);

}  // namespace penstock::gst
