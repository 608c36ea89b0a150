// SPDX-License-Identifier: Apache-2.0
//
// Messages between the ends of a burst: what is sent arrives, and nothing else is taken for a
// message (contract X04, Q04).
#include "penstock/burst/control_messages.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "penstock/burst/datum.h"
#include "penstock/memory/shared_mapping.h"

namespace penstock {
namespace {

UniqueFd a_file() {
  auto file = create_shared_file(4096);
  EXPECT_TRUE(file);
  return std::move(file).value();
}

QueueDescriptor a_queue() {
  auto writer = MessageQueue<FmqRequestDatum, QueueFlavor::kSynchronised>::create_writer({8, true});
  EXPECT_TRUE(writer);
  auto described = writer->describe();
  EXPECT_TRUE(described);
  return std::move(described).value();
}

ino_t identity(const UniqueFd& file) {
  struct stat info{};
  EXPECT_EQ(::fstat(file.get(), &info), 0);
  return info.st_ino;
}

/// As a socket would hand it over.
FdMessage arrived(const EncodedControl& encoded) {
  FdMessage message{.bytes = encoded.bytes, .files = {}};
  for (const int file : encoded.files) message.files.emplace_back(::dup(file));
  return message;
}

std::vector<ControlMessage> one_of_each() {
  std::vector<ControlMessage> all;
  all.push_back({1, ConfigureMessage{.model = "nanodet",
                                     .poll_window = Nanoseconds(50'000),
                                     .execution_limit = Milliseconds(900),
                                     .requests = a_queue(),
                                     .results = a_queue()}});
  all.push_back(
      {1, ConfiguredMessage{.status = ErrorStatus::kNone,
                            .message = {},
                            .artefact_hash = "abcd",
                            .generation = 7,
                            .inputs = {{"in",
                                        DataType::kUint8,
                                        TensorLayout::kNhwc,
                                        {Dimension::fixed(1), {1, 640, "height"}}}},
                            .outputs = {{"a", DataType::kBool, TensorLayout::kAny, {}},
                                        {"b", DataType::kInt64, TensorLayout::kAny, {}}}}});
  all.push_back({9, GetMemoriesMessage{{0, 5, 2147483647}}});
  MemoriesMessage memories{.status = ErrorStatus::kNone, .memories = {}};
  memories.memories.push_back({MemoryKind::kSharedFile, MemoryAccess::kRead, 0, 4096, a_file()});
  memories.memories.push_back(
      {MemoryKind::kSharedFile, MemoryAccess::kReadWrite, 8192, std::uint64_t{1} << 40, a_file()});
  all.push_back({9, std::move(memories)});
  all.push_back({0, FreeMemoryMessage{3}});
  all.push_back({4, ExecuteMessage{a_file()}});
  all.push_back({4, ExecutedMessage{a_file()}});
  all.push_back({0, ClosingMessage{"the server stops"}});
  all.push_back({2, DescribeMessage{"nanodet"}});
  return all;
}

TEST(X04_Control, GivenAConfiguration_WhenItCrosses_ThenQueuesAndTimesAreTheSame) {
  const ControlMessage sent = std::move(one_of_each().at(0));
  const auto encoded = encode(sent);
  ASSERT_TRUE(encoded);
  auto came = decode_control(arrived(*encoded));
  ASSERT_TRUE(came) << came.error().message();
  const auto& was = std::get<ConfigureMessage>(sent.body);
  const auto& is = std::get<ConfigureMessage>(came->body);
  EXPECT_EQ(came->id, 1u);
  EXPECT_EQ(is.model, "nanodet");
  EXPECT_EQ(is.poll_window, Nanoseconds(50'000));
  EXPECT_EQ(is.execution_limit, Milliseconds(900));
  EXPECT_EQ(encode(is.requests), encode(was.requests));
  ASSERT_EQ(is.results.files.size(), 1u);
  EXPECT_EQ(identity(is.requests.files[0]), identity(was.requests.files[0]));
  EXPECT_EQ(identity(is.results.files[0]), identity(was.results.files[0]));
}

TEST(X04_Control, GivenSpecifications_WhenTheyCross_ThenNamesTypesAndRangesAreTheSame) {
  const auto encoded = encode(one_of_each().at(1));
  ASSERT_TRUE(encoded);
  auto came = decode_control(arrived(*encoded));
  ASSERT_TRUE(came) << came.error().message();
  const auto& is = std::get<ConfiguredMessage>(came->body);
  EXPECT_EQ(is.generation, 7u);
  EXPECT_EQ(is.artefact_hash, "abcd");
  ASSERT_EQ(is.inputs.size(), 1u);
  EXPECT_EQ(is.inputs[0].name, "in");
  EXPECT_EQ(is.inputs[0].type, DataType::kUint8);
  EXPECT_EQ(is.inputs[0].layout, TensorLayout::kNhwc);
  ASSERT_EQ(is.inputs[0].dims.size(), 2u);
  EXPECT_EQ(is.inputs[0].dims[1].maximum, 640);
  EXPECT_EQ(is.inputs[0].dims[1].symbol, "height");
  ASSERT_EQ(is.outputs.size(), 2u);
  EXPECT_EQ(is.outputs[1].type, DataType::kInt64);
}

TEST(X04_Control, GivenMemories_WhenTheyCross_ThenEachHasItsFile) {
  const ControlMessage sent = std::move(one_of_each().at(3));
  const auto encoded = encode(sent);
  ASSERT_TRUE(encoded);
  auto came = decode_control(arrived(*encoded));
  ASSERT_TRUE(came) << came.error().message();
  const auto& was = std::get<MemoriesMessage>(sent.body).memories;
  const auto& is = std::get<MemoriesMessage>(came->body).memories;
  ASSERT_EQ(is.size(), 2u);
  EXPECT_EQ(is[1].access, MemoryAccess::kReadWrite);
  EXPECT_EQ(is[1].offset, 8192u);
  EXPECT_EQ(is[1].size, std::uint64_t{1} << 40);
  EXPECT_EQ(identity(is[0].file), identity(was[0].file));
  EXPECT_EQ(identity(is[1].file), identity(was[1].file));
}

TEST(Q04_Control, GivenAMessageCutAnywhere_WhenDecoded_ThenItIsRefused) {
  for (const ControlMessage& message : one_of_each()) {
    const auto encoded = encode(message);
    ASSERT_TRUE(encoded);
    ASSERT_TRUE(decode_control(arrived(*encoded))) << message.body.index();
    for (std::size_t size = 0; size < encoded->bytes.size(); ++size) {
      FdMessage cut = arrived(*encoded);
      cut.bytes.resize(size);
      const auto came = decode_control(std::move(cut));
      ASSERT_FALSE(came) << message.body.index() << " of " << size << " bytes";
      EXPECT_EQ(came.error().kind(), ErrorKind::kCorrupt);
    }
    FdMessage longer = arrived(*encoded);
    longer.bytes.push_back(std::byte{0});
    EXPECT_FALSE(decode_control(std::move(longer)));
  }
}

TEST(Q04_Control, GivenAnotherNumberOfFiles_WhenDecoded_ThenItIsRefused) {
  for (const ControlMessage& message : one_of_each()) {
    const auto encoded = encode(message);
    ASSERT_TRUE(encoded);
    FdMessage more = arrived(*encoded);
    more.files.push_back(a_file());
    EXPECT_FALSE(decode_control(std::move(more))) << message.body.index();
    // Also when the header agrees.
    FdMessage agreed = arrived(*encoded);
    agreed.files.push_back(a_file());
    agreed.bytes.at(12) = static_cast<std::byte>(agreed.files.size());
    EXPECT_FALSE(decode_control(std::move(agreed))) << message.body.index();
    if (encoded->files.empty()) continue;
    FdMessage fewer = arrived(*encoded);
    fewer.files.pop_back();
    fewer.bytes.at(12) = static_cast<std::byte>(fewer.files.size());
    EXPECT_FALSE(decode_control(std::move(fewer))) << message.body.index();
  }
}

TEST(Q04_Control, GivenAnotherVersionTypeOrMagic_WhenDecoded_ThenItIsNamed) {
  const auto encoded = encode(one_of_each().at(4));
  ASSERT_TRUE(encoded);
  const auto refusal = [&](std::size_t at, int value) {
    FdMessage changed = arrived(*encoded);
    changed.bytes.at(at) = static_cast<std::byte>(value);
    const auto came = decode_control(std::move(changed));
    return came ? std::string("taken") : came.error().message();
  };
  EXPECT_NE(refusal(0, 1).find("PnBc"), std::string::npos);
  EXPECT_NE(refusal(4, 2).find("version 2"), std::string::npos);
  EXPECT_NE(refusal(6, 99).find("type 99"), std::string::npos);
}

TEST(Q04_Control, GivenAnyBytesChanged_WhenDecoded_ThenNothingWorseThanARefusalHappens) {
  std::mt19937 random(20261201);
  for (const ControlMessage& message : one_of_each()) {
    const auto encoded = encode(message);
    ASSERT_TRUE(encoded);
    for (int round = 0; round < 500; ++round) {
      FdMessage changed = arrived(*encoded);
      const auto at =
          std::uniform_int_distribution<std::size_t>(0, changed.bytes.size() - 1)(random);
      changed.bytes.at(at) = static_cast<std::byte>(random() & 0xff);
      if (round % 3 == 0) changed.bytes.at((at + 1) % changed.bytes.size()) = std::byte{0xff};
      const auto came = decode_control(std::move(changed));
      if (!came) continue;
      // What is taken can be said again.
      EXPECT_TRUE(encode(*came));
    }
  }
}

TEST(X04_Control, GivenMoreSpecificationsThanAMessageHolds_WhenEncoded_ThenItIsAnError) {
  ConfiguredMessage message;
  message.inputs.assign(400, TensorSpec{std::string(200, 'n'), {}, {}, {}});
  const auto encoded = encode({1, std::move(message)});
  ASSERT_FALSE(encoded);
  EXPECT_EQ(encoded.error().kind(), ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
