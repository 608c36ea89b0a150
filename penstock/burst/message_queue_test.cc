// SPDX-License-Identifier: Apache-2.0
//
// The typed queue: what may cross it, both ends in one process, and the bytes in the file.
#include "penstock/burst/message_queue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "penstock/burst/datum.h"

namespace penstock {
namespace {

constexpr auto kSync = QueueFlavor::kSynchronised;
constexpr auto kUnsync = QueueFlavor::kUnsynchronised;

// Plain old data of every kind.
enum class Word : std::int16_t { kOne = 1 };
struct Sample {
  std::int64_t time;
  float left, right;
  bool operator==(const Sample&) const = default;
};
union Either {
  std::uint32_t whole;
  std::uint8_t first;
};
}  // namespace
template <>
inline constexpr bool kHasNoPadding<Sample> = true;
template <>
inline constexpr bool kHasNoPadding<Either> = true;
namespace {
static_assert(PlainOldData<std::int8_t> && PlainOldData<char> && PlainOldData<char16_t> &&
              PlainOldData<std::int32_t> && PlainOldData<std::int64_t> && PlainOldData<float> &&
              PlainOldData<double> && PlainOldData<Word> && PlainOldData<Sample> &&
              PlainOldData<Either> && PlainOldData<FmqRequestDatum> &&
              PlainOldData<FmqResultDatum>);

// And what is refused when the program is compiled.
struct WithString {
  std::string text;
};
struct WithVirtual {
  virtual ~WithVirtual() = default;
};
struct WithConstructor {
  WithConstructor(const WithConstructor& other) : value(other.value + 1) {}
  int value = 0;
};
struct MixedAccess {
  int open = 0;

 private:
  [[maybe_unused]] int hidden_ = 0;
};
struct Nothing {};
struct Gap {
  std::uint8_t small;
  std::uint32_t large;
};
static_assert(!PlainOldData<std::string> && !PlainOldData<std::vector<int>> &&
              !PlainOldData<std::unique_ptr<int>> && !PlainOldData<WithString> &&
              !PlainOldData<WithVirtual> && !PlainOldData<WithConstructor> &&
              !PlainOldData<MixedAccess> && !PlainOldData<Nothing> && !PlainOldData<Gap> &&
              !PlainOldData<long double> && !PlainOldData<bool>);
static_assert(!PlainOldData<int*> && !PlainOldData<const char*> && !PlainOldData<int Sample::*> &&
              !PlainOldData<void (*)()> && !PlainOldData<std::nullptr_t> && !PlainOldData<int&> &&
              !PlainOldData<void> && !PlainOldData<const int> && !PlainOldData<volatile int> &&
              !PlainOldData<int[3]>);

template <typename T>
concept MakesAQueue = requires { typename MessageQueue<T, kSync>; };
static_assert(MakesAQueue<Sample> && !MakesAQueue<std::string> && !MakesAQueue<int*>);

// What waits for a reader exists in one flavour only, and only the writer makes the other's memory.
template <typename Writer>
concept WaitsForRoom = requires(Writer& writer, std::span<const int> items, Deadline deadline) {
  writer.write_blocking(items, deadline);
};
static_assert(WaitsForRoom<QueueWriter<int, kSync>> && !WaitsForRoom<QueueWriter<int, kUnsync>>);
template <typename Queue>
concept ReaderCreates = requires { Queue::create_reader({.elements = 1}); };
static_assert(ReaderCreates<MessageQueue<int, kSync>> &&
              !ReaderCreates<MessageQueue<int, kUnsync>>);

// Fails by not compiling; it stands here so that the clause's tests name what was checked.
TEST(Q02, GivenThePlainOldDataRule_WhenThisFileIsCompiled_ThenEachTypeIsTakenOrRefused) {
  SUCCEED() << "static_assert above";
}

template <typename T>
void expect_to_cross(const std::vector<T>& items) {
  using Queue = MessageQueue<T, kSync>;
  auto reader = Queue::create_reader({.elements = items.size() + 1});
  ASSERT_TRUE(reader) << reader.error().message();
  auto writer = Queue::attach_writer(reader->describe().value());
  ASSERT_TRUE(writer) << writer.error().message();
  ASSERT_TRUE(reader->settle());
  for (int round = 0; round < 3; ++round) {  // Goes round the ring's end.
    ASSERT_TRUE(writer->write(items));
    std::vector<T> got(items.size());
    ASSERT_TRUE(reader->read(got));
    EXPECT_EQ(got, items);
  }
}

TEST(Q02, GivenItemsOfManySizes_WhenTheyCross_ThenTheyAreTheSame) {
  expect_to_cross<std::uint8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13});
  expect_to_cross<char16_t>({u'a', u'b', u'c'});
  expect_to_cross<double>({1.5, -2.25});
  expect_to_cross<Word>({Word::kOne, Word{7}});
  expect_to_cross<Sample>({{1, 0.5F, -0.5F}, {2, 0.25F, 1.0F}, {3, 0.0F, 0.0F}});
}

TEST(Q02, GivenSlots_WhenFilledAndReadInPlace_ThenEachElementIsFoundAndNoneBeyond) {
  using Queue = MessageQueue<Sample, kSync>;
  auto writer = Queue::create_writer({.elements = 3});
  ASSERT_TRUE(writer) << writer.error().message();
  auto reader = Queue::attach_reader(writer->describe().value());
  ASSERT_TRUE(reader) << reader.error().message();
  ASSERT_TRUE(writer->settle());
  for (std::int64_t i = 0; i < 10; ++i) {
    auto empty = writer->begin_write(2);
    ASSERT_TRUE(empty);
    EXPECT_EQ(empty->size(), 2u);
    EXPECT_TRUE(empty->set(0, {i, 0.0F, 0.0F}));
    EXPECT_TRUE(empty->set(1, {-i, 0.0F, 0.0F}));
    EXPECT_FALSE(empty->set(2, {}));
    ASSERT_TRUE(writer->commit_write(2));
    auto filled = reader->begin_read(2);
    ASSERT_TRUE(filled);
    EXPECT_EQ(filled->get(0), (Sample{i, 0.0F, 0.0F}));
    std::vector<Sample> both(2);
    EXPECT_TRUE(filled->copy_to(both));
    EXPECT_EQ(both[1], (Sample{-i, 0.0F, 0.0F}));
    EXPECT_FALSE(filled->copy_to(both, 1));
    EXPECT_EQ(filled->get(2), std::nullopt);
    ASSERT_TRUE(reader->commit_read(2));
  }
}

TEST(Q01, GivenWrittenElements_WhenTheFileIsRead_ThenTheyLieBehindTheCounters) {
  using Queue = MessageQueue<std::uint32_t, kSync>;
  auto writer = Queue::create_writer({.elements = 4, .event_flag = true});
  ASSERT_TRUE(writer) << writer.error().message();
  const std::vector<std::uint32_t> items = {0x11111111, 0x22222222, 0x33333333};
  ASSERT_TRUE(writer->write_blocking(items, Deadline(TimePoint::min())));
  const QueueDescriptor descriptor = writer->describe().value();
  std::vector<std::uint32_t> words(9);
  ASSERT_EQ(::pread(descriptor.files.at(0).get(), words.data(), 36, 0), 36);
  EXPECT_EQ(words, (std::vector<std::uint32_t>{0, 0, 12, 0, 0x11111111, 0x22222222, 0x33333333, 0,
                                               EventFlag::kNotEmpty}));
}

// A second process that attaches must not make elements vanish, as it does in the reference.
TEST(Q01, GivenElementsWrittenBeforeAttaching_WhenAttached_ThenTheyAreRead) {
  using Queue = MessageQueue<int, kSync>;
  auto writer = Queue::create_writer({.elements = 4});
  ASSERT_TRUE(writer) << writer.error().message();
  ASSERT_TRUE(writer->write(std::vector{1, 2, 3}));
  auto reader = Queue::attach_reader(writer->describe().value());
  ASSERT_TRUE(reader) << reader.error().message();
  ASSERT_TRUE(writer->settle());
  std::vector<int> got(3);
  ASSERT_TRUE(reader->read(got));
  EXPECT_EQ(got, (std::vector{1, 2, 3}));
}

TEST(Q01, GivenSeveralReaders_WhenTheWriterGoesOn_ThenEachGetsAllOrIsTold) {
  using Queue = MessageQueue<int, kUnsync>;
  auto writer = Queue::create_writer({.elements = 4});
  ASSERT_TRUE(writer) << writer.error().message();
  auto first = Queue::attach_reader(writer->describe().value());
  auto second = Queue::attach_reader(writer->describe().value());
  ASSERT_TRUE(first && second);
  ASSERT_TRUE(writer->write(std::vector{1, 2, 3, 4}));
  std::vector<int> got(4);
  ASSERT_TRUE(first->read(got));
  EXPECT_EQ(got, (std::vector{1, 2, 3, 4}));
  ASSERT_TRUE(writer->write(std::vector{5}));
  EXPECT_EQ(second->read(got), std::unexpected(QueueError::kOverflow));
  EXPECT_EQ(first->available(), 1u);
  EXPECT_EQ(second->available(), 2u);
  EXPECT_EQ(writer->write(std::vector<int>(5)), std::unexpected(QueueError::kTooMany));
}

// Until the peer has attached it could punch holes, which this process would fill when it touches
// them.
TEST(Q04, GivenADescribedQueue_WhenItIsNotSettled_ThenItsCreatorTouchesNothing) {
  using Queue = MessageQueue<int, kSync>;
  auto reader = Queue::create_reader({.elements = 4, .event_flag = true});
  ASSERT_TRUE(reader) << reader.error().message();
  std::vector<int> items(1);
  EXPECT_EQ(reader->read(items), std::unexpected(QueueError::kEmpty));
  auto descriptor = reader->describe();
  ASSERT_TRUE(descriptor) << descriptor.error().message();
  EXPECT_FALSE(reader->settle()) << "nobody has attached";
  const Deadline past(TimePoint::min());
  const auto unsettled = std::unexpected(QueueError::kUnsettled);
  EXPECT_EQ(reader->read(items), unsettled);
  EXPECT_EQ(reader->read_blocking(items, past), unsettled);
  EXPECT_EQ(reader->available(), unsettled);
  EXPECT_EQ(reader->wait_for_items(1, past), unsettled);
  EXPECT_EQ(reader->commit_read(0), unsettled);
  auto writer = Queue::attach_writer(std::move(*descriptor));
  ASSERT_TRUE(writer) << writer.error().message();
  ASSERT_TRUE(reader->settle());
  EXPECT_EQ(reader->read(items), std::unexpected(QueueError::kEmpty));
}

TEST(Q04, GivenADescriptorOfAnotherType_WhenAttaching_ThenItIsRefused) {
  auto writer = MessageQueue<std::uint16_t, kSync>::create_writer({.elements = 8});
  ASSERT_TRUE(writer) << writer.error().message();
  EXPECT_FALSE((MessageQueue<std::uint64_t, kSync>::attach_reader(writer->describe().value())));
  EXPECT_FALSE((MessageQueue<std::uint16_t, kUnsync>::attach_reader(writer->describe().value())));
  EXPECT_TRUE((MessageQueue<std::uint16_t, kSync>::attach_reader(writer->describe().value())));
}

}  // namespace
}  // namespace penstock
