// SPDX-License-Identifier: Apache-2.0
//
// Batch containers: a buffer without memory whose GstAnalyticsBatchMeta holds frames of several
// streams, each with the events that say what it is. Frames keep their own memories, times and
// metadata inside. Caps are `multistream/x-analytics-batch(meta:GstAnalyticsBatchMeta)`, with the
// streams' caps, in their order, in the array field `streams`.
#pragma once

#include <gst/gst.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "gst/gst_ptr.h"
#include "penstock/base/error.h"

namespace penstock::gst {

inline constexpr char kContainerMediaType[] = "multistream/x-analytics-batch";
/// Streams of a container at most; one with more is refused.
inline constexpr std::size_t kMostContainerStreams = 1024;

using ObjectPtr = GstPtr<GstMiniObject>;

/// A stream's part of a container.
struct ContainerStream {
  std::vector<EventPtr> sticky;    ///< In force before the first object; one a type and name.
  std::vector<ObjectPtr> objects;  ///< Buffers and serialized events, in their order.
};

/// The caps event that holds for the stream's frames, or null.
GstCaps* caps_of(const ContainerStream& stream);
/// From its stream-start, or empty.
std::string stream_id_of(const ContainerStream& stream);

/// Whether a pad that keeps `earlier` replaces it by `later`: one a type, and of types that may
/// come several times (tags of stream and container, custom ones) one a name.
bool replaces(GstEvent* later, GstEvent* earlier);

/// Caps for a container of these streams, each of which has caps.
CapsPtr container_caps(std::span<const ContainerStream> streams);
/// The caller sets the times.
BufferPtr make_container(std::vector<ContainerStream> streams);
/// As gst_buffer_make_writable(), whose copies of containers lose memory in GStreamer 1.28.
BufferPtr make_writable(BufferPtr buffer);
/// What is in the container, which is let go of: if nobody else holds it, its frames come out as
/// they went in, writable where they were. kCorrupt: no container, too many streams, a stream
/// that lacks what the meta says it has.
Result<std::vector<ContainerStream>> take_container(BufferPtr container);

}  // namespace penstock::gst
