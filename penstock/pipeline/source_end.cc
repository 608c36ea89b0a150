// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/source_end.h"

#include <algorithm>
#include <chrono>

#include "penstock/base/str_format.h"
#include "penstock/pipeline/container_size.h"

namespace penstock {
namespace {

/// What a demuxer posts has come by then.
constexpr Nanoseconds kDemuxerSilence = std::chrono::seconds(1);

// Video that ends earlier than its container says is cut short from this on. Less is usual: muxers
// round, and the last frame's length is often a guess.
constexpr std::int64_t kLeastGap = 1'000'000'000;
constexpr double kLeastGapShare = 0.02;

}  // namespace

void SourceEnd::take_collection(GstMessage* message) {
  GstStreamCollection* collection = nullptr;
  gst_message_parse_stream_collection(message, &collection);
  if (collection == nullptr) return;
  bool video = false;
  const guint size = gst_stream_collection_get_size(collection);
  for (guint i = 0; i < size; ++i) {
    GstStream* stream = gst_stream_collection_get_stream(collection, i);
    video |= (gst_stream_get_stream_type(stream) & GST_STREAM_TYPE_VIDEO) != 0;
  }
  gst_object_unref(collection);
  video_alone_ = size == 1 && video;
  if (size > 0 && !video) {
    record_.fail(
        Error(ErrorKind::kUnsupported, str_format("source '{}' has no video", source_.text)),
        RunPart::kSource);
  }
}

void SourceEnd::watch_demuxer(const RunGraph& graph) {
  if (record_.has_started() || record_.has_failed()) return;
  const TimePoint now = clock_.now();
  if (!demuxer_gave_up(GST_BIN(graph.pipeline()))) {
    demuxer_read_at_ = now;
  } else if (now - demuxer_read_at_ >= kDemuxerSilence) {
    check(graph);
  }
}

void SourceEnd::check(const RunGraph& graph) {
  if (record_.has_failed()) return;
  const std::uint64_t frames = record_.frames();
  const std::uint64_t missing =
      source_.kind == SourceKind::kFile ? missing_bytes(source_.file) : std::uint64_t{0};
  if (frames == 0) {
    const std::string cut =
        missing > 0 ? str_format(". It is cut short: {} bytes of it are missing", missing) : "";
    record_.fail(Error(ErrorKind::kCorrupt,
                       str_format("source '{}': no frame could be decoded{}", source_.text, cut)),
                 RunPart::kSource);
    return;
  }
  if (source_.kind != SourceKind::kFile) return;
  if (missing > 0) {
    fail_cut_short(str_format("{} bytes of it are missing", missing), frames);
  } else {
    check_duration(graph, frames);
  }
}

void SourceEnd::fail_cut_short(const std::string& by, std::uint64_t frames) {
  record_.fail(
      Error(ErrorKind::kCorrupt,
            str_format("source '{}' is cut short: {}; the {} frames before the cut were analysed",
                       source_.text, by, frames)),
      RunPart::kSource);
}

/// What missing_bytes() can't see: an end between two parts, or in a container it does not know.
void SourceEnd::check_duration(const RunGraph& graph, std::uint64_t frames) {
  const std::int64_t stated = graph.stated_duration();
  const std::int64_t covered = record_.covered();
  if (stated <= 0 || covered < 0) return;
  if (stated - covered <= std::max(kLeastGap, std::int64_t(double(stated) * kLeastGapShare))) {
    return;
  }
  const std::string by = str_format("its container says {:.2f} s and the video ends at {:.2f} s",
                                    double(stated) / 1e9, double(covered) / 1e9);
  // The container's length is that of its longest stream.
  if (video_alone_) {
    fail_cut_short(by, frames);
  } else {
    record_.note(str_format("the source may be cut short: {}; or its sound is longer", by));
  }
}

}  // namespace penstock
