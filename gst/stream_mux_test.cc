// SPDX-License-Identifier: Apache-2.0
//
// Which frames leave together, and when, under a clock that stands still.
#include "gst/stream_mux.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "gst/batch_container.h"
#include "penstock/base/clock.h"

namespace penstock::gst {
namespace {

constexpr Nanoseconds kWait = Milliseconds(20);

GstSegment time_segment(GstClockTime base = 0) {
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.base = base;
  return segment;
}

BufferPtr frame(GstClockTime pts) {
  BufferPtr buffer(gst_buffer_new());
  GST_BUFFER_PTS(buffer.get()) = pts;
  return buffer;
}

EventPtr caps_event(int width) {
  const CapsPtr caps(gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING, "NV12", "width",
                                         G_TYPE_INT, width, "height", G_TYPE_INT, 64, nullptr));
  return EventPtr(gst_event_new_caps(caps.get()));
}

/// What a container says of a stream, in short: "id(width): 40, gap, eos" with PTS in ms.
std::string tell(const ContainerStream& stream) {
  int width = 0;
  gst_structure_get_int(gst_caps_get_structure(caps_of(stream), 0), "width", &width);
  std::string text = stream_id_of(stream) + "(" + std::to_string(width) + "):";
  for (const ObjectPtr& object : stream.objects) {
    if (GST_IS_EVENT(object.get())) {
      text += std::string(" ") + GST_EVENT_TYPE_NAME(object.get());
    } else {
      text += " " + std::to_string(GST_BUFFER_PTS(object.get()) / GST_MSECOND);
    }
  }
  return text;
}

class StreamMuxTest : public ::testing::Test {
 protected:
  StreamMuxTest() { reset({}); }

  void reset(StreamMux::Options options) {
    options.clock = &clock_;
    if (options.max_wait == Nanoseconds{}) options.max_wait = kWait;
    mux_ = std::make_unique<StreamMux>(options);
    mux_->restart();
  }

  /// A stream that has said what it is.
  void begin(StreamMux::Key key, int width = 64) {
    ASSERT_TRUE(mux_->add(key, "sink_" + std::to_string(key)));
    say(key, width);
  }
  void say(StreamMux::Key key, int width, GstClockTime base = 0) {
    const GstSegment segment = time_segment(base);
    EXPECT_EQ(mux_->push_event(key, EventPtr(gst_event_new_stream_start("file"))), GST_FLOW_OK);
    EXPECT_EQ(mux_->push_event(key, caps_event(width)), GST_FLOW_OK);
    EXPECT_EQ(mux_->push_event(key, EventPtr(gst_event_new_segment(&segment))), GST_FLOW_OK);
  }
  void push(StreamMux::Key key, int milliseconds) {
    EXPECT_EQ(mux_->push_frame(key, frame(guint64(milliseconds) * GST_MSECOND)), GST_FLOW_OK);
  }
  void end(StreamMux::Key key) {
    EXPECT_EQ(mux_->push_event(key, EventPtr(gst_event_new_eos())), GST_FLOW_OK);
  }

  /// The next output, for tests in which there is one.
  std::vector<std::string> take() {
    auto output = mux_->next();
    if (!output) return {"nothing"};
    if (std::holds_alternative<StreamMux::End>(*output)) return {"end"};
    const auto& container = std::get<StreamMux::Container>(*output);
    time_ = container.running_time;
    std::vector<std::string> told;
    for (const ContainerStream& stream : container.streams) told.push_back(tell(stream));
    return told;
  }
  std::future<std::vector<std::string>> taking() {
    return std::async(std::launch::async, [this] { return take(); });
  }

  using Told = std::vector<std::string>;

  ManualClock clock_;
  std::unique_ptr<StreamMux> mux_;
  GstClockTime time_ = 0;
};

TEST_F(StreamMuxTest, GivenAFrameOfEachStream_WhenTaken_ThenTheyLeaveTogetherAtOnce) {
  begin(0);
  begin(1, 128);
  push(0, 40);
  push(1, 30);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 40", "sink_1/file(128): 30"}));
  EXPECT_EQ(time_, 30 * GST_MSECOND) << "the smallest running time";
}

TEST_F(StreamMuxTest, GivenAStreamThatIsAhead_WhenTaken_ThenAContainerHasOneFrameOfIt) {
  begin(0);
  begin(1);
  push(0, 0);
  push(0, 40);
  push(1, 0);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 0", "sink_1/file(64): 0"}));
  push(1, 40);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 40", "sink_1/file(64): 40"}));
}

TEST_F(StreamMuxTest, GivenADeadStream_WhenFramesCome_ThenItIsWaitedForOnce) {
  begin(0);
  begin(1);
  push(0, 0);
  auto taken = taking();
  clock_.await_waiters(1);
  clock_.advance(kWait - Nanoseconds(1));
  clock_.await_waiters(1);
  EXPECT_EQ(taken.wait_for(Nanoseconds(0)), std::future_status::timeout);
  clock_.advance(Nanoseconds(1));
  EXPECT_EQ(taken.get(), (Told{"sink_0/file(64): 0", "sink_1/file(64):"}));
  push(0, 40);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 40", "sink_1/file(64):"})) << "at once";
  push(1, 80);
  push(0, 80);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 80", "sink_1/file(64): 80"}));
  push(0, 120);
  taken = taking();
  clock_.await_waiters(1);
  EXPECT_EQ(taken.wait_for(Nanoseconds(0)), std::future_status::timeout) << "awaited again";
  push(1, 120);
  EXPECT_EQ(taken.get(), (Told{"sink_0/file(64): 120", "sink_1/file(64): 120"}));
  EXPECT_EQ(mux_->stats().containers, 4u);
  EXPECT_EQ(mux_->stats().partial, 1u);
  EXPECT_EQ(mux_->stats().frames, 6u);
}

TEST_F(StreamMuxTest, GivenAStreamWithoutCaps_WhenFramesCome_ThenItHasNoPart) {
  begin(0);
  ASSERT_TRUE(mux_->add(1, "sink_1"));
  push(0, 0);
  auto taken = taking();
  clock_.await_waiters(1);
  clock_.advance(kWait);
  EXPECT_EQ(taken.get(), (Told{"sink_0/file(64): 0"}));
  EXPECT_EQ(mux_->push_frame(1, frame(0)), GST_FLOW_NOT_NEGOTIATED);
  push(0, 40);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 40"})) << "not waited for again";
}

TEST_F(StreamMuxTest, GivenAStreamThatEnds_WhenTaken_ThenItsEndIsToldOnceAndTheOthersGoOn) {
  begin(0);
  begin(1);
  push(0, 0);
  push(1, 0);
  end(1);
  EXPECT_EQ(mux_->push_frame(1, frame(0)), GST_FLOW_EOS);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 0", "sink_1/file(64): 0 eos"}));
  push(0, 40);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 40"}));
  end(0);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): eos"}));
  EXPECT_EQ(take(), Told{"end"});
  EXPECT_EQ(mux_->flow(), GST_FLOW_EOS);
}

TEST_F(StreamMuxTest, GivenStayOpen_WhenAllHaveEnded_ThenAStreamMayStillCome) {
  reset({.stay_open = true});
  begin(0);
  end(0);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): eos"}));
  auto taken = taking();
  clock_.await_waiters(1);
  begin(1);
  push(1, 0);
  EXPECT_EQ(taken.get(), (Told{"sink_1/file(64): 0"}));
}

TEST_F(StreamMuxTest, GivenAStreamThatIsRemoved_WhenTaken_ThenWhatItDeliveredStillLeaves) {
  begin(0);
  begin(1);
  push(0, 0);
  push(1, 0);
  push(1, 40);
  mux_->remove(1);
  EXPECT_EQ(mux_->push_frame(1, frame(0)), GST_FLOW_FLUSHING);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 0", "sink_1/file(64): 0"}));
  ASSERT_TRUE(mux_->add(2, "sink_1"));  // The same name again.
  say(2, 128);
  push(2, 7);
  clock_.advance(kWait);  // For stream 0.
  EXPECT_EQ(take(), (Told{"sink_0/file(64):", "sink_1/file(64): 40 eos"}));
  push(0, 40);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 40", "sink_1/file(128): 7"}));
}

TEST_F(StreamMuxTest, GivenEventsBetweenFrames_WhenTaken_ThenTheyKeepTheirPlace) {
  begin(0);
  push(0, 0);
  EXPECT_EQ(mux_->push_event(0, EventPtr(gst_event_new_gap(GST_MSECOND, GST_MSECOND))),
            GST_FLOW_OK);
  EXPECT_EQ(mux_->push_event(0, caps_event(128)), GST_FLOW_OK);
  push(0, 40);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 0"}));
  EXPECT_EQ(take(), (Told{"sink_0/file(64): gap"}));
  EXPECT_EQ(take(), (Told{"sink_0/file(128): 40"}));
}

TEST_F(StreamMuxTest, GivenAStreamStartAnew_WhenTaken_ThenStickyEventsAreInTheirOrder) {
  begin(0);
  push(0, 0);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 0"}));
  EXPECT_EQ(mux_->push_event(0, EventPtr(gst_event_new_stream_start("other"))), GST_FLOW_OK);
  push(0, 40);
  const auto output = mux_->next();
  const auto& stream = std::get<StreamMux::Container>(*output).streams.at(0);
  std::vector<GstEventType> types;
  for (const EventPtr& event : stream.sticky) types.push_back(GST_EVENT_TYPE(event.get()));
  EXPECT_EQ(types, (std::vector{GST_EVENT_STREAM_START, GST_EVENT_CAPS, GST_EVENT_SEGMENT}));
  EXPECT_EQ(stream_id_of(stream), "sink_0/other");
}

TEST_F(StreamMuxTest, GivenAFullQueue_WhenTaken_ThenWhoWaitsGoesOn) {
  begin(0);
  push(0, 0);
  push(0, 40);
  auto pushed = std::async(std::launch::async, [this] { return mux_->push_frame(0, frame(0)); });
  EXPECT_EQ(mux_->stats().waiting, 2u);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 0"}));
  EXPECT_EQ(pushed.get(), GST_FLOW_OK);
}

TEST_F(StreamMuxTest, GivenAFlushOfOneStream_WhenTaken_ThenOnlyItsFramesAreGone) {
  begin(0);
  begin(1);
  push(0, 0);
  push(1, 0);
  push(1, 40);
  mux_->flush(1, true);
  EXPECT_EQ(mux_->push_frame(1, frame(0)), GST_FLOW_FLUSHING);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 0", "sink_1/file(64):"})) << "and nobody waits for it";
  mux_->flush(1, false);
  const GstSegment segment = time_segment();
  EXPECT_EQ(mux_->push_event(1, EventPtr(gst_event_new_segment(&segment))), GST_FLOW_OK);
  push(1, 800);
  push(0, 40);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 40", "sink_1/file(64): 800"}));
}

TEST_F(StreamMuxTest, GivenAnEndThatAFlushDropped_WhenTheStreamIsRemoved_ThenItStillEnds) {
  begin(0);
  push(0, 0);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): 0"}));
  end(0);
  mux_->flush(0, true);
  mux_->remove(0);
  EXPECT_EQ(take(), (Told{"sink_0/file(64): eos"}));
  EXPECT_EQ(take(), Told{"end"});
}

TEST_F(StreamMuxTest, GivenSegmentsOfOtherBases_WhenTaken_ThenRunningTimesCountAndNeverGoBack) {
  begin(0);
  push(0, 100);
  take();
  EXPECT_EQ(time_, 100 * GST_MSECOND);
  const GstSegment segment = time_segment(50 * GST_MSECOND);
  EXPECT_EQ(mux_->push_event(0, EventPtr(gst_event_new_segment(&segment))), GST_FLOW_OK);
  push(0, 10);
  take();
  EXPECT_EQ(time_, 100 * GST_MSECOND) << "60 ms would go back";
  push(0, 90);
  take();
  EXPECT_EQ(time_, 140 * GST_MSECOND);
}

TEST_F(StreamMuxTest, GivenAnInterruption_WhenPushing_ThenItsFlowIsTheAnswerAndStateIsKept) {
  begin(0);
  push(0, 0);
  mux_->interrupt(GST_FLOW_NOT_LINKED);
  EXPECT_EQ(take(), Told{"nothing"});
  EXPECT_EQ(mux_->push_frame(0, frame(0)), GST_FLOW_NOT_LINKED);
  EXPECT_EQ(mux_->push_event(0, caps_event(128)), GST_FLOW_OK);
  EXPECT_TRUE(mux_->relink());
  push(0, 40);
  EXPECT_EQ(take(), (Told{"sink_0/file(128): 40"}));
  mux_->interrupt(GST_FLOW_ERROR);
  EXPECT_FALSE(mux_->relink());
}

/// A question of the stream that asks for `answer`, from a thread of its own.
std::future<GstFlowReturn> asking(StreamMux& mux, StreamMux::Key key,
                                  const std::shared_ptr<int>& answer) {
  return std::async(std::launch::async,
                    [&mux, key, answer] { return mux.ask(key, [answer] { *answer = 42; }); });
}

TEST_F(StreamMuxTest, GivenAQuestion_WhenTheTakerComes_ThenItIsCalledThereAndTheStreamGoesOn) {
  begin(0);
  const auto answer = std::make_shared<int>(0);
  auto asked = asking(*mux_, 0, answer);
  const auto output = mux_->next();
  ASSERT_TRUE(output && std::holds_alternative<StreamMux::QuestionPtr>(*output));
  const auto& question = std::get<StreamMux::QuestionPtr>(*output);
  question->ask();
  mux_->answered(question);
  EXPECT_EQ(asked.get(), GST_FLOW_OK);
  EXPECT_EQ(*answer, 42);
  push(0, 0);
  EXPECT_EQ(take(), Told{"sink_0/file(64): 0"});
}

TEST_F(StreamMuxTest, GivenATakerThatIsBusy_WhenWhoAsksIsFlushed_ThenItIsLetGoAndOthersGoOn) {
  begin(0);
  begin(1);
  const auto answer = std::make_shared<int>(0);
  auto asked = asking(*mux_, 0, answer);
  mux_->flush(0, true);
  EXPECT_EQ(asked.get(), GST_FLOW_FLUSHING);
  push(1, 0);
  EXPECT_EQ(take(), (Told{"sink_0/file(64):", "sink_1/file(64): 0"}));
  mux_->flush(0, false);
  asked = asking(*mux_, 0, answer);
  mux_->interrupt(GST_FLOW_NOT_LINKED);
  EXPECT_EQ(asked.get(), GST_FLOW_NOT_LINKED);
  EXPECT_EQ(*answer, 0);
}

TEST_F(StreamMuxTest, GivenManyThreads_WhenStreamsComeAndGo_ThenEveryAcceptedFrameLeavesInOrder) {
  constexpr int kStreams = 8;
  constexpr int kFrames = 200;
  reset({.max_wait = Nanoseconds(1)});
  std::vector<std::thread> threads;
  for (StreamMux::Key key = 0; key < kStreams; ++key) {
    ASSERT_TRUE(mux_->add(key, "sink_" + std::to_string(key)));
  }
  for (StreamMux::Key key = 0; key < kStreams; ++key) {
    threads.emplace_back([this, key] {
      say(key, 64);
      for (int i = 0; i < kFrames; ++i) push(key, i);
      if (key % 2 == 0) {
        end(key);
      } else {
        mux_->remove(key);
      }
    });
  }
  std::map<std::string, std::vector<GstClockTime>> seen;
  while (true) {
    clock_.advance(Nanoseconds(1));
    auto output = mux_->next();
    ASSERT_TRUE(output);
    if (std::holds_alternative<StreamMux::End>(*output)) break;
    for (const ContainerStream& stream : std::get<StreamMux::Container>(*output).streams) {
      for (const ObjectPtr& object : stream.objects) {
        if (GST_IS_BUFFER(object.get())) {
          seen[stream_id_of(stream)].push_back(GST_BUFFER_PTS(object.get()) / GST_MSECOND);
        }
      }
    }
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<GstClockTime> all(kFrames);
  for (int i = 0; i < kFrames; ++i) all[std::size_t(i)] = GstClockTime(i);
  EXPECT_EQ(seen.size(), std::size_t(kStreams));
  for (const auto& [id, frames] : seen) EXPECT_EQ(frames, all) << id;
}

}  // namespace
}  // namespace penstock::gst
