// SPDX-License-Identifier: Apache-2.0
//
// The two ends of a ring against a plain std::deque, in memory where a test can play a lying peer.
#include "penstock/burst/ring.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "penstock/burst/testing/heap_ring.h"

namespace penstock {
namespace {

using testing::HeapRing;
constexpr auto kSync = QueueFlavor::kSynchronised;
constexpr auto kUnsync = QueueFlavor::kUnsynchronised;

/// Two-byte elements, so that a wrong quantum shows.
using Items = std::vector<std::uint16_t>;

Items counting(std::size_t count, std::uint16_t from = 0) {
  Items items(count);
  std::iota(items.begin(), items.end(), from);
  return items;
}

struct Ends {
  Ends(std::size_t elements, QueueFlavor flavor)
      : ring(sizeof(std::uint16_t), elements),
        writer(RingWriter::open(ring.view(), flavor).value()),
        reader(RingReader::open(ring.view(), flavor).value()) {}

  Result<void, QueueError> write(const Items& items) {
    return writer.write(reinterpret_cast<const std::byte*>(items.data()), items.size());
  }
  Result<Items, QueueError> read(std::size_t count) {
    Items items(count);
    PENSTOCK_TRY(reader.read(reinterpret_cast<std::byte*>(items.data()), count));
    return items;
  }

  HeapRing ring;
  RingWriter writer;
  RingReader reader;
};

template <typename T>
std::unexpected<QueueError> error_of(const Result<T, QueueError>& result) {
  return std::unexpected(result ? QueueError::kNotBegun : result.error());
}
const auto kEmpty = std::unexpected(QueueError::kEmpty);
const auto kFull = std::unexpected(QueueError::kFull);
const auto kTooMany = std::unexpected(QueueError::kTooMany);
const auto kOverflow = std::unexpected(QueueError::kOverflow);
const auto kCorrupt = std::unexpected(QueueError::kCorrupt);

class Q02 : public ::testing::TestWithParam<QueueFlavor> {};
INSTANTIATE_TEST_SUITE_P(Flavors, Q02, ::testing::Values(kSync, kUnsync));

TEST_P(Q02, GivenAnEmptyRing_WhenReading_ThenItIsEmptyAndThereAreNoSlots) {
  Ends ends(2048, GetParam());
  EXPECT_EQ(error_of(ends.read(2)), kEmpty);
  EXPECT_EQ(error_of(ends.reader.begin(2)), kEmpty);
  EXPECT_EQ(ends.reader.available(), 0u);
}

TEST_P(Q02, GivenElements_WhenReadInOnePieceOrMany_ThenTheyComeInOrder) {
  Ends ends(2048, GetParam());
  ASSERT_TRUE(ends.write(counting(500)));
  for (std::uint16_t i = 0; i < 5; ++i) {
    EXPECT_EQ(ends.read(100), counting(100, static_cast<std::uint16_t>(100 * i)));
  }
  for (std::uint16_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(ends.write(counting(100, static_cast<std::uint16_t>(100 * i))));
  }
  EXPECT_EQ(ends.reader.available(), 500u);
  EXPECT_EQ(ends.read(500), counting(500));
}

TEST_P(Q02, GivenMoreThanTheRingHolds_WhenWrittenOrRead_ThenItIsRefusedAndNothingChanges) {
  Ends ends(2048, GetParam());
  EXPECT_EQ(ends.write(counting(4096)), kTooMany);
  EXPECT_EQ(ends.reader.available(), 0u);
  EXPECT_EQ(error_of(ends.read(2049)), kTooMany);
  // As many that their bytes do not fit a size_t.
  constexpr std::size_t kAbsurd = std::numeric_limits<std::size_t>::max() / 2 + 2;
  EXPECT_EQ(error_of(ends.reader.begin(kAbsurd)), kTooMany);
  EXPECT_EQ(error_of(ends.writer.begin(kAbsurd)), kTooMany);
}

TEST_P(Q02, GivenNoElements_WhenWrittenAndRead_ThenItSucceeds) {
  Ends ends(4, GetParam());
  EXPECT_TRUE(ends.write({}));
  EXPECT_EQ(ends.read(0), Items{});
  EXPECT_EQ(ends.reader.available(), 0u);
}

TEST_P(Q02, GivenARingThatGoesRound_WhenWrittenInPlace_ThenBothPiecesTogetherAreTheElements) {
  Ends ends(2048, GetParam());
  ASSERT_TRUE(ends.write(counting(2047)));
  ASSERT_TRUE(ends.read(2047));
  auto slots = ends.writer.begin(2048);
  ASSERT_TRUE(slots);
  EXPECT_EQ(slots->first().size, 2u);
  EXPECT_EQ(slots->second().size, 2047u * 2);
  EXPECT_EQ(slots->second().data, ends.ring.data());
  const Items items = counting(2048, 7);
  EXPECT_TRUE(slots->set(0, reinterpret_cast<const std::byte*>(items.data()), 2048));
  EXPECT_EQ(ends.reader.available(), 0u);
  ASSERT_TRUE(ends.writer.commit(2048));
  EXPECT_EQ(ends.read(2048), items);
}

TEST_P(Q02, GivenSlots_WhenTouchedBeyondTheLast_ThenItIsRefused) {
  Ends ends(8, GetParam());
  const auto slots = ends.writer.begin(3);
  ASSERT_TRUE(slots);
  Items items(4);
  auto* bytes = reinterpret_cast<std::byte*>(items.data());
  EXPECT_TRUE(slots->set(2, bytes, 1));
  EXPECT_FALSE(slots->set(3, bytes, 1));
  EXPECT_FALSE(slots->set(0, bytes, 4));
  EXPECT_FALSE(slots->get(1, bytes, std::numeric_limits<std::size_t>::max()));
}

TEST_P(Q02, GivenATransaction_WhenCommitted_ThenAsManyAsBegunAtMost) {
  Ends ends(8, GetParam());
  EXPECT_EQ(ends.writer.commit(1), std::unexpected(QueueError::kNotBegun));
  ASSERT_TRUE(ends.writer.begin(3));
  EXPECT_EQ(ends.writer.commit(4), std::unexpected(QueueError::kNotBegun));
  ASSERT_TRUE(ends.writer.commit(2));
  EXPECT_EQ(ends.writer.commit(1), std::unexpected(QueueError::kNotBegun));
  EXPECT_EQ(ends.reader.available(), 2u);
  ASSERT_TRUE(ends.reader.begin(2));
  EXPECT_EQ(ends.reader.commit(3), std::unexpected(QueueError::kNotBegun));
  ASSERT_TRUE(ends.reader.commit(1));
  EXPECT_EQ(ends.reader.available(), 1u);
}

TEST_P(Q02, GivenRandomTraffic_WhenComparedWithAPlainQueue_ThenBothAgree) {
  for (const std::size_t capacity : {1u, 2u, 7u, 64u}) {
    Ends ends(capacity, GetParam());
    std::deque<std::uint16_t> expected;
    std::mt19937 random(static_cast<unsigned>(capacity));
    std::uint16_t next = 0;
    for (int step = 0; step < 4000; ++step) {
      const std::size_t count = random() % (capacity + 1);
      if (random() % 2 == 0 && expected.size() + count <= capacity) {
        ASSERT_TRUE(ends.write(counting(count, next)));
        for (std::size_t i = 0; i < count; ++i) expected.push_back(next++);
      } else if (count <= expected.size()) {
        const Items front(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(count));
        ASSERT_EQ(ends.read(count), front);
        expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(count));
      } else {
        ASSERT_EQ(error_of(ends.read(count)), kEmpty);
      }
      ASSERT_EQ(ends.reader.available(), expected.size());
    }
  }
}

TEST(Q01, GivenAFullRing_WhenWritten_ThenItIsRefusedAndTheContentStays) {
  Ends ends(2048, kSync);
  ASSERT_TRUE(ends.write(counting(2048)));
  EXPECT_EQ(ends.writer.available(), 0u);
  EXPECT_EQ(ends.write(counting(1)), kFull);
  EXPECT_EQ(error_of(ends.writer.begin(1)), kFull);
  EXPECT_EQ(ends.read(2048), counting(2048));
  EXPECT_EQ(ends.writer.available(), 2048u);
}

TEST(Q01, GivenTraffic_WhenTheWordsAreLookedAt_ThenTheyCountBytesAndNeverWrap) {
  Ends ends(3, kSync);
  for (std::uint16_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(ends.write({i}));
    EXPECT_EQ(ends.ring.write_counter(), 2u * (i + 1));
    ASSERT_EQ(ends.read(1), Items{i});
    EXPECT_EQ(ends.ring.read_counter(), 2u * (i + 1));
  }
}

TEST(Q01, GivenAFullUnsynchronisedRing_WhenWritten_ThenTheReaderIsToldAndGetsTheNewerHalf) {
  Ends ends(2048, kUnsync);
  ASSERT_TRUE(ends.write(counting(2048)));
  ASSERT_TRUE(ends.write(counting(1, 2048)));
  EXPECT_EQ(error_of(ends.read(1)), kOverflow);
  EXPECT_EQ(ends.reader.available(), 1024u);
  EXPECT_EQ(ends.read(1024), counting(1024, 1025));
}

TEST(Q01, GivenSlotsBeingRead_WhenTheWriterLapsThem_ThenCommittingSaysSo) {
  Ends ends(2048, kUnsync);
  ASSERT_TRUE(ends.write(counting(2048)));
  ASSERT_TRUE(ends.reader.begin(2048));
  ASSERT_TRUE(ends.write(counting(1, 2048)));
  EXPECT_EQ(ends.reader.commit(2048), kOverflow);
  EXPECT_EQ(ends.reader.available(), 1024u);
}

// The writer has begun, but not published: its counter does not show it yet.
TEST(Q01, GivenSlotsBeingRead_WhenTheWriterIsAboutToOverwriteThem_ThenCommittingSaysSo) {
  Ends ends(8, kUnsync);
  ASSERT_TRUE(ends.write(counting(8)));
  ASSERT_TRUE(ends.reader.begin(8));
  const auto slots = ends.writer.begin(1);
  ASSERT_TRUE(slots);
  EXPECT_EQ(ends.reader.commit(8), kOverflow);
  EXPECT_EQ(ends.read(4), (Items{4, 5, 6, 7}));
}

TEST(Q01, GivenATransactionThatIsGivenUp_WhenReadersGoOn_ThenTheyLoseOnlyWhatItHeld) {
  Ends ends(8, kUnsync);
  ASSERT_TRUE(ends.write(counting(8)));
  ASSERT_TRUE(ends.writer.begin(6));
  ASSERT_TRUE(ends.writer.commit(0));
  EXPECT_EQ(error_of(ends.read(8)), kOverflow);
  EXPECT_EQ(ends.read(2), (Items{6, 7}));
  ASSERT_TRUE(ends.write(counting(2, 8)));
  EXPECT_EQ(ends.read(2), (Items{8, 9}));
}

TEST(Q01, GivenAnUnsynchronisedRingOfOne_WhenLapped_ThenNothingIsLeftAndTheNextPairWorks) {
  Ends ends(1, kUnsync);
  ASSERT_TRUE(ends.write({1}));
  ASSERT_TRUE(ends.write({2}));
  EXPECT_EQ(error_of(ends.read(1)), kOverflow);
  EXPECT_EQ(error_of(ends.read(1)), kEmpty);
  ASSERT_TRUE(ends.write({3}));
  EXPECT_EQ(ends.read(1), Items{3});
}

TEST(Q01, GivenTwoUnsynchronisedReaders_WhenOneComesLate_ThenEachHasItsOwnPlace) {
  Ends ends(4, kUnsync);
  ASSERT_TRUE(ends.write(counting(4)));
  EXPECT_EQ(ends.read(4), counting(4));
  ASSERT_TRUE(ends.write(counting(2, 4)));
  EXPECT_EQ(ends.read(2), counting(2, 4));
  auto late = RingReader::open(ends.ring.view(), kUnsync);
  ASSERT_TRUE(late);
  std::uint16_t item = 0;
  EXPECT_EQ(late->read(reinterpret_cast<std::byte*>(&item), 1), kOverflow);
  ASSERT_TRUE(late->read(reinterpret_cast<std::byte*>(&item), 1));
  EXPECT_EQ(item, 4);
}

// A peer that writes the words it owns as it likes.
struct Lie {
  std::uint64_t counter;
  const char* why;
};

class Q04_Counters : public ::testing::TestWithParam<Lie> {};

/// Ring of 8 two-byte elements of which 5 were written and 2 read.
struct UsedRing : Ends {
  UsedRing() : Ends(8, kSync) {
    EXPECT_TRUE(write(counting(5)));
    EXPECT_TRUE(read(2));
    EXPECT_EQ(reader.available(), 3u);
    EXPECT_EQ(writer.available(), 5u);
  }
};

TEST_P(Q04_Counters, GivenALyingWriter_WhenItsCounterIsLookedAt_ThenTheReaderIsPoisoned) {
  UsedRing ends;
  ends.ring.set_write_counter(GetParam().counter);
  EXPECT_EQ(error_of(ends.reader.available()), kCorrupt);
  ends.ring.set_write_counter(10);
  EXPECT_EQ(error_of(ends.read(1)), kCorrupt) << "for good";
  EXPECT_EQ(error_of(ends.reader.begin(1)), kCorrupt);
  EXPECT_EQ(ends.reader.commit(0), kCorrupt);
  EXPECT_EQ(ends.ring.read_counter(), 4u) << "the reader wrote what is not to be written";
}

INSTANTIATE_TEST_SUITE_P(Writers, Q04_Counters,
                         ::testing::Values(Lie{22, "more than the ring holds"},
                                           Lie{11, "within an element"},
                                           Lie{8, "takes back what was seen"},
                                           Lie{2, "behind the reader"}, Lie{0, "reset"},
                                           Lie{std::numeric_limits<std::uint64_t>::max(), "absurd"},
                                           Lie{std::uint64_t{1} << 63, "absurd"}));

class Q04_ReadCounters : public ::testing::TestWithParam<Lie> {};

TEST_P(Q04_ReadCounters, GivenALyingReader_WhenItsCounterIsLookedAt_ThenTheWriterIsPoisoned) {
  UsedRing ends;
  ends.ring.set_read_counter(GetParam().counter);
  EXPECT_EQ(error_of(ends.writer.available()), kCorrupt);
  ends.ring.set_read_counter(4);
  EXPECT_EQ(ends.write({1}), kCorrupt);
  EXPECT_EQ(error_of(ends.writer.begin(1)), kCorrupt);
  EXPECT_EQ(ends.ring.write_counter(), 10u);
}

INSTANTIATE_TEST_SUITE_P(
    Readers, Q04_ReadCounters,
    ::testing::Values(Lie{12, "more than was written"}, Lie{5, "within an element"},
                      Lie{2, "takes back what was seen"},
                      Lie{std::numeric_limits<std::uint64_t>::max() - 1, "absurd"}));

TEST(Q04, GivenAnEndsOwnCounterOverwritten_WhenItGoesOn_ThenItTrustsItsPrivateOne) {
  UsedRing ends;
  ends.ring.set_write_counter(6000);
  ASSERT_TRUE(ends.write({5}));
  EXPECT_EQ(ends.ring.write_counter(), 12u);
  ends.ring.set_read_counter(7000);
  EXPECT_EQ(ends.read(4), (Items{2, 3, 4, 5}));
  EXPECT_EQ(ends.ring.read_counter(), 12u);
}

TEST(Q04, GivenCountersThatNoHonestPeerSets_WhenOpened_ThenItIsRefused) {
  struct Pair {
    std::uint64_t read, write;
  };
  for (const Pair lie : {Pair{0, 18}, Pair{2, 0}, Pair{1, 3}, Pair{0, 3},
                         Pair{(std::uint64_t{1} << 62) + 2, (std::uint64_t{1} << 62) + 2}}) {
    HeapRing ring(2, 8);
    ring.set_read_counter(lie.read);
    ring.set_write_counter(lie.write);
    EXPECT_FALSE(RingReader::open(ring.view(), kSync)) << lie.read << ' ' << lie.write;
    EXPECT_FALSE(RingWriter::open(ring.view(), kSync)) << lie.read << ' ' << lie.write;
  }
  HeapRing ring(2, 8);
  ring.set_write_counter(3);
  EXPECT_FALSE(RingReader::open(ring.view(), kUnsync));
}

TEST(Q04, GivenALyingUnsynchronisedWriter_WhenRead_ThenItIsCorruptOrOverflow) {
  Ends ends(8, kUnsync);
  ASSERT_TRUE(ends.write(counting(4)));
  EXPECT_EQ(ends.reader.available(), 4u);
  ends.ring.set_write_counter(kMaxCounter);
  EXPECT_EQ(error_of(ends.read(1)), kOverflow);
  EXPECT_LE(ends.reader.available().value_or(99), 8u);
  ends.ring.set_read_counter(std::numeric_limits<std::uint64_t>::max());  // the claim
  EXPECT_EQ(error_of(ends.read(1)), kOverflow);
  ends.ring.set_write_counter(kMaxCounter + 2);
  EXPECT_EQ(error_of(ends.read(1)), kCorrupt);
}

}  // namespace
}  // namespace penstock
