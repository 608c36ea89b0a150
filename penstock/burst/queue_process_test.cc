// SPDX-License-Identifier: Apache-2.0
//
// A queue between two processes: every item arrives, a killed peer is noticed, and one that
// scribbles on the live ring does no harm.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/burst/peer_watch.h"
#include "penstock/burst/testing/asleep.h"
#include "penstock/burst/testing/peer_process.h"
#include "penstock/burst/testing/queue_script.h"

namespace penstock {
namespace {

using testing::PeerProcess;
using testing::soon;
using testing::SyncQueue;
using testing::UnsyncQueue;

constexpr std::uint64_t kItems = 20000;

struct Way {
  const char* name;
  bool event_flag;
  std::size_t elements;
};

class Q01_Processes : public ::testing::TestWithParam<Way> {
 protected:
  static SyncQueue::Options options() {
    return {.elements = GetParam().elements, .event_flag = GetParam().event_flag};
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, Q01_Processes,
                         ::testing::Values(Way{"Flag", true, 37}, Way{"FlagOfMany", true, 64},
                                           Way{"FlagOfOne", true, 1}, Way{"Polling", false, 1024}),
                         [](const auto& given) { return given.param.name; });

TEST_P(Q01_Processes, GivenAReaderInAnotherProcess_WhenItemsAreWritten_ThenAllArriveInOrder) {
  PeerProcess peer("read", kItems, 11);
  auto writer = SyncQueue::create_writer(options(), testing::unsliced());
  ASSERT_TRUE(writer) << writer.error().message();
  peer.send(writer->describe().value());
  peer.await_ready();
  ASSERT_TRUE(writer->settle());
  EXPECT_EQ(testing::write_items(*writer, kItems, 12), "");
  EXPECT_EQ(peer.wait(), 0);
}

TEST_P(Q01_Processes, GivenAWriterInAnotherProcess_WhenItemsAreRead_ThenAllArriveInOrder) {
  PeerProcess peer("write", kItems, 21);
  auto reader = SyncQueue::create_reader(options(), testing::unsliced());
  ASSERT_TRUE(reader) << reader.error().message();
  peer.send(reader->describe().value());
  peer.await_ready();
  ASSERT_TRUE(reader->settle());
  EXPECT_EQ(testing::read_items(*reader, kItems, 22), "");
  EXPECT_EQ(peer.wait(), 0);
}

TEST(Q01, GivenAQueueMadeByTheOtherProcess_WhenAttached_ThenAllItemsArrive) {
  PeerProcess peer("make-read", kItems, 31);
  auto descriptor = peer.receive();
  ASSERT_TRUE(descriptor) << descriptor.error().message();
  auto writer = SyncQueue::attach_writer(std::move(*descriptor), testing::unsliced());
  ASSERT_TRUE(writer) << writer.error().message();
  peer.tell();
  peer.await_ready();
  EXPECT_EQ(testing::write_items(*writer, kItems, 32), "");
  EXPECT_EQ(peer.wait(), 0);
}

// The writer waits for nobody: readers lose items, are told so, and never see half of one.
TEST(Q01, GivenReadersInOtherProcesses_WhenTheWriterLapsThem_ThenWhatTheyReadIsWhole) {
  auto writer = UnsyncQueue::create_writer({.elements = 16});
  ASSERT_TRUE(writer) << writer.error().message();
  PeerProcess first("follow", kItems, 41);
  PeerProcess second("follow", kItems, 42);
  for (const PeerProcess* peer : {&first, &second}) {
    peer->send(writer->describe().value());
    peer->await_ready();
  }
  for (std::uint64_t i = 0; i < kItems; ++i) {
    ASSERT_TRUE(writer->write(std::vector{testing::item_at(i)}));
  }
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
}

// Sanitizers make a process's end slow: their shadow memory has to go first.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr auto kNoticed = std::chrono::milliseconds(200);
#else
constexpr auto kNoticed = std::chrono::milliseconds(10);
#endif

enum class Waiting { kWriting, kPolling, kNapping, kForBits };

class Q05_Waits : public ::testing::TestWithParam<Waiting> {
 protected:
  /// Blocks this process in a call of its end until the peer is gone.
  static Result<void, QueueError> block(SyncQueue::Writer& writer) {
    const std::vector<testing::Item> items(4);
    const WaitOptions polling = {.poll_window = std::chrono::seconds(20)};
    switch (GetParam()) {
      case Waiting::kPolling:
        return writer.write_blocking(items, soon(), polling);
      case Waiting::kForBits:
        return wait_for_bits(writer.event_flag().value(), 1 << 20, soon(), *writer.end().lifeline())
            .transform([](std::uint32_t) {});
      default:
        return writer.write_blocking(items, soon());
    }
  }

  /// How long after the peer's end the blocked call returned.
  static Nanoseconds time_to_notice(PeerWatch& watch, const std::string& what) {
    PeerProcess peer(what, 0);
    auto pidfd = peer_pidfd(peer.socket());
    EXPECT_TRUE(pidfd) << pidfd.error().message();
    auto lifeline = std::make_shared<Lifeline>();
    const auto watched = watch.add(peer.socket().fd(), std::move(pidfd.value()), lifeline);
    EXPECT_TRUE(watched) << watched.error().message();
    auto writer =
        SyncQueue::create_writer({.elements = 4, .event_flag = GetParam() != Waiting::kNapping},
                                 {.lifeline = lifeline, .slice = std::chrono::hours(1)});
    EXPECT_TRUE(writer) << writer.error().message();
    peer.send(writer->describe().value());
    peer.await_ready();
    EXPECT_TRUE(writer->settle());
    EXPECT_TRUE(writer->write(std::vector<testing::Item>(4)));
    std::atomic<bool> begun{false};
    testing::Sleeper blocked([&] {
      begun = true;
      const auto result = block(*writer);
      return std::pair(result, Clock::system().now());
    });
    if (GetParam() == Waiting::kPolling) {
      while (!begun) std::this_thread::yield();
    } else {
      blocked.await_asleep();
    }
    EXPECT_FALSE(blocked.has_returned());
    const TimePoint ended = Clock::system().now();
    what == "hold" ? peer.kill() : peer.tell();
    const auto [result, noticed] = blocked.join();
    EXPECT_EQ(result, std::unexpected(QueueError::kPeerGone));
    EXPECT_LT(noticed - ended, std::chrono::seconds(5));
    return noticed - ended;
  }

  static Nanoseconds median_time(const std::string& what) {
    const auto watch = PeerWatch::create();
    EXPECT_TRUE(watch) << watch.error().message();
    std::vector<Nanoseconds> times;
    while (times.size() < 5 && !HasFailure()) times.push_back(time_to_notice(**watch, what));
    if (HasFailure()) return std::chrono::hours(1);
    std::ranges::sort(times);
    return times[2];
  }
};

INSTANTIATE_TEST_SUITE_P(Waits, Q05_Waits,
                         ::testing::Values(Waiting::kWriting, Waiting::kPolling, Waiting::kNapping,
                                           Waiting::kForBits));

TEST_P(Q05_Waits, GivenABlockedCall_WhenThePeerIsKilled_ThenItEndsWithinTenMilliseconds) {
  EXPECT_LT(median_time("hold"), kNoticed);
}

TEST_P(Q05_Waits, GivenABlockedCall_WhenThePeerClosesItsSocket_ThenItEndsWithinTenMilliseconds) {
  EXPECT_LT(median_time("close"), kNoticed);
}

TEST(Q05, GivenABlockedReader_WhenThePeerIsKilled_ThenItAndItsSiblingsEnd) {
  const auto watch = PeerWatch::create();
  ASSERT_TRUE(watch) << watch.error().message();
  PeerProcess peer("hold", 0);
  auto lifeline = std::make_shared<Lifeline>();
  const auto watched =
      (*watch)->add(peer.socket().fd(), std::move(peer_pidfd(peer.socket()).value()), lifeline);
  ASSERT_TRUE(watched);
  auto requests =
      SyncQueue::create_writer({.elements = 4, .event_flag = true}, {.lifeline = lifeline});
  auto results =
      SyncQueue::create_reader({.elements = 4, .event_flag = true}, {.lifeline = lifeline});
  ASSERT_TRUE(requests && results);
  peer.send(requests->describe().value());
  peer.await_ready();
  ASSERT_TRUE(requests->settle());
  std::vector<testing::Item> items(1);
  testing::Sleeper reading([&] { return results->read_blocking(items, soon()); });
  reading.await_asleep();
  peer.kill();
  EXPECT_EQ(reading.join(), std::unexpected(QueueError::kPeerGone));
  // Afterwards nothing blocks, and what is in the ring can still be had by who wants it.
  EXPECT_EQ(requests->write_blocking(items, soon()), std::unexpected(QueueError::kPeerGone));
  EXPECT_TRUE(requests->write(items));
}

TEST(Q05, GivenAPeerThatDiedBefore_WhenWatched_ThenTheLifelineIsCutAtOnce) {
  const auto watch = PeerWatch::create();
  ASSERT_TRUE(watch) << watch.error().message();
  PeerProcess peer("hold", 0);
  auto pidfd = peer_pidfd(peer.socket());
  ASSERT_TRUE(pidfd) << pidfd.error().message();
  peer.kill();
  EXPECT_EQ(peer.wait(), -SIGKILL);
  auto lifeline = std::make_shared<Lifeline>();
  const auto watched = (*watch)->add(peer.socket().fd(), std::move(*pidfd), lifeline);
  ASSERT_TRUE(watched);
  auto reader =
      SyncQueue::create_reader({.elements = 4, .event_flag = true}, {.lifeline = lifeline});
  ASSERT_TRUE(reader);
  std::vector<testing::Item> items(1);
  EXPECT_EQ(reader->read_blocking(items, soon()), std::unexpected(QueueError::kPeerGone));
}

TEST(Q05, GivenAWatchThatIsGivenUp_WhenThePeerDies_ThenTheLifelineIsNotCut) {
  const auto watch = PeerWatch::create();
  ASSERT_TRUE(watch) << watch.error().message();
  PeerProcess given_up("hold", 0);
  PeerProcess kept("hold", 0);
  const auto first = std::make_shared<Lifeline>();
  const auto second = std::make_shared<Lifeline>();
  {
    const auto watched =
        (*watch)->add(given_up.socket().fd(), peer_pidfd(given_up.socket()).value(), first);
    ASSERT_TRUE(watched);
  }
  const auto watched = (*watch)->add(kept.socket().fd(), peer_pidfd(kept.socket()).value(), second);
  ASSERT_TRUE(watched);
  given_up.kill();
  EXPECT_EQ(given_up.wait(), -SIGKILL);
  kept.kill();
  while (second->check()) second->nap(Clock::system().now() + Milliseconds(100));
  EXPECT_TRUE(first->check());
}

// Whatever the other process does to the ring, this one gets items, errors or its deadline.
TEST(Q04, GivenAPeerThatScribblesOnTheLiveRing_WhenUsed_ThenEveryCallReturns) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    PeerProcess peer("scribble", 3000, seed);
    auto writer = SyncQueue::create_writer({.elements = 16, .event_flag = true});
    ASSERT_TRUE(writer) << writer.error().message();
    peer.send(writer->describe().value());
    peer.await_ready();
    ASSERT_TRUE(writer->settle());
    std::vector<testing::Item> items(5);
    for (int i = 0; i < 200; ++i) {
      const auto written = writer->write_blocking(
          items, Deadline::after(Clock::system(), std::chrono::milliseconds(1)));
      EXPECT_LE(writer->available().value_or(0), 16u);
      if (!written && written.error() == QueueError::kCorrupt) break;
    }
    EXPECT_EQ(peer.wait(), 0);
  }
}

}  // namespace
}  // namespace penstock
