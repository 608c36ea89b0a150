// SPDX-License-Identifier: Apache-2.0
//
// A BranchJoin of a primary way and a branch, under a clock that stands still.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "gst/branch_join.h"
#include "penstock/base/clock.h"

namespace penstock::gst {

inline constexpr Nanoseconds kWait = Milliseconds(100);

inline EventPtr caps_event(int width) {
  const CapsPtr caps(gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING, "NV12", "width",
                                         G_TYPE_INT, width, "height", G_TYPE_INT, 64, nullptr));
  return EventPtr(gst_event_new_caps(caps.get()));
}

inline EventPtr segment_event(GstClockTime base = 0) {
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.base = base;
  return EventPtr(gst_event_new_segment(&segment));
}

inline std::string ms(const BranchJoin::Frame& frame) {
  return std::to_string(GST_BUFFER_PTS(frame.buffer.get()) / GST_MSECOND);
}

/// "40 + sink_1(64):40", "eos", "error: ..." or "nothing".
inline std::string tell(std::optional<BranchJoin::Output> output) {
  if (!output) return "nothing";
  if (const auto* event = std::get_if<EventPtr>(&*output)) {
    return GST_EVENT_TYPE_NAME(event->get());
  }
  if (const auto* error = std::get_if<Error>(&*output)) return "error: " + error->message();
  if (std::holds_alternative<BranchJoin::QueryPtr>(*output)) return "query";
  const auto& joined = std::get<BranchJoin::Joined>(*output);
  std::string text = ms(joined.primary);
  for (const BranchJoin::Frame& branch : joined.branches) {
    text += " + " + branch.pad + "(" + std::to_string(branch.width) + "):" + ms(branch);
  }
  return text;
}

class JoinFixture : public ::testing::Test {
 protected:
  JoinFixture() { reset(BranchJoin::Missing::kError); }

  void reset(BranchJoin::Missing missing, std::size_t depth = 8, Nanoseconds wait = kWait) {
    join_ = std::make_unique<BranchJoin>(BranchJoin::Options{
        .max_wait = wait, .queue_depth = depth, .missing = missing, .clock = &clock_});
    for (BranchJoin::Key key = 0; key < 2; ++key) add(key);
    join_->restart();
    join_->set_playing(true);
    for (BranchJoin::Key key = 0; key < 2; ++key) say(key);
    drain_state();
  }
  void add(BranchJoin::Key key) {
    join_->add({.key = key, .name = "sink_" + std::to_string(key), .primary = key == 0});
  }
  void say(BranchJoin::Key key, const char* id = "door", GstClockTime base = 0) {
    event(key, EventPtr(gst_event_new_stream_start(id)));
    event(key, caps_event(key == 0 ? 128 : 64));
    event(key, segment_event(base));
  }
  /// The primary's stream-start, caps and segment.
  void drain_state() {
    EXPECT_EQ(take(), "stream-start");
    EXPECT_EQ(take(), "caps");
    EXPECT_EQ(take(), "segment");
  }
  void event(BranchJoin::Key key, EventPtr event) {
    EXPECT_EQ(join_->push_event(key, std::move(event)), GST_FLOW_OK);
  }
  void end(BranchJoin::Key key) { event(key, EventPtr(gst_event_new_eos())); }
  void gap(BranchJoin::Key key, int start, int duration) {
    event(key, EventPtr(gst_event_new_gap(guint64(start) * GST_MSECOND,
                                          guint64(duration) * GST_MSECOND)));
  }
  BufferPtr frame(int milliseconds) {
    BufferPtr buffer(gst_buffer_new());
    GST_BUFFER_PTS(buffer.get()) = guint64(milliseconds) * GST_MSECOND;
    return buffer;
  }
  void push(BranchJoin::Key key, int milliseconds) {
    EXPECT_EQ(join_->push_frame(key, frame(milliseconds)), GST_FLOW_OK);
  }
  std::string take() { return tell(join_->next()); }
  std::future<std::string> taking() {
    return std::async(std::launch::async, [this] { return take(); });
  }
  /// What comes of `taking` when the time of a wait has passed.
  std::string after(Nanoseconds time, std::future<std::string>& taking) {
    clock_.await_waiters(1);
    clock_.advance(time);
    return taking.get();
  }

  ManualClock clock_;
  std::unique_ptr<BranchJoin> join_;
};

}  // namespace penstock::gst
