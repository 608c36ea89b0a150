// SPDX-License-Identifier: Apache-2.0
//
// Event flags and blocking calls within one process; other processes are in queue_process_test.
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "penstock/burst/event_flag.h"
#include "penstock/burst/lifeline.h"
#include "penstock/burst/message_queue.h"
#include "penstock/burst/testing/asleep.h"
#include "penstock/burst/waiter.h"

namespace penstock {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Queue = MessageQueue<std::uint16_t, QueueFlavor::kSynchronised>;
using Items = std::vector<std::uint16_t>;

Deadline in(Nanoseconds time) { return Deadline::after(Clock::system(), time); }
const Deadline kPast(TimePoint::min());

/// Slices are endless here, and a wait's last look comes with its deadline, 10 s: who is late was
/// not woken.
class Prompt : public ::testing::Test {
 public:
  ~Prompt() override {
    EXPECT_LT(Clock::system().now() - started_, seconds(5)) << "a wake-up was lost";
  }

 private:
  TimePoint started_ = Clock::system().now();
};

class Q03 : public Prompt {
 protected:
  std::uint32_t word_ = 0;
  EventFlag flag_{word_};
  std::shared_ptr<Lifeline> lifeline_ = std::make_shared<Lifeline>();

  std::uint32_t word() { return std::atomic_ref(word_).load(); }
  Result<std::uint32_t, QueueError> wait(std::uint32_t mask, Deadline deadline) {
    return wait_for_bits(flag_, mask, deadline, *lifeline_);
  }
};

TEST_F(Q03, GivenABitThatNobodySets_WhenWaitedFor_ThenTheDeadlineEndsIt) {
  flag_.wake(EventFlag::kNotFull);
  const auto started = Clock::system().now();
  EXPECT_EQ(wait(EventFlag::kNotEmpty, in(milliseconds(20))),
            std::unexpected(QueueError::kDeadline));
  EXPECT_GE(Clock::system().now() - started, milliseconds(20));
  EXPECT_EQ(word(), EventFlag::kNotFull) << "another's bit was taken";
}

TEST_F(Q03, GivenOneOfTwoBitsSet_WhenBothAreSignalled_ThenTheOtherIsSetToo) {
  flag_.wake(EventFlag::kNotFull);
  flag_.wake(EventFlag::kNotFull | EventFlag::kNotEmpty);
  EXPECT_EQ(wait(EventFlag::kNotEmpty, kPast), EventFlag::kNotEmpty);
}

TEST_F(Q03, GivenABitThatIsSet_WhenTheDeadlineIsPast_ThenItIsTakenAllTheSame) {
  flag_.wake(EventFlag::kNotEmpty | 8);
  EXPECT_EQ(wait(EventFlag::kNotEmpty, kPast), EventFlag::kNotEmpty);
  EXPECT_EQ(word(), 8u);
  EXPECT_EQ(wait(EventFlag::kNotEmpty, kPast), std::unexpected(QueueError::kDeadline));
  EXPECT_EQ(wait(4 | 8, in(seconds(10))), 8u);
}

TEST_F(Q03, GivenNoBitsOrNoDeadline_WhenWaiting_ThenItIsRefused) {
  EXPECT_EQ(wait(0, in(seconds(1))), std::unexpected(QueueError::kNoBits));
  EXPECT_EQ(wait(1, Deadline::never()), std::unexpected(QueueError::kNoDeadline));
  flag_.wake(0);
  EXPECT_EQ(word(), 0u);
}

TEST_F(Q03, GivenASleepingWaiter_WhenItsBitIsSet_ThenItWakesLongBeforeTheSlice) {
  for (int i = 0; i < 20; ++i) {
    testing::Sleeper sleeper([this] { return wait(EventFlag::kNotEmpty, in(seconds(10))); });
    sleeper.await_asleep();
    flag_.wake(EventFlag::kNotEmpty);
    EXPECT_EQ(sleeper.join(), EventFlag::kNotEmpty);
  }
}

extern "C" void ignore_signal(int) {}

TEST_F(Q03, GivenASleepingWaiter_WhenSignalsAndOtherBitsComeIn_ThenItWaitsOn) {
  struct sigaction action{};
  action.sa_handler = ignore_signal;  // No SA_RESTART: system calls end with EINTR.
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  testing::Sleeper sleeper([this] { return wait(EventFlag::kNotEmpty, in(seconds(10))); });
  for (int i = 0; i < 50; ++i) {
    sleeper.await_asleep();
    ::pthread_kill(sleeper.native_handle(), SIGUSR1);
    flag_.wake(EventFlag::kNotFull | 16);
  }
  EXPECT_FALSE(sleeper.has_returned());
  flag_.wake(EventFlag::kNotEmpty);
  EXPECT_EQ(sleeper.join(), EventFlag::kNotEmpty);
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(Q03, GivenAStandingClock_WhenItIsMovedOn_ThenTheDeadlineIsSeen) {
  ManualClock clock;
  const Deadline deadline = Deadline::after(clock, seconds(100));
  testing::Sleeper sleeper(
      [&] { return wait_for_bits(flag_, EventFlag::kNotEmpty, deadline, *lifeline_, clock); });
  sleeper.await_asleep();
  EXPECT_FALSE(sleeper.has_returned());
  clock.advance(seconds(100));
  EXPECT_EQ(sleeper.join(), std::unexpected(QueueError::kDeadline));
}

TEST_F(Q03, GivenASleepingWaiter_WhenTheLifelineIsCut_ThenItIsToldAndSoIsEveryLaterOne) {
  testing::Sleeper sleeper([this] { return wait(EventFlag::kNotEmpty, in(seconds(10))); });
  sleeper.await_asleep();
  lifeline_->cut(Lifeline::Cause::kStopped);
  lifeline_->cut(Lifeline::Cause::kPeerGone);
  EXPECT_EQ(sleeper.join(), std::unexpected(QueueError::kStopped));
  EXPECT_EQ(wait(EventFlag::kNotEmpty, in(seconds(10))), std::unexpected(QueueError::kStopped));
}

TEST_F(Q03, GivenAKernelThatWaitsForOneWordOnly_WhenTheLifelineIsCut_ThenASliceEndsTheSleep) {
  const auto sliced = std::make_shared<Lifeline>(Lifeline::Sleep::kShortSlices);
  testing::Sleeper sleeper(
      [&] { return wait_for_bits(flag_, EventFlag::kNotEmpty, in(seconds(10)), *sliced); });
  sleeper.await_asleep();
  const auto cut = Clock::system().now();
  sliced->cut(Lifeline::Cause::kPeerGone);
  EXPECT_EQ(sleeper.join(), std::unexpected(QueueError::kPeerGone));
  EXPECT_LT(Clock::system().now() - cut, seconds(5));
}

// Being idle is not being fooled: only who is woken too often turns to naps, in which no bit is
// seen.
TEST_F(Q03, GivenManyIdleSlices_WhenTheBitIsSet_ThenTheWaiterIsStillAtTheFlag) {
  Waiter waiter({.lifeline = lifeline_.get(),
                 .flag = flag_,
                 .bits = 1,
                 .slice = std::chrono::microseconds(1)},
                in(seconds(10)), Nanoseconds::zero());
  for (int i = 0; i < 3 * Waiter::kPatience; ++i) ASSERT_TRUE(waiter.pause());
  flag_.wake(1);
  ASSERT_TRUE(waiter.pause());
  EXPECT_EQ(waiter.bits(), 1u);
}

TEST_F(Q03, GivenManyWakeUpsForNothing_WhenTheNextComes_ThenTheWaiterNaps) {
  Waiter waiter({.lifeline = lifeline_.get(), .flag = flag_, .bits = 1, .slice = seconds(10)},
                in(seconds(10)), Nanoseconds::zero());
  for (int i = 0; i < Waiter::kPatience; ++i) {
    flag_.wake(1);
    ASSERT_TRUE(waiter.pause());
    EXPECT_EQ(waiter.bits(), 1u);
  }
  flag_.wake(1);
  ASSERT_TRUE(waiter.pause());
  EXPECT_EQ(waiter.bits(), 0u);
  EXPECT_EQ(word(), 1u);
}

struct Pair {
  /// Slices without end: a wake-up that is lost shows.
  explicit Pair(const Queue::Options& options, Nanoseconds slice = std::chrono::hours(1)) {
    auto made = Queue::create_writer(options, {.lifeline = lifeline, .slice = slice});
    EXPECT_TRUE(made) << made.error().message();
    writer = std::make_unique<Queue::Writer>(std::move(made.value()));
    auto attached =
        Queue::attach_reader(writer->describe().value(), {.lifeline = lifeline, .slice = slice});
    EXPECT_TRUE(attached) << attached.error().message();
    reader = std::make_unique<Queue::Reader>(std::move(attached.value()));
    EXPECT_TRUE(writer->settle());
  }
  std::shared_ptr<Lifeline> lifeline = std::make_shared<Lifeline>();
  std::unique_ptr<Queue::Writer> writer;
  std::unique_ptr<Queue::Reader> reader;
};

Items counting(std::size_t count) {
  Items items(count);
  std::iota(items.begin(), items.end(), std::uint16_t{1});
  return items;
}

class Q02_Blocking : public Prompt, public ::testing::WithParamInterface<bool> {
 protected:
  Pair pair_{{.elements = 64, .event_flag = GetParam()}};
  Queue::Writer& writer_ = *pair_.writer;
  Queue::Reader& reader_ = *pair_.reader;
};
INSTANTIATE_TEST_SUITE_P(WithAndWithoutFlag, Q02_Blocking, ::testing::Bool());

TEST_P(Q02_Blocking, GivenASleepingReader_WhenEverythingIsWritten_ThenItGetsAll) {
  Items got(64);
  testing::Sleeper reading([&] { return reader_.read_blocking(got, in(seconds(10))); });
  reading.await_asleep();
  ASSERT_TRUE(writer_.write_blocking(counting(64), in(seconds(10))));
  EXPECT_TRUE(reading.join());
  EXPECT_EQ(got, counting(64));
}

TEST_P(Q02_Blocking, GivenASleepingReader_WhenTooLittleIsWritten_ThenItWaitsOn) {
  Items got(64);
  testing::Sleeper reading([&] { return reader_.read_blocking(got, in(seconds(10))); });
  const Items items = counting(64);
  for (std::size_t i = 0; i < 63; ++i) {
    ASSERT_TRUE(writer_.write_blocking(std::span(items).subspan(i, 1), in(seconds(10))));
  }
  reading.await_asleep();
  EXPECT_FALSE(reading.has_returned());
  ASSERT_TRUE(writer_.write_blocking(std::span(items).subspan(63), in(seconds(10))));
  EXPECT_TRUE(reading.join());
  EXPECT_EQ(got, items);
}

TEST_P(Q02_Blocking, GivenASleepingWriter_WhenRoomIsMade_ThenItWrites) {
  ASSERT_TRUE(writer_.write(counting(64)));
  testing::Sleeper writing([&] { return writer_.write_blocking(counting(32), in(seconds(10))); });
  writing.await_asleep();
  Items got(32);
  ASSERT_TRUE(reader_.read_blocking(got, in(seconds(10))));
  EXPECT_TRUE(writing.join());
  EXPECT_EQ(reader_.available(), 64u);
}

TEST_P(Q02_Blocking, GivenWhatIsThere_WhenTheDeadlineIsPast_ThenItIsReadAllTheSame) {
  ASSERT_TRUE(writer_.write(counting(16)));
  Items got(16);
  EXPECT_TRUE(reader_.read_blocking(got, kPast));
  EXPECT_EQ(reader_.read_blocking(got, kPast), std::unexpected(QueueError::kDeadline));
  EXPECT_TRUE(writer_.write_blocking(counting(64), kPast));
  EXPECT_EQ(writer_.write_blocking(counting(1), kPast), std::unexpected(QueueError::kDeadline));
}

TEST_P(Q02_Blocking, GivenImpossibleCalls_WhenMade_ThenTheyAreRefusedAtOnce) {
  Items items(65);
  EXPECT_EQ(reader_.read_blocking(items, in(seconds(10))), std::unexpected(QueueError::kTooMany));
  EXPECT_EQ(writer_.write_blocking(items, in(seconds(10))), std::unexpected(QueueError::kTooMany));
  EXPECT_EQ(reader_.wait_for_items(65, in(seconds(10))), std::unexpected(QueueError::kTooMany));
  items.resize(1);
  EXPECT_EQ(reader_.read_blocking(items, Deadline::never()),
            std::unexpected(QueueError::kNoDeadline));
  EXPECT_EQ(writer_.write_blocking(items, Deadline::never()),
            std::unexpected(QueueError::kNoDeadline));
  items.clear();
  EXPECT_TRUE(reader_.read_blocking(items, Deadline::never()));
  EXPECT_TRUE(writer_.write_blocking(items, Deadline::never()));
}

TEST_P(Q02_Blocking, GivenAPollWindow_WhenItemsCome_ThenTheyAreReadAndElseTheDeadlineHolds) {
  Items got(1);
  const auto started = Clock::system().now();
  EXPECT_EQ(reader_.read_blocking(got, in(milliseconds(5)), {.poll_window = seconds(10)}),
            std::unexpected(QueueError::kDeadline));
  EXPECT_GE(Clock::system().now() - started, milliseconds(5));
  testing::Sleeper reading(
      [&] { return reader_.read_blocking(got, in(seconds(10)), {.poll_window = seconds(10)}); });
  ASSERT_TRUE(writer_.write_blocking(counting(1), in(seconds(10))));
  EXPECT_TRUE(reading.join());
}

TEST_P(Q02_Blocking, GivenABlockedEnd_WhenTheSiblingFindsTheProtocolBroken_ThenBothEnd) {
  Pair sibling({.elements = 4, .event_flag = GetParam()});
  auto hung = Queue::create_reader({.elements = 4, .event_flag = GetParam()},
                                   {.lifeline = sibling.lifeline});
  ASSERT_TRUE(hung);
  Items got(1);
  testing::Sleeper reading([&] { return hung->read_blocking(got, in(seconds(10))); });
  reading.await_asleep();
  // The peer's counter within an element.
  std::atomic_ref(*sibling.writer->end().memory().ring().write_counter).store(3);
  EXPECT_EQ(sibling.reader->available(), std::unexpected(QueueError::kCorrupt));
  EXPECT_EQ(reading.join(), std::unexpected(QueueError::kCorrupt));
}

TEST(Q02, GivenAZeroMask_WhenBlocking_ThenItIsRefused) {
  const Pair pair({.elements = 4, .event_flag = true});
  Items items(1);
  EXPECT_EQ(pair.writer->write_blocking(items, in(seconds(1)), {.not_full = 0}),
            std::unexpected(QueueError::kNoBits));
  EXPECT_EQ(pair.reader->read_blocking(items, in(seconds(1)), {.not_empty = 0}),
            std::unexpected(QueueError::kNoBits));
}

TEST(Q02, GivenOtherBits_WhenBothEndsUseThem_ThenTheyMeet) {
  const Pair pair({.elements = 4, .event_flag = true});
  const WaitOptions options = {.not_full = 1 << 8, .not_empty = 1 << 9};
  Items got(2);
  testing::Sleeper reading(
      [&] { return pair.reader->read_blocking(got, in(seconds(10)), options); });
  reading.await_asleep();
  ASSERT_TRUE(pair.writer->write_blocking(counting(2), in(seconds(10)), options));
  EXPECT_TRUE(reading.join());
}

TEST_F(Q03, GivenAnotherBitThatStaysSet_WhenItemsAreWritten_ThenTheReaderIsWoken) {
  const Pair pair({.elements = 4, .event_flag = true});
  pair.writer->event_flag()->wake(1 << 16);
  Items got(2);
  testing::Sleeper reading([&] { return pair.reader->read_blocking(got, in(seconds(10))); });
  reading.await_asleep();
  ASSERT_TRUE(pair.writer->write_blocking(counting(2), in(seconds(10))));
  EXPECT_TRUE(reading.join());
}

// A peer that keeps setting the bit makes the waiter look, but not without end and not at its pace.
TEST_F(Q03, GivenAPeerThatWakesForNothing_WhenWaiting_ThenTheWaiterNapsAndKeepsItsDeadline) {
  const Pair pair({.elements = 4, .event_flag = true});
  std::atomic<bool> stop{false};
  std::thread hostile([&] {
    const EventFlag flag = pair.writer->event_flag().value();
    while (!stop) flag.wake(EventFlag::kNotEmpty);
  });
  Items got(1);
  const auto started = Clock::system().now();
  EXPECT_EQ(pair.reader->read_blocking(got, in(milliseconds(60))),
            std::unexpected(QueueError::kDeadline));
  EXPECT_GE(Clock::system().now() - started, milliseconds(60));
  EXPECT_LT(Clock::system().now() - started, seconds(5));
  stop = true;
  hostile.join();
}

// A peer that clears the bit behind the writer's back: the reader finds out within a slice.
TEST_F(Q03, GivenAWakeUpThatThePeerTookAway_WhenWaiting_ThenItemsAreFoundAfterASlice) {
  const Pair pair({.elements = 4, .event_flag = true}, kWaitSlice);
  Items got(1);
  testing::Sleeper reading([&] { return pair.reader->read_blocking(got, in(seconds(10))); });
  reading.await_asleep();
  ASSERT_TRUE(pair.writer->write(counting(1)));  // Wakes nobody.
  EXPECT_TRUE(reading.join());
  EXPECT_EQ(got, counting(1));
}

}  // namespace
}  // namespace penstock
