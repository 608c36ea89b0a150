// SPDX-License-Identifier: Apache-2.0
//
// SourceEnd: whether the source of a run came to its end whole. Decoders are content with what
// there is, so that a file that is cut short ends like any other; what tells is its size, its
// container's own length, and a demuxer that gave up in silence.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <string>

#include "penstock/base/clock.h"
#include "penstock/pipeline/run_graph.h"
#include "penstock/pipeline/run_record.h"
#include "penstock/pipeline/source.h"

namespace penstock {

/// What it finds fails the record (kCorrupt, kUnsupported: of the source) or is noted there. The
/// loop's thread only; lives no longer than what it is made from.
class SourceEnd {
 public:
  SourceEnd(const Source& source, Clock& clock, RunRecord& record)
      : source_(source), clock_(clock), record_(record) {}

  /// The loop begins.
  void begin() { demuxer_read_at_ = clock_.now(); }
  /// Fails where there is no video in it.
  void take_collection(GstMessage* message);
  /// A demuxer that gave up before the first frame has said so by now, or never will.
  void watch_demuxer(const RunGraph& graph);
  /// The stream has ended by itself.
  void check(const RunGraph& graph);

 private:
  void fail_cut_short(const std::string& by, std::uint64_t frames);
  void check_duration(const RunGraph& graph, std::uint64_t frames);

  const Source& source_;
  Clock& clock_;
  RunRecord& record_;
  TimePoint demuxer_read_at_{};  ///< Or has not begun to.
  bool video_alone_ = false;     ///< No sound or text beside it in the source.
};

}  // namespace penstock
