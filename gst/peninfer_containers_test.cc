// SPDX-License-Identifier: Apache-2.0
//
// peninfer on containers of several streams: what it takes, what becomes of the frames in them, and
// how the streams are kept apart.
#include <gmock/gmock.h>
#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gst/testing/container_fixture.h"

namespace penstock::gst {
namespace {

using ::testing::Values;

// ---- V01 ----

class V01 : public ContainerFixture {
 protected:
  void expect_refused(const CapsPtr& caps, const std::vector<std::string>& named) {
    SCOPED_TRACE(named.back());
    ASSERT_NE(caps, nullptr);
    play();
    send_caps(caps);
    EXPECT_EQ(push_container(container({})), GST_FLOW_NOT_NEGOTIATED);
    const auto said = errors();
    ASSERT_EQ(said.size(), 1u);
    for (const std::string& part : named) EXPECT_THAT(said[0], ::testing::HasSubstr(part));
    harness_.reset();
  }
};

TEST_P(V01, GivenAContainerOfTheDevicesFrames_WhenNegotiated_ThenAcceptedAndPassedOn) {
  const std::vector<std::string> streams{caps(), caps("NV12", 256, 192)};
  play_containers(streams);
  through(container_of({"a", "b"}, 0));
  const CapsPtr left(gst_pad_get_current_caps(harness_->sinkpad));
  EXPECT_TRUE(gst_caps_is_equal(left.get(), container_caps(streams).get()));
  EXPECT_TRUE(errors().empty());
}

TEST_P(V01, GivenAContainerWithAStreamOfAnotherKind_WhenNegotiated_ThenStreamAndFieldAreNamed) {
  expect_refused(container_caps({caps(), caps("P010_10LE")}), {"stream 1", "format 'P010_10LE'"});
  expect_refused(container_caps({caps("NV12", 127, 128), caps()}), {"stream 0", "width 127"});
  expect_refused(container_caps({caps(), "audio/x-raw,rate=48000"}), {"stream 1", "audio/x-raw"});
  const char* const foreign = is_sim() ? "memory:SystemMemory" : "memory:PenstockSim";
  expect_refused(
      container_caps({str_format("video/x-raw({}),format=NV12,width=128,height=128", foreign)}),
      {"stream 0", foreign});
}

TEST_P(V01, GivenAContainerWithoutItsFields_WhenNegotiated_ThenTheFieldIsNamed) {
  const auto parsed = [](const std::string& text) {
    return CapsPtr(gst_caps_from_string(text.c_str()));
  };
  expect_refused(parsed(kMedia), {"streams", "missing"});
  expect_refused(parsed("multistream/x-analytics-batch"), {"meta:GstAnalyticsBatchMeta"});
  expect_refused(parsed(std::string(kMedia) + ",streams=<1>"), {"stream 0", "caps"});
  std::vector<std::string> many(257, caps());
  expect_refused(container_caps(many), {"257", "256"});
}

INSTANTIATE_TEST_SUITE_P(cpu, V01, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V01, Values("sim"));

// ---- V04 ----

class V04 : public ContainerFixture {};

std::vector<GstMemory*> memories(GstBuffer* buffer) {
  std::vector<GstMemory*> all;
  for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) {
    all.push_back(gst_buffer_peek_memory(buffer, i));
  }
  return all;
}

TEST_P(V04, GivenAContainer_WhenInferred_ThenItAndItsFramesAreTheInputs) {
  play_containers({caps(), caps()});
  BufferPtr in = container_of({"a", "b"}, 3);
  GST_BUFFER_PTS(in.get()) = pts(3);
  GstBuffer* const same = in.get();
  GstBuffer* const frames[] = {frame_of_stream(same, 0), frame_of_stream(same, 1)};
  const std::vector<GstMemory*> before[] = {memories(frames[0]), memories(frames[1])};
  const BufferPtr out = through(std::move(in));
  EXPECT_EQ(out.get(), same);
  EXPECT_EQ(GST_BUFFER_PTS(out.get()), pts(3));
  EXPECT_EQ(gst_buffer_n_memory(out.get()), 0u);
  for (std::size_t i = 0; i < 2; ++i) {
    GstBuffer* frame = frame_of_stream(out.get(), i);
    EXPECT_EQ(frame, frames[i]) << "a frame nobody else holds needs no copy";
    EXPECT_EQ(memories(frame), before[i]);
    EXPECT_EQ(GST_BUFFER_PTS(frame), pts(3));
    ASSERT_NE(analysis_of(out.get(), i), nullptr);
    EXPECT_EQ(analysis_of(out.get(), i)->result.objects.size(), expected_boxes().size());
    EXPECT_NE(gst_buffer_get_analytics_relation_meta(frame), nullptr);
  }
  EXPECT_EQ(gst_buffer_get_analytics_relation_meta(out.get()), nullptr) << "not the container's";
}

TEST_P(V04, GivenAContainerOrAFrameThatSomebodyHolds_WhenInferred_ThenShallowCopiesAreWritten) {
  play_containers({caps(), caps()});
  for (const bool whole : {true, false}) {
    SCOPED_TRACE(whole);
    BufferPtr in = container_of({"a", "b"}, 0);
    const BufferPtr held(gst_buffer_ref(whole ? in.get() : frame_of_stream(in.get(), 1)));
    const BufferPtr original(gst_buffer_ref(frame_of_stream(in.get(), 1)));
    const auto before = memories(original.get());
    const BufferPtr out = through(std::move(in));
    EXPECT_EQ(out.get() == held.get(), false);
    GstBuffer* frame = frame_of_stream(out.get(), 1);
    EXPECT_NE(frame, original.get());
    EXPECT_EQ(memories(frame), before);
    EXPECT_NE(read_analysis(frame), nullptr);
    EXPECT_EQ(read_analysis(original.get()), nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, V04, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V04, Values("sim"));

// ---- V06 ----

class V06 : public ContainerFixture {
 protected:
  void SetUp() override {
    ContainerFixture::SetUp();
    play_containers({caps(), caps()}, {"policy=latency"});
  }
};

TEST_P(V06, GivenStreams_WhenContainersListThemInAnotherOrder_ThenEachCountsAndKeepsItsOwn) {
  BufferPtr out = through(container_of({"a", "b"}, 0));
  EXPECT_EQ(stat("preprocessors"), 2u);
  out = through(container_of({"b", "a", "c"}, 1));
  EXPECT_EQ(stat("preprocessors"), 3u);
  EXPECT_EQ(analysis_of(out.get(), 0)->result.source, "b");
  EXPECT_EQ(analysis_of(out.get(), 0)->result.frame, 1u);
  EXPECT_EQ(analysis_of(out.get(), 1)->result.source, "a");
  EXPECT_EQ(analysis_of(out.get(), 2)->result.frame, 0u) << "a stream that joined";
  out = through(container_of({"c"}, 2));
  out = through(container_of({"a", "b", "c"}, 3));
  EXPECT_EQ(analysis_of(out.get(), 1)->result.frame, 2u) << "one that was left out once";
  EXPECT_EQ(stat("preprocessors"), 3u);
  EXPECT_EQ(stat("streams"), 3u);
}

TEST_P(V06, GivenANewStreamStart_WhenItsFramesFollow_ThenThatStreamBeginsAnewAndNoOther) {
  through(container_of({"a", "b"}, 0));
  // In the place of "b", once among the sticky events and once among the objects.
  BufferPtr out = through(container_of({"a", "another"}, 1));
  EXPECT_EQ(stat("preprocessors"), 3u);
  EXPECT_EQ(analysis_of(out.get(), 0)->result.frame, 1u);
  EXPECT_EQ(analysis_of(out.get(), 1)->result.frame, 0u);
  BufferPtr mixed = container(
      {{"a", caps(), {object(make_frame(pts(2)))}},
       {"another",
        caps(),
        {object(make_frame(pts(2))), GST_MINI_OBJECT_CAST(gst_event_new_stream_start("third")),
         object(make_frame(pts(3)))}}});
  out = through(std::move(mixed));
  EXPECT_EQ(analysis_of(out.get(), 0)->result.frame, 2u);
  EXPECT_EQ(analysis_of(out.get(), 1, 0)->result.frame, 1u);
  EXPECT_EQ(analysis_of(out.get(), 1, 2)->result.source, "third");
  EXPECT_EQ(analysis_of(out.get(), 1, 2)->result.frame, 0u);
  EXPECT_EQ(stat("preprocessors"), 4u);
}

TEST_P(V06, GivenAnotherDisplayOfOneStream_WhenItsFramesHaveIt_ThenOnlyItsPreprocessorIsMadeAnew) {
  if (!is_sim()) return;  // System memory has no display.
  const GstPtr<GObject> x(G_OBJECT(g_object_new(G_TYPE_OBJECT, nullptr)));
  const GstPtr<GObject> y(G_OBJECT(g_object_new(G_TYPE_OBJECT, nullptr)));
  guint64 made = 1;
  for (GObject* display : {x.get(), y.get(), x.get()}) {
    ++made;
    for (int i = 0; i < 2; ++i) {
      const auto frame = [&](GObject* on) {
        return object(make_frame(pts(i), "NV12", kFrameSide, kFrameSide, 0, on));
      };
      through(container({{"a", caps(), {frame(display)}}, {"b", caps(), {frame(x.get())}}}));
      EXPECT_EQ(stat("preprocessors"), made);
    }
  }
}

TEST_P(V06, GivenAStreamThatIsNotListedAnyMore_WhenContainersGoOn_ThenItIsForgotten) {
  through(container_of({"a", "b"}, 0));
  for (int i = 0; i < 31; ++i) through(container_of({"a"}, 1 + i));
  EXPECT_EQ(stat("streams"), 2u);
  through(container_of({"a"}, 32));
  EXPECT_EQ(stat("streams"), 1u);
  const BufferPtr out = through(container_of({"b", "a"}, 33));
  EXPECT_EQ(analysis_of(out.get(), 0)->result.frame, 0u);
  EXPECT_EQ(analysis_of(out.get(), 1)->result.frame, 33u);
  EXPECT_EQ(stat("preprocessors"), 3u);
}

TEST_P(V06, GivenStreamsThatComeAndGo_WhenThereAreMoreThanTheLimit_ThenTheLongestAbsentGoes) {
  for (int i = 0; i < 300; i += 12) {
    std::vector<ContainerPart> parts;
    for (int k = 0; k < 12; ++k) parts.push_back({str_format("s{}", i + k), caps(), {}});
    through(container(parts));
  }
  EXPECT_EQ(stat("streams"), 256u);
}

INSTANTIATE_TEST_SUITE_P(cpu, V06, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V06, Values("sim"));

// ---- What is in a container ----

class ContainerContents : public ContainerFixture {};

TEST_P(ContainerContents, GivenStreamsOfDifferentSizes_WhenInferred_ThenBoxesAreInTheirOwnPixels) {
  play_containers({caps(), caps("NV12", 256, 192)});
  const BufferPtr out = through(
      container({{"a", caps(), {object(make_frame(0))}},
                 {"b", caps("NV12", 256, 192), {object(make_frame(0, "NV12", 256, 192))}}}));
  const float scales[2][2] = {{1, 1}, {256.0f / kFrameSide, 192.0f / kFrameSide}};
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& objects = analysis_of(out.get(), i)->result.objects;
    ASSERT_EQ(objects.size(), expected_boxes().size());
    for (std::size_t k = 0; k < objects.size(); ++k) {
      const ExpectedBox& box = expected_boxes()[k];
      EXPECT_NEAR(objects[k].x, static_cast<float>(box.x) * scales[i][0], 1);
      EXPECT_NEAR(objects[k].y, static_cast<float>(box.y) * scales[i][1], 1);
      EXPECT_NEAR(objects[k].width, static_cast<float>(box.width) * scales[i][0], 1);
      EXPECT_NEAR(objects[k].height, static_cast<float>(box.height) * scales[i][1], 1);
    }
  }
}

TEST_P(ContainerContents, GivenAnInterval_WhenStreamsJoinLater_ThenItCountsTheFramesOfEach) {
  play_containers({caps(), caps()}, {"interval=3"});
  for (int i = 0; i < 9; ++i) {
    const BufferPtr out = through(i < 4 ? container_of({"a"}, i) : container_of({"a", "b"}, i));
    EXPECT_EQ(analysis_of(out.get(), 0) != nullptr, i % 3 == 0) << i;
    if (i >= 4) {
      EXPECT_EQ(analysis_of(out.get(), 1) != nullptr, (i - 4) % 3 == 0) << i;
    }
  }
  EXPECT_EQ(stat("frames"), 14u);
  EXPECT_EQ(stat("inferred"), 5u);
}

TEST_P(ContainerContents, GivenNoFramesButEvents_WhenPassed_ThenTheContainerLeavesAsItCame) {
  play_containers({caps(), caps()});
  through(container({}));
  GstEvent* const gap = gst_event_new_gap(pts(0), 40 * GST_MSECOND);
  GstEvent* const end = gst_event_new_eos();
  const BufferPtr out =
      through(container({{"a",
                          caps(),
                          {object(make_frame(0)), GST_MINI_OBJECT_CAST(gap),
                           object(make_frame(pts(1))), GST_MINI_OBJECT_CAST(end)}},
                         {"b", caps(), {}}}));
  EXPECT_NE(analysis_of(out.get(), 0, 0), nullptr);
  EXPECT_EQ(object_of(out.get(), 0, 1), GST_MINI_OBJECT_CAST(gap));
  EXPECT_NE(analysis_of(out.get(), 0, 2), nullptr);
  EXPECT_EQ(object_of(out.get(), 0, 3), GST_MINI_OBJECT_CAST(end));
  EXPECT_TRUE(errors().empty());
}

TEST_P(ContainerContents, GivenBufferLists_WhenInferred_ThenEachOfTheirFramesIs) {
  play_containers({caps()});
  GstBufferList* list = gst_buffer_list_new();
  for (int i = 0; i < 3; ++i) gst_buffer_list_add(list, make_frame(pts(i)).release());
  const BufferPtr out = through(container({{"a", caps(), {GST_MINI_OBJECT_CAST(list)}}}));
  GstBufferList* left = GST_BUFFER_LIST_CAST(object_of(out.get(), 0));
  ASSERT_EQ(gst_buffer_list_length(left), 3u);
  for (guint i = 0; i < 3; ++i) {
    const Analysis* analysis = read_analysis(gst_buffer_list_get(left, i));
    ASSERT_NE(analysis, nullptr);
    EXPECT_EQ(analysis->result.frame, std::uint64_t{i});
  }
}

TEST_P(ContainerContents, GivenStreamsWithoutStartOrCaps_WhenInferred_ThenIndexAndContainerTell) {
  play_containers({caps(), caps("NV12", 256, 192)});
  const BufferPtr out = through(container(
      {{"", "", {object(make_frame(0))}}, {"", "", {object(make_frame(0, "NV12", 256, 192))}}}));
  EXPECT_EQ(analysis_of(out.get(), 0)->result.source, "stream-0");
  EXPECT_EQ(analysis_of(out.get(), 1)->result.source, "stream-1");
  EXPECT_EQ(analysis_of(out.get(), 1)->result.width, 256);
}

TEST_P(ContainerContents, GivenOneIdTwice_WhenInferred_ThenTheyAreTwoStreams) {
  play_containers({caps(), caps()}, {"policy=latency"});
  for (int i = 0; i < 3; ++i) {
    const BufferPtr out = through(container_of({"a", "a"}, i));
    EXPECT_EQ(analysis_of(out.get(), 0)->result.frame, std::uint64_t(i));
    EXPECT_EQ(analysis_of(out.get(), 1)->result.frame, std::uint64_t(i));
  }
  EXPECT_EQ(stat("preprocessors"), 2u);
}

TEST_P(ContainerContents, GivenPlainVideoBehindContainers_WhenCapsChange_ThenItsFramesPassToo) {
  play_containers({caps()});
  through(container_of({"a"}, 0));
  send_caps(CapsPtr(gst_caps_from_string(caps().c_str())));
  const BufferPtr out = through(make_frame(pts(1)));
  ASSERT_NE(read_analysis(out.get()), nullptr);
  EXPECT_EQ(read_analysis(out.get())->result.frame, 0u);
  EXPECT_EQ(stat("streams"), 1u);
}

TEST_P(ContainerContents, GivenOurMuxAndDemux_WhenTwoSourcesPass_ThenAllFramesComeOutAnalysed) {
  if (is_sim()) return;  // Its frames are not made by stock sources.
  const std::string source =
      " videotestsrc num-buffers=20 ! video/x-raw,format=NV12,width=128,height=128,framerate=25/1 ";
  const std::string text = str_format(
      "penmux name=m ! peninfer model={} batch-size=2 ! pendemux name=d {} ! m.sink_0 {} ! "
      "m.sink_1 "
      "d.src_0 ! queue ! fakesink name=a async=false d.src_1 ! queue ! fakesink name=b async=false",
      model_folder().string(), source, source);
  GError* wrong = nullptr;
  const GstPtr<GstElement> pipeline(gst_parse_launch(text.c_str(), &wrong));
  ASSERT_EQ(wrong, nullptr) << wrong->message;
  struct Seen {
    std::vector<std::uint64_t> numbers;
    std::size_t objects = 0;
  } seen[2];
  for (const int i : {0, 1}) {
    const GstPtr<GstElement> sink(gst_bin_get_by_name(GST_BIN(pipeline.get()), i == 0 ? "a" : "b"));
    const GstPtr<GstPad> pad(gst_element_get_static_pad(sink.get(), "sink"));
    gst_pad_add_probe(
        pad.get(), GST_PAD_PROBE_TYPE_BUFFER,
        [](GstPad*, GstPadProbeInfo* info, gpointer data) {
          auto& stream = *static_cast<Seen*>(data);
          if (const Analysis* analysis = read_analysis(GST_PAD_PROBE_INFO_BUFFER(info))) {
            stream.numbers.push_back(analysis->result.frame);
            stream.objects += analysis->result.objects.size();
          }
          return GST_PAD_PROBE_OK;
        },
        &seen[i], nullptr);
  }
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  const GstPtr<GstBus> bus(gst_element_get_bus(pipeline.get()));
  const GstPtr<GstMessage> end(
      gst_bus_timed_pop_filtered(bus.get(), 60 * GST_SECOND,
                                 static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR)));
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(GST_MESSAGE_TYPE(end.get()), GST_MESSAGE_EOS);
  std::vector<std::uint64_t> all(20);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  for (const Seen& stream : seen) {
    EXPECT_EQ(stream.numbers, all);
    EXPECT_EQ(stream.objects, 20 * expected_boxes().size());
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, ContainerContents, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, ContainerContents, Values("sim"));

}  // namespace
}  // namespace penstock::gst
