// SPDX-License-Identifier: Apache-2.0
//
// When frames leave, under a clock that stands still; flushes, stops, and what is between frames.
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "gst/branch_join.h"
#include "gst/testing/join_fixture.h"

namespace penstock::gst {
namespace {

using L03_Join = JoinFixture;
using L05_Join = JoinFixture;

TEST_F(L05_Join, GivenABranchThatDeliversNothing_WhenTheWaitIsOver_ThenItIsAnError) {
  push(0, 40);
  auto next = taking();
  clock_.await_waiters(1);
  clock_.advance(kWait - Nanoseconds(1));
  clock_.await_waiters(1);
  clock_.advance(Nanoseconds(1));
  EXPECT_EQ(next.get(),
            "error: pad 'sink_1' has not delivered the frame with PTS 40000000 of pad 'sink_0' "
            "within 100 ms (max-wait)");
}

TEST_F(L05_Join, GivenADeadBranch_WhenMissingPasses_ThenItIsWaitedForOnceUntilItIsBack) {
  reset(BranchJoin::Missing::kPass);
  push(0, 40);
  push(0, 80);
  auto next = taking();
  EXPECT_EQ(after(kWait, next), "40");
  EXPECT_EQ(take(), "80");
  push(1, 40);
  push(1, 80);
  push(1, 120);
  push(0, 120);
  EXPECT_EQ(take(), "120 + sink_1(64):120");
  EXPECT_EQ(join_->stats().late, 2u);
  EXPECT_EQ(join_->stats().missing, 2u);
  push(0, 160);
  next = taking();
  EXPECT_EQ(after(kWait, next), "160") << "it was awaited again";
}

TEST_F(L05_Join, GivenASlowBranchOfAFile_WhenFramesQueueUp_ThenEachHasItsOwnWait) {
  for (int i = 1; i <= 3; ++i) push(0, 40 * i);
  for (int i = 1; i <= 3; ++i) {
    auto next = taking();
    clock_.await_waiters(1);
    clock_.advance(kWait * 9 / 10);
    push(1, 40 * i);
    EXPECT_EQ(next.get(), std::to_string(40 * i) + " + sink_1(64):" + std::to_string(40 * i));
  }
}

TEST_F(L05_Join, GivenALiveSource_WhenFramesQueueUp_ThenNoneStaysLongerThanTheWait) {
  reset(BranchJoin::Missing::kPass);
  join_->set_live(true);
  push(0, 40);
  push(0, 80);
  auto next = taking();
  clock_.await_waiters(1);
  clock_.advance(kWait * 9 / 10);
  push(1, 40);
  EXPECT_EQ(next.get(), "40 + sink_1(64):40");
  next = taking();
  EXPECT_EQ(after(kWait / 10, next), "80");
}

TEST_F(L05_Join, GivenItIsPaused_WhenTimePasses_ThenTheWaitDoesNotCount) {
  push(0, 40);
  push(1, 40);
  EXPECT_EQ(take(), "40 + sink_1(64):40");
  join_->set_playing(false);
  push(0, 80);
  auto next = taking();
  clock_.await_waiters(1);
  clock_.advance(kWait * 100);
  join_->set_playing(true);
  clock_.await_waiters(1);
  clock_.advance(kWait / 2);
  push(1, 80);
  EXPECT_EQ(next.get(), "80 + sink_1(64):80");
}

TEST_F(L05_Join, GivenItHasNotPlayedYet_WhenABranchIsDead_ThenTheFirstFrameIsNotWaitedForForEver) {
  join_->set_playing(false);
  push(0, 0);
  auto next = taking();
  EXPECT_NE(after(kWait, next).find("max-wait"), std::string::npos);
}

TEST_F(L05_Join, GivenAPrimaryThatDeliversNothing_WhenTheWaitIsOver_ThenItIsAnError) {
  push(1, 40);
  auto next = taking();
  EXPECT_EQ(after(kWait, next),
            "error: the primary pad has not delivered the frame with PTS 40000000 of pad 'sink_1' "
            "within 100 ms (max-wait)");
}

TEST_F(L05_Join, GivenAFullBranchAndNoPrimary_WhenMissingPasses_ThenTheBranchGivesWay) {
  reset(BranchJoin::Missing::kPass, 2);
  push(1, 40);
  push(1, 80);
  auto next = taking();
  clock_.await_waiters(1);
  // As the thread of a tee, which feeds the primary when it gets here.
  auto third = std::async(std::launch::async, [this] { push(1, 120); });
  clock_.advance(kWait);
  third.get();
  push(0, 40);
  EXPECT_EQ(next.get(), "40") << "without what came too long before it";
  EXPECT_GE(join_->stats().late, 1u);
}

TEST_F(L05_Join, GivenABadFrameBehindALateOne_WhenTheLateOneGoes_ThenItIsAnError) {
  reset(BranchJoin::Missing::kPass);
  push(0, 40);
  auto next = taking();
  EXPECT_EQ(after(kWait, next), "40");
  push(1, 40);
  (void)join_->push_frame(1, BufferPtr(gst_buffer_new()));
  push(0, 80);
  EXPECT_NE(take().find("error: pad 'sink_1'"), std::string::npos);
}

TEST_F(L05_Join, GivenFullQueues_WhenMoreComes_ThenItsThreadWaitsForAPlace) {
  reset(BranchJoin::Missing::kError, 2);
  push(0, 40);
  push(0, 80);
  auto third = std::async(std::launch::async, [this] { push(0, 120); });
  EXPECT_EQ(join_->stats().waiting, 2u);
  push(1, 40);
  EXPECT_EQ(take(), "40 + sink_1(64):40");
  third.get();
  EXPECT_EQ(join_->stats().waiting, 2u);
}

TEST_F(L05_Join, GivenEventsAndQueriesBetweenFrames_WhenTaken_ThenTheyKeepTheirPlace) {
  push(0, 40);
  event(0, EventPtr(gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "t", nullptr))));
  event(1, EventPtr(gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "t", nullptr))));
  gap(0, 80, 40);
  const GstPtr<GstQuery> query(gst_query_new_drain());
  auto asking = std::async(std::launch::async, [&] { return join_->run_query(0, query.get()); });
  push(1, 40);
  EXPECT_EQ(take(), "40 + sink_1(64):40");
  EXPECT_EQ(take(), "tag") << "the primary's, once";
  EXPECT_EQ(take(), "gap");
  auto output = join_->next();
  ASSERT_TRUE(output);
  auto* asked = std::get_if<BranchJoin::QueryPtr>(&*output);
  ASSERT_NE(asked, nullptr);
  EXPECT_EQ((*asked)->query, query.get());
  join_->finish(*asked, true);
  EXPECT_TRUE(asking.get());
  EXPECT_FALSE(join_->run_query(1, query.get()));
}

TEST_F(L03_Join, GivenAFlushOfBothWays_WhenFramesComeAgain_ThenNothingOfBeforeIsJoined) {
  push(0, 4000);
  push(1, 3960);
  event(0, EventPtr(gst_event_new_tag(gst_tag_list_new(GST_TAG_TITLE, "t", nullptr))));
  join_->begin_flush(0);
  EXPECT_EQ(take(), "nothing");
  EXPECT_EQ(join_->push_frame(0, frame(4040)), GST_FLOW_FLUSHING);
  join_->begin_flush(1);
  const auto events = join_->end_flush(0);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(GST_EVENT_TYPE(events[0].get()), GST_EVENT_TAG);
  join_->end_flush(1);
  event(0, segment_event());
  event(1, segment_event());
  EXPECT_EQ(take(), "segment");
  push(0, 0);
  push(1, 0);
  EXPECT_EQ(take(), "0 + sink_1(64):0");
}

TEST_F(L03_Join, GivenABranchThatFlushes_WhenAFrameNeedsIt_ThenItIsWaitedFor) {
  join_->begin_flush(1);
  push(0, 40);
  auto next = taking();
  clock_.await_waiters(1);
  join_->end_flush(1);
  event(1, segment_event());
  push(1, 40);
  EXPECT_EQ(next.get(), "40 + sink_1(64):40");
}

TEST_F(L03_Join, GivenThreadsThatWait_WhenStopped_ThenTheyAreLetGo) {
  reset(BranchJoin::Missing::kError, 1);
  push(0, 40);
  auto pushing = std::async(std::launch::async, [this] { return join_->push_frame(0, frame(80)); });
  const GstPtr<GstQuery> query(gst_query_new_drain());
  auto asking = std::async(std::launch::async, [&] { return join_->run_query(0, query.get()); });
  auto next = taking();
  clock_.await_waiters(1);
  join_->stop(GST_FLOW_FLUSHING);
  EXPECT_EQ(pushing.get(), GST_FLOW_FLUSHING);
  EXPECT_EQ(next.get(), "nothing");
  EXPECT_FALSE(asking.get());
  EXPECT_EQ(join_->stats().waiting, 0u);
}

TEST_F(L03_Join, GivenAnError_WhenItWasTold_ThenItComesOnceAndNothingIsTaken) {
  push(0, 40);
  push(1, 80);
  EXPECT_TRUE(take().starts_with("error"));
  join_->fail();
  EXPECT_EQ(take(), "nothing");
  EXPECT_EQ(join_->push_frame(0, frame(80)), GST_FLOW_ERROR);
  join_->begin_flush(0);
  join_->end_flush(0);
  EXPECT_EQ(join_->push_frame(0, frame(80)), GST_FLOW_ERROR) << "an error is for good";
}

TEST_F(L05_Join, GivenNobodyBehindIt_WhenLinkedAgain_ThenItGoesOnAndSaysItsStateAnew) {
  push(0, 40);
  push(1, 40);
  EXPECT_EQ(take(), "40 + sink_1(64):40");
  push(0, 80);
  event(0, caps_event(128));
  join_->stop(GST_FLOW_NOT_LINKED);
  EXPECT_EQ(join_->push_frame(1, frame(80)), GST_FLOW_NOT_LINKED);
  const auto events = join_->relink();
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(GST_EVENT_TYPE((*events)[0].get()), GST_EVENT_CAPS);
  EXPECT_FALSE(join_->relink());
  push(1, 80);
  push(1, 120);
  push(0, 120);
  EXPECT_EQ(take(), "120 + sink_1(64):120") << "what was dropped is not missed";
}

}  // namespace
}  // namespace penstock::gst
