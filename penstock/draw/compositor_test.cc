// SPDX-License-Identifier: Apache-2.0
//
// W01: what is drawn, against the naive oracle, in memory that only the device's jobs reach.
#include "penstock/draw/compositor.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "penstock/draw/colors.h"
#include "penstock/draw/scene_oracle.h"
#include "penstock/media/test_frames.h"

namespace penstock {
namespace {

using testing::NaivePicture;
using testing::Picture;

constexpr int kWidth = 160;
constexpr int kHeight = 90;
constexpr DrawColor kRed{.blue = 10, .green = 20, .red = 250};
constexpr DrawColor kHalfBlue{.blue = 250, .green = 100, .red = 0, .opacity = 128};

class W01 : public ::testing::TestWithParam<const char*> {
 protected:
  /// The frame with `drawing` on it.
  std::vector<std::uint8_t> composed(const Drawing& drawing) {
    const auto compositor = Compositor::create(device_);
    EXPECT_TRUE(compositor);
    auto output = device_->allocate(std::size_t{4} * kWidth * kHeight);
    EXPECT_TRUE(output);
    auto done =
        (*compositor)->run(frame_, std::make_shared<const Drawing>(drawing), *output, 4 * kWidth);
    EXPECT_TRUE(done && done->wait());
    return testing::read_storage(*device_, *output);
  }
  std::vector<std::uint8_t> composed(const DrawList& list) {
    return composed(Drawing{.list = list, .atlas = atlas_});
  }
  NaivePicture plain() { return {kWidth, kHeight, composed(DrawList(kWidth, kHeight))}; }
  /// uint8 of `shape` on the device.
  Tensor tensor(const Shape& shape, const std::vector<std::uint8_t>& values) {
    auto storage = device_->allocate(values.size());
    EXPECT_TRUE(storage);
    EXPECT_TRUE(device_->upload({.storage = *storage, .offset = 0, .size = values.size()},
                                std::as_bytes(std::span(values)), TransferPurpose::kTestContent));
    return {.name = "masks",
            .type = DataType::kUint8,
            .shape = shape,
            .data = {.storage = *storage, .offset = 0, .size = values.size()},
            .ready = {}};
  }

  const DevicePtr device_ = testing::make_device(GetParam());
  const FramePtr frame_ = testing::make_frame(*device_, testing::noise(kWidth, kHeight, 11));
  const std::shared_ptr<const GlyphAtlas> atlas_ = GlyphAtlas::make(11);
};
INSTANTIATE_TEST_SUITE_P(cpu, W01, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, W01, ::testing::Values("sim"));

TEST_P(W01, GivenFramesAndFills_WhenDrawn_ThenTheOracleAgrees) {
  DrawList list(kWidth, kHeight);
  list.frame({10, 5, 90, 60}, 3, kRed);
  list.frame({-7, 30, 40, 200}, 5, kHalfBlue);
  list.frame({100, 10, 104, 80}, 3, kRed);  // Thinner than both of its sides.
  list.fill({60, 40, 175, 50}, kHalfBlue);
  NaivePicture expected = plain();
  expected.draw(testing::frame_shape(10, 5, 90, 60, 3), 10, 20, 250);
  expected.draw(testing::frame_shape(-7, 30, 40, 200, 5), 250, 100, 0, 128 / 255.0);
  expected.draw(testing::frame_shape(100, 10, 104, 80, 3), 10, 20, 250);
  expected.draw(testing::rectangle_shape(60, 40, 175, 50), 250, 100, 0, 128 / 255.0);
  EXPECT_LE(expected.worst(composed(list)), 1.01);
}

TEST_P(W01, GivenLines_WhenDrawn_ThenTheOracleAgrees) {
  struct Line {
    float x0, y0, x1, y1, thickness;
  };
  for (const Line& line :
       {Line{10, 10, 150, 80, 3}, Line{80, 5, 80, 85, 2}, Line{5, 45, 155, 45, 1},
        Line{150.3f, 12.7f, 20.1f, 30.2f, 6}, Line{40, 40, 40, 40, 9}, Line{-30, -20, 300, 120, 4},
        Line{12, 88, 13, 2, 2.5f}}) {
    DrawList list(kWidth, kHeight);
    list.stroke({line.x0, line.y0}, {line.x1, line.y1}, line.thickness, kRed);
    NaivePicture expected = plain();
    expected.draw(testing::line_shape(line.x0, line.y0, line.x1, line.y1, line.thickness), 10, 20,
                  250);
    EXPECT_LE(expected.worst(composed(list)), 2.5) << line.x0 << "," << line.y0;
  }
}

TEST_P(W01, GivenText_WhenDrawn_ThenGlyphsStandSideBySide) {
  DrawList list(kWidth, kHeight);
  const auto text = glyphs_of("Dog #17 (99%)", 64);
  list.text(4, 8, text, *atlas_, kRed);
  NaivePicture expected = plain();
  int left = 4;
  for (const Glyph glyph : text) {
    const auto coverage = atlas_->coverage(glyph);
    const int columns = atlas_->columns(glyph);
    expected.draw(
        [&](int x, int y) {
          if (x < left || x >= left + columns || y < 8 || y >= 8 + atlas_->height()) return 0.0;
          return coverage[static_cast<std::size_t>((y - 8) * columns + x - left)] / 255.0;
        },
        10, 20, 250);
    left += atlas_->advance(glyph);
  }
  EXPECT_LE(expected.worst(composed(list)), 1.01);
}

// A mask of 8 x 6 over a picture of 160 x 90: smooth in the first, a step in the second plane.
TEST_P(W01, GivenMasksOnTheDevice_WhenDrawn_ThenTheyAreSampledThereAndShineThrough) {
  std::vector<std::uint8_t> values(2 * 6 * 8);
  for (std::size_t y = 0; y < 6; ++y) {
    for (std::size_t x = 0; x < 8; ++x) {
      values[y * 8 + x] = static_cast<std::uint8_t>(30 * x + 8 * y);
      values[48 + y * 8 + x] = x > 4 ? 255 : 0;
    }
  }
  const MaskPlace place{.x_scale = 8.0f / kWidth,
                        .x_start = 4.0f / kWidth - 0.5f,
                        .y_scale = 6.0f / kHeight,
                        .y_start = 3.0f / kHeight - 0.5f};
  Drawing drawing{.list = DrawList(kWidth, kHeight), .atlas = atlas_};
  drawing.masks = tensor({2, 6, 8}, values);
  drawing.list.mask({0, 0, kWidth, kHeight}, 0, place, kHalfBlue);
  drawing.list.mask({20, 10, 150, 80}, 1, place, kHalfBlue);
  drawing.list.mask({0, 0, kWidth, kHeight}, 2, place, kRed);  // There is none.
  const auto got = composed(drawing);

  std::size_t open = 0;
  const auto sample = [&](std::size_t plane, int x, int y) {
    const double mx = std::clamp((x + 0.5) * 8 / kWidth - 0.5, 0.0, 7.0);
    const double my = std::clamp((y + 0.5) * 6 / kHeight - 0.5, 0.0, 5.0);
    const auto at = [&](double cx, double cy) {
      return double(values[plane * 48 + static_cast<std::size_t>(std::min(cy, 5.0)) * 8 +
                           static_cast<std::size_t>(std::min(cx, 7.0))]);
    };
    const double fx = mx - std::floor(mx), fy = my - std::floor(my);
    const double x0 = std::floor(mx), y0 = std::floor(my);
    return (1 - fy) * ((1 - fx) * at(x0, y0) + fx * at(x0 + 1, y0)) +
           fy * ((1 - fx) * at(x0, y0 + 1) + fx * at(x0 + 1, y0 + 1));
  };
  NaivePicture expected = plain();
  // Next to the threshold either would be right.
  const auto inside = [&](std::size_t plane, int x, int y) {
    const double value = sample(plane, x, y);
    if (std::abs(value - 127.5) < 0.01) ++open;
    return value >= 127.5 ? 1.0 : 0.0;
  };
  expected.draw([&](int x, int y) { return inside(0, x, y); }, 250, 100, 0, 128 / 255.0);
  expected.draw(
      [&](int x, int y) { return x >= 20 && x < 150 && y >= 10 && y < 80 ? inside(1, x, y) : 0.0; },
      250, 100, 0, 128 / 255.0);
  EXPECT_EQ(open, 0u) << "the fixture leaves something open";
  EXPECT_LE(expected.worst(got), 1.6);
}

TEST_P(W01, GivenAClassMap_WhenDrawn_ThenEachPixelHasItsClassesColour) {
  std::vector<std::uint8_t> values(5 * 4);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i % 3);
  const MaskPlace place{.x_scale = 4.0f / kWidth,
                        .x_start = 2.0f / kWidth - 0.5f,
                        .y_scale = 5.0f / kHeight,
                        .y_start = 2.5f / kHeight - 0.5f};
  Drawing drawing{.list = DrawList(kWidth, kHeight), .atlas = atlas_};
  drawing.class_map = tensor({5, 4}, values);
  drawing.list.class_map({0, 0, kWidth, kHeight}, 0, place, 128);
  NaivePicture expected = plain();
  for (std::uint8_t found = 1; found < 3; ++found) {
    const DrawColor color = color_of_class(found);
    expected.draw(
        [&](int x, int y) {
          const auto cell = static_cast<std::size_t>(y * 5 / kHeight * 4 + x * 4 / kWidth);
          return values[cell] == found ? 1.0 : 0.0;
        },
        color.blue, color.green, color.red, 128 / 255.0);
  }
  EXPECT_LE(expected.worst(composed(drawing)), 1.01);
}

TEST_P(W01, GivenAnOutputWithRoom_WhenDrawn_ThenNothingBesideItsRowsIsWritten) {
  constexpr std::size_t kStride = 4 * kWidth + 12;
  DrawList list(kWidth, kHeight);
  list.fill({-300, -300, 3000, 3000}, kRed);
  list.frame({-20, -20, kWidth + 5, kHeight + 5}, 30, kHalfBlue);
  list.stroke({-50, 95}, {400, -10}, 60, kRed);
  list.text(150, 80, glyphs_of("mmmmmmm", 9), *atlas_, kRed);
  const std::size_t size = kStride * (kHeight + 3);
  auto output = device_->allocate(size);
  ASSERT_TRUE(output);
  const std::vector<std::byte> guard(size, std::byte{0xa5});
  ASSERT_TRUE(device_->upload({.storage = *output, .offset = 0, .size = size}, guard,
                              TransferPurpose::kTestContent));
  const auto compositor = Compositor::create(device_);
  auto done =
      (*compositor)
          ->run(frame_, std::make_shared<const Drawing>(Drawing{.list = list, .atlas = atlas_}),
                *output, kStride);
  ASSERT_TRUE(done && done->wait());
  const auto bytes = testing::read_storage(*device_, *output);
  std::size_t touched = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const bool is_picture = i / kStride < kHeight && i % kStride < std::size_t{4} * kWidth;
    if (!is_picture && bytes[i] != 0xa5) ++touched;
  }
  EXPECT_EQ(touched, 0u);
}

TEST_P(W01, GivenWhatDoesNotFitTheFrame_WhenRun_ThenItIsRefusedByName) {
  const auto compositor = Compositor::create(device_);
  const auto output = device_->allocate(std::size_t{4} * kWidth * kHeight);
  const auto refused = [&](const FramePtr& frame, const DrawList& list, std::size_t stride) {
    const auto run =
        (*compositor)
            ->run(frame, std::make_shared<const Drawing>(Drawing{.list = list, .atlas = {}}),
                  *output, stride);
    return run ? std::string() : run.error().message();
  };
  const DrawList list(kWidth, kHeight);
  EXPECT_EQ(refused(frame_, list, 4 * kWidth), "");
  EXPECT_NE(refused(nullptr, list, 4 * kWidth).find("no frame"), std::string::npos);
  EXPECT_NE(refused(frame_, DrawList(kWidth, 80), 4 * kWidth).find("160x80"), std::string::npos);
  EXPECT_NE(refused(frame_, list, 4 * kWidth + 1).find("too small"), std::string::npos);
  EXPECT_NE(refused(frame_, list, 4 * kWidth - 1).find("too small"), std::string::npos);
  EXPECT_NE(refused(frame_, list, ~std::size_t{0} / 2).find("too small"), std::string::npos);
  const auto other = testing::make_device(std::string(GetParam()) == "cpu" ? "sim" : "cpu");
  EXPECT_NE(refused(testing::make_frame(*other, Picture(kWidth, kHeight)), list, 4 * kWidth)
                .find("the frame is not in memory of device"),
            std::string::npos);
}

// A03 in spirit: one sweep a frame, and no copy.
TEST_P(W01, GivenFrames_WhenDrawn_ThenTheLedgerHasOneSweepEach) {
  const auto before = device_->ledger().count(CopyClass::kSweep);
  for (int i = 0; i < 5; ++i) composed(DrawList(kWidth, kHeight));
  EXPECT_EQ(device_->ledger().count(CopyClass::kSweep) - before, 5u);
  EXPECT_EQ(device_->ledger().bytes(CopyClass::kSweep), 5u * kWidth * kHeight * 3 / 2);
  EXPECT_EQ(device_->ledger().count(CopyClass::kFrame), 0u);
}

TEST(Compositor, GivenADeviceWithoutKernel_WhenCreated_ThenThatIsSaid) {
  const auto none = Compositor::create(nullptr);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind(), ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
