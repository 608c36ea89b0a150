// SPDX-License-Identifier: Apache-2.0
//
// peninfer between stock elements.
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/base/gstbasesink.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "gst/penanalysis_meta.h"
#include "gst/sharing.h"
#include "gst/testing/infer_fixture.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

struct Outcome {
  std::vector<GstPtr<GstSample>> samples;  ///< Of the appsink called "out".
  std::vector<std::string> errors;
  GstPtr<GstElement> pipeline;
};

/// Runs `description` to EOS or the first error.
Outcome run(const std::string& description, DevicePtr device = nullptr) {
  Outcome result;
  GError* error = nullptr;
  GstElement* raw = gst_parse_launch(description.c_str(), &error);
  EXPECT_EQ(error, nullptr) << (error != nullptr ? error->message : "");
  g_clear_error(&error);
  if (raw == nullptr) return result;
  result.pipeline.reset(GST_ELEMENT(gst_object_ref_sink(raw)));
  if (device != nullptr) gst_element_set_context(raw, make_device_context(device).get());
  const GstPtr<GstElement> out(gst_bin_get_by_name(GST_BIN(raw), "out"));
  gst_element_set_state(raw, GST_STATE_PLAYING);
  while (GstSample* sample =
             gst_app_sink_try_pull_sample(GST_APP_SINK(out.get()), 5 * GST_SECOND)) {
    result.samples.emplace_back(sample);
  }
  const GstPtr<GstBus> bus(gst_element_get_bus(raw));
  while (GstMessage* message = gst_bus_pop_filtered(bus.get(), GST_MESSAGE_ERROR)) {
    const GstPtr<GstMessage> kept(message);
    GError* said = nullptr;
    gst_message_parse_error(message, &said, nullptr);
    result.errors.emplace_back(said->message);
    g_error_free(said);
  }
  gst_element_set_state(raw, GST_STATE_NULL);
  return result;
}

std::string source(const char* format, int frames = 3) {
  return str_format(
      "videotestsrc pattern=black num-buffers={} ! "
      "video/x-raw,format={},width=128,height=128,framerate=25/1",
      frames, format);
}

std::string infer(const std::string& more = "") {
  return str_format("peninfer model={} {}", model_folder().string(), more);
}

int luma(GstSample* sample, int x, int y) {
  GstVideoInfo info;
  EXPECT_TRUE(gst_video_info_from_caps(&info, gst_sample_get_caps(sample)));
  GstVideoFrame frame;
  EXPECT_TRUE(gst_video_frame_map(&frame, &info, gst_sample_get_buffer(sample), GST_MAP_READ));
  const auto* row = static_cast<const guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0)) +
                    y * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, 0);
  const int value = row[x];
  gst_video_frame_unmap(&frame);
  return value;
}

class Overlay : public ::testing::TestWithParam<const char*> {};

TEST_P(Overlay, GivenSystemMemory_WhenTheStockOverlayFollows_ThenItDrawsWithoutAConvert) {
  const Outcome got =
      run(source(GetParam()) + " ! " + infer() +
          " ! objectdetectionoverlay draw-labels=false "
          "object-detection-outline-color=0xffffffff ! appsink name=out sync=false");
  EXPECT_TRUE(got.errors.empty()) << ::testing::PrintToString(got.errors);
  ASSERT_EQ(got.samples.size(), 3u);
  for (const auto& sample : got.samples) {
    // The outline of "cat" (16, 16, 32, 48) crosses its left edge's middle; its centre stays black.
    int brightest = 0;
    for (int x = 12; x <= 20; ++x) brightest = std::max(brightest, luma(sample.get(), x, 40));
    EXPECT_GT(brightest, 100);
    EXPECT_LT(luma(sample.get(), 32, 40), 40);
  }
}

INSTANTIATE_TEST_SUITE_P(formats, Overlay, ::testing::Values("NV12", "I420"));

TEST(SimPlugin, GivenUploadAndDownload_WhenInferredBetween_ThenTheDeviceIsFoundByContext) {
  const Outcome got = run(source("NV12") + " ! simupload ! " + infer("device=sim") +
                          " ! simdownload ! appsink name=out sync=false");
  EXPECT_TRUE(got.errors.empty()) << ::testing::PrintToString(got.errors);
  ASSERT_EQ(got.samples.size(), 3u);
  for (const auto& sample : got.samples) {
    const Analysis* analysis = read_analysis(gst_sample_get_buffer(sample.get()));
    ASSERT_NE(analysis, nullptr);
    EXPECT_EQ(analysis->result.objects.size(), 2u);
    EXPECT_EQ(luma(sample.get(), 5, 5), 16);
  }
}

TEST(SimPlugin, GivenUpAndDown_WhenNothingIsBetween_ThenPixelsComeBack) {
  const Outcome got = run(
      "videotestsrc pattern=smpte num-buffers=1 ! video/x-raw,format=NV12,width=128,height=128 ! "
      "tee name=t ! queue ! simupload ! simdownload ! appsink name=out sync=false "
      "t. ! queue ! appsink name=direct sync=false");
  ASSERT_EQ(got.samples.size(), 1u);
  EXPECT_NE(luma(got.samples[0].get(), 5, 5), luma(got.samples[0].get(), 120, 5));
}

TEST(SyncingSink, GivenALiveSourceWithoutAFrameRate_WhenAFrameWasInferred_ThenTheSinkWaitsForRuns) {
  const GstPtr<GstElement> pipeline(GST_ELEMENT(gst_object_ref_sink(gst_parse_launch(
      str_format("appsrc name=in is-live=true format=time do-timestamp=true min-latency=5000000 "
                 "max-latency=5000000 caps=video/x-raw,format=NV12,width=128,height=128 ! "
                 "peninfer name=infer model={} ! fakesink name=out sync=true",
                 slow_model_folder().string())
          .c_str(),
      nullptr))));
  const GstPtr<GstElement> in(gst_bin_get_by_name(GST_BIN(pipeline.get()), "in"));
  const GstPtr<GstElement> infer(gst_bin_get_by_name(GST_BIN(pipeline.get()), "infer"));
  const GstPtr<GstElement> out(gst_bin_get_by_name(GST_BIN(pipeline.get()), "out"));
  const GstPtr<GstBus> bus(gst_element_get_bus(pipeline.get()));
  ASSERT_NE(gst_element_set_state(pipeline.get(), GST_STATE_PLAYING), GST_STATE_CHANGE_FAILURE);
  GstBuffer* frame = gst_buffer_new_allocate(nullptr, 128 * 128 * 3 / 2, nullptr);
  gst_buffer_memset(frame, 0, 128, 128 * 128 * 3 / 2);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(gst_app_src_push_buffer(GST_APP_SRC(in.get()), frame), GST_FLOW_OK);
  // As applications do, until the frame is there and peninfer has spoken, in either order.
  guint64 rendered = 0;
  bool told = false;
  while (rendered == 0 || !told) {
    const GstPtr<GstMessage> message(gst_bus_timed_pop_filtered(
        bus.get(), 20 * GST_MSECOND,
        static_cast<GstMessageType>(GST_MESSAGE_LATENCY | GST_MESSAGE_ERROR)));
    if (message != nullptr) {
      ASSERT_EQ(GST_MESSAGE_TYPE(message.get()), GST_MESSAGE_LATENCY);
      gst_bin_recalculate_latency(GST_BIN(pipeline.get()));
      told = told || GST_MESSAGE_SRC(message.get()) == GST_OBJECT(infer.get());
    }
    ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
    GstStructure* raw = nullptr;
    g_object_get(out.get(), "stats", &raw, nullptr);
    const GstPtr<GstStructure> stats(raw);
    gst_structure_get_uint64(raw, "rendered", &rendered);
  }
  const auto took = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  const GstClockTime waits = gst_base_sink_get_latency(GST_BASE_SINK(out.get()));
  EXPECT_GE(waits, 200 * GST_MSECOND) << "of the model whose run takes most of a second";
  EXPECT_LE(double(waits), 1.02 * double(took) + 5e6);
  const GstPtr<GstQuery> query(gst_query_new_latency());
  ASSERT_TRUE(gst_element_query(pipeline.get(), query.get()));
  gboolean live = FALSE;
  GstClockTime minimum = 0, maximum = 0;
  gst_query_parse_latency(query.get(), &live, &minimum, &maximum);
  EXPECT_TRUE(live);
  ASSERT_TRUE(GST_CLOCK_TIME_IS_VALID(maximum)) << "the source's limit is not lost";
  EXPECT_GE(maximum, minimum);
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
}

TEST(ModelInstance, GivenTwoElementsBehindATee_WhenTheyNameOneInstance_ThenBothInfer) {
  const Outcome got =
      run(source("NV12", 10) + " ! tee name=t ! queue ! " + infer("model-instance=m") +
          " ! appsink name=out sync=false t. ! queue ! " + infer("model-instance=m") +
          " ! fakesink sync=false");
  EXPECT_TRUE(got.errors.empty()) << ::testing::PrintToString(got.errors);
  ASSERT_EQ(got.samples.size(), 10u);
  for (const auto& sample : got.samples) {
    EXPECT_NE(read_analysis(gst_sample_get_buffer(sample.get())), nullptr);
  }
}

TEST(ModelInstance, GivenOneInstanceWithTwoSettings_WhenStarted_ThenTheSecondIsRefused) {
  const Outcome got =
      run(source("NV12", 10) + " ! tee name=t ! queue ! " +
          infer("model-instance=m threshold=0.5") + " ! appsink name=out sync=false t. ! queue ! " +
          infer("model-instance=m threshold=0.7") + " ! fakesink sync=false");
  ASSERT_EQ(got.errors.size(), 1u);
  EXPECT_NE(got.errors[0].find("model-instance 'm' is in use with other settings"),
            std::string::npos);
}

TEST(ModelInstance, GivenDepthsThatOneShareCantServe_WhenStarted_ThenTheyAreRefused) {
  for (const auto& [depth, errors] : {std::pair(3, 0u), std::pair(20, 1u)}) {
    const Outcome got = run(source("NV12", 10) + " ! tee name=t ! queue ! " +
                            infer(str_format("model-instance=m queue-depth={}", depth)) +
                            " ! appsink name=out sync=false t. ! queue ! " +
                            infer("model-instance=m queue-depth=8") + " ! fakesink sync=false");
    EXPECT_EQ(got.errors.size(), errors) << ::testing::PrintToString(got.errors);
  }
}

TEST(ModelInstance, GivenTwoUsersInReady_WhenOneChangesItsSettings_ThenItIsRefused) {
  const GstPtr<GstElement> pipeline(GST_ELEMENT(
      gst_object_ref_sink(gst_parse_launch((infer("name=a model-instance=m") + " ! fakesink " +
                                            infer("name=b model-instance=m") + " ! fakesink")
                                               .c_str(),
                                           nullptr))));
  ASSERT_EQ(gst_element_set_state(pipeline.get(), GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
  const GstPtr<GstElement> a(gst_bin_get_by_name(GST_BIN(pipeline.get()), "a"));
  g_object_set(a.get(), "threshold", 0.7f, nullptr);
  EXPECT_EQ(gst_element_set_state(a.get(), GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
  g_object_set(a.get(), "threshold", -1.0f, nullptr);
  EXPECT_NE(gst_element_set_state(a.get(), GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
}

}  // namespace
}  // namespace penstock::gst
