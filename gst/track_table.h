// SPDX-License-Identifier: Apache-2.0
//
// TrackTable keeps something of each tracked object of a stream, while frames have the object and
// for a while after, as a tracker may find it again. Bounded: of more than kMaxTracks the longest
// absent is forgotten. Not thread-safe.
#pragma once

#include <gst/gst.h>

#include <algorithm>
#include <cstddef>
#include <map>

namespace penstock::gst {

template <typename Value>
class TrackTable {
 public:
  static constexpr std::size_t kMaxTracks = 1024;
  /// As many frames as pentrack misses an object by default before its track ends.
  static constexpr guint64 kAbsentFrames = 30;

  /// The next frame: forgets what has been absent for too long.
  void advance() {
    ++frame_;
    std::erase_if(entries_,
                  [this](const auto& entry) { return frame_ - entry.second.seen > kAbsentFrames; });
  }
  /// This frame has the object. What is kept of it, made if there was nothing.
  Value& see(guint64 track) {
    Entry& entry = entries_[track];
    entry.seen = frame_;
    if (entries_.size() > kMaxTracks) {
      // Never the one that has just been made, though others may have been seen now as well.
      const auto age = [track](const auto& other) {
        return std::pair(other.first == track, other.second.seen);
      };
      entries_.erase(std::ranges::min_element(entries_, {}, age));
    }
    return entry.value;
  }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    guint64 seen = 0;
    Value value{};
  };
  std::map<guint64, Entry> entries_;
  guint64 frame_ = 0;
};

}  // namespace penstock::gst
