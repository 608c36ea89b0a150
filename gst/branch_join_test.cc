// SPDX-License-Identifier: Apache-2.0
//
// Which frames leave with which.
#include "gst/branch_join.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "gst/testing/join_fixture.h"

namespace penstock::gst {
namespace {

using G03_Rules = JoinFixture;

TEST_F(G03_Rules, GivenAFrameOnBothWays_WhenTaken_ThenItLeavesOnceWithTheBranchs) {
  push(1, 40);
  push(0, 40);
  EXPECT_EQ(take(), "40 + sink_1(64):40");
  auto next = taking();
  clock_.await_waiters(1);
  push(0, 80);
  clock_.await_waiters(1);
  push(1, 80);
  EXPECT_EQ(next.get(), "80 + sink_1(64):80");
  EXPECT_EQ(join_->stats().frames, 2u);
  EXPECT_EQ(join_->stats().joined, 2u);
  EXPECT_EQ(join_->stats().missing, 0u);
}

TEST_F(G03_Rules, GivenABranchThatIsAhead_WhenMissingIsAnError_ThenPadAndBothTimesAreNamed) {
  push(0, 40);
  push(1, 80);
  EXPECT_EQ(take(),
            "error: pad 'sink_1' left out the frame with PTS 40000000 of pad 'sink_0': it has PTS "
            "80000000; missing=pass would let the frame go without it");
}

TEST_F(G03_Rules, GivenABranchThatIsAhead_WhenMissingPasses_ThenTheFrameGoesWithoutAndIsCounted) {
  reset(BranchJoin::Missing::kPass);
  push(0, 40);
  push(0, 80);
  push(1, 80);
  EXPECT_EQ(take(), "40");
  EXPECT_EQ(take(), "80 + sink_1(64):80");
  EXPECT_EQ(join_->stats().missing, 1u);
}

TEST_F(G03_Rules, GivenAFrameThatThePrimaryLeftOut_WhenTaken_ThenItIsAnErrorWhateverMissingIs) {
  for (const auto missing : {BranchJoin::Missing::kError, BranchJoin::Missing::kPass}) {
    reset(missing);
    push(1, 40);
    push(0, 80);
    EXPECT_EQ(
        take(),
        "error: pad 'sink_1': its frame with PTS 40000000 was left out by pad 'sink_0', which "
        "has PTS 80000000");
  }
}

TEST_F(G03_Rules, GivenAnotherSource_WhenTaken_ThenBothIdsAreNamed) {
  say(1, "gate");
  push(0, 40);
  push(1, 40);
  EXPECT_EQ(take(), "error: pad 'sink_1': source 'gate' is not 'door', the source of pad 'sink_0'");
}

TEST_F(G03_Rules, GivenAnotherPtsAtTheSameRunningTime_WhenTaken_ThenBothAreNamed) {
  event(1, segment_event(10 * GST_MSECOND));
  push(0, 40);
  push(1, 30);
  EXPECT_EQ(take(),
            "error: pad 'sink_1': PTS 30000000 is not 40000000, that of pad 'sink_0' at the same "
            "running time");
}

TEST_F(G03_Rules, GivenFramesWithoutPtsSizeOrTime_WhenTaken_ThenPadAndFieldAreNamed) {
  EXPECT_EQ(join_->push_frame(1, BufferPtr(gst_buffer_new())), GST_FLOW_OK);
  EXPECT_EQ(take(), "error: pad 'sink_1': a frame has no PTS, by which frames are joined");

  reset(BranchJoin::Missing::kError);
  const CapsPtr caps(gst_caps_new_empty_simple("video/x-raw"));
  event(1, EventPtr(gst_event_new_caps(caps.get())));
  EXPECT_EQ(take(), "error: pad 'sink_1': the caps have no width and height");

  reset(BranchJoin::Missing::kError);
  GstSegment bytes;
  gst_segment_init(&bytes, GST_FORMAT_BYTES);
  event(0, EventPtr(gst_event_new_segment(&bytes)));
  EXPECT_EQ(take(), "error: pad 'sink_0': the segment is not in time");
}

TEST_F(G03_Rules, GivenTheNextStream_WhenOneWayIsInItAlready_ThenTheOtherIsBehindAndNotForeign) {
  reset(BranchJoin::Missing::kPass);
  push(0, 40);
  push(1, 40);
  EXPECT_EQ(take(), "40 + sink_1(64):40");
  push(0, 80);
  say(1, "gate");
  push(1, 0);
  EXPECT_EQ(take(), "80") << "the branch has left it out and is in the next stream";
  say(0, "gate");
  drain_state();
  push(0, 0);
  EXPECT_EQ(take(), "0 + sink_1(64):0");
}

TEST_F(G03_Rules, GivenAGapOfABranch_WhenItCoversAFrame_ThenThatWasLeftOut) {
  reset(BranchJoin::Missing::kPass);
  gap(1, 40, 80);
  push(0, 40);
  push(0, 80);
  EXPECT_EQ(take(), "40");
  EXPECT_EQ(take(), "80");
  push(0, 120);
  push(1, 120);
  EXPECT_EQ(take(), "120 + sink_1(64):120");
  EXPECT_EQ(join_->stats().missing, 2u);

  reset(BranchJoin::Missing::kError);
  gap(1, 40, 40);
  push(0, 40);
  EXPECT_NE(take().find("it has a gap there"), std::string::npos);
}

TEST_F(G03_Rules, GivenABranchThatHasEnded_WhenFramesComeBehind_ThenMissingDecides) {
  push(0, 40);
  push(1, 40);
  end(1);
  push(0, 80);
  EXPECT_EQ(take(), "40 + sink_1(64):40");
  EXPECT_NE(take().find("it has ended"), std::string::npos);

  reset(BranchJoin::Missing::kPass);
  end(1);
  push(0, 80);
  end(0);
  EXPECT_EQ(take(), "80");
  EXPECT_EQ(take(), "eos");
}

TEST_F(G03_Rules, GivenThePrimarysEnd_WhenTaken_ThenTheBranchIsToldAndItsRestIsCounted) {
  push(1, 80);
  end(0);
  EXPECT_EQ(take(), "eos");
  EXPECT_EQ(join_->stats().late, 1u);
  EXPECT_EQ(join_->stats().waiting, 0u);
  EXPECT_EQ(join_->push_frame(1, frame(120)), GST_FLOW_EOS);
}

TEST_F(G03_Rules, GivenABranchThatEnded_WhenItBeginsAgain_ThenItsEndIsForgotten) {
  end(1);
  say(1);
  push(1, 40);
  push(0, 40);
  EXPECT_EQ(take(), "40 + sink_1(64):40");
}

TEST_F(G03_Rules, GivenAPadThatComesOnTheWay_WhenItDelivers_ThenItIsAwaitedFromThen) {
  push(0, 40);
  push(1, 40);
  EXPECT_EQ(take(), "40 + sink_1(64):40");
  add(2);
  push(0, 80);
  push(1, 80);
  EXPECT_EQ(take(), "80 + sink_1(64):80") << "not awaited";
  say(2);
  push(2, 80);
  push(2, 120);
  push(0, 120);
  push(1, 120);
  EXPECT_EQ(take(), "120 + sink_1(64):120 + sink_2(64):120");
  EXPECT_EQ(join_->stats().late, 1u) << "the frame that had left";
  push(0, 160);
  push(1, 160);
  push(2, 200);
  EXPECT_NE(take().find("pad 'sink_2' left out"), std::string::npos);
}

TEST_F(G03_Rules, GivenAPadThatGoes_WhenFramesComeBehind_ThenWhatItHasDeliveredIsJoined) {
  push(1, 40);
  push(0, 40);
  push(0, 80);
  join_->remove(1);
  EXPECT_EQ(take(), "40 + sink_1(64):40");
  EXPECT_EQ(take(), "80");
  EXPECT_EQ(join_->push_frame(1, frame(80)), GST_FLOW_FLUSHING);
  EXPECT_EQ(join_->stats().missing, 0u);
}

TEST_F(G03_Rules, GivenThePrimaryPad_WhenItGoes_ThenTheStreamEnds) {
  push(0, 40);
  push(1, 40);
  join_->remove(0);
  EXPECT_EQ(take(), "40 + sink_1(64):40");
  EXPECT_EQ(take(), "eos");
  EXPECT_EQ(take(), "nothing");
  EXPECT_FALSE(join_->runs());
}

}  // namespace
}  // namespace penstock::gst
