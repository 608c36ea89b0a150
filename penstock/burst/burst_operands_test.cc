// SPDX-License-Identifier: Apache-2.0
//
// Operands of every width: of one dimension and 16 bits, and such as a client changes after they
// were checked (contract X03, X05).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/burst/packet_channel.h"
#include "penstock/burst/request_packet.h"
#include "penstock/burst/result_packet.h"
#include "penstock/burst/testing/raw_burst.h"
#include "penstock/memory/shared_mapping.h"

namespace penstock {
namespace {

using testing::soon;
using testing::Way;

/// Answers with its inputs as they were when the run had begun, under other names.
class CopyingSession final : public Session {
 public:
  explicit CopyingSession(std::vector<TensorSpec> specs)
      : device_(*open_device({DeviceKind::kCpu, 0})), inputs_(std::move(specs)) {
    for (TensorSpec output : inputs_) {
      output.name += "-out";
      outputs_.push_back(std::move(output));
    }
  }
  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  Result<std::vector<Tensor>> run(std::span<const Tensor> given) override {
    if (before) before();
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < given.size(); ++i) {
      PENSTOCK_TRY(check(given[i], inputs_.at(i), device_->id()));
      const StorageRegion& data = given[i].data;
      auto storage = *device_->allocate(data.size);
      std::memcpy(storage->host_bytes().data(),
                  data.storage->host_bytes().subspan(data.offset, data.size).data(), data.size);
      out.push_back({.name = outputs_[i].name,
                     .type = given[i].type,
                     .shape = given[i].shape,
                     .data = {.storage = std::move(storage), .offset = 0, .size = data.size},
                     .ready = {}});
    }
    if (after) after();
    return out;
  }
  void interrupt() override {}

  std::function<void()> before, after;

 private:
  DevicePtr device_;
  const std::vector<TensorSpec> inputs_;
  std::vector<TensorSpec> outputs_;
};

/// Serves a CopyingSession, and keeps a file for each of its operands.
class OperandTest : public testing::BurstTest {
 protected:
  void SetUp() override {}

  void serve_copies(std::vector<TensorSpec> specs) {
    copying_ = std::make_shared<CopyingSession>(std::move(specs));
    device_ = *open_device({DeviceKind::kCpu, 0});
    auto model = SessionModel::create(
        device_, [copying = copying_]() -> Result<std::shared_ptr<Session>> { return copying; },
        {.name = "small"});
    ASSERT_TRUE(model) << model.error().message();
    model_ = *model;
    if (GetParam() == Way::kInProcess) return;
    auto host = BurstHost::listen(socket(), {{"small", model_}});
    ASSERT_TRUE(host) << host.error().message();
    host_ = std::move(*host);
  }

  /// An input of `count` elements of `width` bytes, `from` the beginning of its file on, and its
  /// output.
  void add(std::size_t count, std::size_t width, std::uint32_t from = 0) {
    const auto length = static_cast<std::uint32_t>(count * width);
    ins_.push_back(file(from + length, MapAccess::kRead));
    outs_.push_back(file(from + length, MapAccess::kReadWrite));
    execution_.inputs.push_back({.memory = ins_.back(),
                                 .offset = from,
                                 .length = length,
                                 .dimensions = {static_cast<std::uint32_t>(count)}});
    execution_.outputs.push_back({.memory = outs_.back(), .offset = from, .length = length});
  }
  static std::span<std::byte> place(const BurstClient::Argument& at) {
    return at.memory->bytes().subspan(at.offset, at.length);
  }
  ErrorStatus run() {
    execution_.deadline = soon();
    const auto done = client().execute(execution_);
    EXPECT_TRUE(done) << done.error().message;
    if (!done) return ErrorStatus::kGeneralFailure;
    last_ = done->result;
    return last_.status;
  }

  std::shared_ptr<CopyingSession> copying_;
  std::vector<std::shared_ptr<SharedFile>> ins_, outs_;
  BurstClient::Execution execution_;
  BurstResult last_;
};
using X03_Operands = OperandTest;
using X05_Operands = OperandTest;
const auto kWays = ::testing::Values(Way::kInProcess, Way::kSocket);
INSTANTIATE_TEST_SUITE_P(Burst, X03_Operands, kWays, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Burst, X05_Operands, kWays, testing::name_of);

/// No two of its neighbours are alike.
std::byte pattern(std::size_t i) { return static_cast<std::byte>(i * 7 + i / 256); }

void fill(std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern(i);
}
bool has_pattern(std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern(i)) return false;
  }
  return true;
}

std::vector<TensorSpec> halves() {
  return {{"halves", DataType::kFloat16, TensorLayout::kAny, {{1, 5000, "n"}}}};
}

TEST_P(X05_Operands, GivenHalvesOfOneDimension_WhenExecuted_ThenEveryByteCrossesAndNoneBesides) {
  serve_copies(halves());
  // One, an odd number, one that is copied, one that is used where it lies; at an odd element, too.
  for (const std::size_t count : {1, 3, 2047, 4999}) {
    for (const std::uint32_t from : {0U, 2U, 6U}) {
      execution_ = {};
      add(count, 2, from);
      fill(place(execution_.inputs[0]));
      ASSERT_EQ(run(), ErrorStatus::kNone) << count << " from " << from;
      ASSERT_EQ(last_.shapes.size(), 1u);
      EXPECT_EQ(last_.shapes[0].dimensions,
                std::vector<std::uint32_t>{static_cast<std::uint32_t>(count)});
      EXPECT_TRUE(has_pattern(place(execution_.outputs[0]))) << count << " from " << from;
      const auto all = outs_.back()->bytes();
      const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
      EXPECT_TRUE(std::ranges::all_of(all.first(from), is_zero));
      EXPECT_TRUE(std::ranges::all_of(all.subspan(from + 2 * count), is_zero));
    }
  }
}

TEST_P(X05_Operands, GivenHalvesThatDoNotFit_WhenExecuted_ThenThatIsSaid) {
  serve_copies(halves());
  add(3, 2);
  fill(place(execution_.inputs[0]));
  execution_.outputs[0].length = 5;
  EXPECT_EQ(run(), ErrorStatus::kOutputInsufficientSize) << "a byte less";
  EXPECT_EQ(last_.shapes.at(0).dimensions, std::vector<std::uint32_t>{3});
  execution_.outputs[0].length = 6;
  execution_.inputs[0].offset = 1;
  EXPECT_EQ(run(), ErrorStatus::kInvalidArgument) << "half an element on";
  execution_.inputs[0].offset = 0;
  execution_.inputs[0].length = 5;
  EXPECT_EQ(run(), ErrorStatus::kInvalidArgument) << "two and a half of them";
  execution_.inputs[0].length = 6;
  EXPECT_EQ(run(), ErrorStatus::kNone);
}

TEST_P(X03_Operands, GivenOperands_WhenTheClientChangesAllDuringTheRun_ThenWhatWasCheckedIsUsed) {
  const auto of = [](const char* name, DataType type, std::int64_t count) {
    return TensorSpec{name, type, TensorLayout::kAny, {Dimension::fixed(count)}};
  };
  // Of those that decide something, one that is too large to be copied for its size alone.
  serve_copies({of("flags", DataType::kBool, 5000), of("places", DataType::kInt32, 5000),
                of("indices", DataType::kInt64, 5000), of("scales", DataType::kFloat32, 4),
                of("halves", DataType::kFloat16, 7), of("bytes", DataType::kUint8, 4095),
                of("pixels", DataType::kUint8, 5000)});
  add(5000, 1);
  add(5000, 4);
  add(5000, 8);
  add(4, 4);
  add(7, 2);
  add(4095, 1);
  add(5000, 1);
  std::ranges::fill(place(execution_.inputs[0]), std::byte{1});
  for (std::size_t i = 1; i < execution_.inputs.size(); ++i) fill(place(execution_.inputs[i]));
  const auto scribble = [](const std::vector<std::shared_ptr<SharedFile>>& files) {
    for (const auto& one : files) std::ranges::fill(one->bytes(), std::byte{0xee});
  };
  copying_->before = [&] {
    scribble(ins_);
    scribble(outs_);
  };
  copying_->after = copying_->before;
  ASSERT_EQ(run(), ErrorStatus::kNone);
  const auto flags = place(execution_.outputs[0]);
  EXPECT_TRUE(std::ranges::all_of(flags, [](std::byte flag) { return flag == std::byte{1}; }));
  for (std::size_t i = 1; i + 1 < execution_.outputs.size(); ++i) {
    EXPECT_TRUE(has_pattern(place(execution_.outputs[i]))) << copying_->inputs()[i].name;
  }
  const auto pixels = place(execution_.outputs.back());
  EXPECT_TRUE(std::ranges::all_of(pixels, [](std::byte pixel) { return pixel == std::byte{0xee}; }))
      << "they are used where they lie";
}

/// Shows the file of the inputs as slot 0 and that of the outputs as slot 1.
class TwoFiles final : public BurstCallback {
 public:
  Memories get_memories(std::span<const std::int32_t> slots, Deadline) override {
    Memories memories{.status = ErrorStatus::kNone, .memories = {}};
    for (const std::int32_t slot : slots) {
      const auto& shown = slot == 0 ? in : out;
      memories.memories.push_back({MemoryKind::kSharedFile,
                                   slot == 0 ? MemoryAccess::kRead : MemoryAccess::kReadWrite, 0,
                                   shown->size(), std::move(*shown->duplicate())});
    }
    return memories;
  }
  std::shared_ptr<SharedFile> in = *SharedFile::create(4096, MapAccess::kRead);
  std::shared_ptr<SharedFile> out = *SharedFile::create(4096, MapAccess::kReadWrite);
};

using X03_Packet = testing::RawQueues;

TEST_F(X03_Packet, GivenARequest_WhenTheClientChangesItInTheRingDuringTheRun_ThenItsCopyIsUsed) {
  const auto copying = std::make_shared<CopyingSession>(halves());
  const auto model = SessionModel::create(
      *open_device({DeviceKind::kCpu, 0}),
      [&]() -> Result<std::shared_ptr<Session>> { return copying; }, {.name = "small"});
  ASSERT_TRUE(model) << model.error().message();
  const auto files = std::make_shared<TwoFiles>();
  auto configuration = configuration_with(files);
  const Grantor ring =
      configuration.requests.grantors.at(static_cast<std::size_t>(QueuePart::kRing));
  const auto mapping = SharedMapping::map(configuration.requests.files.at(0),
                                          ring.offset + ring.extent, MapAccess::kReadWrite);
  ASSERT_TRUE(mapping) << mapping.error().message();
  keep((*model)->configure_burst(std::move(configuration)));

  const auto packet = serialise(BurstRequest{.inputs = {{false, {0, 64, 16}, {8}}},
                                             .outputs = {{false, {1, 32, 16}, {}}},
                                             .slots = {0, 1},
                                             .measure = MeasureTiming::kOff});
  const std::span<std::byte> packets{mapping->data() + ring.offset, ring.extent};
  const std::span<const std::byte> sent = std::as_bytes(std::span(packet));
  bool was_there = false;
  copying->before = [&] {
    was_there = std::ranges::equal(packets.first(sent.size()), sent);
    std::ranges::fill(packets, std::byte{0xee});
  };
  fill(files->in->bytes().subspan(64, 16));
  ASSERT_TRUE(send_packet<FmqRequestDatum>(*requests_, packet));
  const auto answer = receive_packet(*results_, soon());
  ASSERT_TRUE(answer) << to_string(answer.error());
  const auto result = parse_result(*answer);
  ASSERT_TRUE(result) << message_of(result.error());
  EXPECT_TRUE(was_there) << "it was the request's ring that was changed";
  EXPECT_EQ(result->status, ErrorStatus::kNone);
  EXPECT_EQ(result->shapes, (std::vector<OutputShape>{{.dimensions = {8}, .is_sufficient = true}}));
  EXPECT_TRUE(has_pattern(files->out->bytes().subspan(32, 16)));
}

}  // namespace
}  // namespace penstock
