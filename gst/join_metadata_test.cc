// SPDX-License-Identifier: Apache-2.0
//
// Full precision of several branches on one buffer, and what they left on the device.
#include "gst/join_metadata.h"

#include <gst/analytics/analytics.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gst/analysis_relations.h"
#include "gst/gst_ptr.h"
#include "gst/penanalysis_meta.h"
#include "penstock/memory/testing/devices.h"

namespace penstock::gst {
namespace {

constexpr GstClockTime kPts = 40 * GST_MSECOND;

BufferPtr frame() {
  BufferPtr buffer(gst_buffer_new_allocate(nullptr, 64, nullptr));
  GST_BUFFER_PTS(buffer.get()) = kPts;
  return buffer;
}

Analysis said(int width, int height) {
  Analysis analysis;
  analysis.result.source = "door";
  analysis.result.frame = 3;
  analysis.result.pts_ns = static_cast<std::int64_t>(kPts);
  analysis.result.generation = 1;
  analysis.result.width = width;
  analysis.result.height = height;
  return analysis;
}

/// As peninfer puts it onto a frame.
BufferPtr frame_with(Analysis analysis) {
  BufferPtr buffer = frame();
  EXPECT_TRUE(attach_relations(buffer.get(), analysis.result));
  attach_analysis(buffer.get(), std::make_shared<const Analysis>(std::move(analysis)));
  return buffer;
}

SizedFrame primary(const BufferPtr& buffer) { return {"sink_0", buffer.get(), 1920, 1080}; }
SizedFrame third(const BufferPtr& buffer, const char* pad = "sink_1") {
  return {pad, buffer.get(), 640, 360};
}

std::string join(const BufferPtr& into, const std::vector<SizedFrame>& branches,
                 std::size_t most = 4096) {
  const auto joined = join_metadata(primary(into), branches, most);
  return joined ? "" : joined.error().message();
}

std::vector<std::vector<int>> boxes(GstBuffer* buffer) {
  std::vector<std::vector<int>> read;
  gpointer state = nullptr;
  GstAnalyticsMtd record;
  while (gst_analytics_relation_meta_iterate(gst_buffer_get_analytics_relation_meta(buffer), &state,
                                             gst_analytics_od_mtd_get_mtd_type(), &record)) {
    gint x = 0, y = 0, w = 0, h = 0;
    gst_analytics_od_mtd_get_location(&record, &x, &y, &w, &h, nullptr);
    read.push_back({x, y, w, h});
  }
  return read;
}

TEST(G03_Meta, GivenACoarseBranch_WhenJoined_ThenNothingIsRoundedTwice) {
  Analysis branch = said(640, 360);
  branch.result.objects = {{.label = "cat", .x = 10.4f, .y = 20.4f, .width = 30.2f, .height = 40}};
  const BufferPtr into = frame(), small = frame_with(branch);
  ASSERT_EQ(join(into, {third(small)}), "");
  // 3 * 10.4 = 31.2, to 3 * 40.6 = 121.8; the branch's own records would have made 30 and 93.
  EXPECT_EQ(boxes(into.get()), (std::vector<std::vector<int>>{{31, 61, 91, 120}}));
  const Analysis* whole = read_analysis(into.get());
  ASSERT_NE(whole, nullptr);
  EXPECT_FLOAT_EQ(whole->result.objects.at(0).x, 31.2f);
  EXPECT_EQ(whole->result.width, 1920);
  EXPECT_EQ(whole->result.height, 1080);
  EXPECT_EQ(whole->result.source, "door");
  EXPECT_EQ(whole->result.frame, 3u);
  EXPECT_EQ(whole->result.generation, 1u);
}

TEST(G03_Meta, GivenAnAnalysisOnEachWay_WhenJoined_ThenObjectsAreInTheOrderOfTheRecords) {
  Analysis own = said(1920, 1080);
  own.result.objects = {{.label = "car", .x = 1, .width = 5, .height = 5}};
  Analysis branch = said(640, 360);
  branch.result.objects = {{.label = "cat", .x = 2, .width = 5, .height = 5},
                           {.label = "bell", .x = 3, .width = 1, .height = 1, .parent = 0}};
  const BufferPtr into = frame_with(own), small = frame_with(branch), other = frame_with(branch);
  const auto before = share_analysis(into.get());
  ASSERT_EQ(join(into, {third(small), third(other, "sink_2")}), "");
  const Analysis* whole = read_analysis(into.get());
  ASSERT_EQ(whole->result.objects.size(), 5u);
  const auto places = boxes(into.get());
  ASSERT_EQ(places.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(static_cast<int>(whole->result.objects[i].x), places[i][0]) << i;
  }
  EXPECT_EQ(whole->result.objects[2].parent, 1);
  EXPECT_EQ(whole->result.objects[4].parent, 3);
  EXPECT_EQ(before->result.objects.size(), 1u) << "others may share it";
  ASSERT_EQ(whole->branches.size(), 2u);
  EXPECT_EQ(whole->branches[1].pad, "sink_2");
  EXPECT_EQ(whole->branches[1].first_object, 3u);
  EXPECT_EQ(whole->branches[1].objects, 2u);
}

TEST(G03_Meta, GivenRecordsOfOthersAlone_WhenJoined_ThenTheyAreScaledAndNoAnalysisIsInvented) {
  const BufferPtr into = frame(), small = frame();
  GstAnalyticsODMtd added;
  ASSERT_TRUE(gst_analytics_relation_meta_add_od_mtd(
      gst_buffer_add_analytics_relation_meta(small.get()), g_quark_from_string("cat"), 10, 20, 30,
      40, 0.5f, &added));
  ASSERT_EQ(join(into, {third(small)}), "");
  EXPECT_EQ(boxes(into.get()), (std::vector<std::vector<int>>{{30, 60, 90, 120}}));
  EXPECT_EQ(read_analysis(into.get()), nullptr);
}

TEST(G03_Meta, GivenRecordsBesideAnAnalysis_WhenJoined_ThenBothHaveAllObjects) {
  const BufferPtr into = frame();
  GstAnalyticsODMtd added;
  ASSERT_TRUE(gst_analytics_relation_meta_add_od_mtd(
      gst_buffer_add_analytics_relation_meta(into.get()), g_quark_from_string("stock"), 7, 8, 9, 10,
      0.5f, &added));
  Analysis branch = said(640, 360);
  branch.result.objects = {{.label = "cat", .x = 1, .width = 5, .height = 5}};
  const BufferPtr small = frame_with(branch);
  ASSERT_EQ(join(into, {third(small)}), "");
  const Analysis* whole = read_analysis(into.get());
  ASSERT_EQ(whole->result.objects.size(), 2u);
  EXPECT_EQ(whole->result.objects[0].label, "stock");
  EXPECT_FLOAT_EQ(whole->result.objects[0].x, 7) << "the frame's own pixels";
  EXPECT_FLOAT_EQ(whole->result.objects[1].x, 3);
}

TEST(G03_Meta, GivenMetadataOfAnotherFrame_WhenJoined_ThenPadFieldAndBothValuesAreNamed) {
  const auto refused = [](void (*change)(Analysis&), bool has_own) {
    Analysis branch = said(640, 360);
    change(branch);
    const BufferPtr into = has_own ? frame_with(said(1920, 1080)) : frame();
    const BufferPtr first = frame_with(said(640, 360)), small = frame_with(branch);
    return join(into, {third(first), third(small, "sink_2")});
  };
  for (const bool has_own : {true, false}) {
    EXPECT_EQ(refused([](Analysis& a) { a.result.source = "gate"; }, has_own),
              "pad 'sink_2': source 'gate' is not the frame's, which is 'door'");
    EXPECT_EQ(refused([](Analysis& a) { a.result.generation = 2; }, has_own),
              "pad 'sink_2': generation '2' is not the frame's, which is '1'");
    EXPECT_EQ(refused([](Analysis& a) { a.result.pts_ns = 5; }, has_own),
              "pad 'sink_2': PTS (ns) '5' of its metadata is not '40000000', that of the frame of "
              "pad 'sink_0'");
    EXPECT_EQ(refused([](Analysis&) {}, has_own), "");
  }
}

TEST(G03_Meta, GivenTooManyRecords_WhenJoined_ThenPadAndNumbersAreNamed) {
  Analysis branch = said(640, 360);
  branch.result.objects.resize(3, {.label = "cat", .width = 5, .height = 5});
  const BufferPtr into = frame_with(branch), small = frame_with(branch);
  const SizedFrame whole{"sink_0", into.get(), 640, 360};
  const SizedFrame part = third(small);
  const auto joined = join_metadata(whole, {&part, 1}, 5);
  ASSERT_FALSE(joined);
  EXPECT_EQ(
      joined.error().message(),
      "pad 'sink_1': its 3 records beside the 3 that are there are more than 5 (max-records)");
}

TEST(G03_Meta, GivenCustomValues_WhenJoined_ThenDistinctOnesAreAmongTheBranches) {
  Analysis own = said(1920, 1080), first = said(640, 360), second = said(640, 360);
  own.custom = R"({"light": "on"})";
  first.custom = R"({"light":"on"})";
  second.custom = "[1, 2]";
  const BufferPtr into = frame_with(own), one = frame_with(first), two = frame_with(second);
  ASSERT_EQ(join(into, {third(one)}), "");
  EXPECT_EQ(read_analysis(into.get())->custom, R"({"light":"on"})");
  ASSERT_EQ(join(into, {third(two, "sink_2")}), "");
  EXPECT_EQ(read_analysis(into.get())->custom, R"({"branches":[{"light":"on"},[1,2]]})");
  second.custom = "{";
  const BufferPtr broken = frame_with(second);
  EXPECT_TRUE(join(into, {third(broken)}).starts_with("joining custom values: value 1: a custom"));
}

TEST(G03_Meta, GivenTwoClassifiers_WhenJoined_ThenTheSecondsClassesAreTheBranchs) {
  Analysis first = said(640, 360), second = said(640, 360);
  first.result.classes = {{.label = "indoors", .confidence = 0.5f}};
  second.result.classes = {{.label = "night", .confidence = 0.75f}};
  const BufferPtr into = frame(), one = frame_with(first), two = frame_with(second);
  ASSERT_EQ(join(into, {third(one), third(two, "sink_2")}), "");
  const Analysis* whole = read_analysis(into.get());
  EXPECT_EQ(whole->result.classes.at(0).label, "indoors");
  EXPECT_TRUE(whole->branches.at(0).picture.classes.empty());
  EXPECT_EQ(whole->branches.at(1).picture.classes.at(0).label, "night");
  EXPECT_EQ(gst_analytics_relation_get_length(gst_buffer_get_analytics_relation_meta(into.get())),
            2u);
}

class G03_Attachments : public ::testing::TestWithParam<TestDevice> {
 protected:
  Tensor masks(std::int64_t count) {
    auto storage = device_->allocate(static_cast<std::size_t>(count) * 16);
    EXPECT_TRUE(storage);
    owners_.push_back(*storage);
    return {.name = "masks",
            .type = DataType::kUint8,
            .shape = {count, 4, 4},
            .data = StorageRegion::whole(*storage),
            .ready = {}};
  }
  static Letterbox whole_frame() {
    return *Letterbox::plan({0, 0, 640, 360}, 640, 360, 64, 64, Fit::kLetterboxCenter);
  }
  Analysis segmented() {
    Analysis analysis = said(640, 360);
    analysis.result.objects = {{.label = "a", .width = 5, .height = 5, .mask = 1},
                               {.label = "b", .width = 5, .height = 5, .mask = 0},
                               {.label = "c", .width = 5, .height = 5, .mask = 4, .parent = 1}};
    analysis.device.masks = masks(2);
    analysis.device.tensors = {masks(1)};
    analysis.device.letterbox = whole_frame();
    analysis.object_device.push_back({.object = 1, .model = "parts", .device = {}});
    analysis.object_device[0].device.masks = masks(5);
    analysis.object_device[0].device.letterbox =
        *Letterbox::plan({320, 180, 64, 32}, 640, 360, 64, 64, Fit::kStretch);
    return analysis;
  }

  DevicePtr device_ = GetParam().open({});
  std::vector<std::weak_ptr<Storage>> owners_;
};

TEST_P(G03_Attachments,
       GivenMasksOnTheDevice_WhenJoined_ThenTheirStorageIsSharedAndLiesInTheFrame) {
  const BufferPtr into = frame();
  Tensor kept;
  {
    const Analysis branch = segmented();
    kept = *branch.device.masks;
    const BufferPtr small = frame_with(branch);
    ASSERT_EQ(join(into, {third(small)}), "");
  }
  const Analysis* whole = read_analysis(into.get());
  ASSERT_TRUE(whole->device.masks);
  EXPECT_EQ(whole->device.masks->data.storage.get(), kept.data.storage.get());
  EXPECT_EQ(whole->device.masks->data.storage->address(), kept.data.storage->address());
  EXPECT_EQ(whole->result.objects[0].mask, 1);
  EXPECT_EQ(whole->result.objects[1].mask, 0);
  ASSERT_EQ(whole->device.tensors.size(), 1u);
  // The middle of the model's input is the middle of either frame.
  const auto middle = whole->device.letterbox.to_source(PointF{32, 32});
  ASSERT_TRUE(middle);
  EXPECT_FLOAT_EQ(middle->x, 960);
  EXPECT_FLOAT_EQ(middle->y, 540);
  EXPECT_EQ(whole->device.letterbox.frame_width, 1920);
  ASSERT_EQ(whole->object_device.size(), 1u);
  EXPECT_EQ(whole->object_device[0].object, 1u);
  EXPECT_EQ(whole->object_device[0].device.letterbox.crop, (RectI{960, 540, 192, 96}));
}

TEST_P(G03_Attachments, GivenMasksOfTwoBranches_WhenJoined_ThenEachObjectFindsItsOwn) {
  const BufferPtr into = frame();
  const BufferPtr one = frame_with(segmented()), two = frame_with(segmented());
  ASSERT_EQ(join(into, {third(one), third(two, "sink_2")}), "");
  const Analysis* whole = read_analysis(into.get());
  ASSERT_EQ(whole->result.objects.size(), 6u);
  EXPECT_EQ(whole->device.masks->data.storage.get(),
            read_analysis(one.get())->device.masks->data.storage.get());
  const BranchFindings& second = whole->branches.at(1);
  ASSERT_TRUE(second.device.masks);
  EXPECT_EQ(second.device.masks->data.storage.get(),
            read_analysis(two.get())->device.masks->data.storage.get());
  EXPECT_EQ(second.device.letterbox.frame_width, 1920);
  EXPECT_EQ(second.masks, (std::vector<int>{1, 0, -1}));
  EXPECT_EQ(whole->result.objects[3].mask, -1) << "not the first branch's";
  EXPECT_EQ(whole->result.objects[4].mask, -1);
  // An object found in another: by the parent's second stage.
  EXPECT_EQ(whole->result.objects[5].parent, 4);
  EXPECT_EQ(whole->result.objects[5].mask, 4);
  ASSERT_EQ(whole->object_device.size(), 2u);
  EXPECT_EQ(whole->object_device[1].object, 4u);
}

TEST_P(G03_Attachments, GivenJoinedMasks_WhenTheFrameIsLetGo_ThenNothingOnTheDeviceStays) {
  {
    const BufferPtr into = frame();
    const BufferPtr one = frame_with(segmented()), two = frame_with(segmented());
    ASSERT_EQ(join(into, {third(one), third(two, "sink_2")}), "");
  }
  EXPECT_EQ(owners_.size(), 6u);
  for (const auto& owner : owners_) EXPECT_TRUE(owner.expired());
}

INSTANTIATE_TEST_SUITE_P(cpu, G03_Attachments, ::testing::Values(cpu_test_device()));
INSTANTIATE_TEST_SUITE_P(sim, G03_Attachments, ::testing::Values(sim_test_device()));

}  // namespace
}  // namespace penstock::gst
