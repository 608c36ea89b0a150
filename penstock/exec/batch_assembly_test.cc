// SPDX-License-Identifier: Apache-2.0
//
// Contract B01: inputs are assembled by device-to-device copies, unused slots are normalised
// padding.
#include "penstock/exec/batch_assembly.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "penstock/media/test_frames.h"

namespace penstock {
namespace {

using testing::make_device;
using testing::read_tensor;

constexpr int kWidth = 3;
constexpr int kHeight = 2;
constexpr std::size_t kValues = 3 * kWidth * kHeight;

class B01 : public ::testing::TestWithParam<const char*> {
 protected:
  DevicePtr device = make_device(GetParam());
  PreprocessSpec spec{.input_name = "x",
                      .width = kWidth,
                      .height = kHeight,
                      .scale = 0.5f,
                      .mean = {1, 2, 3},
                      .std = {1, 2, 4},
                      .pad_level = 10};

  /// All values are `value`.
  Tensor tensor(float value) {
    const std::vector<float> values(kValues, value);
    const std::size_t bytes = kValues * sizeof(float);
    auto storage = device->allocate(bytes).value();
    EXPECT_TRUE(device
                    ->upload(StorageRegion::whole(storage), std::as_bytes(std::span(values)),
                             TransferPurpose::kTestContent)
                    .has_value());
    return {.name = "x",
            .type = DataType::kFloat32,
            .shape = {1, 3, kHeight, kWidth},
            .data = StorageRegion::whole(storage),
            .ready = {}};
  }
};

// (10 * 0.5 - mean) / std, by hand.
constexpr float kPadding[3] = {4.0f, 1.5f, 0.5f};

TEST_P(B01, GivenTwoItemsForFourSlots_WhenAssembled_ThenCopiedAndTheRestIsNormalisedPadding) {
  for (const TensorLayout layout : {TensorLayout::kNchw, TensorLayout::kNhwc}) {
    spec.layout = layout;
    const std::vector<Tensor> items{tensor(7), tensor(8)};
    const std::uint64_t copies = device->ledger().count(CopyClass::kTensor);
    const std::uint64_t uploads = device->ledger().count(CopyClass::kUpload);
    std::vector<Fence> in_flight;
    const auto batch = assemble_batch(*device, items, 4, spec, in_flight);
    ASSERT_TRUE(batch.has_value()) << batch.error().message();
    EXPECT_EQ(batch->shape, (Shape{4, 3, kHeight, kWidth}));
    const std::vector<float> values = read_tensor(*device, *batch);
    ASSERT_EQ(values.size(), 4 * kValues);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t slot = i / kValues;
      const std::size_t in_slot = i % kValues;
      const std::size_t channel =
          layout == TensorLayout::kNhwc ? in_slot % 3 : in_slot / (kWidth * kHeight);
      const float expected = slot == 0 ? 7.0f : slot == 1 ? 8.0f : kPadding[channel];
      ASSERT_EQ(values[i], expected) << "at " << i;
    }
    EXPECT_EQ(device->ledger().count(CopyClass::kTensor) - copies, 2u);
    EXPECT_EQ(device->ledger().count(CopyClass::kUpload), uploads);
    for (const Fence& fence : in_flight) EXPECT_TRUE(fence.wait().has_value());
  }
}

TEST_P(B01, GivenBytesForTwoSlots_WhenAssembled_ThenThePaddingIsTheLevel) {
  spec.type = DataType::kUint8;
  spec.scale = 1;
  spec.mean = {0, 0, 0};
  spec.std = {1, 1, 1};
  Tensor item = tensor(0);
  item.type = DataType::kUint8;
  item.data.size = kValues;
  std::vector<Fence> in_flight;
  const auto batch = assemble_batch(*device, std::array{item}, 2, spec, in_flight);
  ASSERT_TRUE(batch) << batch.error().message();
  ASSERT_TRUE(batch->ready.wait());
  EXPECT_EQ(batch->data.size, 2 * kValues);
  const auto bytes = testing::read_storage(*device, batch->data.storage);
  for (std::size_t i = 0; i < 2 * kValues; ++i) ASSERT_EQ(bytes[i], i < kValues ? 0 : 10) << i;
}

TEST_P(B01, GivenOneItemForOneSlot_WhenAssembled_ThenItPassesThroughWithoutACopy) {
  const std::vector<Tensor> items{tensor(7)};
  std::vector<Fence> in_flight;
  const auto batch = assemble_batch(*device, items, 1, spec, in_flight);
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->data.storage, items[0].data.storage);
  EXPECT_EQ(device->ledger().count(CopyClass::kTensor), 0u);
}

TEST_P(B01, GivenItemWhoseWorkFailed_WhenAssembled_ThenTheBatchCarriesThatFailure) {
  std::vector<Tensor> items{tensor(7), tensor(8)};
  FenceSource failed;
  failed.signal(fail(ErrorKind::kDevice, "torn"));
  items[1].ready = failed.fence();
  std::vector<Fence> in_flight;
  const auto batch = assemble_batch(*device, items, 2, spec, in_flight);
  const auto outcome = batch ? batch->ready.wait() : std::unexpected(batch.error());
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().kind(), ErrorKind::kDevice);
}

INSTANTIATE_TEST_SUITE_P(cpu, B01, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, B01, ::testing::Values("sim"));

}  // namespace
}  // namespace penstock
