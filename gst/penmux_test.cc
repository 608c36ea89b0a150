// SPDX-License-Identifier: Apache-2.0
//
// penmux and pendemux between stock elements: what goes in comes out, in the memory it was in.
#include "gst/penmux.h"

#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gst/batch_container.h"
#include "gst/gst_ptr.h"
#include "gst/testing/element_properties.h"
#include "gst/testing/lifecycle_fixture.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

constexpr GstClockTime kPatience = 20 * GST_SECOND;

/// A pipeline that is stopped and let go of at the end.
struct StopPipeline {
  void operator()(GstElement* pipeline) const {
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
  }
};
using PipelinePtr = std::unique_ptr<GstElement, StopPipeline>;

PipelinePtr parse(const std::string& text) {
  GError* error = nullptr;
  PipelinePtr pipeline(gst_parse_launch(text.c_str(), &error));
  EXPECT_EQ(error, nullptr) << error->message;
  g_clear_error(&error);
  return pipeline;
}

GstPtr<GstElement> part(const PipelinePtr& pipeline, const char* name) {
  return GstPtr<GstElement>(gst_bin_get_by_name(GST_BIN(pipeline.get()), name));
}

/// "eos", or the error's text.
std::string await_end(const PipelinePtr& pipeline) {
  const GstPtr<GstBus> bus(gst_element_get_bus(pipeline.get()));
  const GstPtr<GstMessage> message(gst_bus_timed_pop_filtered(
      bus.get(), kPatience, static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR)));
  if (message == nullptr) return "nothing";
  if (GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_EOS) return "eos";
  GError* error = nullptr;
  gst_message_parse_error(message.get(), &error, nullptr);
  std::string text = error->message;
  g_error_free(error);
  return text;
}

/// What passes a pad.
struct Passed {
  std::vector<GstMemory*> memories;
  std::vector<GstClockTime> times;
  std::vector<std::string> stream_ids;
  std::vector<std::string> caps;
  bool all_writable = true;
  bool ended = false;
};

class Passing {
 public:
  void watch(GstPad* pad, const std::string& name) {
    auto* where = new std::pair<Passing*, std::string>(this, name);
    gst_pad_add_probe(pad,
                      static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER |
                                                   GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
                      note, where, [](gpointer data) {
                        delete static_cast<std::pair<Passing*, std::string>*>(data);
                      });
  }
  Passed at(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return passed_[name];
  }

 private:
  static GstPadProbeReturn note(GstPad*, GstPadProbeInfo* info, gpointer data) {
    auto& [self, name] = *static_cast<std::pair<Passing*, std::string>*>(data);
    const std::lock_guard lock(self->mutex_);
    Passed& passed = self->passed_[name];
    if ((GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) != 0) {
      GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
      passed.memories.push_back(gst_buffer_peek_memory(buffer, 0));
      passed.times.push_back(GST_BUFFER_PTS(buffer));
      passed.all_writable = passed.all_writable && gst_buffer_is_writable(buffer);
    } else {
      note_event(passed, GST_PAD_PROBE_INFO_EVENT(info));
    }
    return GST_PAD_PROBE_OK;
  }
  static void note_event(Passed& passed, GstEvent* event) {
    if (GST_EVENT_TYPE(event) == GST_EVENT_STREAM_START) {
      const gchar* id = nullptr;
      gst_event_parse_stream_start(event, &id);
      passed.stream_ids.emplace_back(id);
    } else if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS) {
      GstCaps* caps = nullptr;
      gst_event_parse_caps(event, &caps);
      gchar* text = gst_caps_to_string(caps);
      passed.caps.emplace_back(text);
      g_free(text);
    } else if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) {
      passed.ended = true;
    }
  }

  std::mutex mutex_;
  std::map<std::string, Passed> passed_;
};

std::string source(int number, int frames, int width) {
  return str_format(
      "videotestsrc name=source{0} num-buffers={1} ! "
      "video/x-raw,format=NV12,width={2},height=64,framerate=25/1 ! identity name=in{0} ! "
      "m.sink_{0} ",
      number, frames, width);
}

std::string sink(int number) {
  return str_format("d.src_{0} ! identity name=out{0} ! fakesink sync=false async=false ", number);
}

TEST(V04_Mux, GivenSourcesOfOtherSizesAndLengths_WhenMuxedAndDemuxed_ThenEachFrameComesOutAsItWas) {
  const PipelinePtr pipeline =
      parse("penmux name=m ! pendemux name=d " + source(0, 20, 64) + source(1, 7, 128) +
            source(2, 13, 96) + sink(0) + sink(1) + sink(2));
  Passing passing;
  for (int i = 0; i < 3; ++i) {
    for (const char* side : {"in", "out"}) {
      const std::string name = str_format("{}{}", side, i);
      const auto element = part(pipeline, name.c_str());
      const GstPtr<GstPad> pad(gst_element_get_static_pad(element.get(), "sink"));
      passing.watch(pad.get(), name);
    }
  }
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  EXPECT_EQ(await_end(pipeline), "eos");
  for (int i = 0; i < 3; ++i) {
    const Passed in = passing.at(str_format("in{}", i));
    const Passed out = passing.at(str_format("out{}", i));
    EXPECT_EQ(in.memories.size(), std::vector<std::size_t>({20, 7, 13})[std::size_t(i)]);
    EXPECT_EQ(out.memories, in.memories);
    EXPECT_EQ(out.times, in.times);
    EXPECT_EQ(out.stream_ids, in.stream_ids);
    EXPECT_EQ(out.caps, in.caps);
    EXPECT_TRUE(out.all_writable) << "nobody else holds a frame that has left its container";
    EXPECT_TRUE(out.ended);
  }
}

TEST(V04_Mux, GivenATeeBehindIt_WhenDemuxedTwice_ThenBothHaveTheFramesInTheirMemory) {
  const PipelinePtr pipeline = parse(
      "penmux name=m ! tee name=t  t. ! queue ! pendemux name=d  t. ! queue ! pendemux name=e " +
      source(0, 20, 64) + sink(0) +
      "e.src_0 ! identity name=out1 ! fakesink sync=false async=false");
  Passing passing;
  for (const char* name : {"in0", "out0", "out1"}) {
    const auto element = part(pipeline, name);
    const GstPtr<GstPad> pad(gst_element_get_static_pad(element.get(), "sink"));
    passing.watch(pad.get(), name);
  }
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  EXPECT_EQ(await_end(pipeline), "eos");
  EXPECT_EQ(passing.at("in0").memories.size(), 20u);
  EXPECT_EQ(passing.at("out0").memories, passing.at("in0").memories);
  EXPECT_EQ(passing.at("out1").memories, passing.at("in0").memories);
}

/// penmux alone, its streams fed by the test.
class MuxHarness : public ::testing::Test {
 protected:
  void make(const std::vector<std::pair<const char*, guint64>>& properties = {}) {
    mux_.reset(GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("penmux", nullptr))));
    g_object_set(mux_.get(), "max-wait", guint64{0}, nullptr);
    for (const auto& [name, value] : properties) {
      g_object_set(mux_.get(), name, value, nullptr);
    }
    first_.reset(gst_harness_new_with_element(mux_.get(), "sink_0", "src"));
  }
  /// A harness with a source pad for another stream of the mux.
  HarnessPtr add(const char* name) {
    return HarnessPtr(gst_harness_new_with_element(mux_.get(), name, nullptr));
  }
  static void begin(const HarnessPtr& harness, int width = 64, const char* rate = "25/1") {
    const std::string caps =
        str_format("video/x-raw,format=NV12,width={},height=64,framerate={}", width, rate);
    gst_harness_set_src_caps_str(harness.get(), caps.c_str());
  }
  static void push(const HarnessPtr& harness, GstClockTime pts) {
    BufferPtr buffer(gst_buffer_new_allocate(nullptr, 64 * 96, nullptr));
    GST_BUFFER_PTS(buffer.get()) = pts;
    EXPECT_EQ(gst_harness_push(harness.get(), buffer.release()), GST_FLOW_OK);
  }
  /// Objects in the next container, by stream.
  std::vector<std::size_t> pull() {
    BufferPtr container(gst_harness_pull(first_.get()));
    std::vector<std::size_t> counts;
    if (container == nullptr) return counts;
    times_.push_back(GST_BUFFER_PTS(container.get()));
    EXPECT_EQ(gst_buffer_n_memory(container.get()), 0u);
    auto streams = take_container(std::move(container));
    if (!streams) return counts;
    for (const ContainerStream& stream : *streams) counts.push_back(stream.objects.size());
    return counts;
  }
  /// Caps events behind it since the last call.
  int caps_events() {
    int count = 0;
    while (GstEvent* raw = gst_harness_try_pull_event(first_.get())) {
      const EventPtr event(raw);
      count += GST_EVENT_TYPE(raw) == GST_EVENT_CAPS;
    }
    return count;
  }
  guint64 stat(const char* name) {
    GstStructure* stats = nullptr;
    g_object_get(mux_.get(), "stats", &stats, nullptr);
    const GstPtr<GstStructure> owned(stats);
    guint64 value = 0;
    guint small = 0;
    if (gst_structure_get_uint64(stats, name, &value)) return value;
    EXPECT_TRUE(gst_structure_get_uint(stats, name, &small)) << name;
    return small;
  }

  using Counts = std::vector<std::size_t>;
  GstPtr<GstElement> mux_;
  HarnessPtr first_;
  std::vector<GstClockTime> times_;
};
using L01_Mux = MuxHarness;
using L03_Mux = MuxHarness;
using L05_Mux = MuxHarness;

TEST_F(MuxHarness, GivenStreams_WhenMuxed_ThenCapsNameEachStreamsInItsPlace) {
  make();
  begin(first_);
  push(first_, 0);
  EXPECT_EQ(pull(), Counts{1});
  const auto caps = [this] {
    const GstPtr<GstPad> pad(gst_element_get_static_pad(mux_.get(), "src"));
    const CapsPtr now(gst_pad_get_current_caps(pad.get()));
    gchar* text = gst_caps_to_string(now.get());
    std::string copy = text;
    g_free(text);
    return copy;
  };
  EXPECT_TRUE(caps().starts_with(
      "multistream/x-analytics-batch(meta:GstAnalyticsBatchMeta), streams=(caps)< "))
      << caps();
  const HarnessPtr second = add("sink_1");
  begin(second, 128);
  push(second, 40 * GST_MSECOND);
  EXPECT_EQ(pull(), (Counts{0, 1}));
  EXPECT_NE(caps().find("width=(int)64"), std::string::npos) << caps();
  EXPECT_LT(caps().find("width=(int)64"), caps().find("width=(int)128")) << caps();
}

TEST_F(L05_Mux, GivenStreamsThatStayAsTheyAre_WhenMuxed_ThenCapsAreSaidOnceAndAgainWhenOneChanges) {
  make();
  begin(first_);
  const HarnessPtr second = add("sink_1");
  begin(second);
  push(first_, 0);
  EXPECT_EQ(pull(), (Counts{1, 0}));
  EXPECT_EQ(caps_events(), 1);
  push(second, 0);
  EXPECT_EQ(pull(), (Counts{0, 1}));
  EXPECT_EQ(caps_events(), 0);
  begin(second, 128);
  push(second, 40 * GST_MSECOND);
  EXPECT_EQ(pull(), (Counts{0, 1}));
  EXPECT_EQ(caps_events(), 1);
  begin(second, 64);
  push(second, 80 * GST_MSECOND);
  EXPECT_EQ(pull(), (Counts{0, 1}));
  EXPECT_EQ(caps_events(), 1);
}

TEST_F(MuxHarness, GivenAStreamThatComesAndGoes_WhenPlaying_ThenTheOthersGoOn) {
  make();
  begin(first_);
  push(first_, 0);
  EXPECT_EQ(pull(), Counts{1});
  for (int round = 1; round <= 3; ++round) {
    HarnessPtr other = add("sink_7");
    begin(other, 128);
    push(other, 0);
    EXPECT_EQ(pull(), (Counts{0, 1}));
    other.reset();  // Releases the pad.
    EXPECT_EQ(pull(), (Counts{0, 1})) << "its end";
    push(first_, round * 40 * GST_MSECOND);
    EXPECT_EQ(pull(), Counts{1});
  }
  EXPECT_EQ(stat("streams"), 1u);
  EXPECT_EQ(stat("frames"), 7u);
  EXPECT_EQ(stat("waiting"), 0u);
}

TEST_F(MuxHarness, GivenMaxStreams_WhenAnotherPadIsAsked_ThenThereIsNone) {
  make({{"max-streams", 2}});
  const HarnessPtr second = add("sink_1");
  EXPECT_EQ(gst_element_request_pad_simple(mux_.get(), "sink_%u"), nullptr);
  EXPECT_EQ(gst_element_request_pad_simple(mux_.get(), "sink_2"), nullptr);
}

TEST_F(MuxHarness, GivenAnUnnamedPad_WhenAsked_ThenItHasTheNextNumber) {
  make();
  const HarnessPtr fifth = add("sink_5");
  GstPad* pad = gst_element_request_pad_simple(mux_.get(), "sink_%u");
  ASSERT_NE(pad, nullptr);
  EXPECT_STREQ(GST_OBJECT_NAME(pad), "sink_6");
  gst_element_release_request_pad(mux_.get(), pad);
  gst_object_unref(pad);
}

TEST_F(L05_Mux, GivenLiveAndFileSources_WhenAsked_ThenTheWaitIsInTheLatency) {
  make({{"max-wait", 30 * GST_MSECOND}, {"queue-depth", 3}});
  begin(first_);
  gst_harness_set_upstream_latency(first_.get(), 70 * GST_MSECOND);
  const HarnessPtr file = add("sink_1");
  gst_harness_set_live(file.get(), FALSE);
  begin(file);
  const HarnessPtr slow = add("sink_2");
  gst_harness_set_upstream_latency(slow.get(), 90 * GST_MSECOND);
  begin(slow, 64, "10/1");
  EXPECT_EQ(gst_harness_query_latency(first_.get()), 120 * GST_MSECOND);
}

TEST_F(L05_Mux, GivenALiveSourceWithoutAFrameRate_WhenAsked_ThenItsMaximumIsPassedOn) {
  for (const auto& [rate, maximum] :
       {std::pair{"25/1", (70 + 3 * 40) * GST_MSECOND}, {"0/1", 70 * GST_MSECOND}}) {
    make({{"max-wait", 30 * GST_MSECOND}, {"queue-depth", 3}});
    gst_harness_set_upstream_latency(first_.get(), 70 * GST_MSECOND);
    gst_pad_add_probe(
        first_->srcpad, GST_PAD_PROBE_TYPE_QUERY_BOTH,
        [](GstPad*, GstPadProbeInfo* info, gpointer) {
          GstQuery* query = GST_PAD_PROBE_INFO_QUERY(info);
          if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY) return GST_PAD_PROBE_OK;
          gst_query_set_latency(query, TRUE, 70 * GST_MSECOND, 70 * GST_MSECOND);
          return GST_PAD_PROBE_HANDLED;
        },
        nullptr, nullptr);
    begin(first_, 64, rate);
    const GstPtr<GstPad> pad(gst_element_get_static_pad(mux_.get(), "src"));
    const GstPtr<GstQuery> query(gst_query_new_latency());
    ASSERT_TRUE(gst_pad_query(pad.get(), query.get()));
    GstClockTime minimum = 0, most = 0;
    gst_query_parse_latency(query.get(), nullptr, &minimum, &most);
    EXPECT_EQ(minimum, 100 * GST_MSECOND) << rate;
    EXPECT_EQ(most, maximum) << rate;
  }
}

TEST_F(L05_Mux, GivenASourceThatIsNotLive_WhenAsked_ThenNothingIsAdded) {
  make({{"max-wait", 30 * GST_MSECOND}});
  gst_harness_set_live(first_.get(), FALSE);
  begin(first_);
  EXPECT_EQ(gst_harness_query_latency(first_.get()), 0u);
}

TEST_F(L05_Mux, GivenADecoder_WhenItAsksForMemory_ThenTheFramesThatMayBeHeldAreInTheReply) {
  make({{"queue-depth", 5}});
  begin(first_);
  const CapsPtr caps(
      gst_caps_from_string("video/x-raw,format=NV12,width=64,height=64,framerate=25/1"));
  const GstPtr<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
  ASSERT_TRUE(gst_pad_peer_query(first_->srcpad, query.get()));
  ASSERT_EQ(gst_query_get_n_allocation_pools(query.get()), 1u);
  guint minimum = 0;
  gst_query_parse_nth_allocation_pool(query.get(), 0, nullptr, nullptr, &minimum, nullptr);
  EXPECT_GE(minimum, 7u);
  EXPECT_TRUE(gst_query_find_allocation_meta(query.get(), GST_VIDEO_META_API_TYPE, nullptr));
}

TEST_F(MuxHarness, GivenNobodyBehindIt_WhenFramesCome_ThenUpstreamHearsSoAndALinkMendsIt) {
  make();
  begin(first_);
  push(first_, 0);
  EXPECT_EQ(pull(), Counts{1});
  const GstPtr<GstPad> src(gst_element_get_static_pad(mux_.get(), "src"));
  const GstPtr<GstPad> peer(gst_pad_get_peer(src.get()));
  ASSERT_TRUE(gst_pad_unlink(src.get(), peer.get()));
  GstFlowReturn flow = GST_FLOW_OK;
  for (int i = 1; i < 10 && flow == GST_FLOW_OK; ++i) {
    BufferPtr buffer(gst_buffer_new());
    GST_BUFFER_PTS(buffer.get()) = i * GST_MSECOND;
    flow = gst_harness_push(first_.get(), buffer.release());
  }
  EXPECT_EQ(flow, GST_FLOW_NOT_LINKED);
  ASSERT_EQ(gst_pad_link(src.get(), peer.get()), GST_PAD_LINK_OK);
  push(first_, 40 * GST_MSECOND);
  EXPECT_EQ(pull(), Counts{1});
  EXPECT_EQ(times_.back(), 40 * GST_MSECOND);
}

TEST_F(L03_Mux, GivenFullQueues_WhenStopped_ThenWhoWaitsIsLetGo) {
  make({{"queue-depth", 1}});
  begin(first_);
  const HarnessPtr second = add("sink_1");
  begin(second);
  for (int i = 0; i < 5; ++i) push(first_, i * GST_MSECOND);
  EXPECT_EQ(gst_element_set_state(mux_.get(), GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
  EXPECT_EQ(gst_element_set_state(mux_.get(), GST_STATE_PLAYING), GST_STATE_CHANGE_SUCCESS);
}

TEST_F(L03_Mux, GivenADownstreamThatWaits_WhenAStreamThatAsksForMemoryIsFlushed_ThenItIsLetGo) {
  make();
  begin(first_);
  const HarnessPtr second = add("sink_1");
  begin(second);
  const GstPtr<GstPad> src(gst_element_get_static_pad(mux_.get(), "src"));
  std::atomic<bool> waits{false};
  const gulong block = gst_pad_add_probe(
      src.get(), static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER),
      [](GstPad*, GstPadProbeInfo*, gpointer flag) {
        *static_cast<std::atomic<bool>*>(flag) = true;
        return GST_PAD_PROBE_OK;
      },
      &waits, nullptr);
  push(first_, 0);
  EXPECT_TRUE(eventually([&] { return waits.load(); }));
  auto asked = std::async(std::launch::async, [&] {
    const CapsPtr caps(gst_caps_from_string("video/x-raw,format=NV12,width=64,height=64"));
    const GstPtr<GstQuery> query(gst_query_new_allocation(caps.get(), TRUE));
    gst_pad_peer_query(second->srcpad, query.get());
  });
  // Who asks holds the stream lock meanwhile.
  const GstPtr<GstPad> sink(gst_pad_get_peer(second->srcpad));
  EXPECT_TRUE(eventually([&] {
    if (!g_rec_mutex_trylock(GST_PAD_GET_STREAM_LOCK(sink.get()))) return true;
    GST_PAD_STREAM_UNLOCK(sink.get());
    return false;
  }));
  gst_harness_push_event(second.get(), gst_event_new_flush_start());
  EXPECT_TRUE(eventually(
      [&] { return asked.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  gst_pad_remove_probe(src.get(), block);
  asked.get();
  gst_harness_push_event(second.get(), gst_event_new_flush_stop(TRUE));
  EXPECT_EQ(pull(), (Counts{1, 0}));
}

TEST_F(L01_Mux, GivenItPlays_WhenAPropertyIsSet_ThenItStaysAndAWarningSaysSo) {
  make();
  for (const GParamSpec* property : own_properties(mux_.get())) {
    if (!(property->flags & G_PARAM_WRITABLE)) continue;
    EXPECT_TRUE(property->flags & GST_PARAM_MUTABLE_READY) << property->name;
  }
  WarningTrap warnings;
  g_object_set(mux_.get(), "queue-depth", 7u, nullptr);
  EXPECT_EQ(warnings.take().size(), 1u);
  guint depth = 0;
  g_object_get(mux_.get(), "queue-depth", &depth, nullptr);
  EXPECT_EQ(depth, 2u);
}

ContainerStream stream(const char* id, bool with_caps = true) {
  ContainerStream made;
  if (id != nullptr) made.sticky.emplace_back(gst_event_new_stream_start(id));
  if (with_caps) {
    const CapsPtr caps(gst_caps_from_string("video/x-raw,format=NV12,width=64,height=64"));
    made.sticky.emplace_back(gst_event_new_caps(caps.get()));
  }
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  made.sticky.emplace_back(gst_event_new_segment(&segment));
  made.objects.emplace_back(GST_MINI_OBJECT_CAST(gst_buffer_new()));
  return made;
}

struct Hostile {
  const char* name;
  BufferPtr (*make)();
  const char* error;
};

template <typename... Streams>
BufferPtr container_of(Streams... streams) {
  std::vector<ContainerStream> all;
  (all.push_back(std::move(streams)), ...);
  return make_container(std::move(all));
}

const Hostile kHostile[] = {
    {"NoContainer", [] { return BufferPtr(gst_buffer_new()); }, "no GstAnalyticsBatchMeta"},
    {"NoStreamStart", [] { return container_of(stream(nullptr)); },
     "stream 0 of the container, '', has no stream-start"},
    {"NoCaps", [] { return container_of(stream("a"), stream("b", false)); },
     "stream 1 of the container, 'b', has no caps"},
    {"TwoOfOneId", [] { return container_of(stream("a"), stream("a")); },
     "stream 1 of the container, 'a', has the id of another"},
    {"NoObject",
     [] {
       BufferPtr made = container_of(stream("a"));
       GstAnalyticsBatchStream& first = gst_buffer_get_analytics_batch_meta(made.get())->streams[0];
       gst_mini_object_unref(std::exchange(first.objects[0], nullptr));
       first.n_objects = 1;
       return made;
     },
     "stream 0 of the container lacks an object"},
    {"AQuery",
     [] {
       BufferPtr made = container_of(stream("a"));
       GstAnalyticsBatchStream& first = gst_buffer_get_analytics_batch_meta(made.get())->streams[0];
       gst_mini_object_unref(
           std::exchange(first.objects[0], GST_MINI_OBJECT_CAST(gst_query_new_drain())));
       return made;
     },
     "stream 0 of the container has what is neither frame nor event"},
    {"NoArray",
     [] {
       BufferPtr made = container_of(stream("a"));
       GstAnalyticsBatchStream& first = gst_buffer_get_analytics_batch_meta(made.get())->streams[0];
       gst_mini_object_unref(first.objects[0]);
       g_free(static_cast<gpointer>(std::exchange(first.objects, nullptr)));
       return made;
     },
     "stream 0 of the container lacks its objects"},
    {"TooManyStreams",
     [] {
       std::vector<ContainerStream> streams;
       for (std::size_t i = 0; i <= kMostContainerStreams; ++i) {
         streams.push_back(stream(std::to_string(i).c_str()));
       }
       return make_container(std::move(streams));
     },
     "the container has 1025 streams, more than 1024"},
};

class HostileContainer : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileContainer, GivenIt_WhenDemuxed_ThenOneErrorSaysWhatIsWrong) {
  const HarnessPtr harness(gst_harness_new_with_padnames("pendemux", "sink", nullptr));
  const GstPtr<GstBus> bus(gst_bus_new());
  gst_element_set_bus(harness->element, bus.get());
  gst_harness_set_src_caps_str(harness.get(),
                               "multistream/x-analytics-batch(meta:GstAnalyticsBatchMeta)");
  BufferPtr container = GetParam().make();
  EXPECT_EQ(gst_harness_push(harness.get(), gst_buffer_ref(container.get())), GST_FLOW_ERROR);
  const std::vector<std::string> errors = take_errors(bus.get());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find(GetParam().error), std::string::npos) << errors[0];
  gst_element_set_bus(harness->element, nullptr);
  // As nobody frees what is said to be there and isn't.
  GstAnalyticsBatchMeta* meta = gst_buffer_get_analytics_batch_meta(container.get());
  if (meta == nullptr || meta->n_streams == 0) return;
  GstAnalyticsBatchStream& first = meta->streams[0];
  if (first.objects == nullptr || first.objects[0] == nullptr) first.n_objects = 0;
}
INSTANTIATE_TEST_SUITE_P(PenDemux, HostileContainer, ::testing::ValuesIn(kHostile),
                         [](const auto& tested) { return tested.param.name; });

TEST(PenDemux, GivenContainersOfOthers_WhenDemuxed_ThenPadsAreNumberedAsStreamsCome) {
  const HarnessPtr harness(gst_harness_new_with_padnames("pendemux", "sink", nullptr));
  gst_harness_set_src_caps_str(harness.get(),
                               "multistream/x-analytics-batch(meta:GstAnalyticsBatchMeta)");
  const auto pads = [&] {
    std::vector<std::string> names;
    for (GList* pad = harness->element->srcpads; pad != nullptr; pad = pad->next) {
      names.emplace_back(GST_OBJECT_NAME(pad->data));
    }
    return names;
  };
  const auto push = [&](BufferPtr container) {
    gst_harness_push(harness.get(), container.release());
  };
  push(container_of(stream("a"), stream("b")));
  EXPECT_EQ(pads(), (std::vector<std::string>{"src_0", "src_1"}));
  push(container_of(stream("b"), stream("c")));
  EXPECT_EQ(pads(), (std::vector<std::string>{"src_1", "src_0"})) << "a is gone, b has stayed";
  push(make_container({}));
  EXPECT_TRUE(pads().empty());
}

}  // namespace
}  // namespace penstock::gst
