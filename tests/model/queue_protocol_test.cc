// SPDX-License-Identifier: Apache-2.0
//
// Explores the queue's waiting protocol completely, and shows that the exploration finds what is
// wrong with eight broken ones.
#include "tests/model/queue_protocol.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock::model {
namespace {

struct Case {
  Mortal mortal;
  Peer peer;
};

class Q05_Model : public ::testing::TestWithParam<Case> {};

TEST_P(Q05_Model, GivenTheProtocol_WhenEveryOrderOfStepsIsTaken_ThenNobodyIsStuckOrMisled) {
  const Exploration found = explore(GetParam().mortal, GetParam().peer, Flaw::kNone);
  EXPECT_EQ(found.complaint, "");
  EXPECT_GT(found.states, 1000u);
  EXPECT_GE(found.ends, 1u);
}

INSTANTIATE_TEST_SUITE_P(Mortals, Q05_Model,
                         ::testing::Values(Case{Mortal::kNobody, Peer::kHonest},
                                           Case{Mortal::kWriter, Peer::kHonest},
                                           Case{Mortal::kReader, Peer::kHonest},
                                           Case{Mortal::kWriter, Peer::kHostile},
                                           Case{Mortal::kReader, Peer::kHostile}));

struct Broken {
  Flaw flaw;
  Mortal mortal;
  const char* complaint;
  Peer peer = Peer::kHonest;
};

class Q03_Model : public ::testing::TestWithParam<Broken> {};

TEST_P(Q03_Model, GivenABrokenProtocol_WhenExplored_ThenTheFaultIsFound) {
  const Exploration found = explore(GetParam().mortal, GetParam().peer, GetParam().flaw);
  EXPECT_TRUE(found.complaint.starts_with(GetParam().complaint)) << found.complaint;
}

INSTANTIATE_TEST_SUITE_P(
    Flaws, Q03_Model,
    ::testing::Values(
        Broken{Flaw::kPublishBeforeStore, Mortal::kNobody, "the reader got another element"},
        Broken{Flaw::kWakeBeforePublish, Mortal::kNobody, "stuck for ever"},
        Broken{Flaw::kSleepWithoutCompare, Mortal::kNobody, "stuck for ever"},
        Broken{Flaw::kIgnoreSetBit, Mortal::kNobody, "stuck for ever"},
        Broken{Flaw::kPeekBeforePublish, Mortal::kNobody, "stuck for ever"},
        Broken{Flaw::kSkipIfAnyBit, Mortal::kNobody, "stuck for ever"},
        Broken{Flaw::kSleepAtOneWord, Mortal::kWriter, "stuck for ever"},
        Broken{Flaw::kSleepAtOneWord, Mortal::kReader, "stuck for ever", Peer::kHostile},
        Broken{Flaw::kWakeBeforeCut, Mortal::kReader, "stuck for ever"},
        Broken{Flaw::kNoWatcher, Mortal::kWriter, "stuck for ever"}));

}  // namespace
}  // namespace penstock::model
