// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/preprocessor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "penstock/media/test_frames.h"
#include "penstock/memory/sim/sim_device.h"

namespace penstock {
namespace {

using testing::FrameLayout;
using ::testing::HasSubstr;
using testing::Picture;

PreprocessSpec spec_of(int width, int height, Fit fit = Fit::kStretch) {
  PreprocessSpec spec;
  spec.input_name = "input_1";
  spec.width = width;
  spec.height = height;
  spec.fit = fit;
  return spec;
}

class OnDevice : public ::testing::TestWithParam<const char*> {
 protected:
  Result<PreprocessedFrame> run(const PreprocessSpec& spec, const FramePtr& frame,
                                std::optional<RectI> roi = {}) {
    auto preprocessor = Preprocessor::create(device_, spec);
    if (!preprocessor) return std::unexpected(preprocessor.error());
    return (*preprocessor)->run(frame, roi);
  }

  const DevicePtr device_ = testing::make_device(GetParam());
};

std::uint64_t moved_but_sweeps(CopyLedger& ledger) {
  return ledger.count(CopyClass::kFrame) + ledger.count(CopyClass::kTensor) +
         ledger.count(CopyClass::kReadback) + ledger.count(CopyClass::kUpload);
}

// V15 -------------------------------------------------------------------------------------------

class V15 : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(cpu, V15, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V15, ::testing::Values("sim"));

TEST_P(V15, GivenAFrame_WhenPreprocessed_ThenItIsSweptOnceAndNothingElseMoves) {
  const auto frame = testing::make_frame(*device_, testing::noise(64, 48, 1));
  const std::uint64_t before = moved_but_sweeps(device_->ledger());
  const auto result = run(spec_of(64, 48), frame);
  ASSERT_TRUE(result) << result.error().message();
  ASSERT_TRUE(result->tensor.ready.wait());
  EXPECT_EQ(moved_but_sweeps(device_->ledger()), before);
  EXPECT_EQ(device_->ledger().count(CopyClass::kSweep), 1u);
  EXPECT_EQ(device_->ledger().bytes(CopyClass::kSweep), 64u * 48u * 3u / 2u);
  EXPECT_EQ(device_->ledger().rows().back().site.empty(), false);
}

TEST_P(V15, GivenAFrame_WhenPreprocessed_ThenItsBytesAreUntouched) {
  for (const PixelFormat format : {PixelFormat::kNv12, PixelFormat::kI420}) {
    const auto frame = testing::make_frame(*device_, testing::noise(62, 46, 2),
                                           {.format = format, .extra_stride = 5, .offset = 3});
    std::vector<std::vector<std::uint8_t>> before;
    for (int p = 0; p < plane_count(format); ++p) {
      before.push_back(testing::read_storage(*device_, frame->planes[std::size_t(p)].storage));
    }
    const auto result = run(spec_of(40, 40, Fit::kLetterboxCenter), frame);
    ASSERT_TRUE(result);
    ASSERT_TRUE(result->tensor.ready.wait());
    for (int p = 0; p < plane_count(format); ++p) {
      EXPECT_EQ(testing::read_storage(*device_, frame->planes[std::size_t(p)].storage),
                before[std::size_t(p)]);
    }
  }
}

TEST_P(V15, GivenEveryLayoutAndOrder_WhenPreprocessed_ThenShapeAndValuesFollow) {
  const Picture picture = testing::color_bars(32, 16);
  const auto frame = testing::make_frame(*device_, picture);
  for (const TensorLayout layout : {TensorLayout::kNchw, TensorLayout::kNhwc}) {
    for (const ChannelOrder order : {ChannelOrder::kRgb, ChannelOrder::kBgr}) {
      PreprocessSpec spec = spec_of(32, 16);
      spec.layout = layout;
      spec.order = order;
      spec.scale = 1 / 255.0f;
      spec.mean = {0.485f, 0.456f, 0.406f};
      spec.std = {0.229f, 0.224f, 0.225f};
      const auto result = run(spec, frame);
      ASSERT_TRUE(result);
      EXPECT_EQ(result->tensor.name, "input_1");
      EXPECT_EQ(result->tensor.type, DataType::kFloat32);
      EXPECT_EQ(result->tensor.shape,
                layout == TensorLayout::kNhwc ? (Shape{1, 16, 32, 3}) : (Shape{1, 3, 16, 32}));
      const auto values = testing::read_tensor(*device_, result->tensor);
      const auto expected = testing::preprocess_oracle(picture, {}, spec);
      ASSERT_EQ(values.size(), expected.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(values[i], expected[i], 0.1 / 255 / 0.224) << "at " << i;
      }
    }
  }
}

TEST_P(V15, GivenALetterbox_WhenPreprocessed_ThenThePaddingIsTheNormalisedPadLevel) {
  for (const TensorLayout layout : {TensorLayout::kNchw, TensorLayout::kNhwc}) {
    for (const Fit fit : {Fit::kLetterboxCenter, Fit::kLetterboxTopLeft}) {
      // Both wide and tall, so that padding lies on every side; a recycled tensor holds old values.
      for (const auto& [width, height] : {std::pair{64, 20}, std::pair{20, 64}}) {
        const auto frame = testing::make_frame(*device_, Picture(width, height, 235));
        PreprocessSpec spec = spec_of(33, 31, fit);
        spec.layout = layout;
        spec.order = ChannelOrder::kBgr;
        spec.mean = {103.53f, 116.28f, 123.675f};
        spec.std = {57.375f, 57.12f, 58.395f};
        spec.pad_level = 40;
        const auto result = run(spec, frame);
        ASSERT_TRUE(result);
        const auto values = testing::read_tensor(*device_, result->tensor);
        const auto expected = testing::preprocess_oracle(Picture(width, height, 235), {}, spec);
        for (std::size_t i = 0; i < values.size(); ++i) {
          ASSERT_NEAR(values[i], expected[i], 2e-3) << width << "x" << height << " at " << i;
        }
      }
    }
  }
}

TEST_P(V15, GivenTwoRuns_WhenBothTensorsLive_ThenEachOwnsItsStorage) {
  const auto frame = testing::make_frame(*device_, testing::noise(32, 32, 3));
  const auto preprocessor = Preprocessor::create(device_, spec_of(32, 32));
  ASSERT_TRUE(preprocessor);
  const auto first = (*preprocessor)->run(frame);
  const auto second = (*preprocessor)->run(frame);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->tensor.data.storage, second->tensor.data.storage);
  EXPECT_NE(first->tensor.data.storage->address(), second->tensor.data.storage->address());
  EXPECT_EQ(testing::read_tensor(*device_, first->tensor),
            testing::read_tensor(*device_, second->tensor));
}

TEST_P(V15, GivenInputsOfOtherTypes_WhenPreprocessed_ThenTheyAreTheFloatsRounded) {
  // Widths that leave vectors over, both layouts, both orders, with padding.
  int n = 0;
  for (const int width : {61, 96, 7}) {
    for (const TensorLayout layout : {TensorLayout::kNchw, TensorLayout::kNhwc}) {
      PreprocessSpec spec = spec_of(width, 40, Fit::kLetterboxCenter);
      spec.layout = layout;
      spec.order = n++ % 2 == 0 ? ChannelOrder::kRgb : ChannelOrder::kBgr;
      const auto frame = testing::make_frame(*device_, testing::noise(64, 48, 5));
      const auto levels = run(spec, frame);
      ASSERT_TRUE(levels);
      const std::vector<float> floats = testing::read_tensor(*device_, levels->tensor);
      spec.type = DataType::kUint8;
      const auto bytes = run(spec, frame);
      ASSERT_TRUE(bytes) << bytes.error().message();
      EXPECT_EQ(bytes->tensor.type, DataType::kUint8);
      EXPECT_EQ(bytes->tensor.data.size, floats.size());
      ASSERT_TRUE(bytes->tensor.ready.wait());
      const auto stored = testing::read_storage(*device_, bytes->tensor.data.storage);
      for (std::size_t i = 0; i < floats.size(); ++i) {
        ASSERT_EQ(stored[i], static_cast<std::uint8_t>(std::lrint(floats[i]))) << i;
      }
      spec.scale = 1.0f / 255;
      spec.mean = {0.485f, 0.456f, 0.406f};
      spec.std = {0.229f, 0.224f, 0.225f};
      spec.type = DataType::kFloat32;
      const auto normalised = run(spec, frame);
      ASSERT_TRUE(normalised);
      const auto wanted = testing::read_tensor(*device_, normalised->tensor);
      spec.type = DataType::kFloat16;
      const auto halves = run(spec, frame);
      ASSERT_TRUE(halves) << halves.error().message();
      EXPECT_EQ(halves->tensor.data.size, 2 * floats.size());
      ASSERT_TRUE(halves->tensor.ready.wait());
      const auto half_bytes = testing::read_storage(*device_, halves->tensor.data.storage);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        _Float16 half;  // The compiler's own rounding is the oracle.
        std::memcpy(&half, &half_bytes[2 * i], sizeof half);
        ASSERT_EQ(half, static_cast<_Float16>(wanted[i])) << i;
      }
    }
  }
}

TEST_P(V15, GivenATypeThatPicturesCantHave_WhenCreated_ThenItIsNamed) {
  PreprocessSpec spec = spec_of(32, 32);
  spec.type = DataType::kInt64;
  const auto integers = Preprocessor::create(device_, spec);
  ASSERT_FALSE(integers);
  EXPECT_THAT(integers.error().message(), HasSubstr("int64"));
  spec.type = DataType::kUint8;
  spec.scale = 1.0f / 255;
  const auto normalised = Preprocessor::create(device_, spec);
  ASSERT_FALSE(normalised);
  EXPECT_THAT(normalised.error().message(), HasSubstr("levels themselves"));
}

// V16 -------------------------------------------------------------------------------------------

class V16 : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(cpu, V16, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V16, ::testing::Values("sim"));

TEST_P(V16, GivenPaddedTensors_WhenTheyComeBackAndGoAgain_ThenPaddingAndPictureAreRight) {
  // One after the other, two held at once, other frame sizes and crops between: whatever memory a
  // tensor gets, all of it is what a new one would hold.
  auto preprocessor = Preprocessor::create(device_, spec_of(40, 40, Fit::kLetterboxCenter));
  ASSERT_TRUE(preprocessor);
  std::vector<PreprocessedFrame> held;
  int n = 0;
  for (const auto& [width, height, hold] : {std::tuple{64, 48, false},
                                            {64, 48, false},
                                            {64, 48, true},
                                            {64, 48, true},
                                            {48, 64, false},
                                            {64, 48, false},
                                            {48, 64, true},
                                            {64, 48, false},
                                            {64, 64, false},
                                            {48, 64, false}}) {
    SCOPED_TRACE(n);
    const testing::Picture picture = testing::noise(width, height, std::uint32_t(++n));
    auto got = (*preprocessor)->run(testing::make_frame(*device_, picture));
    ASSERT_TRUE(got) << got.error().message();
    const auto values = testing::read_tensor(*device_, got->tensor);
    const auto wanted =
        testing::preprocess_oracle(picture, {}, spec_of(40, 40, Fit::kLetterboxCenter));
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(values[i], wanted[i], 2.0) << i;
    for (const PreprocessedFrame& other : held) {
      EXPECT_NE(other.tensor.data.storage->address(), got->tensor.data.storage->address());
    }
    if (hold) held.push_back(*std::move(got));
  }
}

TEST_P(V16, GivenQueuedInputs_WhenLaterFramesArePreprocessed_ThenNoneIsOverwritten) {
  const auto preprocessor = Preprocessor::create(device_, spec_of(24, 24));
  ASSERT_TRUE(preprocessor);
  constexpr int kFrames = 12;
  std::vector<Tensor> queued;
  std::vector<std::vector<double>> expected;
  for (int i = 0; i < kFrames; ++i) {
    const Picture picture = testing::noise(48, 40, static_cast<std::uint32_t>(100 + i));
    const auto frame = testing::make_frame(*device_, picture);
    // Every second input is a region of interest.
    std::optional<RectI> roi;
    if (i % 2 == 1) roi = RectI{2 * i, 4, 16, 12};
    auto result = (*preprocessor)->run(frame, roi);
    ASSERT_TRUE(result);
    queued.push_back(result->tensor);
    expected.push_back(testing::preprocess_oracle(picture, {}, spec_of(24, 24), roi));
  }
  for (int i = 0; i < kFrames; ++i) {
    const auto values = testing::read_tensor(*device_, queued[std::size_t(i)]);
    for (std::size_t k = 0; k < values.size(); ++k) {
      ASSERT_NEAR(values[k], expected[std::size_t(i)][k], 0.1) << "frame " << i << " at " << k;
    }
  }
}

TEST_P(V16, GivenADroppedFrame_WhenItsWorkEnded_ThenNothingKeepsIt) {
  auto frame = testing::make_frame(*device_, testing::noise(32, 32, 4));
  const std::weak_ptr<const VideoFrame> alive = frame;
  const auto preprocessor = Preprocessor::create(device_, spec_of(16, 16));
  ASSERT_TRUE(preprocessor);
  const auto result = (*preprocessor)->run(frame);
  ASSERT_TRUE(result);
  frame.reset();
  ASSERT_TRUE(result->tensor.ready.wait());
  EXPECT_TRUE(alive.expired());
}

TEST_P(V16, GivenWorkInFlight_WhenTheCallerDropsEverything_ThenFrameAndTensorLiveToTheFence) {
  // `cpu` has passed the fence when run() returns; `sim` holds the work until told otherwise.
  const auto sim = std::dynamic_pointer_cast<SimDevice>(device_);
  auto frame = testing::make_frame(*device_, testing::noise(32, 32, 5));
  frame->lease = std::make_shared<int>(1);
  const std::weak_ptr<const void> lease = frame->lease;
  const std::weak_ptr<const VideoFrame> alive = frame;
  auto preprocessor = Preprocessor::create(device_, spec_of(16, 16));
  ASSERT_TRUE(preprocessor);
  if (sim) sim->hold_jobs(true);
  auto result = (*preprocessor)->run(frame);
  ASSERT_TRUE(result);
  const Fence fence = result->tensor.ready;
  const std::weak_ptr<Storage> output = result->tensor.data.storage;
  ASSERT_EQ(fence.has_passed(), sim == nullptr);
  frame.reset();
  preprocessor->reset();
  result = fail(ErrorKind::kCancelled, "dropped by the test");
  if (sim) {
    ASSERT_FALSE(alive.expired());
    ASSERT_FALSE(lease.expired());
    ASSERT_FALSE(output.expired());
    sim->hold_jobs(false);
  }
  ASSERT_TRUE(fence.wait());
  EXPECT_TRUE(alive.expired());
  EXPECT_TRUE(lease.expired());
  EXPECT_TRUE(output.expired());
}

TEST_P(V16, GivenAFrameThatFailedUpstream_WhenPreprocessed_ThenTheTensorFailsWithIt) {
  auto frame = testing::make_frame(*device_, testing::noise(32, 32, 6));
  FenceSource decoder;
  frame->ready = decoder.fence();
  decoder.signal(fail(ErrorKind::kDevice, "the decoder broke"));
  const auto result = run(spec_of(16, 16), frame);
  const auto outcome = result ? result->tensor.ready.wait() : std::unexpected(result.error());
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message(), HasSubstr("the decoder broke"));
  EXPECT_EQ(device_->ledger().count(CopyClass::kSweep), 0u);
}

// P04 and refusals ------------------------------------------------------------------------------

TEST(P04, GivenAnInputBeyondTheBudget_WhenThePreprocessorIsMade_ThenItIsRefusedUnallocated) {
  const auto device = SimDevice::create();
  const auto calls = device->calls();
  const auto refused = Preprocessor::create(device, spec_of(32766, 32766));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), ErrorKind::kExhausted);
  EXPECT_THAT(refused.error().message(), HasSubstr("32766x32766"));
  EXPECT_EQ(device->calls(), calls);
}

TEST(Preprocessor, GivenASpecThatMakesNoSense_WhenMade_ThenItIsRefused) {
  const auto device = testing::make_device("cpu");
  const auto refused = [&](auto change) {
    PreprocessSpec spec = spec_of(16, 16);
    change(spec);
    return !Preprocessor::create(device, spec);
  };
  EXPECT_FALSE(refused([](PreprocessSpec&) {}));
  EXPECT_TRUE(refused([](PreprocessSpec& s) { s.width = 0; }));
  EXPECT_TRUE(refused([](PreprocessSpec& s) { s.height = 32767; }));
  EXPECT_TRUE(refused([](PreprocessSpec& s) { s.layout = TensorLayout::kAny; }));
  EXPECT_TRUE(refused([](PreprocessSpec& s) { s.std[1] = 0; }));
  EXPECT_TRUE(refused([](PreprocessSpec& s) { s.mean[2] = std::nanf(""); }));
  EXPECT_TRUE(refused([](PreprocessSpec& s) { s.scale = std::numeric_limits<float>::infinity(); }));
  EXPECT_FALSE(Preprocessor::create(nullptr, spec_of(16, 16)));
}

TEST(Preprocessor, GivenAFrameOfAnotherDevice_WhenRun_ThenBothDevicesAreNamed) {
  const auto cpu = testing::make_device("cpu");
  const auto sim = testing::make_device("sim");
  const auto preprocessor = Preprocessor::create(cpu, spec_of(16, 16));
  ASSERT_TRUE(preprocessor);
  const auto result = (*preprocessor)->run(testing::make_frame(*sim, Picture(16, 16)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(result.error().message(), HasSubstr("'sim'"));
  EXPECT_THAT(result.error().message(), HasSubstr("'cpu'"));
  EXPECT_FALSE((*preprocessor)->run(nullptr));
}

TEST(Preprocessor, GivenARegionOutsideTheFrame_WhenRun_ThenItIsRefused) {
  const auto cpu = testing::make_device("cpu");
  const auto preprocessor = Preprocessor::create(cpu, spec_of(16, 16));
  ASSERT_TRUE(preprocessor);
  const auto frame = testing::make_frame(*cpu, Picture(16, 16));
  EXPECT_FALSE((*preprocessor)->run(frame, RectI{16, 0, 4, 4}));
  const auto grown = (*preprocessor)->run(frame, RectI{3, 3, 1, 1});
  ASSERT_TRUE(grown);
  EXPECT_EQ(grown->letterbox.crop, (RectI{2, 2, 2, 2}));
}

}  // namespace
}  // namespace penstock
