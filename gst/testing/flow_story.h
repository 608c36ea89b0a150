// SPDX-License-Identifier: Apache-2.0
//
// A conversation about flow: what downstream answers, and what upstream hears of it. Told to two
// elements, their logs can be compared.
#pragma once

#include <gst/check/gstharness.h>

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gst/testing/lifecycle_fixture.h"

namespace penstock::gst {

/// Answers every frame that the harness's element sends on.
class Downstream {
 public:
  explicit Downstream(GstHarness* harness) {
    gst_pad_add_probe(
        harness->sinkpad, GST_PAD_PROBE_TYPE_BUFFER,
        [](GstPad*, GstPadProbeInfo* info, gpointer data) {
          auto& self = *static_cast<Downstream*>(data);
          ++self.frames;
          gst_buffer_unref(GST_PAD_PROBE_INFO_BUFFER(info));
          GST_PAD_PROBE_INFO_DATA(info) = nullptr;
          GST_PAD_PROBE_INFO_FLOW_RETURN(info) = self.answer;
          return GST_PAD_PROBE_HANDLED;
        },
        this, nullptr);
  }
  std::atomic<GstFlowReturn> answer{GST_FLOW_OK};
  std::atomic<int> frames{0};
};

/// What upstream of an element hears, in order.
class Answers {
 public:
  Answers(GstHarness* harness, std::function<BufferPtr()> make_frame)
      : harness_(harness), make_frame_(std::move(make_frame)) {}

  void frame() { log_.push_back(gst_flow_get_name(push())); }
  /// Frames until downstream's answer has come up.
  void refused_frame() {
    GstFlowReturn flow = GST_FLOW_OK;
    EXPECT_TRUE(eventually([&] { return (flow = push()) != GST_FLOW_OK; }));
    log_.push_back(gst_flow_get_name(flow));
  }
  void event(GstEvent* event) {
    const std::string name = GST_EVENT_TYPE_NAME(event);
    const bool taken = gst_harness_push_event(harness_, event);
    log_.push_back(name + (taken ? " taken" : " refused"));
  }
  void tag() { event(gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "t", nullptr))); }
  void segment(GstClockTime start = 0) {
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.start = start;
    event(gst_event_new_segment(&segment));
  }
  void note(std::string text) { log_.push_back(std::move(text)); }
  const std::vector<std::string>& log() const { return log_; }

 private:
  GstFlowReturn push() { return gst_harness_push(harness_, make_frame_().release()); }

  GstHarness* const harness_;
  const std::function<BufferPtr()> make_frame_;
  std::vector<std::string> log_;
};

}  // namespace penstock::gst
