// SPDX-License-Identifier: Apache-2.0
//
// Packets against byte vectors written by hand from the published layout, and against every way of
// breaking one.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/burst/packet_channel.h"
#include "penstock/burst/request_packet.h"
#include "penstock/burst/result_packet.h"

namespace penstock {
namespace {

/// Bytes from hexadecimal digits; anything else separates.
std::vector<std::uint8_t> hex(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (std::string_view("0123456789abcdef").contains(c)) digits += c;
  }
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

template <typename Datum>
std::vector<std::uint8_t> bytes_of(const std::vector<Datum>& datums) {
  std::vector<std::uint8_t> bytes(datums.size() * sizeof(Datum));
  std::memcpy(bytes.data(), datums.data(), bytes.size());
  return bytes;
}

template <typename Datum>
std::vector<Datum> datums_of(const std::vector<std::uint8_t>& bytes) {
  std::vector<Datum> datums(bytes.size() / sizeof(Datum));
  std::memcpy(datums.data(), bytes.data(), datums.size() * sizeof(Datum));
  return datums;
}

// 1 input of rank 4, 1 output of rank 2, 1 output without a value, 2 pools, timing wanted.
BurstRequest example_request() {
  return {.inputs = {{.has_no_value = false,
                      .location = {.pool = 1, .offset = 0x10, .length = 0x4ce300},
                      .dimensions = {1, 0x280, 0x280, 3}}},
          .outputs = {{.has_no_value = false,
                       .location = {.pool = 0, .offset = 0, .length = 0x190},
                       .dimensions = {0, 0x64}},
                      {.has_no_value = true, .location = {}, .dimensions = {}}},
          .slots = {7, 0x01020304},
          .measure = MeasureTiming::kOn};
}

constexpr std::string_view kRequestBytes =
    "00 000000  0d000000 01000000 02000000 02000000 00000000"  // 13 datums, 1 input, 2 outputs, 2
                                                               // pools
    "01 000000  00 000000 01000000 10000000 00e34c00 04000000"
    "02 000000  01000000 00000000 00000000 00000000 00000000"
    "02 000000  80020000 00000000 00000000 00000000 00000000"
    "02 000000  80020000 00000000 00000000 00000000 00000000"
    "02 000000  03000000 00000000 00000000 00000000 00000000"
    "03 000000  00 000000 00000000 00000000 90010000 02000000"
    "04 000000  00000000 00000000 00000000 00000000 00000000"
    "04 000000  64000000 00000000 00000000 00000000 00000000"
    "03 000000  01 000000 00000000 00000000 00000000 00000000"
    "05 000000  07000000 00000000 00000000 00000000 00000000"
    "05 000000  04030201 00000000 00000000 00000000 00000000"
    "06 000000  01000000 00000000 00000000 00000000 00000000";

BurstResult example_result() {
  return {.status = ErrorStatus::kNone,
          .shapes = {{.dimensions = {1, 0x64}, .is_sufficient = true},
                     {.dimensions = {}, .is_sufficient = false}},
          .timing = {.time_on_device = 0x1234, .time_in_driver = 0x0102030405060708}};
}

constexpr std::string_view kResultBytes =
    "00 00000000000000  06000000 00000000 02000000 00000000"
    "01 00000000000000  01 000000 02000000 00000000 00000000"
    "02 00000000000000  01000000 00000000 00000000 00000000"
    "02 00000000000000  64000000 00000000 00000000 00000000"
    "01 00000000000000  00 000000 00000000 00000000 00000000"
    "03 00000000000000  3412000000000000 0807060504030201";

TEST(X02, GivenARequest_WhenSerialised_ThenItIsThePublishedLayoutByteForByte) {
  EXPECT_EQ(bytes_of(serialise(example_request())), hex(kRequestBytes));
}

TEST(X02, GivenTheBytesOfARequest_WhenParsed_ThenEveryFieldIsThere) {
  EXPECT_EQ(parse_request(datums_of<FmqRequestDatum>(hex(kRequestBytes))), example_request());
}

TEST(X02, GivenAResult_WhenSerialised_ThenItIsThePublishedLayoutByteForByte) {
  EXPECT_EQ(bytes_of(serialise(example_result())), hex(kResultBytes));
}

TEST(X02, GivenTheBytesOfAResult_WhenParsed_ThenEveryFieldIsThere) {
  EXPECT_EQ(parse_result(datums_of<FmqResultDatum>(hex(kResultBytes))), example_result());
}

TEST(X02, GivenTheReferencesExample_WhenSerialised_ThenItHasItsSizes) {
  const RequestArgument rank4 = {.has_no_value = false, .location = {}, .dimensions = {1, 2, 3, 4}};
  const BurstRequest request = {
      .inputs = {rank4}, .outputs = {rank4}, .slots = {0, 1}, .measure = {}};
  EXPECT_EQ(bytes_of(serialise(request)).size(), 336u);
  const BurstResult result = {.status = ErrorStatus::kNone,
                              .shapes = {{.dimensions = {1, 2, 3, 4}, .is_sufficient = true}},
                              .timing = {}};
  EXPECT_EQ(bytes_of(serialise(result)).size(), 168u);
  EXPECT_EQ(bytes_of(serialise(BurstResult{})).size(), 48u);
}

// An argument without a value that has been filled in all the same must not tell of anything.
TEST(X02, GivenNoValueButFields_WhenSerialised_ThenTheyAreZero) {
  const BurstRequest request = {.inputs = {{.has_no_value = true,
                                            .location = {.pool = 9, .offset = 9, .length = 9},
                                            .dimensions = {9}}},
                                .outputs = {},
                                .slots = {},
                                .measure = MeasureTiming::kOff};
  EXPECT_EQ(bytes_of(serialise(request)),
            hex("00 000000  03000000 01000000 00000000 00000000 00000000"
                "01 000000  01 000000 00000000 00000000 00000000 00000000"
                "06 000000  00000000 00000000 00000000 00000000 00000000"));
}

TEST(X02, GivenRubbishInThePadding_WhenParsed_ThenItIsIgnored) {
  auto bytes = hex(kRequestBytes);
  for (std::size_t datum = 0; datum < bytes.size(); datum += 24) {
    for (std::size_t i = 1; i < 4; ++i) bytes[datum + i] = 0xee;
  }
  for (std::size_t i = 20; i < 24; ++i) bytes[i] = 0xee;      // packetInformation's rest
  for (std::size_t i = 5; i < 8; ++i) bytes[24 + i] = 0xee;   // behind hasNoValue
  for (std::size_t i = 8; i < 24; ++i) bytes[48 + i] = 0xee;  // behind a dimension
  EXPECT_EQ(parse_request(datums_of<FmqRequestDatum>(bytes)), example_request());
}

template <typename Datum, typename Parse>
void expect_no_part_can_go(const std::vector<Datum>& whole, Parse parse) {
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::vector<Datum> less = whole;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(parse(less)) << i << " removed";
    if (i > 0)
      less.front().packet_information.packet_size = static_cast<std::uint32_t>(less.size());
    EXPECT_FALSE(parse(less)) << i << " removed and the size corrected";
    std::vector<Datum> more = whole;
    more.insert(more.begin() + static_cast<std::ptrdiff_t>(i), whole[i]);
    more.front().packet_information.packet_size = static_cast<std::uint32_t>(more.size());
    EXPECT_FALSE(parse(more)) << i << " doubled";
  }
}

TEST(X02, GivenARequest_WhenAnyDatumIsRemovedOrDoubled_ThenItIsRefused) {
  expect_no_part_can_go(serialise(example_request()), parse_request);
}

TEST(X02, GivenAResult_WhenAnyDatumIsRemovedOrDoubled_ThenItIsRefused) {
  expect_no_part_can_go(serialise(example_result()), parse_result);
}

struct Breakage {
  const char* name;
  std::size_t byte;  // Of kRequestBytes or kResultBytes.
  std::uint8_t value;
  PacketError expected;
};

class X02_Request : public ::testing::TestWithParam<Breakage> {};

TEST_P(X02_Request, GivenOneBrokenField_WhenParsed_ThenTheFaultIsNamed) {
  auto bytes = hex(kRequestBytes);
  bytes.at(GetParam().byte) = GetParam().value;
  const auto parsed = parse_request(datums_of<FmqRequestDatum>(bytes));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error(), GetParam().expected) << message_of(parsed.error());
}

INSTANTIATE_TEST_SUITE_P(
    Fields, X02_Request,
    ::testing::Values(Breakage{"FirstKind", 0, 5, {PacketFault::kNoPacketInfo, 0}},
                      Breakage{"SizeLess", 4, 12, {PacketFault::kWrongSize, 0}},
                      Breakage{"SizeMore", 7, 0xff, {PacketFault::kWrongSize, 0}},
                      Breakage{"InputsAbsurd", 11, 0xff, {PacketFault::kTooManyParts, 0}},
                      Breakage{"OutputsAbsurd", 15, 0x7f, {PacketFault::kTooManyParts, 0}},
                      Breakage{"PoolsAbsurd", 19, 0xff, {PacketFault::kTooManyParts, 0}},
                      Breakage{"InputsMore", 8, 2, {PacketFault::kUnexpectedKind, 6}},
                      Breakage{"PoolsLess", 16, 1, {PacketFault::kUnexpectedKind, 11}},
                      Breakage{"PoolsMore", 16, 3, {PacketFault::kUnexpectedKind, 12}},
                      Breakage{"KindUnknown", 24, 200, {PacketFault::kUnexpectedKind, 1}},
                      Breakage{"KindOfOutput", 24, 3, {PacketFault::kUnexpectedKind, 1}},
                      Breakage{"DimensionsAbsurd", 24 + 23, 0xff, {PacketFault::kTooManyParts, 1}},
                      Breakage{"DimensionsMore", 24 + 20, 5, {PacketFault::kUnexpectedKind, 6}},
                      Breakage{"Boolean", 24 + 4, 2, {PacketFault::kBadBoolean, 1}},
                      Breakage{"BooleanOfOutput", 220, 0xff, {PacketFault::kBadBoolean, 9}},
                      Breakage{"Measure", 292, 2, {PacketFault::kBadMeasure, 12}},
                      Breakage{"MeasureNegative", 295, 0x80, {PacketFault::kBadMeasure, 12}}),
    [](const auto& given) { return given.param.name; });

class X02_Result : public ::testing::TestWithParam<Breakage> {};

TEST_P(X02_Result, GivenOneBrokenField_WhenParsed_ThenTheFaultIsNamed) {
  auto bytes = hex(kResultBytes);
  bytes.at(GetParam().byte) = GetParam().value;
  const auto parsed = parse_result(datums_of<FmqResultDatum>(bytes));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error(), GetParam().expected) << message_of(parsed.error());
}

INSTANTIATE_TEST_SUITE_P(
    Fields, X02_Result,
    ::testing::Values(Breakage{"FirstKind", 0, 3, {PacketFault::kNoPacketInfo, 0}},
                      Breakage{"Size", 8, 7, {PacketFault::kWrongSize, 0}},
                      Breakage{"Status", 12, 9, {PacketFault::kBadStatus, 0}},
                      Breakage{"StatusNegative", 15, 0xff, {PacketFault::kBadStatus, 0}},
                      Breakage{"OperandsAbsurd", 19, 0xff, {PacketFault::kTooManyParts, 0}},
                      Breakage{"OperandsLess", 16, 1, {PacketFault::kUnexpectedKind, 4}},
                      Breakage{"Boolean", 24 + 8, 2, {PacketFault::kBadBoolean, 1}},
                      Breakage{"DimensionsAbsurd", 24 + 15, 0xff, {PacketFault::kTooManyParts, 1}},
                      Breakage{"Timing", 120, 2, {PacketFault::kUnexpectedKind, 5}}),
    [](const auto& given) { return given.param.name; });

TEST(X02, GivenNoDatums_WhenParsed_ThenTheyAreRefused) {
  EXPECT_EQ(parse_request({}).error(), (PacketError{PacketFault::kEmpty, 0}));
  EXPECT_EQ(parse_result({}).error(), (PacketError{PacketFault::kEmpty, 0}));
}

TEST(X02, GivenTwoPacketsInARow_WhenParsed_ThenTheyAreRefusedTogether) {
  auto twice = serialise(example_request());
  const auto second = twice;
  twice.insert(twice.end(), second.begin(), second.end());
  EXPECT_EQ(parse_request(twice).error().fault, PacketFault::kWrongSize);
  twice.front().packet_information.packet_size = static_cast<std::uint32_t>(twice.size());
  EXPECT_EQ(parse_request(twice).error(), (PacketError{PacketFault::kTrailing, 13}));
}

TEST(X02, GivenEachStatus_WhenItCrosses_ThenOnlyTheTwoThatMayHaveShapes) {
  for (std::int32_t value = 0; value <= 8; ++value) {
    BurstResult result = example_result();
    result.status = static_cast<ErrorStatus>(value);
    const auto crossed = parse_result(serialise(result));
    ASSERT_TRUE(crossed) << value;
    EXPECT_EQ(static_cast<std::int32_t>(crossed->status), value);
    const bool has_shapes = value == 0 || value == 3;
    EXPECT_EQ(crossed->shapes.size(), has_shapes ? 2u : 0u) << value;
    EXPECT_EQ(crossed->timing == example_result().timing, value == 0);
  }
}

// What a peer sends beside a status that may not have it is dropped.
TEST(X02, GivenShapesAndTimesOfAFailure_WhenParsed_ThenTheyAreDropped) {
  auto bytes = hex(kResultBytes);
  bytes[12] = 2;  // GENERAL_FAILURE
  EXPECT_EQ(parse_result(datums_of<FmqResultDatum>(bytes)), BurstResult{});
}

BurstRequest random_request(std::mt19937& source) {
  const auto random = [&source] { return static_cast<std::uint32_t>(source()); };
  const auto argument = [&random]() -> RequestArgument {
    if (random() % 5 == 0) return {.has_no_value = true, .location = {}, .dimensions = {}};
    std::vector<std::uint32_t> dimensions(random() % 6);
    for (auto& dimension : dimensions) dimension = random();
    return {.has_no_value = false,
            .location = {.pool = random() % 4, .offset = random(), .length = random()},
            .dimensions = dimensions};
  };
  BurstRequest request;
  request.inputs.resize(random() % 5);
  request.outputs.resize(random() % 5);
  request.slots.resize(random() % 5);
  for (auto& input : request.inputs) input = argument();
  for (auto& output : request.outputs) output = argument();
  for (auto& slot : request.slots) slot = static_cast<std::int32_t>(random());
  request.measure = random() % 2 == 0 ? MeasureTiming::kOff : MeasureTiming::kOn;
  return request;
}

TEST(X02, GivenRandomRequests_WhenTheyCross_ThenTheyAreTheSame) {
  std::mt19937 random(20261130);
  for (int i = 0; i < 500; ++i) {
    const BurstRequest request = random_request(random);
    EXPECT_EQ(parse_request(serialise(request)), request);
  }
}

// The two queues of a burst, as its client makes them.
TEST(X02, GivenAQueueWithAFlag_WhenAPacketIsSent_ThenOneWritePublishesItAndTheReaderIsWoken) {
  using Queue = MessageQueue<FmqRequestDatum, QueueFlavor::kSynchronised>;
  auto writer = Queue::create_writer({.elements = kBurstChannelLength, .event_flag = true});
  ASSERT_TRUE(writer) << writer.error().message();
  auto reader = Queue::attach_reader(writer->describe().value());
  ASSERT_TRUE(reader) << reader.error().message();
  ASSERT_TRUE(writer->settle());
  const auto packet = serialise(example_request());
  const Deadline deadline = Deadline::after(Clock::system(), std::chrono::seconds(5));
  ASSERT_TRUE(send_packet<FmqRequestDatum>(*writer, packet));
  EXPECT_EQ(reader->available(), packet.size());
  EXPECT_EQ(wait_for_bits(reader->event_flag().value(), EventFlag::kNotEmpty, deadline,
                          *reader->end().lifeline()),
            EventFlag::kNotEmpty);
  const auto received = receive_packet(*reader, deadline);
  ASSERT_TRUE(received);
  EXPECT_EQ(bytes_of(*received), bytes_of(packet));
}

TEST(X02, GivenAQueueWithoutAFlag_WhenAPacketIsSent_ThenItCrossesByPolling) {
  using Queue = MessageQueue<FmqResultDatum, QueueFlavor::kSynchronised>;
  auto writer = Queue::create_writer({.elements = 8});
  ASSERT_TRUE(writer) << writer.error().message();
  auto reader = Queue::attach_reader(writer->describe().value());
  ASSERT_TRUE(reader) << reader.error().message();
  ASSERT_TRUE(writer->settle());
  const auto packet = serialise(example_result());
  const Deadline deadline = Deadline::after(Clock::system(), std::chrono::seconds(5));
  ASSERT_TRUE(send_packet<FmqResultDatum>(*writer, packet));
  EXPECT_EQ(send_packet<FmqResultDatum>(*writer, packet), std::unexpected(QueueError::kFull));
  const auto received = receive_packet(*reader, deadline);
  ASSERT_TRUE(received);
  EXPECT_EQ(parse_result(*received), example_result());
  EXPECT_EQ(send_packet<FmqResultDatum>(*writer, std::vector<FmqResultDatum>(9)),
            std::unexpected(QueueError::kTooMany));
}

}  // namespace
}  // namespace penstock
