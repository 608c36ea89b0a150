// SPDX-License-Identifier: Apache-2.0
//
// Every device call that fails in pipelines of several elements: containers, objects and tiles,
// with a watermark behind them, in real threads.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gst/gst_ptr.h"
#include "gst/sharing.h"
#include "gst/testing/object_fixture.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

using model_testing::BoxLayout;
using ::testing::Values;

constexpr GstClockTime kPatience = 20 * GST_SECOND;

/// A pad of the test's own that upstream would be, with frames to send.
class Upstream {
 public:
  Upstream(GstPad* sink, const std::string& caps, std::vector<BufferPtr> frames)
      : pad_(GST_PAD(gst_object_ref_sink(gst_pad_new("upstream", GST_PAD_SRC)))),
        caps_(gst_caps_from_string(caps.c_str())),
        frames_(std::move(frames)) {
    gst_pad_set_active(pad_.get(), TRUE);
    EXPECT_EQ(gst_pad_link(pad_.get(), sink), GST_PAD_LINK_OK);
  }
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;
  ~Upstream() { gst_pad_set_active(pad_.get(), FALSE); }

  /// Begins the stream and sends all, until a frame is refused, on a thread of its own.
  void start() {
    thread_ = std::thread([this] {
      GstSegment segment;
      gst_segment_init(&segment, GST_FORMAT_TIME);
      gst_pad_push_event(pad_.get(), gst_event_new_stream_start("stream"));
      gst_pad_push_event(pad_.get(), gst_event_new_caps(caps_.get()));
      gst_pad_push_event(pad_.get(), gst_event_new_segment(&segment));
      for (BufferPtr& frame : frames_) {
        if (gst_pad_push(pad_.get(), frame.release()) != GST_FLOW_OK) break;
      }
      frames_.clear();
      gst_pad_push_event(pad_.get(), gst_event_new_eos());
    });
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  const GstPtr<GstPad> pad_;
  const CapsPtr caps_;
  std::vector<BufferPtr> frames_;
  std::thread thread_;
};

/// What the bus has said.
struct Said {
  std::vector<std::string> errors;  ///< Of whoever failed.
  /// "Internal data stream error" of elements with a thread, as a queue says it, when what is
  /// behind them has failed and nothing comes any more that could tell upstream.
  int refused_flows = 0;
  bool ended = false;

  void take(GstMessage* message) {
    ended = ended || GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS;
    if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_ERROR) return;
    const GstStructure* details = nullptr;
    gst_message_parse_error_details(message, &details);
    if (details != nullptr && gst_structure_has_field(details, "flow-return")) {
      ++refused_flows;
      return;
    }
    GError* error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    errors.emplace_back(error->message);
    g_error_free(error);
  }
};

void link_branch(GstElement*, GstPad* pad, gpointer pipeline) {
  const std::string name = std::string("branch") + (GST_OBJECT_NAME(pad) + 3);
  const GstPtr<GstElement> branch(gst_bin_get_by_name(GST_BIN(pipeline), name.c_str()));
  const GstPtr<GstPad> sink(gst_element_get_static_pad(branch.get(), "sink"));
  gst_pad_link(pad, sink.get());
}

class L04 : public ObjectFixture {
 protected:
  static std::string behind(const std::string& name) {
    return str_format("penwatermark name={} device=sim ! fakesink sync=false async=false ", name);
  }
  std::vector<BufferPtr> frames() {
    std::vector<BufferPtr> made;
    for (int i = 0; i < frames_; ++i) {
      made.push_back(frame_of({{0, 8, 8, 32, "car"}, {1, 96, 96, 48, "car"}}, i));
    }
    return made;
  }
  /// With the first call failing, then the second, until a run has fewer. The pipeline of `text`
  /// has an element "in", at whose pads `sinks` streams come in, and "branch_N" for the demux's
  /// "src_N".
  void expect_one_error_each(const std::string& text, const std::vector<std::string>& sinks);
  Said run(const std::string& text, const std::vector<std::string>& sinks, std::uint64_t failing);
  int frames_ = 2;  ///< Of each stream.

 private:
  static GstPtr<GstPad> sink_of(GstElement* element, const std::string& name) {
    if (GstPad* pad = gst_element_get_static_pad(element, name.c_str())) return GstPtr<GstPad>(pad);
    return GstPtr<GstPad>(gst_element_request_pad_simple(element, name.c_str()));
  }
};

Said L04::run(const std::string& text, const std::vector<std::string>& sinks,
              std::uint64_t failing) {
  GError* error = nullptr;
  const GstPtr<GstElement> pipeline(
      GST_ELEMENT(gst_object_ref_sink(gst_parse_launch(text.c_str(), &error))));
  EXPECT_EQ(error, nullptr) << error->message;
  const GstPtr<GstBus> bus(gst_element_get_bus(pipeline.get()));
  g_object_set(pipeline.get(), "auto-flush-bus", FALSE, nullptr);
  gst_element_set_context(pipeline.get(), make_device_context(sim_).get());
  if (const GstPtr<GstElement> demux{gst_bin_get_by_name(GST_BIN(pipeline.get()), "demux")}) {
    g_signal_connect(demux.get(), "pad-added", G_CALLBACK(link_branch), pipeline.get());
  }
  const GstPtr<GstElement> in(gst_bin_get_by_name(GST_BIN(pipeline.get()), "in"));
  std::list<Upstream> upstreams;
  for (const std::string& name : sinks) {
    upstreams.emplace_back(sink_of(in.get(), name).get(), picture_caps(), frames());
  }
  sim_->fail_call(sim_->calls() + failing);
  Said said;
  if (gst_element_set_state(pipeline.get(), GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE) {
    for (Upstream& upstream : upstreams) upstream.start();
    const GstPtr<GstMessage> first(gst_bus_timed_pop_filtered(
        bus.get(), kPatience, static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR)));
    EXPECT_NE(first, nullptr) << "neither an end nor an error";
    if (first != nullptr) said.take(first.get());
  }
  // Nobody waits for a place any more, whatever has failed.
  for (Upstream& upstream : upstreams) upstream.join();
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
  while (GstMessage* raw = gst_bus_pop(bus.get())) {
    const GstPtr<GstMessage> message(raw);
    said.take(raw);
  }
  sim_->fail_call(0);
  return said;
}

void L04::expect_one_error_each(const std::string& text, const std::vector<std::string>& sinks) {
  int failures = 0;
  bool ran_through = false;
  for (std::uint64_t n = 1; n < 400 && !ran_through && !HasFailure(); ++n) {
    SCOPED_TRACE(str_format("call {}", n));
    const Said said = run(text, sinks, n);
    ran_through = said.errors.empty();
    failures += !ran_through;
    EXPECT_LE(said.errors.size(), 1u) << ::testing::PrintToString(said.errors);
    if (ran_through) {
      EXPECT_TRUE(said.ended);
      EXPECT_EQ(said.refused_flows, 0);
    } else {
      EXPECT_NE(said.errors[0].find(": device 'sim': "), std::string::npos) << said.errors[0];
    }
    EXPECT_TRUE(eventually([&] { return sim_->live_storages() == 0; }));
  }
  EXPECT_TRUE(ran_through);
  EXPECT_GT(failures, 6 * frames_);
}

TEST_P(L04, GivenContainersAndWatermarks_WhenTheNthCallFails_ThenOneErrorAndACleanTeardown) {
  expect_one_error_each(
      str_format("penmux name=in max-wait=1000000000 ! peninfer device=sim model={} policy=latency "
                 "batch-size=2 ! pendemux name=demux {} {}",
                 model_folder().string(), behind("branch_0"), behind("branch_1")),
      {"sink_0", "sink_1"});
}

TEST_P(L04, GivenObjectsAndAWatermark_WhenTheNthCallFails_ThenOneErrorAndACleanTeardown) {
  expect_one_error_each(
      str_format("peninfer name=in device=sim {} roi=objects policy=latency batch-size=2 ! {}",
                 color_reader(), behind("drawer")),
      {"sink"});
}

TEST_P(L04, GivenTilesAndAWatermark_WhenTheNthCallFails_ThenOneErrorAndACleanTeardown) {
  expect_one_error_each(
      str_format("peninfer name=in device=sim {} roi=tiles tiles=2x1 policy=latency batch-size=2 ! "
                 "{}",
                 finder(BoxLayout::kYolov8), behind("drawer")),
      {"sink"});
}

TEST_P(L04, GivenContainersOfObjectsOfTiles_WhenTheNthCallFails_ThenOneErrorAndACleanTeardown) {
  frames_ = 1;
  expect_one_error_each(
      str_format("penmux name=in max-wait=1000000000 ! peninfer device=sim model={} roi=tiles "
                 "tiles=2x1 policy=latency batch-size=2 ! peninfer device=sim {} roi=objects "
                 "policy=latency batch-size=2 ! pendemux name=demux {}",
                 model_folder().string(), color_reader(), behind("branch_0")),
      {"sink_0"});
}

INSTANTIATE_TEST_SUITE_P(sim, L04, Values("sim"));

}  // namespace
}  // namespace penstock::gst
