// SPDX-License-Identifier: Apache-2.0
//
// What penwatermark makes of frames: pixels, memory, metadata, caps.
#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gst/analysis_relations.h"
#include "gst/penanalysis_meta.h"
#include "gst/testing/watermark_fixture.h"

namespace penstock::gst {
namespace {

using ::testing::Values;

constexpr std::size_t kStride = std::size_t{4} * kDrawnWidth;

/// Pixels that differ from the plain gray that frames are made of.
struct Painted {
  std::vector<std::uint8_t> bytes;
  bool at(int x, int y) const {
    const auto* pixel =
        &bytes[static_cast<std::size_t>(y) * kStride + 4 * static_cast<std::size_t>(x)];
    return std::abs(pixel[0] - pixel[1]) > 12 || std::abs(pixel[1] - pixel[2]) > 12 ||
           std::abs(pixel[1] - 130) > 12;
  }
  int count(int x0, int y0, int x1, int y1) const {
    int painted = 0;
    for (int y = y0; y < y1; ++y) {
      for (int x = x0; x < x1; ++x) painted += at(x, y);
    }
    return painted;
  }
};

class Drawn : public WatermarkFixture {
 protected:
  Painted painted(BufferPtr buffer) {
    const BufferPtr out = through(std::move(buffer));
    return {out == nullptr ? std::vector<std::uint8_t>(kStride * kDrawnHeight) : pixels(out.get())};
  }
};

GstAnalyticsODMtd add_box(GstBuffer* buffer, const char* label, int x, int y, int w, int h) {
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  if (meta == nullptr) meta = gst_buffer_add_analytics_relation_meta(buffer);
  GstAnalyticsODMtd box;
  EXPECT_TRUE(gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string(label), x, y, w, h,
                                                     0.75f, &box));
  return box;
}

// ---- W01 ----

class W01 : public Drawn {};

TEST_P(W01, GivenStockRecords_WhenDrawn_ThenTheBoxIsThereAndItsInsideIsNot) {
  set("draw", "boxes");
  play();
  for (const std::string& format : formats()) {
    gst_harness_set_src_caps_str(harness_.get(), caps(format).c_str());
    BufferPtr frame = make_frame(0, format);
    add_box(frame.get(), "cat", 20, 30, 50, 40);
    const Painted got = painted(std::move(frame));
    for (const auto& [x, y] :
         {std::pair{20, 30}, {69, 30}, {20, 69}, {69, 69}, {45, 29}, {19, 50}}) {
      // A line of one pixel lies on the outer side of the edge.
      EXPECT_TRUE(got.at(x, y) || got.at(x - 1, y) || got.at(x, y - 1) || got.at(x + 1, y) ||
                  got.at(x, y + 1))
          << x << "," << y;
    }
    EXPECT_EQ(got.count(22, 32, 68, 68), 0);
    EXPECT_EQ(got.count(0, 0, kDrawnWidth, 28), 0);
    EXPECT_GT(got.count(19, 29, 71, 30), 49) << "the upper side";
  }
}

TEST_P(W01, GivenARecordThatSomebodyMoved_WhenDrawn_ThenItIsWhereTheRecordSays) {
  set("draw", "boxes");
  play();
  auto analysis = std::make_shared<Analysis>();
  analysis->result.objects = {
      {.label = "cat", .confidence = 1, .x = 70.25f, .y = 10, .width = 40, .height = 40}};
  BufferPtr frame = make_frame();
  add_box(frame.get(), "cat", 10, 50, 40, 40);
  attach_analysis(frame.get(), analysis);
  const Painted got = painted(std::move(frame));
  EXPECT_GT(got.count(9, 49, 51, 51), 40);
  EXPECT_EQ(got.count(60, 0, kDrawnWidth, 48), 0) << "where it was before";
}

TEST_P(W01, GivenABoxAtTheUpperEdge_WhenDrawn_ThenItsLabelIsInThePicture) {
  set("draw", "labels");
  play();
  BufferPtr frame = make_frame();
  add_box(frame.get(), "cat", 20, 0, 50, 40);
  const Painted got = painted(std::move(frame));
  EXPECT_GT(got.count(20, 0, 60, 16), 200) << "objectdetectionoverlay leaves it out";
}

TEST_P(W01, GivenTracks_WhenDrawn_ThenTheirIdsAre) {
  set("draw", "ids");
  play();
  const auto drawn_with = [&](int id) {
    BufferPtr frame = make_frame();
    const GstAnalyticsODMtd box = add_box(frame.get(), "cat", 20, 40, 50, 40);
    if (id >= 0) {
      GstAnalyticsTrackingMtd track;
      EXPECT_TRUE(gst_analytics_relation_meta_add_tracking_mtd(box.meta, guint64(id), 0, &track));
      EXPECT_TRUE(gst_analytics_relation_meta_set_relation(
          box.meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, box.id, track.id));
    }
    return painted(std::move(frame)).count(0, 0, kDrawnWidth, kDrawnHeight);
  };
  EXPECT_EQ(drawn_with(-1), 0);
  EXPECT_GT(drawn_with(0), 0) << "ioutracker begins with 0";
  EXPECT_GT(drawn_with(1234567), drawn_with(7)) << "more digits, more ground";
}

TEST_P(W01, GivenKeypointRecords_WhenDrawn_ThenTheyLieWhereTheFramesSizeSays) {
  set("draw", "skeletons");
  play();
  // Analysed at twice the size.
  FrameResult result;
  result.width = 2 * kDrawnWidth;
  result.height = 2 * kDrawnHeight;
  result.objects = {{.label = "person",
                     .confidence = 1,
                     .x = 20,
                     .y = 20,
                     .width = 50,
                     .height = 50,
                     .keypoints = {{.x = 60, .y = 80, .confidence = 1},
                                   {.x = 200, .y = 40, .confidence = 0.1f}}}};
  BufferPtr frame = make_frame();
  ASSERT_TRUE(attach_relations(frame.get(), result));
  const Painted got = painted(std::move(frame));
  EXPECT_TRUE(got.at(30, 40));
  EXPECT_EQ(got.count(40, 0, kDrawnWidth, kDrawnHeight), 0) << "the second one is unsure";
}

TEST_P(W01, GivenATurnedRecord_WhenDrawn_ThenItsCornersAreTurned) {
  set("draw", "boxes");
  play();
  BufferPtr frame = make_frame();
  GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(frame.get());
  GstAnalyticsODMtd box;
  // 40 x 10 about (60, 50), upright by a quarter turn.
  ASSERT_TRUE(gst_analytics_relation_meta_add_oriented_od_mtd(
      meta, g_quark_from_string("ship"), 40, 45, 40, 10, float(M_PI / 2), 0.9f, &box));
  const Painted got = painted(std::move(frame));
  EXPECT_GT(got.count(52, 28, 68, 72), 60);
  EXPECT_EQ(got.count(0, 0, 50, kDrawnHeight) + got.count(70, 0, kDrawnWidth, kDrawnHeight), 0);
}

TEST_P(W01, GivenClassesOfTheWholePicture_WhenDrawn_ThenTheyStandInTheUpperLeftCorner) {
  set("draw", "labels");
  play();
  FrameResult result;
  result.classes = {{.class_id = 1, .label = "street", .confidence = 0.9f}};
  BufferPtr frame = make_frame();
  ASSERT_TRUE(attach_relations(frame.get(), result));
  const Painted got = painted(std::move(frame));
  EXPECT_GT(got.count(0, 0, 40, 14), 300);
  EXPECT_EQ(got.count(0, 20, kDrawnWidth, kDrawnHeight), 0);
}

TEST_P(W01, GivenZones_WhenDrawn_ThenTheirOutlinesAre) {
  set("draw", "zones");
  set("zones", "a: 0.25,0.25 0.75,0.25 0.75,0.75 0.25,0.75");
  set("lines", "b: 0,0.9 1,0.9");
  play();
  const Painted got = painted(make_frame());
  EXPECT_GT(got.count(33, 71, 95, 73), 60) << "the lower side";
  EXPECT_GT(got.count(0, 85, kDrawnWidth, 88), 120) << "the line";
  EXPECT_EQ(got.count(40, 30, 90, 68), 0);
}

TEST_P(W01, GivenCountsOfZones_WhenDrawn_ThenTheyStandBehindTheNames) {
  set("draw", "zones");
  set("zones", "a: 0.1,0.25 0.9,0.25 0.9,0.75 0.1,0.75");
  play();
  const Painted without = painted(make_frame());
  auto analysis = std::make_shared<Analysis>();
  analysis->result.zones = {{.name = "another", .inside = 9}, {.name = "a", .inside = 3}};
  BufferPtr frame = make_frame();
  attach_analysis(frame.get(), analysis);
  const Painted with = painted(std::move(frame));
  // The ground of "a" is some twelve pixels wide, that of "a: 3 (+0 -0)" most of the picture.
  EXPECT_EQ(without.count(40, 14, 90, 22), 0);
  EXPECT_EQ(with.count(40, 14, 70, 22), 30 * 8);
}

/// A mask over the left half of the picture, as a decoder leaves it on the device.
TEST_P(W01, GivenDeviceMasks_WhenDrawn_ThenTheyShineThroughWithoutBeingReadBack) {
  set("draw", "masks");
  play();
  std::vector<std::byte> values(16 * 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::byte(i % 16 < 8 ? 255 : 0);
  auto analysis = std::make_shared<Analysis>();
  analysis->result.width = kDrawnWidth;
  analysis->result.height = kDrawnHeight;
  analysis->result.objects = {{.label = "cat",
                               .confidence = 1,
                               .x = 0,
                               .y = 0,
                               .width = kDrawnWidth,
                               .height = kDrawnHeight,
                               .mask = 0}};
  std::vector<std::byte> host = values;
  StoragePtr storage = is_sim() ? storage_with(values) : wrap_host_memory(host, nullptr);
  analysis->device.masks = Tensor{.name = "masks",
                                  .type = DataType::kUint8,
                                  .shape = {1, 16, 16},
                                  .data = StorageRegion::whole(storage),
                                  .ready = {}};
  analysis->device.letterbox = *Letterbox::plan({0, 0, kDrawnWidth, kDrawnHeight}, kDrawnWidth,
                                                kDrawnHeight, 64, 64, Fit::kStretch);
  BufferPtr frame = make_frame();
  ASSERT_TRUE(attach_relations(frame.get(), analysis->result));
  attach_analysis(frame.get(), analysis);
  const auto reads = sim_ == nullptr ? 0 : sim_->ledger().count(CopyClass::kReadback);
  const BufferPtr out = through(std::move(frame));
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(sim_ == nullptr ? 0 : sim_->ledger().count(CopyClass::kReadback), reads);
  const Painted got{pixels(out.get())};
  EXPECT_EQ(got.count(0, 0, 60, kDrawnHeight), 60 * kDrawnHeight);
  EXPECT_EQ(got.count(68, 0, kDrawnWidth, kDrawnHeight), 0);
  EXPECT_EQ(read_analysis(out.get()), analysis.get()) << "shared on";
}

INSTANTIATE_TEST_SUITE_P(cpu, W01, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, W01, Values("sim"));

// ---- W02: what comes out ----

class W02_Output : public Drawn {};

TEST_P(W02_Output, GivenAFrame_WhenDrawn_ThenTheInputIsKeptAsItWas) {
  play();
  for (const std::string& format : formats()) {
    gst_harness_set_src_caps_str(harness_.get(), caps(format).c_str());
    BufferPtr frame = make_frame(0, format);
    add_box(frame.get(), "cat", 20, 30, 50, 40);
    // Not writable: the test holds it, too.
    const BufferPtr held(gst_buffer_ref(frame.get()));
    GstMemory* const memory = gst_buffer_peek_memory(held.get(), 0);
    const BufferPtr out = through(std::move(frame));
    ASSERT_NE(out, nullptr);
    EXPECT_NE(gst_buffer_peek_memory(out.get(), 0), memory);
    EXPECT_EQ(gst_buffer_peek_memory(held.get(), 0), memory);
    const auto bytes = pixels(held.get());
    EXPECT_EQ(std::ranges::count(bytes, 128), std::ptrdiff_t(bytes.size()));
    if (!is_sim()) {
      GstMapInfo info;
      // A map left behind would make this fail.
      ASSERT_TRUE(gst_memory_map(memory, &info, GST_MAP_WRITE));
      gst_memory_unmap(memory, &info);
    }
  }
}

TEST_P(W02_Output, GivenCaps_WhenNegotiated_ThenTheOutputIsBgraOfTheSameSizeRateAndShape) {
  play(caps("NV12", 320, 240, ",pixel-aspect-ratio=16/15,colorimetry=bt601,chroma-site=jpeg"));
  push(make_frame(0, "NV12", 320, 240));
  const GstPtr<GstPad> pad(gst_element_get_static_pad(element_.get(), "src"));
  const CapsPtr out(gst_pad_get_current_caps(pad.get()));
  const CapsPtr expected(gst_caps_from_string(
      str_format("video/x-raw{},format=BGRA,width=320,height=240,framerate=25/1,"
                 "pixel-aspect-ratio=16/15,colorimetry=sRGB",
                 feature())
          .c_str()));
  EXPECT_TRUE(gst_caps_is_equal(out.get(), expected.get())) << gst_caps_to_string(out.get());
}

TEST_P(W02_Output, GivenAnotherSizeMidway_WhenDrawn_ThenFramesFollowIt) {
  play();
  EXPECT_EQ(gst_buffer_get_size(through(make_frame()).get()), kStride * kDrawnHeight);
  gst_harness_set_src_caps_str(harness_.get(), caps("NV12", 64, 32).c_str());
  EXPECT_EQ(gst_buffer_get_size(through(make_frame(1, "NV12", 64, 32)).get()), 64u * 32 * 4);
}

INSTANTIATE_TEST_SUITE_P(cpu, W02_Output, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, W02_Output, Values("sim"));

// ---- W03 ----

class W03 : public Drawn {};

TEST_P(W03, GivenMetadataAndTimes_WhenDrawn_ThenTheySurviveAndTheLayoutIsTheOutputs) {
  play();
  BufferPtr frame = make_frame(7);
  GST_BUFFER_DTS(frame.get()) = 5;
  GST_BUFFER_OFFSET(frame.get()) = 99;
  GST_BUFFER_FLAG_SET(frame.get(), GST_BUFFER_FLAG_DISCONT);
  add_box(frame.get(), "cat", 20, 30, 50, 40);
  auto analysis = std::make_shared<Analysis>();
  attach_analysis(frame.get(), analysis);
  const CapsPtr reference(gst_caps_from_string("timestamp/x-test"));
  gst_buffer_add_reference_timestamp_meta(frame.get(), reference.get(), 4711, 1);
  const std::array<gsize, GST_VIDEO_MAX_PLANES> offsets{0, std::size_t{kDrawnWidth} * kDrawnHeight};
  const std::array<gint, GST_VIDEO_MAX_PLANES> strides{kDrawnWidth, kDrawnWidth};
  gst_buffer_add_video_meta_full(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_NV12,
                                 kDrawnWidth, kDrawnHeight, 2, offsets.data(), strides.data());
  const BufferPtr out = through(std::move(frame));
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(GST_BUFFER_PTS(out.get()), 7 * 40 * GST_MSECOND);
  EXPECT_EQ(GST_BUFFER_DTS(out.get()), 5u);
  EXPECT_EQ(GST_BUFFER_DURATION(out.get()), 40 * GST_MSECOND);
  EXPECT_EQ(GST_BUFFER_OFFSET(out.get()), 99u);
  EXPECT_TRUE(GST_BUFFER_FLAG_IS_SET(out.get(), GST_BUFFER_FLAG_DISCONT));
  EXPECT_EQ(read_analysis(out.get()), analysis.get());
  const auto* stamp = gst_buffer_get_reference_timestamp_meta(out.get(), nullptr);
  ASSERT_NE(stamp, nullptr);
  EXPECT_EQ(stamp->timestamp, 4711u);

  GstAnalyticsRelationMeta* relations = gst_buffer_get_analytics_relation_meta(out.get());
  ASSERT_NE(relations, nullptr);
  EXPECT_EQ(gst_analytics_relation_get_length(relations), 1u);

  EXPECT_EQ(gst_buffer_get_n_meta(out.get(), GST_VIDEO_META_API_TYPE), 1u);
  const GstVideoMeta* video = gst_buffer_get_video_meta(out.get());
  ASSERT_NE(video, nullptr);
  EXPECT_EQ(video->format, GST_VIDEO_FORMAT_BGRA);
  EXPECT_EQ(video->n_planes, 1u);
  EXPECT_EQ(video->offset[0], 0u);
  EXPECT_EQ(video->stride[0], gint(kStride));
  EXPECT_EQ(video->width, guint(kDrawnWidth));
}

TEST_P(W03, GivenAFrameThatKeepsAnother_WhenDrawn_ThenTheOutputDoesNot) {
  play();
  BufferPtr parent = make_frame();
  GstBuffer* const watched = parent.get();
  BufferPtr frame = make_frame(1);
  gst_buffer_add_parent_buffer_meta(frame.get(), watched);
  const BufferPtr out = through(std::move(frame));
  EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(watched), 1) << "upstream's pool gets it back";
}

INSTANTIATE_TEST_SUITE_P(cpu, W03, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, W03, Values("sim"));

// ---- W04 ----

class W04 : public Drawn {};

TEST_P(W04, GivenMoreToDrawThanTheLimit_WhenDrawn_ThenThatIsSaidOnceWithItsNumber) {
  set("draw", "boxes+labels");
  play();
  for (int number = 0; number < 3; ++number) {
    auto analysis = std::make_shared<Analysis>();
    analysis->result.objects.assign(
        9000, {.label = "x", .confidence = 1, .x = 3, .y = 40, .width = 8, .height = 8});
    BufferPtr frame = make_frame(number);
    attach_analysis(frame.get(), analysis);
    ASSERT_NE(through(std::move(frame)), nullptr);
  }
  const auto messages = said();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].type, GST_MESSAGE_WARNING);
  for (const char* part : {"drawer", GetParam(), "8192"}) {
    EXPECT_NE(messages[0].text.find(part), std::string::npos) << messages[0].text;
  }
  EXPECT_LE(stat("commands"), 3u * 8192);
  EXPECT_EQ(stat("commands") + stat("dropped"), 3u * (3 * 8192 + 808))
      << "a box, a ground and a text each, but for objects beyond 8192";
}

INSTANTIATE_TEST_SUITE_P(cpu, W04, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, W04, Values("sim"));

// ---- V01, V03 ----

class Refusals : public Drawn {
 protected:
  void expect_refused(const std::string& text, const std::string& field) {
    SCOPED_TRACE(text);
    play(text);
    EXPECT_EQ(push(make_frame()), GST_FLOW_NOT_NEGOTIATED);
    EXPECT_EQ(push(make_frame(1)), GST_FLOW_NOT_NEGOTIATED);
    const auto messages = said();
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_EQ(messages[0].type, GST_MESSAGE_ERROR);
    for (const std::string& part : {std::string("drawer"), std::string(GetParam()), field}) {
      EXPECT_NE(messages[0].text.find(part), std::string::npos) << messages[0].text;
    }
    harness_.reset();
    gst_element_set_state(element_.get(), GST_STATE_NULL);
    gst_element_set_bus(element_.get(), bus_.get());
  }
};

class V01 : public Refusals {};

TEST_P(V01, GivenFramesThatAreNotTheDevices_WhenNegotiated_ThenTheFieldIsNamed) {
  expect_refused(caps("P010_10LE"), "format 'P010_10LE'");
  expect_refused(caps("BGRA"), "format 'BGRA'");
  expect_refused(caps("NV12", 127, 96), "width 127");
  expect_refused(caps("NV12", 128, 96, ",interlace-mode=interleaved"), "interlace-mode");
  expect_refused("video/x-raw(memory:CUDAMemory),format=NV12,width=64,height=64",
                 "memory:CUDAMemory");
}

INSTANTIATE_TEST_SUITE_P(cpu, V01, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V01, Values("sim"));

class V03 : public Refusals {};

TEST_P(V03, GivenPicturesBeyondTheLimit_WhenNegotiated_ThenTheSideIsNamed) {
  expect_refused(caps("NV12", 4098, 64), "width 4098 is above the limit of 4096");
  expect_refused(caps("NV12", 64, 4098), "height 4098 is above the limit of 4096");
}

TEST_P(V03, GivenAPictureAtTheLimit_WhenDrawn_ThenItComesOut) {
  play(caps("NV12", 4096, 64));
  const BufferPtr out = through(make_frame(0, "NV12", 4096, 64));
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(gst_buffer_get_size(out.get()), 4096u * 64 * 4);
}

INSTANTIATE_TEST_SUITE_P(cpu, V03, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V03, Values("sim"));

}  // namespace
}  // namespace penstock::gst
