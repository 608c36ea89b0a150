// SPDX-License-Identifier: Apache-2.0
//
// Both ends on one ring in threads of one process, where ThreadSanitizer sees every access of both;
// and lifelines that are cut while queues come and go.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "penstock/burst/blocking.h"
#include "penstock/burst/fd_socket.h"
#include "penstock/burst/message_queue.h"
#include "penstock/burst/peer_watch.h"
#include "penstock/burst/testing/heap_ring.h"

namespace penstock {
namespace {

using std::chrono::seconds;
using Items = std::vector<std::uint64_t>;

Deadline soon() { return Deadline::after(Clock::system(), seconds(30)); }
const std::byte* bytes_of(const Items& items) {
  return reinterpret_cast<const std::byte*>(items.data());
}
std::byte* bytes_of(Items& items) { return reinterpret_cast<std::byte*>(items.data()); }

struct Shared {
  Shared(std::size_t elements, bool has_flag) : ring(sizeof(std::uint64_t), elements) {
    means = {.lifeline = lifeline.get(),
             .flag = std::nullopt,
             .clock = &Clock::system(),
             .slice = std::chrono::hours(1)};
    if (has_flag) means.flag = EventFlag(word);
  }
  testing::HeapRing ring;
  std::uint32_t word = 0;
  std::shared_ptr<Lifeline> lifeline = std::make_shared<Lifeline>();
  WaitMeans means;
};

void write_all(Shared& shared, std::uint64_t count, const WaitOptions& options) {
  auto writer = RingWriter::open(shared.ring.view(), QueueFlavor::kSynchronised).value();
  std::minstd_rand random(1);
  for (std::uint64_t next = 0; next < count;) {
    Items items(
        std::min<std::uint64_t>(1 + random() % ((writer.capacity() + 1) / 2), count - next));
    for (auto& item : items) item = next++;
    const Deadline deadline = soon();
    ASSERT_TRUE(
        write_blocking(writer, shared.means, bytes_of(items), items.size(), deadline, options));
    ASSERT_FALSE(deadline.passed(Clock::system())) << "a wake-up was lost";
  }
}

void read_all(Shared& shared, std::uint64_t count, const WaitOptions& options) {
  auto reader = RingReader::open(shared.ring.view(), QueueFlavor::kSynchronised).value();
  std::minstd_rand random(2);
  for (std::uint64_t next = 0; next < count;) {
    Items items(
        std::min<std::uint64_t>(1 + random() % ((reader.capacity() + 1) / 2), count - next));
    const Deadline deadline = soon();
    ASSERT_TRUE(
        read_blocking(reader, shared.means, bytes_of(items), items.size(), deadline, options));
    ASSERT_FALSE(deadline.passed(Clock::system())) << "a wake-up was lost";
    for (const auto item : items) ASSERT_EQ(item, next++);
  }
}

class Q02_Stress : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(WithAndWithoutFlag, Q02_Stress, ::testing::Bool());

TEST_P(Q02_Stress, GivenBothEndsInThreads_WhenItemsPass_ThenAllComeInOrder) {
  for (const std::size_t elements : {1u, 3u, 64u}) {
    for (const Nanoseconds window : {Nanoseconds(0), Nanoseconds(std::chrono::microseconds(20))}) {
      Shared shared(elements, GetParam());
      const WaitOptions options = {.poll_window = window};
      const std::uint64_t count = GetParam() ? 4000 : 400 * elements;
      std::thread writing([&] { write_all(shared, count, options); });
      read_all(shared, count, options);
      writing.join();
    }
  }
}

// Two bits in one word for two queues, as a burst could share its word.
TEST(Q03, GivenManyWaitersAtOneWord_WhenEachBitIsSet_ThenEachWaiterGetsItsOwn) {
  std::uint32_t word = 0;
  const EventFlag flag(word);
  const Lifeline lifeline;
  std::vector<std::thread> waiting;
  for (std::uint32_t bit = 0; bit < 4; ++bit) {
    waiting.emplace_back([&, bit] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(wait_for_bits(flag, 1U << bit, soon(), lifeline), 1U << bit);
        flag.wake(1U << (bit + 8));
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    for (std::uint32_t bit = 0; bit < 4; ++bit) flag.wake(1U << bit);
    for (std::uint32_t bit = 8; bit < 12; ++bit) {
      EXPECT_EQ(wait_for_bits(flag, 1U << bit, soon(), lifeline), 1U << bit);
    }
  }
  for (auto& thread : waiting) thread.join();
}

TEST(Q01, GivenUnsynchronisedReadersInThreads_WhenLapped_ThenNothingTornIsReturned) {
  testing::HeapRing ring(3 * sizeof(std::uint64_t), 8);
  constexpr std::uint64_t kCount = 20000;
  const auto follow = [&ring] {
    auto reader = RingReader::open(ring.view(), QueueFlavor::kUnsynchronised).value();
    Items items(24);
    for (std::uint64_t last = 0; last < kCount;) {
      const std::size_t count = 1 + last % 4;
      if (const auto got = reader.read(bytes_of(items), count); !got) {
        // The last few may be fewer than are asked for.
        const bool few = got.error() == QueueError::kEmpty && reader.available().value_or(0) > 0;
        if (!few || !reader.read(bytes_of(items), 1)) {
          std::this_thread::yield();
          continue;
        }
        items[3] = 0;  // No second one.
      }
      for (std::size_t i = 0; i < count && items[3 * i] != 0; ++i) {
        ASSERT_GT(items[3 * i], last);
        ASSERT_EQ(items[3 * i + 1], ~items[3 * i]);
        ASSERT_EQ(items[3 * i + 2], items[3 * i] * 3);
        last = items[3 * i];
      }
    }
  };
  std::thread first(follow);
  std::thread second(follow);
  auto writer = RingWriter::open(ring.view(), QueueFlavor::kUnsynchronised).value();
  for (std::uint64_t i = 1; i <= kCount; ++i) {
    ASSERT_TRUE(writer.write(bytes_of(Items{i, ~i, i * 3}), 1));
    if (i % 64 == 0) std::this_thread::yield();
  }
  first.join();
  second.join();
}

TEST(Q05, GivenQueuesThatComeAndGo_WhenTheirLifelineIsCut_ThenEveryWaitEnds) {
  using Queue = MessageQueue<int, QueueFlavor::kSynchronised>;
  for (int round = 0; round < 20; ++round) {
    const auto lifeline = std::make_shared<Lifeline>();
    std::atomic<int> waiting{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        while (true) {
          auto reader = Queue::create_reader({.elements = 4, .event_flag = i % 2 == 0},
                                             {.lifeline = lifeline});
          ASSERT_TRUE(reader);
          std::vector<int> items(1);
          ++waiting;
          const auto got = reader->read_blocking(
              items, Deadline::after(Clock::system(), std::chrono::microseconds(200)));
          ASSERT_FALSE(got);
          if (got.error() == QueueError::kStopped) return;
          ASSERT_EQ(got.error(), QueueError::kDeadline);
        }
      });
    }
    while (waiting < 8) std::this_thread::yield();
    lifeline->cut(Lifeline::Cause::kStopped);
    for (auto& thread : threads) thread.join();
  }
}

TEST(Q05, GivenPeersThatHangUpWhileWatchesComeAndGo_WhenAllHaveGone_ThenAllLifelinesAreCut) {
  const auto watch = PeerWatch::create();
  ASSERT_TRUE(watch) << watch.error().message();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 30; ++round) {
        auto ends = FdSocket::pair();
        ASSERT_TRUE(ends);
        const auto lifeline = std::make_shared<Lifeline>();
        const auto watched =
            (*watch)->add(ends->first.fd(), open_pidfd(::getpid()).value(), lifeline);
        ASSERT_TRUE(watched) << watched.error().message();
        if (round % 3 == 0) continue;  // Given up while the peer is there.
        ends->second = FdSocket(UniqueFd());
        while (lifeline->check()) lifeline->nap(Clock::system().now() + Milliseconds(50));
        EXPECT_EQ(lifeline->check(), std::unexpected(QueueError::kPeerGone));
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace penstock
