// SPDX-License-Identifier: Apache-2.0
//
// What is held, latency, and the place of events.
#include <gmock/gmock.h>
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gst/penanalysis_meta.h"
#include "gst/testing/flow_story.h"
#include "gst/testing/lifecycle_fixture.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

using ::testing::Values;

class L05 : public Lifecycle {
 protected:
  guint promised() {
    const CapsPtr fixed(gst_caps_from_string(caps(formats().front()).c_str()));
    const GstPtr<GstQuery> query(gst_query_new_allocation(fixed.get(), TRUE));
    EXPECT_TRUE(gst_pad_peer_query(harness_->srcpad, query.get()));
    EXPECT_GE(gst_query_get_n_allocation_pools(query.get()), 1u);
    guint minimum = 0;
    gst_query_parse_nth_allocation_pool(query.get(), 0, nullptr, nullptr, &minimum, nullptr);
    return minimum;
  }
  void push_segment(int frame) {
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.start = pts(frame);
    gst_harness_push_event(harness_.get(), gst_event_new_segment(&segment));
  }

  /// Those that peninfer has posted since the last call.
  int latency_messages() {
    int count = 0;
    while (GstMessage* raw = gst_bus_pop(bus_.get())) {
      const GstPtr<GstMessage> message(raw);
      count += GST_MESSAGE_TYPE(raw) == GST_MESSAGE_LATENCY;
    }
    return count;
  }

  /// Tells the same story to a peninfer and to a GstQueue, which behaves as upstream may expect of
  /// an element with a thread of its own.
  using Story = std::function<void(Downstream&, Answers&)>;
  void expect_same_as_queue(const Story& story) {
    play();
    const std::vector<std::string> ours = answers_to(story);
    const GstPtr<GstElement> queue(
        GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("queue", nullptr))));
    gst_element_set_bus(queue.get(), bus_.get());
    harness_.reset(gst_harness_new_with_element(queue.get(), "sink", "src"));
    gst_harness_set_src_caps_str(harness_.get(), caps().c_str());
    EXPECT_EQ(ours, answers_to(story));
    harness_.reset();
  }

 private:
  std::vector<std::string> answers_to(const Story& story) {
    Downstream downstream(harness_.get());
    Answers answers(harness_.get(), [this] { return make_frame(0); });
    story(downstream, answers);
    gst_element_set_state(harness_->element, GST_STATE_NULL);
    answers.note(str_format("{} errors", errors().size()));
    return answers.log();
  }
};

TEST_P(L05, GivenTheAllocationPromise_WhenUpstreamPushesWithoutEnd_ThenNeverMoreAreAlive) {
  play({"queue-depth=3", "policy=latency"});
  const guint promise = promised();
  EXPECT_EQ(promise, 3u + 1 + 1);  // Queue, one worker, one that waits for its place.

  // Counted on the buffers themselves, from the push on.
  struct Alive {
    std::atomic<int> now{0};
    std::atomic<int> most{0};
  } alive;
  gst_harness_set_drop_buffers(harness_.get(), TRUE);
  std::vector<BufferPtr> frames;
  for (int i = 0; i < 60; ++i) {
    frames.push_back(make_frame(pts(i)));
    gst_mini_object_weak_ref(
        GST_MINI_OBJECT_CAST(frames.back().get()),
        [](gpointer counter, GstMiniObject*) { --static_cast<Alive*>(counter)->now; }, &alive);
  }
  if (sim_ != nullptr) sim_->hold_jobs(true);
  std::thread upstream([&] {
    for (BufferPtr& frame : frames) {
      alive.most = std::max(alive.most.load(), ++alive.now);
      EXPECT_EQ(gst_harness_push(harness_.get(), frame.release()), GST_FLOW_OK);
    }
    gst_harness_push_event(harness_.get(), gst_event_new_eos());
  });
  if (sim_ != nullptr) {
    EXPECT_TRUE(eventually([&] { return stat("held") == promise; }));
    EXPECT_EQ(alive.now, int(promise));
    sim_->hold_jobs(false);
  }
  upstream.join();
  ASSERT_TRUE(await_eos());
  // The one more is in downstream's hands, not in the element's.
  EXPECT_LE(alive.most, int(promise) + 1);
  EXPECT_LE(stat("held-max"), promise);
  EXPECT_TRUE(eventually([&] { return alive.now == 0; }));
}

TEST_P(L05, GivenADeepQueue_WhenUpstreamPushesWithoutEnd_ThenThePromiseIsReachedAndNotPassed) {
  play_to_hold({"queue-depth=20", "policy=latency"});
  const guint promise = promised();
  EXPECT_EQ(promise, 20u + 1 + 1);
  std::vector<BufferPtr> frames;
  for (int i = 0; i < 30; ++i) frames.push_back(make_frame(pts(i)));
  hold();
  std::thread upstream([&] {
    for (BufferPtr& frame : frames) {
      if (gst_harness_push(harness_.get(), frame.release()) != GST_FLOW_OK) return;
    }
  });
  EXPECT_TRUE(eventually([&] { return stat("held") == promise; })) << stat("held");
  gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
  upstream.join();
  EXPECT_EQ(stat("held-max"), promise);
  let_go();
}

TEST_P(L05, GivenALiveUpstream_WhenAskedForLatency_ThenRunsAndHeldFramesAreTold) {
  play({"queue-depth=4", "policy=latency"});
  gst_harness_set_live(harness_.get(), TRUE);
  gst_harness_set_upstream_latency(harness_.get(), 10 * GST_MSECOND);
  // One worker: a run of up to one frame duration, and one to wait for it.
  EXPECT_EQ(gst_harness_query_latency(harness_.get()), (10 + 2 * 40) * GST_MSECOND);
}

TEST_P(L05, GivenALiveUpstreamWithoutAFrameRate_WhenAFrameWasInferred_ThenItsRunIsInTheLatency) {
  play_to_hold({"queue-depth=4", "policy=latency"});
  gst_harness_set_live(harness_.get(), TRUE);
  gst_harness_set_upstream_latency(harness_.get(), 10 * GST_MSECOND);
  std::string untimed = caps(formats().front());
  untimed.replace(untimed.find("25/1"), 4, "0/1");
  gst_harness_set_src_caps_str(harness_.get(), untimed.c_str());
  BufferPtr frame = make_frame(pts(0));
  latency_messages();
  EXPECT_EQ(gst_harness_query_latency(harness_.get()), 10 * GST_MSECOND) << "nothing is known";
  hold();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(gst_harness_push(harness_.get(), frame.release()), GST_FLOW_OK);
  ASSERT_TRUE(eventually([&] { return stat("held") == 1u; }));
  const auto submitted = std::chrono::steady_clock::now();
  // A run takes as long as the device is held, and on `cpu` as long as the slow model does.
  while (is_sim() && std::chrono::steady_clock::now() - submitted < std::chrono::milliseconds(60)) {
    std::this_thread::yield();
  }
  let_go();
  ASSERT_NE(BufferPtr(gst_harness_pull(harness_.get())), nullptr);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(latency_messages(), 1) << "the pipeline is to ask again";
  const GstClockTime added = gst_harness_query_latency(harness_.get()) - 10 * GST_MSECOND;
  EXPECT_GE(added, 40 * GST_MSECOND);
  EXPECT_LE(double(added), 1.02 * double(std::chrono::nanoseconds(took).count()));
}

TEST_P(L05, GivenCapsOfAnotherFrameRate_WhenTheyCome_ThenThePipelineIsToldToAskAgain) {
  play({"policy=latency"});
  gst_harness_set_live(harness_.get(), TRUE);
  EXPECT_EQ(latency_messages(), 1) << "there was no frame rate before";
  gst_harness_set_src_caps_str(harness_.get(), caps("NV12", 256, 192).c_str());
  EXPECT_EQ(latency_messages(), 0) << "the size says nothing about latency";
  std::string faster = caps();
  faster.replace(faster.find("25/1"), 4, "50/1");
  gst_harness_set_src_caps_str(harness_.get(), faster.c_str());
  EXPECT_EQ(latency_messages(), 1);
  EXPECT_EQ(gst_harness_query_latency(harness_.get()), 2 * 20 * GST_MSECOND);
}

TEST_P(L05, GivenALongMaximumWait_WhenAskedForLatency_ThenItCountsWhereBatchesAreShared) {
  play({"queue-depth=2", "policy=latency", "batch-size=4", "max-wait=1000000000",
        "model-instance=m"});
  gst_harness_set_live(harness_.get(), TRUE);
  EXPECT_EQ(gst_harness_query_latency(harness_.get()), GST_SECOND + 2 * 40 * GST_MSECOND);
  // Nobody can join the batches of an element on its own, nor those of one.
  for (const std::string alone : {"model-instance=", "batch-size=1"}) {
    play({"queue-depth=2", "policy=latency", "batch-size=4", "max-wait=1000000000",
          "model-instance=m", alone});
    gst_harness_set_live(harness_.get(), TRUE);
    EXPECT_EQ(gst_harness_query_latency(harness_.get()), 2 * 40 * GST_MSECOND);
  }
}

TEST_P(L05, GivenEventsBetweenFrames_WhenTheyPass_ThenEveryOneKeepsItsPlace) {
  play();
  std::vector<std::string> seen;
  gst_pad_add_probe(
      harness_->sinkpad,
      static_cast<GstPadProbeType>(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM),
      [](GstPad*, GstPadProbeInfo* info, gpointer data) {
        auto& log = *static_cast<std::vector<std::string>*>(data);
        if (GST_PAD_PROBE_INFO_TYPE(info) & GST_PAD_PROBE_TYPE_BUFFER) {
          log.push_back(str_format(
              "frame {}", GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)) / (40 * GST_MSECOND)));
        } else {
          log.push_back(GST_EVENT_TYPE_NAME(GST_PAD_PROBE_INFO_EVENT(info)));
        }
        return GST_PAD_PROBE_OK;
      },
      &seen, nullptr);
  push(0);
  gst_harness_push_event(harness_.get(), gst_event_new_tag(gst_tag_list_new_empty()));
  push(1);
  gst_harness_push_event(harness_.get(), gst_event_new_gap(pts(2), 40 * GST_MSECOND));
  const CapsPtr larger(gst_caps_from_string(caps("NV12", 256, 192).c_str()));
  gst_harness_push_event(harness_.get(), gst_event_new_caps(larger.get()));
  gst_harness_push(harness_.get(), make_frame(pts(3), "NV12", 256, 192).release());
  push_segment(4);
  gst_harness_push(harness_.get(), make_frame(pts(4), "NV12", 256, 192).release());
  gst_harness_push_event(harness_.get(), gst_event_new_eos());
  ASSERT_TRUE(await_eos());
  // The harness's own first events passed before or after the probe was set.
  seen.erase(seen.begin(), std::find(seen.begin(), seen.end(), "frame 0"));
  EXPECT_EQ(seen, (std::vector<std::string>{"frame 0", "tag", "frame 1", "gap", "caps", "frame 3",
                                            "segment", "frame 4", "eos"}));
  EXPECT_TRUE(errors().empty());
}

TEST_P(L05, GivenCapsAndATagBehindHeldFrames_WhenFlushed_ThenTheNextFrameLeavesUnderThem) {
  play_to_hold({"queue-depth=6"});
  std::vector<BufferPtr> frames;
  for (int i = 0; i < 3; ++i) frames.push_back(make_frame(pts(i)));
  BufferPtr next = make_frame(pts(10), "NV12", 256, 192);
  hold();
  for (BufferPtr& frame : frames) {
    ASSERT_EQ(gst_harness_push(harness_.get(), frame.release()), GST_FLOW_OK);
  }
  const CapsPtr larger(gst_caps_from_string(caps("NV12", 256, 192).c_str()));
  gst_harness_push_event(harness_.get(), gst_event_new_caps(larger.get()));
  gst_harness_push_event(harness_.get(),
                         gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "behind", nullptr)));

  gst_harness_push_event(harness_.get(), gst_event_new_flush_start());
  gst_harness_push_event(harness_.get(), gst_event_new_flush_stop(TRUE));
  ASSERT_EQ(gst_harness_buffers_received(harness_.get()), 0u) << "a run ended: little was shown";
  push_segment(0);
  let_go();
  ASSERT_EQ(gst_harness_push(harness_.get(), next.release()), GST_FLOW_OK);
  const BufferPtr out(gst_harness_pull(harness_.get()));
  EXPECT_EQ(GST_BUFFER_PTS(out.get()), pts(10));
  const CapsPtr current(gst_pad_get_current_caps(harness_->sinkpad));
  EXPECT_TRUE(gst_caps_is_equal(current.get(), larger.get()));
  const EventPtr tag(gst_pad_get_sticky_event(harness_->sinkpad, GST_EVENT_TAG, 0));
  ASSERT_NE(tag, nullptr);
  GstTagList* tags = nullptr;
  gst_event_parse_tag(tag.get(), &tags);
  const gchar* title = nullptr;
  ASSERT_TRUE(gst_tag_list_peek_string_index(tags, GST_TAG_TITLE, 0, &title));
  EXPECT_STREQ(title, "behind");
  EXPECT_TRUE(errors().empty());
}

TEST_P(L05, GivenADownstreamThatRefuses_WhenFramesAndEventsFollow_ThenTheAnswersAreAQueues) {
  for (const GstFlowReturn reason :
       {GST_FLOW_EOS, GST_FLOW_NOT_LINKED, GST_FLOW_ERROR, GST_FLOW_NOT_NEGOTIATED}) {
    SCOPED_TRACE(gst_flow_get_name(reason));
    expect_same_as_queue([&](Downstream& downstream, Answers& answers) {
      downstream.answer = reason;
      answers.refused_frame();
      answers.tag();
      answers.frame();
      const CapsPtr larger(gst_caps_from_string(caps("NV12", 256, 192).c_str()));
      answers.event(gst_event_new_caps(larger.get()));
      answers.frame();
      answers.event(gst_event_new_gap(0, 40 * GST_MSECOND));
      answers.frame();
      answers.event(gst_event_new_eos());
      answers.frame();
    });
  }
}

TEST_P(L05, GivenADownstreamThatWantedNoMore_WhenASegmentBegins_ThenFramesPassAsThroughAQueue) {
  expect_same_as_queue([&](Downstream& downstream, Answers& answers) {
    downstream.answer = GST_FLOW_EOS;
    answers.refused_frame();
    const int before = downstream.frames;
    downstream.answer = GST_FLOW_OK;
    answers.segment();
    answers.frame();
    EXPECT_TRUE(eventually([&] { return downstream.frames > before; }));
  });
}

// Not told to a queue: its task may be about to pause behind the EOS when the stream starts, and
// then stays paused.
TEST_P(L05, GivenEosFromUpstream_WhenAnotherStreamStarts_ThenItsFramesPass) {
  play();
  Downstream downstream(harness_.get());
  Answers answers(harness_.get(), [this] { return make_frame(0); });
  answers.event(gst_event_new_eos());
  answers.frame();
  answers.event(gst_event_new_stream_start("another"));
  const CapsPtr same(gst_caps_from_string(caps().c_str()));
  answers.event(gst_event_new_caps(same.get()));
  answers.segment();
  answers.frame();
  EXPECT_EQ(answers.log(), (std::vector<std::string>{"eos taken", "eos", "stream-start taken",
                                                     "caps taken", "segment taken", "ok"}));
  EXPECT_TRUE(eventually([&] { return downstream.frames == 1; }));
  harness_.reset();
  EXPECT_TRUE(errors().empty());
}

TEST_P(L05, GivenASourcePadThatWasNotLinked_WhenLinkedAgain_ThenFramesPassAsThroughAQueue) {
  expect_same_as_queue([&](Downstream& downstream, Answers& answers) {
    const GstPtr<GstPad> src(gst_pad_get_peer(harness_->sinkpad));
    gst_pad_unlink(src.get(), harness_->sinkpad);
    answers.refused_frame();
    answers.tag();
    answers.segment(7);
    ASSERT_EQ(gst_pad_link(src.get(), harness_->sinkpad), GST_PAD_LINK_OK);
    answers.frame();
    EXPECT_TRUE(eventually([&] { return downstream.frames > 0; }));
    const EventPtr tag(gst_pad_get_sticky_event(harness_->sinkpad, GST_EVENT_TAG, 0));
    answers.note(tag == nullptr ? "no tag" : "tag");
    const EventPtr event(gst_pad_get_sticky_event(harness_->sinkpad, GST_EVENT_SEGMENT, 0));
    const GstSegment* segment = nullptr;
    gst_event_parse_segment(event.get(), &segment);
    answers.note(str_format("segment from {}", segment->start));
  });
}

TEST_P(L05, GivenFramesThatComeAllTheTime_WhenTheSourcePadIsRelinked_ThenUpstreamGoesOn) {
  play({"queue-depth=1"});
  gst_harness_set_drop_buffers(harness_.get(), TRUE);
  const BufferPtr frame = make_frame(0);
  std::atomic<bool> stop{false};
  std::set<GstFlowReturn> heard;
  std::thread upstream([&] {
    while (!stop) heard.insert(gst_harness_push(harness_.get(), gst_buffer_ref(frame.get())));
  });
  const GstPtr<GstPad> src(gst_pad_get_peer(harness_->sinkpad));
  for (int i = 0; i < 30; ++i) {
    const guint before = gst_harness_buffers_received(harness_.get());
    EXPECT_TRUE(eventually([&] { return gst_harness_buffers_received(harness_.get()) > before; }));
    gst_pad_unlink(src.get(), harness_->sinkpad);
    if (i % 2 == 0) std::this_thread::yield();
    ASSERT_EQ(gst_pad_link(src.get(), harness_->sinkpad), GST_PAD_LINK_OK);
  }
  const guint before = gst_harness_buffers_received(harness_.get());
  EXPECT_TRUE(eventually([&] { return gst_harness_buffers_received(harness_.get()) > before; }));
  stop = true;
  upstream.join();
  heard.erase(GST_FLOW_OK);
  heard.erase(GST_FLOW_NOT_LINKED);
  EXPECT_TRUE(heard.empty()) << gst_flow_get_name(*heard.begin());
  EXPECT_TRUE(errors().empty());
}

INSTANTIATE_TEST_SUITE_P(cpu, L05, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, L05, Values("sim"));

}  // namespace
}  // namespace penstock::gst
