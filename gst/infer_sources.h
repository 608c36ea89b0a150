// SPDX-License-Identifier: Apache-2.0
//
// InferSources keeps apart the streams that come through one element: the one of its pad, or those
// of its containers, known by their stream-start ids in whatever order a container lists them. Each
// has an identity for the executor (contract V05, V06) and counts its own frames. Not thread-safe:
// InferStream's lock guards it.
#pragma once

#include <gst/gst.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gst/frame_task.h"
#include "gst/gst_ptr.h"
#include "penstock/media/video_frame.h"

namespace penstock::gst {

/// A stream's life for the executor: until another stream-start, or another display (V05, V06).
struct Identity {
  SourceId id;              ///< Unique in the process, lane 0.
  std::uint32_t lanes = 1;  ///< That its requests may come on.
  std::string stream_id;    ///< GStreamer's name for it.
  GstPtr<GObject> display;

  SourceId lane(std::size_t index) const {
    return {.name = id.name, .lane = static_cast<std::uint32_t>(index % lanes)};
  }
};
using IdentityPtr = std::shared_ptr<const Identity>;

/// A stream of containers. Its id may come several times in one: then also which of them it is.
struct StreamKey {
  std::string stream_id;
  std::size_t occurrence = 0;
  auto operator<=>(const StreamKey&) const = default;
};

class InferSources {
 public:
  struct Options {
    std::uint32_t lanes = 1;
    std::function<std::shared_ptr<FrameTasks>()> make_tasks;
  };
  /// A frame's place in its stream.
  struct Ticket {
    IdentityPtr identity;
    guint64 number = 0;
    std::shared_ptr<FrameTasks> tasks;
  };

  explicit InferSources(Options options);

  /// The pad's stream-start. The same id goes on.
  void start(const char* stream_id);
  /// A frame of the pad's stream, which has no containers (any more).
  Ticket next_frame(GstBuffer* buffer);

  /// A container came that lists `streams`. One that kAbsentContainers in a row have not listed has
  /// gone; so has the longest absent where there are more than kMaxStreams.
  void list(std::span<const StreamKey> streams);
  /// A frame of a listed stream.
  Ticket next_frame(const StreamKey& key, GstBuffer* buffer);

  /// Frames were dropped: what was remembered of them is not true.
  void forget_frames();
  /// Identities that no later frame has, since the last time.
  std::vector<IdentityPtr> take_ended() { return std::exchange(ended_, {}); }
  /// All that later frames may have.
  std::vector<IdentityPtr> current() const;
  /// Streams of containers, or 1.
  std::size_t streams() const { return children_.empty() ? 1 : children_.size(); }

  static constexpr std::size_t kMaxStreams = 256;
  static constexpr guint64 kAbsentContainers = 32;

 private:
  struct Stream {
    IdentityPtr identity;
    std::shared_ptr<FrameTasks> tasks;
    guint64 next_frame = 0;
    guint64 listed = 0;  ///< By which container, last.
  };
  using Children = std::map<StreamKey, Stream>;

  Stream begin(std::string stream_id) const;
  IdentityPtr new_identity(std::string stream_id, GObject* display) const;
  Ticket next_frame(Stream& stream, GstBuffer* buffer);
  void end(Children::iterator child);

  const Options options_;
  Stream own_;
  Children children_;
  guint64 containers_ = 0;
  std::vector<IdentityPtr> ended_;
};

}  // namespace penstock::gst
