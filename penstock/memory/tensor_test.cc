// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "penstock/memory/testing/devices.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr DataType kAllTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kFloat64,
                                  DataType::kUint8,   DataType::kInt8,    DataType::kInt32,
                                  DataType::kInt64,   DataType::kBool};

TEST(DataType, GivenEveryType_WhenNamed_ThenNamesAreDistinct) {
  std::set<std::string_view> names;
  for (const DataType type : kAllTypes) names.insert(to_string(type));
  EXPECT_EQ(names.size(), std::size(kAllTypes));
}

TEST(ByteSize, GivenShapes_WhenMeasured_ThenElementsTimesTheirSize) {
  EXPECT_EQ(byte_size(DataType::kFloat32, {1, 3, 416, 416}), 2076672u);
  EXPECT_EQ(byte_size(DataType::kFloat16, {2, 5}), 20u);
  EXPECT_EQ(byte_size(DataType::kInt64, {300, 6}), 14400u);
  EXPECT_EQ(byte_size(DataType::kFloat64, {}), 8u);
  EXPECT_EQ(byte_size(DataType::kBool, {7}), 7u);
  EXPECT_EQ(byte_size(DataType::kUint8, {4, 0, 9}), 0u);
}

TEST(ByteSize, GivenImpossibleShapes_WhenMeasured_ThenTheShapeIsNamed) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const auto negative = byte_size(DataType::kFloat32, {1, -1, 4});
  ASSERT_FALSE(negative);
  EXPECT_EQ(negative.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(negative.error().message(), HasSubstr("[1,-1,4]"));
  EXPECT_FALSE(byte_size(DataType::kFloat32, {kMax, 2}));
  EXPECT_FALSE(byte_size(DataType::kFloat64, {kMax}));
  EXPECT_TRUE(byte_size(DataType::kUint8, {kMax}));
}

// M03: every named input is checked before a run: dtype, shape, byte size, contiguous layout,
// device location, each with a message that says which input and what about it.
class M03 : public testing::TestWithParam<TestDevice> {
 protected:
  M03() : device_(GetParam().open({})) {
    spec_ = {.name = "images",
             .type = DataType::kFloat32,
             .layout = TensorLayout::kNchw,
             .dims = {{1, 8, "batch"},
                      Dimension::fixed(3),
                      Dimension::fixed(4),
                      {2, 6, "side"},
                      {2, 6, "side"}}};
    tensor_ = {.name = "images",
               .type = DataType::kFloat32,
               .shape = {2, 3, 4, 5, 5},
               .data = StorageRegion::whole(*device_->allocate(2400)),
               .ready = {}};
  }

  void expect_refused(const std::vector<std::string>& parts) const {
    const auto checked = check(tensor_, spec_, device_->id());
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(checked.error().message(), HasSubstr("input 'images'"));
    for (const auto& part : parts) EXPECT_THAT(checked.error().message(), HasSubstr(part));
  }

  DevicePtr device_;
  TensorSpec spec_;
  Tensor tensor_;
};

TEST_P(M03, GivenAMatchingTensor_WhenChecked_ThenAccepted) {
  const auto checked = check(tensor_, spec_, device_->id());
  EXPECT_TRUE(checked) << checked.error().message();
}

TEST_P(M03, GivenAnotherType_WhenChecked_ThenBothTypesAreNamed) {
  tensor_.type = DataType::kInt32;  // Of the same size: nothing else is wrong.
  expect_refused({"int32", "float32"});
}

TEST_P(M03, GivenAnotherRank_WhenChecked_ThenBothRanksAreNamed) {
  tensor_.shape = {2, 3, 4, 25};
  expect_refused({"[2,3,4,25]", "4 dimensions", "needs 5"});
}

TEST_P(M03, GivenAWrongFixedDimension_WhenChecked_ThenItsIndexAndBothValuesAreNamed) {
  tensor_.shape = {2, 4, 3, 5, 5};
  expect_refused({"dimension 1", "[2,4,3,5,5]", "is 4", "needs 3"});
}

TEST_P(M03, GivenADimensionOutOfRange_WhenChecked_ThenTheRangeAndSymbolAreNamed) {
  tensor_.shape = {0, 3, 4, 5, 5};
  expect_refused({"dimension 0", "is 0", "1..8", "batch"});
  tensor_.shape = {9, 3, 4, 5, 5};
  expect_refused({"dimension 0", "is 9", "1..8"});
  tensor_.shape = {-2, 3, 4, 5, 5};
  expect_refused({"dimension 0", "is -2"});
}

TEST_P(M03, GivenUnequalValuesForOneSymbol_WhenChecked_ThenBothAreNamed) {
  tensor_.shape = {2, 3, 4, 5, 6};
  expect_refused({"dimension 4", "is 6", "'side'", "already 5"});
}

TEST_P(M03, GivenTheWrongByteSize_WhenChecked_ThenBothSizesAreNamed) {
  for (const std::size_t size : {std::size_t{2396}, std::size_t{2404}, std::size_t{0}}) {
    tensor_.data = {*device_->allocate(4096), 0, size};
    expect_refused({std::to_string(size) + " bytes", "2400"});
  }
}

TEST_P(M03, GivenAStridedView_WhenChecked_ThenItIsNotContiguous) {
  // Rows of 20 bytes, 64 apart.
  tensor_.data = StorageRegion::whole(*device_->allocate(2 * 3 * 4 * 5 * 64));
  expect_refused({"7680 bytes", "contiguous", "2400"});
}

TEST_P(M03, GivenARegionOutsideItsStorage_WhenChecked_ThenRefused) {
  tensor_.data.offset = 4;
  expect_refused({"offset 4", "leaves its storage of 2400"});
}

TEST_P(M03, GivenAMisalignedRegion_WhenChecked_ThenTheOffsetIsNamed) {
  tensor_.data = {*device_->allocate(2402), 2, 2400};
  expect_refused({"offset 2", "aligned"});
}

TEST_P(M03, GivenNoMemory_WhenChecked_ThenRefused) {
  tensor_.data = {};
  expect_refused({"no memory"});
}

TEST_P(M03, GivenAnotherDevice_WhenChecked_ThenBothAreNamed) {
  const auto checked = check(tensor_, spec_, {DeviceKind::kCuda, 1});
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message(),
              AllOf(HasSubstr("input 'images'"), HasSubstr(std::string("on ") + GetParam().name),
                    HasSubstr("cuda:1")));
}

TEST_P(M03, GivenAScalar_WhenChecked_ThenItsSingleElementCounts) {
  spec_ = {.name = "images", .type = DataType::kInt64, .layout = {}, .dims = {}};
  tensor_.type = DataType::kInt64;
  tensor_.shape = {};
  tensor_.data = StorageRegion::whole(*device_->allocate(8));
  EXPECT_TRUE(check(tensor_, spec_, device_->id()));
  tensor_.data = StorageRegion::whole(*device_->allocate(16));
  expect_refused({"16 bytes", "has 8"});
}

INSTANTIATE_TEST_SUITE_P(cpu, M03, testing::Values(cpu_test_device()));
INSTANTIATE_TEST_SUITE_P(sim, M03, testing::Values(sim_test_device()));

}  // namespace
}  // namespace penstock
