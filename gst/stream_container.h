// SPDX-License-Identifier: Apache-2.0
//
// What comes into peninfer as one buffer: a frame, or a container of several streams' frames and
// events (GstAnalyticsBatchMeta). Anybody may have made the container; what is read of it:
//
// - A stream is the one of its stream-start event, among its sticky events or its objects, else
//   "stream-N" by its index. The same id again in one container is another stream.
// - Its frames have the caps of its latest caps event, else those of the container's caps.
// - Frames may be none, several, or in buffer lists. Other events say nothing here and keep their
//   place.
#pragma once

#include <gst/gst.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gst/container_caps.h"
#include "gst/gst_ptr.h"
#include "gst/infer_sources.h"
#include "penstock/base/error.h"

namespace penstock::gst {

/// Where in its buffer a frame is: itself, if it has no container.
struct FramePlace {
  bool contained = false;
  std::size_t stream = 0, object = 0;  ///< Positions in the meta's arrays.
  std::optional<guint> in_list{};      ///< Where that object is a buffer list.
};

struct ArrivedFrame {
  GstBuffer* buffer = nullptr;  ///< Lent.
  VideoFormat format;
  StreamKey key;  ///< Only if contained.
  FramePlace place;
};

struct Arrived {
  std::vector<ArrivedFrame> frames;
  bool is_container = false;
  std::vector<StreamKey> streams;  ///< That the container lists.
  std::size_t most_of_a_stream = 1;
  std::string busiest;  ///< The stream that has so many.
};

/// Of one sink pad; remembers the streams' caps. Not thread-safe.
class ArrivalReader {
 public:
  explicit ArrivalReader(DeviceId device) : device_(device) {}

  /// kCorrupt: a container without its meta, or with a hole in it. kUnsupported: a frame without
  /// caps, or whose caps the device does not take; names stream and field. kExhausted: too many
  /// streams or frames.
  Result<Arrived> read(GstBuffer* buffer, const InputFormat& format);

  static constexpr std::size_t kMaxFrames = 1024;

 private:
  struct Stream;
  Result<void> read_stream(Stream& stream, Arrived& arrived);
  Result<void> read_object(Stream& stream, GstMiniObject* object, std::size_t position,
                           Arrived& arrived);
  void read_event(Stream& stream, GstEvent* event, Arrived& arrived);
  void begin(Stream& stream, std::string id, Arrived& arrived);
  Result<void> add(const Stream& stream, GstBuffer* buffer, FramePlace place, Arrived& arrived);
  Result<VideoFormat> format_of(const Stream& stream);

  struct Accepted {
    CapsPtr caps;
    VideoFormat format;
  };

  const DeviceId device_;
  std::map<std::size_t, Accepted> accepted_;          ///< The last, by the stream's position.
  std::map<std::string, std::size_t> occurrences_{};  ///< Within the container that is read.
};

/// Lets `write` have the frame at `place` of `item`, whose metadata is writable: a shallow copy in
/// its place where somebody else holds the frame.
Result<void> write_frame(GstBuffer* item, const FramePlace& place,
                         const std::function<Result<void>(GstBuffer*)>& write);

}  // namespace penstock::gst
