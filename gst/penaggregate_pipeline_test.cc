// SPDX-License-Identifier: Apache-2.0
//
// One picture to models at other resolutions and back together, between stock elements.
#include <gst/analytics/analytics.h>
#include <gst/app/gstappsink.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "gst/gst_ptr.h"
#include "gst/penanalysis_meta.h"
#include "gst/sharing.h"
#include "gst/testing/infer_fixture.h"
#include "penstock/base/str_format.h"
#include "penstock/memory/sim/sim_device.h"

namespace penstock::gst {
namespace {

struct StopPipeline {
  void operator()(GstElement* pipeline) const {
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
  }
};
using PipelinePtr = std::unique_ptr<GstElement, StopPipeline>;

struct Outcome {
  std::vector<GstPtr<GstSample>> samples;  ///< Of the appsink called "out".
  std::vector<GstMemory*> memories;        ///< That came to the tee.
  std::vector<std::string> errors;
};

constexpr int kSoughtFrames = 30;

class Branches : public ::testing::TestWithParam<const char*> {
 protected:
  bool is_sim() const { return std::string(GetParam()) == "sim"; }
  std::string infer() const {
    return str_format("{} peninfer model={} device={}", is_sim() ? "! simupload !" : "!",
                      model_folder().string(), GetParam());
  }
  static std::string source(int frames, int width, int height) {
    return str_format(
        "videotestsrc num-buffers={} ! video/x-raw,format=NV12,width={},height={},framerate=25/1 ! "
        "tee name=t ",
        frames, width, height);
  }
  std::string branch(int pad, int width, int height, const std::string& more = "") const {
    return str_format("t. ! queue ! {} videoscale ! video/x-raw,width={},height={} {} ! j.sink_{} ",
                      more, width, height, infer(), pad);
  }
  static std::string primary(const std::string& properties = "") {
    return "penaggregate name=j " + properties +
           " ! appsink name=out sync=false  t. ! queue ! j.sink_0 ";
  }

  static void take_errors(GstBus* bus, std::vector<std::string>& errors) {
    while (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR)) {
      const GstPtr<GstMessage> kept(message);
      GError* said = nullptr;
      gst_message_parse_error(message, &said, nullptr);
      errors.emplace_back(said->message);
      g_error_free(said);
    }
  }
  /// To EOS or an error; after `seek_after` frames, unless 0, once back to the first
  /// kSoughtFrames.
  Outcome run(const std::string& text, std::size_t seek_after = 0) {
    Outcome result;
    GError* error = nullptr;
    const PipelinePtr pipeline(gst_parse_launch(text.c_str(), &error));
    EXPECT_EQ(error, nullptr) << (error != nullptr ? error->message : "");
    g_clear_error(&error);
    if (pipeline == nullptr) return result;
    if (is_sim()) {
      gst_element_set_context(pipeline.get(), make_device_context(SimDevice::create()).get());
    }
    const GstPtr<GstElement> tee(gst_bin_get_by_name(GST_BIN(pipeline.get()), "t"));
    const GstPtr<GstPad> pad(gst_element_get_static_pad(tee.get(), "sink"));
    gst_pad_add_probe(
        pad.get(), GST_PAD_PROBE_TYPE_BUFFER,
        [](GstPad*, GstPadProbeInfo* info, gpointer data) {
          static_cast<std::vector<GstMemory*>*>(data)->push_back(
              gst_buffer_peek_memory(GST_PAD_PROBE_INFO_BUFFER(info), 0));
          return GST_PAD_PROBE_OK;
        },
        &result.memories, nullptr);
    const GstPtr<GstElement> out(gst_bin_get_by_name(GST_BIN(pipeline.get()), "out"));
    gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
    const GstPtr<GstBus> bus(gst_element_get_bus(pipeline.get()));
    int idle = 0;  // Tenths of a second.
    while (result.errors.empty()) {
      GstSample* sample = gst_app_sink_try_pull_sample(GST_APP_SINK(out.get()), 100 * GST_MSECOND);
      if (sample != nullptr) result.samples.emplace_back(sample);
      if (sample == nullptr && (gst_app_sink_is_eos(GST_APP_SINK(out.get())) || ++idle > 200))
        break;
      take_errors(bus.get(), result.errors);
      if (seek_after == 0 || result.samples.size() != seek_after) continue;
      seek_after = 0;
      EXPECT_TRUE(gst_element_seek(pipeline.get(), 1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH,
                                   GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_SET,
                                   kSoughtFrames * 40 * GST_MSECOND));
    }
    take_errors(bus.get(), result.errors);
    gst_element_set_state(pipeline.get(), GST_STATE_NULL);
    return result;
  }
};
using G03 = Branches;
using L03 = Branches;

/// "cat 160 90 320 270": what the model says, which sees a quarter and so on of whatever it gets.
std::vector<std::string> told(GstBuffer* buffer) {
  std::vector<std::string> objects;
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  gpointer state = nullptr;
  GstAnalyticsMtd record;
  while (meta != nullptr && gst_analytics_relation_meta_iterate(
                                meta, &state, gst_analytics_od_mtd_get_mtd_type(), &record)) {
    gint x = 0, y = 0, w = 0, h = 0;
    gst_analytics_od_mtd_get_location(&record, &x, &y, &w, &h, nullptr);
    objects.push_back(str_format("{} {} {} {} {}",
                                 g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&record)), x,
                                 y, w, h));
  }
  return objects;
}

// Of a frame's sides the boxes are: cat 1/8, 1/8 and 1/4 x 3/8; dog 1/2, 5/8 and 3/8 x 1/4.
TEST_P(G03, GivenATeeToModelsAtOtherSizes_WhenJoined_ThenAllBoxesAreInTheFramesPixels) {
  const Outcome got =
      run(source(12, 1280, 720) + primary() + branch(1, 640, 360) + branch(2, 256, 144));
  EXPECT_TRUE(got.errors.empty()) << ::testing::PrintToString(got.errors);
  ASSERT_EQ(got.samples.size(), 12u);
  const std::string cat = "cat 160 90 320 270", dog = "dog 640 450 480 180";
  for (std::size_t i = 0; i < got.samples.size(); ++i) {
    GstBuffer* buffer = gst_sample_get_buffer(got.samples[i].get());
    EXPECT_EQ(told(buffer), (std::vector<std::string>{cat, dog, cat, dog}));
    EXPECT_EQ(GST_BUFFER_PTS(buffer), i * 40 * GST_MSECOND);
    EXPECT_EQ(gst_buffer_peek_memory(buffer, 0), got.memories[i]) << "the tee's, untouched";
    const Analysis* analysis = read_analysis(buffer);
    ASSERT_NE(analysis, nullptr);
    EXPECT_EQ(analysis->result.frame, i);
    EXPECT_EQ(analysis->result.width, 1280);
    ASSERT_EQ(analysis->result.objects.size(), 4u);
    EXPECT_NEAR(analysis->result.objects[3].x, 640, 0.01);
    EXPECT_EQ(analysis->branches.size(), 2u);
  }
}

TEST_P(G03, GivenAModelOnEachWay_WhenThePrimaryIsTheSmaller_ThenBoxesShrink) {
  const std::string text = source(6, 512, 256) +
                           "penaggregate name=j ! appsink name=out sync=false " +
                           branch(0, 128, 128) + branch(1, 512, 256);
  const Outcome got = run(text);
  EXPECT_TRUE(got.errors.empty()) << ::testing::PrintToString(got.errors);
  ASSERT_EQ(got.samples.size(), 6u);
  for (const auto& sample : got.samples) {
    const std::string cat = "cat 16 16 32 48", dog = "dog 64 80 48 32";
    EXPECT_EQ(told(gst_sample_get_buffer(sample.get())),
              (std::vector<std::string>{cat, dog, cat, dog}));
  }
}

TEST_P(G03, GivenABranchThatLeavesFramesOut_WhenMissingPasses_ThenEveryFrameGoesOn) {
  const std::string some = "videorate drop-only=true ! video/x-raw,framerate=5/1 !";
  const Outcome got =
      run(source(20, 256, 144) + primary("missing=pass") + branch(1, 128, 72, some));
  EXPECT_TRUE(got.errors.empty()) << ::testing::PrintToString(got.errors);
  EXPECT_EQ(got.samples.size(), 20u);
  std::size_t with = 0;
  for (const auto& sample : got.samples) {
    with += static_cast<std::size_t>(!told(gst_sample_get_buffer(sample.get())).empty());
  }
  EXPECT_GE(with, 3u);
  EXPECT_LE(with, 5u);

  const Outcome strict = run(source(20, 256, 144) + primary() + branch(1, 128, 72, some));
  ASSERT_FALSE(strict.errors.empty());
  EXPECT_NE(strict.errors[0].find("pad 'sink_1' left out the frame with PTS"), std::string::npos)
      << strict.errors[0];
}

TEST_P(L03, GivenFramesInAllBranches_WhenTheSourceEnds_ThenEveryAcceptedFrameLeaves) {
  const Outcome got = run(source(40, 128, 128) + primary() + branch(1, 64, 64) + branch(2, 96, 96) +
                          branch(3, 256, 256));
  EXPECT_TRUE(got.errors.empty()) << ::testing::PrintToString(got.errors);
  EXPECT_EQ(got.samples.size(), 40u);
}

TEST_P(L03, GivenASeekToTheBegin_WhenFramesOfBeforeAreInTheBranches_ThenNoneIsJoinedToLaterOnes) {
  const Outcome got =
      run(source(-1, 128, 128) + primary() + branch(1, 64, 64) + branch(2, 256, 256), 10);
  EXPECT_TRUE(got.errors.empty()) << ::testing::PrintToString(got.errors);
  ASSERT_EQ(got.samples.size(), 10u + kSoughtFrames);
  const auto first = read_analysis(gst_sample_get_buffer(got.samples[0].get()));
  ASSERT_NE(first, nullptr);
  for (std::size_t i = 0; i < got.samples.size(); ++i) {
    GstBuffer* buffer = gst_sample_get_buffer(got.samples[i].get());
    EXPECT_EQ(GST_BUFFER_PTS(buffer), (i < 10 ? i : i - 10) * 40 * GST_MSECOND);
    const Analysis* analysis = read_analysis(buffer);
    ASSERT_NE(analysis, nullptr);
    EXPECT_EQ(analysis->result.objects.size(), 4u);
    EXPECT_EQ(analysis->result.generation, first->result.generation + (i < 10 ? 0 : 1));
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, G03, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, G03, ::testing::Values("sim"));
INSTANTIATE_TEST_SUITE_P(cpu, L03, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, L03, ::testing::Values("sim"));

}  // namespace
}  // namespace penstock::gst
