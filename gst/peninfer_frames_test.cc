// SPDX-License-Identifier: Apache-2.0
//
// What happens to frames on their way through peninfer: memory, order, identity, metadata.
#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gst/penanalysis_meta.h"
#include "gst/sharing.h"
#include "gst/testing/lifecycle_fixture.h"

namespace penstock::gst {
namespace {

using ::testing::Values;

class Frames : public InferFixture {
 protected:
  BufferPtr pull() { return BufferPtr(gst_harness_pull(harness_.get())); }
  BufferPtr through(BufferPtr frame) {
    EXPECT_EQ(gst_harness_push(harness_.get(), frame.release()), GST_FLOW_OK);
    return pull();
  }
  void start_stream(const char* id) {
    gst_harness_push_event(harness_.get(), gst_event_new_stream_start(id));
    const CapsPtr same(gst_caps_from_string(caps().c_str()));
    gst_harness_push_event(harness_.get(), gst_event_new_caps(same.get()));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    gst_harness_push_event(harness_.get(), gst_event_new_segment(&segment));
  }
};

std::vector<GstMemory*> memories(GstBuffer* buffer) {
  std::vector<GstMemory*> all;
  for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) {
    all.push_back(gst_buffer_peek_memory(buffer, i));
  }
  return all;
}

// ---- V04 ----

class V04 : public Frames {};

TEST_P(V04, GivenFrames_WhenInferred_ThenMemoriesAndTimesAreTheInputs) {
  play();
  for (int i = 0; i < 5; ++i) {
    BufferPtr in = make_frame(pts(i));
    const auto before = memories(in.get());
    GstBuffer* const same = in.get();
    const BufferPtr out = through(std::move(in));
    ASSERT_NE(read_analysis(out.get()), nullptr);
    EXPECT_EQ(out.get(), same) << "a buffer nobody else holds needs no copy";
    EXPECT_EQ(memories(out.get()), before);
    EXPECT_EQ(GST_BUFFER_PTS(out.get()), pts(i));
    EXPECT_EQ(GST_BUFFER_DURATION(out.get()), 40 * GST_MSECOND);
  }
}

TEST_P(V04, GivenABufferThatATeeHolds_WhenInferred_ThenAShallowCopyCarriesTheMetadata) {
  play();
  const BufferPtr held = make_frame(pts(0));
  const BufferPtr out = through(BufferPtr(gst_buffer_ref(held.get())));
  EXPECT_NE(out.get(), held.get());
  EXPECT_EQ(memories(out.get()), memories(held.get()));
  EXPECT_EQ(GST_BUFFER_PTS(out.get()), pts(0));
  EXPECT_NE(read_analysis(out.get()), nullptr);
  EXPECT_EQ(read_analysis(held.get()), nullptr);
  EXPECT_EQ(gst_buffer_get_analytics_relation_meta(held.get()), nullptr);
}

TEST_P(V04, GivenAnInferredFrame_WhenItLeaves_ThenItsMemoryIsNotMappedAnyMore) {
  if (is_sim()) {
    // Nothing of a sim frame is ever mapped: it refuses.
    const BufferPtr frame = make_frame(0);
    GstMapInfo info;
    EXPECT_FALSE(gst_buffer_map(frame.get(), &info, GST_MAP_READ));
    return;
  }
  play();
  const BufferPtr out = through(make_frame(pts(0)));
  GstMapInfo info;
  // A read map left behind would make this fail.
  ASSERT_TRUE(gst_memory_map(gst_buffer_peek_memory(out.get(), 0), &info, GST_MAP_WRITE));
  gst_memory_unmap(info.memory, &info);
}

INSTANTIATE_TEST_SUITE_P(cpu, V04, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V04, Values("sim"));

// ---- V05 ----

/// A frame whose memory only borrows its display, as a VA frame's does: storage memory keeps a
/// reference, which this takes away until it goes. It holds the display and the memory itself, so
/// that both outlive whoever is watched.
class BorrowedDisplay {
 public:
  explicit BorrowedDisplay(std::function<BufferPtr(GObject*)> make_frame)
      : display_(G_OBJECT(g_object_new(G_TYPE_OBJECT, nullptr))),
        buffer_(make_frame(display_.get())),
        memory_(gst_buffer_get_memory(buffer_.get(), 0)) {
    g_object_unref(display_.get());
  }
  BorrowedDisplay(const BorrowedDisplay&) = delete;
  BorrowedDisplay& operator=(const BorrowedDisplay&) = delete;
  ~BorrowedDisplay() { g_object_ref(display_.get()); }

  BufferPtr take_frame() { return std::move(buffer_); }
  /// References of others: streams and jobs.
  guint keepers() const { return g_atomic_int_get(&display_.get()->ref_count) - 1; }

 private:
  const GstPtr<GObject> display_;
  BufferPtr buffer_;
  const GstPtr<GstMemory> memory_;
};

class V05 : public Frames {
 protected:
  std::function<BufferPtr(GObject*)> frame_maker() {
    return [this](GObject* display) {
      return make_frame(pts(0), "NV12", kFrameSide, kFrameSide, 0, display);
    };
  }
};

TEST_P(V05, GivenAStreamsDisplay_WhenItsBuffersAreGone_ThenTheStreamKeepsItUntilTheNextStream) {
  play();
  BorrowedDisplay display(frame_maker());
  through(display.take_frame());
  EXPECT_EQ(display.keepers(), 1u);
  start_stream("another");
  through(make_frame(pts(1)));
  EXPECT_EQ(display.keepers(), 0u);
}

TEST_P(V05, GivenAJobInFlight_WhenItsStreamHasGoneOnWithoutTheDisplay_ThenTheJobKeepsIt) {
  play();
  BorrowedDisplay display(frame_maker());
  BufferPtr second = make_frame(pts(1));
  sim_->hold_jobs(true);
  gst_harness_push(harness_.get(), display.take_frame().release());
  EXPECT_TRUE(eventually([&] { return sim_->jobs_pending() > 0; }));
  gst_harness_push(harness_.get(), second.release());
  // Drops all that waits, so that nothing but the job is left of the frame.
  gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
  gst_harness_push_event(harness_.get(), gst_event_new_flush_stop(TRUE));
  EXPECT_EQ(display.keepers(), 1u);
  sim_->hold_jobs(false);
  EXPECT_TRUE(eventually([&] { return display.keepers() == 0; }));
}

TEST_P(V05, GivenAJobInFlight_WhenItsStreamChangesDisplay_ThenBothLeaveAndTheFirstIsLetGo) {
  play();
  BorrowedDisplay display(frame_maker());
  BorrowedDisplay other(frame_maker());
  sim_->hold_jobs(true);
  gst_harness_push(harness_.get(), display.take_frame().release());
  gst_harness_push(harness_.get(), other.take_frame().release());
  EXPECT_GE(display.keepers(), 1u);
  EXPECT_GE(other.keepers(), 1u);
  sim_->hold_jobs(false);
  pull();
  pull();
  EXPECT_EQ(display.keepers(), 0u);
  EXPECT_EQ(other.keepers(), 1u) << "the stream's own, now";
}

INSTANTIATE_TEST_SUITE_P(sim, V05, Values("sim"));

// ---- V06 ----

class V06 : public Frames {};

TEST_P(V06, GivenANewStreamStart_WhenFramesFollow_ThenTheyAreANewSourcesFromZero) {
  play();
  start_stream("first");
  for (int i = 0; i < 3; ++i) {
    const BufferPtr out = through(make_frame(pts(i)));
    EXPECT_EQ(read_analysis(out.get())->result.frame, std::uint64_t(i));
    EXPECT_EQ(read_analysis(out.get())->result.source, "first");
  }
  start_stream("second");
  const BufferPtr out = through(make_frame(pts(3)));
  EXPECT_EQ(read_analysis(out.get())->result.frame, 0u);
  EXPECT_EQ(read_analysis(out.get())->result.source, "second");
}

TEST_P(V06, GivenTheSameStreamStartAgain_WhenFramesFollow_ThenTheSourceGoesOn) {
  play();
  start_stream("first");
  through(make_frame(pts(0)));
  start_stream("first");
  const BufferPtr out = through(make_frame(pts(1)));
  EXPECT_EQ(read_analysis(out.get())->result.frame, 1u);
}

TEST_P(V06, GivenANewStreamStart_WhenFramesFollow_ThenOnePreprocessorIsMadeAndNoneForTheSame) {
  play({"policy=latency"});
  start_stream("first");
  through(make_frame(pts(0)));
  EXPECT_EQ(stat("preprocessors"), 1u);
  start_stream("first");
  through(make_frame(pts(1)));
  EXPECT_EQ(stat("preprocessors"), 1u);
  start_stream("second");
  for (int i = 2; i < 5; ++i) through(make_frame(pts(i)));
  EXPECT_EQ(stat("preprocessors"), 2u);
}

TEST_P(V06, GivenTwoElementsWithOneModel_WhenOneBeginsANewStream_ThenTheOthersIsUntouched) {
  play({"policy=latency", "model-instance=m"});
  through(make_frame(pts(0)));
  const ContextPtr shared(gst_element_get_context(element_, kInferenceContext));
  const GstPtr<GstElement> other = make_element({"policy=latency", "model-instance=m"});
  gst_element_set_context(other.get(), shared.get());
  const HarnessPtr harness(gst_harness_new_with_element(other.get(), "sink", "src"));
  gst_harness_set_src_caps_str(harness.get(), caps().c_str());
  const auto through_other = [&] {
    EXPECT_EQ(gst_harness_push(harness.get(), make_frame(pts(0)).release()), GST_FLOW_OK);
    const BufferPtr out(gst_harness_pull(harness.get()));
  };
  through_other();
  EXPECT_EQ(stat("preprocessors"), 2u);
  start_stream("another");
  through(make_frame(pts(1)));
  EXPECT_EQ(stat("preprocessors"), 3u);
  through_other();
  through(make_frame(pts(2)));
  EXPECT_EQ(stat("preprocessors"), 3u);
}

TEST_P(V06, GivenAnotherDisplay_WhenAFrameHasIt_ThenOnePreprocessorIsMade) {
  play({"policy=latency"});
  const GstPtr<GObject> a(G_OBJECT(g_object_new(G_TYPE_OBJECT, nullptr)));
  const GstPtr<GObject> b(G_OBJECT(g_object_new(G_TYPE_OBJECT, nullptr)));
  guint64 made = 0;
  for (GObject* display : {a.get(), b.get(), a.get()}) {
    // System memory has no display, so nothing changes there.
    if (is_sim() || made == 0) ++made;
    for (int i = 0; i < 2; ++i) {
      through(make_frame(pts(i), "NV12", kFrameSide, kFrameSide, 0, display));
      EXPECT_EQ(stat("preprocessors"), made);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, V06, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V06, Values("sim"));

// ---- G01 ----

class G01 : public Frames {};

TEST_P(G01, GivenKnownObjects_WhenReadWithTheStockApi_ThenBoxesLabelsAndConfidencesAreRight) {
  for (const std::string& format : formats()) {
    play();
    const CapsPtr wanted(gst_caps_from_string(caps(format).c_str()));
    gst_harness_push_event(harness_.get(), gst_event_new_caps(wanted.get()));
    const BufferPtr out = through(make_frame(pts(0), format));
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out.get());
    ASSERT_NE(meta, nullptr);
    const auto& expected = expected_boxes();
    ASSERT_EQ(gst_analytics_relation_get_length(meta), expected.size());
    gpointer state = nullptr;
    GstAnalyticsODMtd object;
    for (const ExpectedBox& box : expected) {
      ASSERT_TRUE(gst_analytics_relation_meta_iterate(meta, &state,
                                                      gst_analytics_od_mtd_get_mtd_type(),
                                                      reinterpret_cast<GstAnalyticsMtd*>(&object)));
      gint x = 0, y = 0, width = 0, height = 0;
      gfloat confidence = 0;
      ASSERT_TRUE(gst_analytics_od_mtd_get_location(&object, &x, &y, &width, &height, &confidence));
      EXPECT_STREQ(g_quark_to_string(gst_analytics_od_mtd_get_obj_type(&object)), box.label);
      EXPECT_NEAR(x, box.x, 1);
      EXPECT_NEAR(y, box.y, 1);
      EXPECT_NEAR(width, box.width, 1);
      EXPECT_NEAR(height, box.height, 1);
      EXPECT_NEAR(confidence, box.confidence, 0.01);
    }
  }
}

TEST_P(G01, GivenAThresholdAboveAll_WhenInferred_ThenTheFrameSaysNothingFound) {
  play({"threshold=0.95"});
  const BufferPtr out = through(make_frame(pts(0)));
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out.get());
  ASSERT_NE(meta, nullptr);
  EXPECT_EQ(gst_analytics_relation_get_length(meta), 0u);
  ASSERT_NE(read_analysis(out.get()), nullptr);
  EXPECT_TRUE(read_analysis(out.get())->result.objects.empty());
}

TEST_P(G01, GivenOtherLabels_WhenInferred_ThenObjectsHaveThem) {
  play({"labels=lion, wolf"});
  const BufferPtr out = through(make_frame(pts(0)));
  ASSERT_EQ(read_analysis(out.get())->result.objects.size(), 2u);
  EXPECT_EQ(read_analysis(out.get())->result.objects[0].label, "lion");
  EXPECT_EQ(read_analysis(out.get())->result.objects[1].label, "wolf");
}

INSTANTIATE_TEST_SUITE_P(cpu, G01, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, G01, Values("sim"));

// ---- Order and interval ----

class FrameOrder : public Frames {};

TEST_P(FrameOrder, GivenAnInterval_WhenFramesPass_ThenOrderIsKeptAndEveryNthIsInferred) {
  play({"interval=3"});
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(gst_harness_push(harness_.get(), make_frame(pts(i)).release()), GST_FLOW_OK);
  }
  for (int i = 0; i < 10; ++i) {
    const BufferPtr out = pull();
    EXPECT_EQ(GST_BUFFER_PTS(out.get()), pts(i));
    const Analysis* analysis = read_analysis(out.get());
    ASSERT_EQ(analysis != nullptr, i % 3 == 0) << i;
    if (analysis != nullptr) {
      EXPECT_EQ(analysis->result.frame, std::uint64_t(i));
    }
  }
  EXPECT_EQ(stat("frames"), 10u);
  EXPECT_EQ(stat("inferred"), 4u);
}

// Frames of `sim` have the default layout, as its allocator makes them.
class FrameLayout : public Frames {};

TEST_P(FrameLayout, GivenAPlaneWithStrideAndOffsets_WhenInferred_ThenTheVideoMetaIsHonoured) {
  play();
  // Planes in memories of their own, with strides beyond the width.
  const gsize offsets[] = {0, 160 * kFrameSide};
  const gint strides[] = {160, 192};
  BufferPtr in(gst_buffer_new());
  gst_buffer_append_memory(in.get(), gst_allocator_alloc(nullptr, 160 * kFrameSide, nullptr));
  gst_buffer_append_memory(in.get(), gst_allocator_alloc(nullptr, 192 * kFrameSide / 2, nullptr));
  gst_buffer_add_video_meta_full(in.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_NV12,
                                 kFrameSide, kFrameSide, 2, offsets, strides);
  const auto before = memories(in.get());
  const BufferPtr out = through(std::move(in));
  EXPECT_EQ(memories(out.get()), before);
  EXPECT_EQ(read_analysis(out.get())->result.objects.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(cpu, FrameLayout, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(cpu, FrameOrder, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, FrameOrder, Values("sim"));

}  // namespace
}  // namespace penstock::gst
