// SPDX-License-Identifier: Apache-2.0
//
// Contract P02 from frame to finding: each family's network finds a coloured square on frames of
// several sizes, through preprocessing, engine, decoder and inverse geometry. Boxes land within one
// source pixel, keypoints and turned boxes within one model pixel, masks on the very mask pixels (4
// x 4 model pixels) that the square covers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/exec/frame_inference.h"
#include "penstock/media/test_frames.h"
#include "penstock/model/testing/square_finders.h"

namespace penstock {
namespace {

using model_testing::BoxLayout;
using testing::make_device;
using testing::make_frame;
using testing::Picture;

constexpr int kModelSize = 160;

/// Full red, green and blue in BT.709 limited.
constexpr std::uint8_t kLevels[3][3] = {{63, 102, 240}, {173, 42, 26}, {32, 240, 118}};

struct Placed {
  int class_id, x, y, side;
};

Picture draw(int width, int height, const Placed& square) {
  const auto& level = kLevels[square.class_id];
  Picture picture(width, height, 126);
  for (int row = square.y; row < square.y + square.side; ++row) {
    for (int column = square.x; column < square.x + square.side; ++column) {
      picture.y_at(column, row) = level[0];
      const auto chroma = static_cast<std::size_t>(row / 2) * static_cast<std::size_t>(width / 2) +
                          static_cast<std::size_t>(column / 2);
      picture.u[chroma] = level[1];
      picture.v[chroma] = level[2];
    }
  }
  return picture;
}

/// Frame pixels a model pixel, and how many model pixels of padding are left of and above the
/// frame.
struct Placement {
  int scale, left, top;
};

class FamilySquares : public ::testing::TestWithParam<std::tuple<const char*, BoxLayout>> {
 protected:
  static BoxLayout layout() { return std::get<1>(GetParam()); }

  static Manifest load(Fit fit) {
    const auto folder = std::filesystem::path(::testing::TempDir()) /
                        str_format("penstock-family-{}-{}", to_string(layout()), getpid());
    const auto model = model_testing::make_square_finder(layout(), kModelSize);
    auto manifest = load_manifest(model_testing::write_model_folder(model, folder));
    EXPECT_TRUE(manifest) << manifest.error().message();
    if (!manifest) return {};
    manifest->preprocess.fit = fit;
    return *manifest;
  }

  void expect_found(const InferenceResult& result, const Placed& square, const Picture& picture,
                    const Placement& placement) {
    ASSERT_EQ(result.objects.size(), 1u);
    const Detection& found = result.objects.front();
    const bool one_class =
        layout() == BoxLayout::kMovenetSingle || layout() == BoxLayout::kMovenetMulti;
    EXPECT_EQ(found.class_id, one_class ? 0 : square.class_id);
    const int margin = static_cast<int>(box_margin(layout())) * placement.scale;
    const int x0 = std::max(0, square.x - margin), y0 = std::max(0, square.y - margin);
    const int x1 = std::min(picture.width, square.x + square.side + margin);
    const int y1 = std::min(picture.height, square.y + square.side + margin);
    EXPECT_NEAR(found.x, static_cast<float>(x0), 1.0f);
    EXPECT_NEAR(found.y, static_cast<float>(y0), 1.0f);
    EXPECT_NEAR(found.width, static_cast<float>(x1 - x0), 1.0f);
    EXPECT_NEAR(found.height, static_cast<float>(y1 - y0), 1.0f);
    expect_keypoints(found, square, static_cast<float>(placement.scale));
    expect_rotated(found, square, static_cast<float>(placement.scale));
    expect_mask(result, square, placement);
  }

  static void expect_keypoints(const Detection& found, const Placed& square, float tolerance) {
    const int count = keypoints_of(layout());
    ASSERT_EQ(found.keypoints.size(), static_cast<std::size_t>(count));
    for (int k = 0; k < count; ++k) {
      const auto place = model_testing::keypoint_place(count, k);
      const Keypoint& at = found.keypoints[static_cast<std::size_t>(k)];
      const auto side = static_cast<float>(square.side);
      EXPECT_NEAR(at.x, static_cast<float>(square.x) + place.x * side, tolerance) << k;
      EXPECT_NEAR(at.y, static_cast<float>(square.y) + place.y * side, tolerance) << k;
      if (layout() == BoxLayout::kYolov8Pose) {
        EXPECT_EQ(at.confidence, model_testing::kKeypointConfidence);
      } else if (layout() == BoxLayout::kEndToEndPose) {
        EXPECT_EQ(at.confidence, 1);
      } else {
        EXPECT_EQ(at.confidence, found.confidence);
      }
    }
  }

  static void expect_rotated(const Detection& found, const Placed& square, float tolerance) {
    const bool turned = layout() == BoxLayout::kYolov8Obb || layout() == BoxLayout::kEndToEndObb;
    ASSERT_EQ(found.rotated.has_value(), turned);
    if (!turned) return;
    const auto side = static_cast<float>(square.side);
    EXPECT_NEAR(found.rotated->center_x, static_cast<float>(square.x) + side / 2, tolerance);
    EXPECT_NEAR(found.rotated->center_y, static_cast<float>(square.y) + side / 2, tolerance);
    EXPECT_NEAR(found.rotated->width, side, tolerance);
    EXPECT_NEAR(found.rotated->height, side, tolerance);
    EXPECT_EQ(found.rotated->angle, 0);
  }

  void expect_mask(const InferenceResult& result, const Placed& square,
                   const Placement& placement) {
    const bool masked = layout() == BoxLayout::kYolov8Seg || layout() == BoxLayout::kEndToEndSeg;
    ASSERT_EQ(result.objects.front().mask, masked ? 0 : -1);
    ASSERT_EQ(result.device.masks.has_value(), masked);
    if (!masked) return;
    constexpr int kSide = kModelSize / 4;
    const Tensor& masks = *result.device.masks;
    ASSERT_EQ(to_string(masks.shape), str_format("[1,{},{}]", kSide, kSide));
    std::vector<std::uint8_t> levels(masks.data.size);
    const auto read = device_->read_back(std::as_writable_bytes(std::span(levels)), masks.data,
                                         {masks.ready}, TransferPurpose::kTestContent);
    ASSERT_TRUE(read) << read.error().message();
    for (int row = 0; row < kSide; ++row) {
      for (int column = 0; column < kSide; ++column) {
        // The mask pixel's middle in the frame.
        const int x = (column * 4 + 2 - placement.left) * placement.scale;
        const int y = (row * 4 + 2 - placement.top) * placement.scale;
        const bool inside = x >= square.x && x < square.x + square.side && y >= square.y &&
                            y < square.y + square.side;
        EXPECT_EQ(levels[static_cast<std::size_t>(row * kSide + column)] > 127, inside)
            << column << "," << row;
      }
    }
  }

  const DevicePtr device_ = make_device(std::get<0>(GetParam()));
};
class P02 : public FamilySquares {};

TEST_P(P02, GivenSquaresOnFramesOfManySizes_WhenInferred_ThenFindingsLandOnThemWithinAPixel) {
  struct Size {
    int width, height, scale;
  };
  int n = 0;
  for (const Fit fit : {Fit::kLetterboxCenter, Fit::kLetterboxTopLeft, Fit::kStretch}) {
    InferenceOptions options;
    options.workers = 1;
    auto inference = FrameInference::open(device_, load(fit), options);
    ASSERT_TRUE(inference) << inference.error().message();
    for (const Size size :
         {Size{160, 160, 1}, {320, 240, 2}, {240, 320, 2}, {640, 360, 4}, {480, 480, 3}}) {
      // Stretched, a square stays one in a square frame only.
      if (fit == Fit::kStretch && size.width != size.height) continue;
      const bool center = fit == Fit::kLetterboxCenter;
      const Placement placement{.scale = size.scale,
                                .left = center ? (kModelSize - size.width / size.scale) / 2 : 0,
                                .top = center ? (kModelSize - size.height / size.scale) / 2 : 0};
      for (const int stride : {8, 16}) {
        const int grid = stride * size.scale;
        // Where padding shifts the picture off the model's grid, the square starts off the frame's
        // by as much.
        const Placed square{.class_id = n % 3,
                            .x = grid * (1 + n % 2) - placement.left % stride * size.scale,
                            .y = grid * (1 + n % 2) - placement.top % stride * size.scale,
                            .side = 3 * grid};
        if (square.x + square.side > size.width || square.y + square.side > size.height) continue;
        SCOPED_TRACE(str_format("{}x{} stride {} fit {}", size.width, size.height, stride,
                                static_cast<int>(fit)));
        const Picture picture = draw(size.width, size.height, square);
        auto future =
            (*inference)
                ->executor()
                .submit({.frame = make_frame(*device_, picture, {.format = PixelFormat::kNv12}),
                         .roi = {},
                         .source = {"camera"},
                         .generation = 0},
                        WhenFull::kWait);
        ASSERT_TRUE(future);
        const auto result = future->get();
        ASSERT_TRUE(result) << result.error().message();
        expect_found(*result, square, picture, placement);
        ++n;
      }
    }
  }
  EXPECT_GE(n, 16);
}

std::string layout_name(const ::testing::TestParamInfo<std::tuple<const char*, BoxLayout>>& info) {
  return std::string(to_string(std::get<1>(info.param)));
}
const auto kLayouts = ::testing::Values(
    BoxLayout::kYolov5, BoxLayout::kYolov8, BoxLayout::kEndToEnd, BoxLayout::kYolox,
    BoxLayout::kRtdetr, BoxLayout::kRtdetrLogits, BoxLayout::kSsdList, BoxLayout::kSsdFour,
    BoxLayout::kYolov8Seg, BoxLayout::kEndToEndSeg, BoxLayout::kYolov8Pose,
    BoxLayout::kEndToEndPose, BoxLayout::kYolov8Obb, BoxLayout::kEndToEndObb,
    BoxLayout::kMovenetSingle, BoxLayout::kMovenetMulti);
INSTANTIATE_TEST_SUITE_P(cpu, P02, ::testing::Combine(::testing::Values("cpu"), kLayouts),
                         layout_name);
INSTANTIATE_TEST_SUITE_P(sim, P02, ::testing::Combine(::testing::Values("sim"), kLayouts),
                         layout_name);

}  // namespace
}  // namespace penstock
